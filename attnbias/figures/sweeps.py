"""Figures of sweeps: medians over seeds, exponent maps, and how long an idle row is felt."""

from __future__ import annotations

import numpy as np

from ..errors import RangeError
from .looks import HALO, INK, WIDTH, label_styles, new_figure, rule_style, styled

_MAP = "cividis"  # even in lightness, and the same to colour-blind readers


@styled
def plot_groups(table, x: str, y: str, by: str, *, log=(True, True), names=("", ""), guide=None):
    """Median of a column over seeds, with the whole range, along another column.

    Parameters
    ----------
    table : pandas.DataFrame
        From `attnbias.sweep`, or a part of one.
    x, y : str
        Columns; y is drawn as the median of each group and a band from least to largest.
    by : str
        Column that tells the lines apart.
    log : (bool, bool)
        Whether the axes are logarithmic.
    names : (str, str)
        Labels of the axes; the columns' names by default.
    guide : (float, str), optional
        A horizontal line, and what it is.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For a column that the table has not.

    Examples
    --------
    >>> import attnbias
    >>> from attnbias.figures import plot_groups
    >>> table = attnbias.sweep({"data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40],
    ...                                  "seed": "0:3"}, "rule": "NGD(0.1)", "steps": 10})
    >>> len(plot_groups(table, "d", "margin", "T").axes)
    1
    """
    for name in (x, y, by):
        if name not in table:
            raise RangeError(
                name, expected="a column of the table", got="none of that name",
                remedy="one of " + ", ".join(table.columns),
            )  # fmt: skip
    fig = new_figure((WIDTH, 4.0))
    axis = fig.subplots()
    groups = {str(key): rows.groupby(x)[y] for key, rows in table.groupby(by)}
    for label, look in label_styles(groups).items():
        middle = groups[label].median()
        ends = (groups[label].min(), groups[label].max())
        axis.fill_between(middle.index, *ends, color=look["color"], alpha=0.18, linewidth=0)
        axis.plot(middle.index, middle, label=f"{by} = {label}", **look)
    if guide is not None:
        _guide(axis, *guide)
    for set_scale, is_log in ((axis.set_xscale, log[0]), (axis.set_yscale, log[1])):
        set_scale("log" if is_log else "linear")
    axis.set_xlabel(names[0] or x)
    axis.set_ylabel(names[1] or y)
    fig.legend(loc="outside upper center", ncols=min(len(groups), 3), handlelength=3.2)
    return fig


def _guide(axis, value: float, text: str) -> None:
    axis.axhline(value, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    axis.annotate(text, (0.99, value), xycoords=("axes fraction", "data"), xytext=(0, 5),
                  textcoords="offset points", ha="right", fontsize=11,
                  path_effects=HALO)  # fmt: skip


@styled
def plot_exponent_map(table, decade: int, rules=None):
    """Median exponent of 1 - cosine over noise and features, a panel a rule, with its number.

    Parameters
    ----------
    table : pandas.DataFrame
        Part "map" of an `ExponentResult`.
    decade : int
        Over steps 10^decade to 10^(decade + 1).
    rules : sequence of str, optional
        All of the table by default.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rules = list(table["rule"].unique()) if rules is None else list(rules)
    rows = -(-len(rules) // 2)
    fig = new_figure((WIDTH, 0.7 + 2.15 * rows))
    axes = np.atleast_2d(fig.subplots(rows, 2, squeeze=False))
    for axis, rule in zip(axes.flat, rules, strict=False):
        cells = table[table["rule"] == rule].pivot_table(
            index="noise", columns="d", values=f"exponent_{decade}", aggfunc="median"
        )
        image = axis.imshow(cells, cmap=_MAP, vmin=-2.0, vmax=0.0, aspect="auto", origin="lower")
        for (i, j), value in np.ndenumerate(cells.to_numpy()):
            ink = "white" if value < -1 else "black"
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=10)
        n, T = table["n"].iloc[0], table["T"].iloc[0]
        axis.set_xticks(range(cells.shape[1]), [f"{n * T / d:.2g}" for d in cells.columns])
        axis.set_yticks(range(cells.shape[0]), [f"{noise:g}" for noise in cells.index])
        axis.set_title(rule)
        axis.grid(False)
    for axis in list(axes.flat)[len(rules) :]:
        axis.set_visible(False)
    fig.supxlabel("tokens over features, nT/d", fontsize=11.5)
    fig.supylabel("noise over signal", fontsize=11.5)
    bar = fig.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label("exponent")
    return fig


@styled
def plot_settling(table, decades, tolerance: float = 0.05):
    """Exponents over the height slack |W| Xi of the idle row, which tells all runs' story.

    Parameters
    ----------
    table : pandas.DataFrame
        Part "margins" of an `ExponentResult`, without slack 0.
    decades : sequence of int
        Those to draw: a dot a run and decade.
    tolerance : float
        Half width of the band about -2.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig = new_figure((WIDTH, 4.2))
    axis = fig.subplots()
    axis.axhspan(-2 - tolerance, -2 + tolerance, color="#e9e9e9", linewidth=0)
    for rule, runs in table.groupby("rule", sort=False):
        height = np.concatenate(
            [runs["slack"] * runs["margin"] * runs[f"norm_{k}"] for k in decades]
        )
        exponent = np.concatenate([runs[f"exponent_{k}"] for k in decades])
        look = rule_style(rule) | {"linestyle": "", "markersize": 4}
        axis.plot(height, exponent, label=rule, alpha=0.55, markeredgewidth=0, **look)
    axis.set_xscale("log")
    axis.set_xlabel(r"height of the idle row, slack $\times |W| \times \Xi$")
    axis.set_ylabel("exponent over one decade")
    fig.legend(loc="outside upper center", ncols=2)
    return fig


@styled
def plot_settled_steps(table):
    """The step from which the exponent stays near -2, over the slack, beside the law's.

    Parameters
    ----------
    table : pandas.DataFrame
        Runs of one NGD rule of part "margins" of an `ExponentResult`, without slack 0.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig = new_figure((WIDTH, 3.8))
    axis = fig.subplots()
    grouped = table.groupby("slack")
    middle = grouped["settled"].median()
    look = rule_style(str(table["rule"].iloc[0]))
    low, high = grouped["settled"].min(), grouped["settled"].max()
    axis.fill_between(middle.index, low, high, color=look["color"], alpha=0.18, linewidth=0)
    axis.plot(middle.index, middle, label="runs, median and range", **look)
    law = table[table["law_settled"] > 0].groupby("slack")["law_settled"].median()
    axis.plot(law.index, law, color=INK, linestyle="--", label="law of one idle row")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("slack of the nearest idle row")
    axis.set_ylabel("steps until the exponent is -2")
    fig.legend(loc="outside upper center", ncols=2)
    return fig
