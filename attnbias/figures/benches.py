"""Figures of `make bench`: how far each number is from its target."""

from __future__ import annotations

import matplotlib as mpl

from ..errors import RangeError
from .looks import COLOURS, INK, WIDTH, new_figure, styled

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
    >>> from attnbias.figures.benches import margin
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
    >>> from attnbias.figures.benches import plot_targets
    >>> row = {"group": "late", "name": "a", "value": 2.0, "target": 1.4, "at_least": True}
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
