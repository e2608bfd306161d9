"""Figures of `make bench`: how far each number is from its target, and what sharing gains."""

from __future__ import annotations

import matplotlib as mpl

from attnbias.errors import RangeError
from attnbias.plots.series import require_columns
from attnbias.plots.theme import COLOURS, FAINT, HALO, INK, MARKS, WIDTH, new_figure, styled

_MET, _MISSED = ("blue", "o"), ("vermillion", "X")
_LANES = 5  # heights that dots of one group take in turn, so that they don't hide each other


def margin(row: dict) -> float:
    """How many times better than its target a figure is; below 1 it is missed.

    Parameters
    ----------
    row : dict
        With value, target and at_least.

    Returns
    -------
    float

    Examples
    --------
    >>> from benchmarks.plots import margin
    >>> margin({"value": 2.0, "target": 4.0, "at_least": False})
    2.0
    """
    value, target = row["value"], row["target"]
    return value / target if row["at_least"] else target / value


@styled
def plot_targets(rows):
    """Each benchmark as a dot: how many times better than its target, group by group.

    Parameters
    ----------
    rows : sequence of dict
        Of a file that `python -m benchmarks --write` made: with group, name, value, target and
        at_least. Those without a target, or with a value of 0, are left out.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        When none has a target.

    Examples
    --------
    >>> from benchmarks.plots import plot_targets
    >>> row = {"group": "sharing", "name": "a", "value": 2.0, "target": 1.4, "at_least": True}
    >>> len(plot_targets([row]).axes)
    1
    """
    rows = [row for row in rows if row["target"] is not None and row["value"] > 0]
    if not rows:
        raise RangeError("rows", expected="at least one with a target", got="none",
                         remedy="record some by python -m benchmarks --write")  # fmt: skip
    groups = list(dict.fromkeys(row["group"] for row in rows))
    fig = new_figure((WIDTH, 1.3 + 0.5 * len(groups)))
    axis = fig.subplots()
    axis.axvline(1.0, color=INK, linewidth=1.2)
    for y, group in enumerate(groups):
        own = [row for row in rows if row["group"] == group]
        for k, row in enumerate(own):
            good = margin(row) >= 1
            colour, marker = _MET if good else _MISSED
            height = y + 0.11 * (k % _LANES - (min(len(own), _LANES) - 1) / 2)
            axis.plot(margin(row), height, color=COLOURS[colour], marker=marker, zorder=3 - good,
                      markersize=6 if good else 8, markeredgewidth=0)  # fmt: skip
    axis.set_xscale("log")
    margins = [margin(row) for row in rows]
    steps = (1.0,) if max(margins) > 20 * min(margins) else (1.0, 2.0, 5.0)
    axis.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=steps))
    axis.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axis.set_yticks(range(len(groups)), groups)
    axis.set_ylim(len(groups) - 0.5, -0.5)
    axis.grid(False, axis="y")
    axis.set_xlabel("times better than the target")
    marks = [(_MET, 6, "met"), (_MISSED, 8, "missed")]
    handles = [
        mpl.lines.Line2D([], [], linestyle="", color=COLOURS[colour], marker=marker,
                         markersize=size, markeredgewidth=0, label=label)
        for (colour, marker), size, label in marks
    ]  # fmt: skip
    fig.legend(handles=handles, loc="outside upper center", ncols=2)
    return fig


@styled
def plot_sharing(table, target: float | None = None):
    """How much faster runs are for sharing the Gram matrix, beside what the machine allows.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns N (rows), runs (that share), gain (measured) and limit.
    target : float, optional
        Drawn as a horizontal line.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For a column that is missing.

    Examples
    --------
    >>> import pandas
    >>> from benchmarks.plots import plot_sharing
    >>> some = {"N": [50, 900], "runs": [4, 4], "gain": [1.5, 2.9], "limit": [1.6, 3.8]}
    >>> len(plot_sharing(pandas.DataFrame(some)).axes)
    1
    """
    require_columns(table, "N", "runs", "gain", "limit")
    fig = new_figure((WIDTH, 4.0))
    axis = fig.subplots()
    for (runs, rows), (colour, marker) in zip(table.groupby("runs"), MARKS, strict=False):
        rows = rows.sort_values("N")
        axis.plot(rows["N"], rows["gain"], color=COLOURS[colour], marker=marker,
                  label=f"{runs} runs, measured")  # fmt: skip
        axis.plot(rows["N"], rows["limit"], color=COLOURS[colour], linestyle="--",
                  label=f"{runs} runs, limit")  # fmt: skip
    if target is not None:
        axis.axhline(target, color=FAINT, linewidth=1.2, linestyle=":")
        axis.annotate("target", (0.99, target), xycoords=("axes fraction", "data"),
                      xytext=(0, 4), textcoords="offset points", ha="right", color=INK,
                      path_effects=HALO)  # fmt: skip
    sizes = sorted(table["N"].unique())
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.set_xlabel("rows $N'$ of the Gram matrix")
    axis.set_ylabel("time alone over time shared")
    fig.legend(loc="outside upper center", ncols=2, handlelength=3.2)
    return fig
