"""Exponents over noise and features, and how long an idle row is felt."""

from __future__ import annotations

from functools import partial

from ..._validate import require_int, require_number
from ...experiments.result import ExperimentResult
from ...plots.axes import shared_legend
from ...plots.series import require_columns, several
from ...plots.theme import INK, WIDTH, Given, new_figure, rule_family, rule_style, styled
from ..common.plots import draw_cells, table
from .claims import heights


@styled(table=table("rule", "noise", "d", "n", "T"), decade=partial(require_int, low=0))
def plot_exponent_map(table, decade: int, *, ax: Given = None):
    """Median exponent of 1 - cosine over noise and features, a panel a rule, with its number.

    Parameters
    ----------
    table : pandas.DataFrame
        Part "map" of a result of "exponents".
    decade : int
        Over steps 10^decade to 10^(decade + 1).
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pandas
    >>> from attnbias.beyond.exponents.plots import plot_exponent_map
    >>> table = pandas.DataFrame({"rule": "NGD", "noise": [0.1, 0.2], "d": [50, 50], "n": 4, "T": 3,
    ...                           "exponent_3": [-2.0, -1.5]})
    >>> len(plot_exponent_map(table, 3).axes) > 1
    True
    """
    require_columns(table, f"exponent_{decade}")
    rules = table.groupby("rule", sort=False)
    rows = -(-len(rules) // 2)
    fig = new_figure((WIDTH, 0.7 + 2.15 * rows), ax)
    axes = fig.subplots(rows, 2, squeeze=False)
    for axis, (rule, runs) in zip(axes.flat, rules, strict=False):
        cells = runs.pivot_table(
            index="noise", columns="d", values=f"exponent_{decade}", aggfunc="median"
        )
        image = draw_cells(axis, cells, -2.0, 0.0, -1.0, origin="lower", size=10)
        n, T = table["n"].iloc[0], table["T"].iloc[0]
        axis.set_xticks(range(cells.shape[1]), [f"{n * T / d:.2g}" for d in cells.columns])
        axis.set_yticks(range(cells.shape[0]), [f"{noise:g}" for noise in cells.index])
        axis.set_title(rule)
    for axis in list(axes.flat)[len(rules) :]:
        axis.set_visible(False)
    fig.supxlabel("tokens over features, nT/d", fontsize=11.5)
    fig.supylabel("noise over signal", fontsize=11.5)
    fig.colorbar(image, ax=axes, shrink=0.6, pad=0.02, label="exponent")
    return fig


def _decades(name: str, value) -> list[int]:
    found = several(name, value, "decades") or [None]  # none of them is refused as None is
    return [require_int(name, each, low=0) for each in found]


@styled(table=table("rule", "settling_rate", "margin"), decades=_decades, tolerance=require_number)
def plot_settling(table, decades, tolerance: float = 0.05, *, ax: Given = None):
    """Exponents over the e-folds rate |W| Xi, a dot a run and decade.

    Parameters
    ----------
    table : pandas.DataFrame
        Runs of a result of "exponents".
    decades : sequence of int
        Those to draw.
    tolerance : float
        Half width of the band about -2.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pandas
    >>> from attnbias.beyond.exponents.plots import plot_settling
    >>> table = pandas.DataFrame({"rule": ["NGD"], "settling_rate": [0.5], "norm_3": [100.0],
    ...                           "n": [4], "T": [3], "d": [50], "margin": [0.5],
    ...                           "exponent_3": [-2.0]})
    >>> len(plot_settling(table, [3]).axes)
    1
    """
    require_columns(table, *(f"{name}_{k}" for k in decades for name in ("norm", "exponent")))
    fig = new_figure((WIDTH, 4.4), ax)
    axis = fig.subplots()
    axis.axhspan(-2 - tolerance, -2 + tolerance, color="#d9d9d9", linewidth=0)
    found = heights(table, decades)
    kinds = found["rule"].map(rule_family)
    for kind, dots in found[found["height"] > 0].groupby(kinds, sort=False):
        look = rule_style(kind) | {"linestyle": "", "markersize": 3.5, "markeredgewidth": 0}
        axis.plot(dots["height"], dots["exponent"], label=kind, alpha=0.5, **look)
    axis.set(xscale="log", xlabel=r"e-folds: settling rate $\times\ \Xi |W|$")
    axis.set_ylabel("exponent over one decade")
    shared_legend(fig, fig.axes, columns=2, markerscale=1.6)
    return fig


@styled(table=table("rule", "slack", "settled", "law_settled"))
def plot_settled_steps(table, *, ax: Given = None):
    """The step from which the exponent stays near -2, over the slack, beside the law's.

    Parameters
    ----------
    table : pandas.DataFrame
        Runs of one NGD rule of part "margins" of a result of "exponents", without slack 0.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pandas
    >>> from attnbias.beyond.exponents.plots import plot_settled_steps
    >>> table = pandas.DataFrame({"rule": "NGD", "slack": [0.1, 0.5], "settled": [900.0, 80.0],
    ...                           "law_settled": [1000.0, 90.0]})
    >>> plot_settled_steps(table).axes[0].get_xscale()
    'log'
    """
    fig = new_figure((WIDTH, 3.8), ax)
    axis = fig.subplots()
    found = table.groupby("slack")["settled"].agg(["min", "median", "max"])
    look, band = rule_style(str(table["rule"].iloc[0])), {"alpha": 0.18, "linewidth": 0}
    axis.fill_between(found.index, found["min"], found["max"], color=look["color"], **band)
    axis.plot(found.index, found["median"], label="runs, median and range", **look)
    law = table[table["law_settled"] > 0].groupby("slack")["law_settled"].median()
    axis.plot(law.index, law, color=INK, linestyle="--", label="law of one idle row")
    axis.set(xscale="log", xlabel="slack of the nearest idle row")
    axis.set(yscale="log", ylabel="steps until the exponent is -2")
    fig.legend(loc="outside upper center", ncols=2)
    return fig


def plot_result(result: ExperimentResult):
    """What `attnbias figure exponents` draws: the map over the fourth decade."""
    return plot_exponent_map(result.table[result.table["part"] == "map"], 3)
