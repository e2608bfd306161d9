"""How often random tokens are feasible, beside the law that counts."""

from __future__ import annotations

import numpy as np

from ..._validate import require_int
from ...plots.axes import shared_legend
from ...plots.theme import COLOURS, WIDTH, Given, new_figure, styled
from ..common.plots import function, table

_LOOKS = (("blue", "o", "-"), ("vermillion", "s", "--"), ("green", "^", "-."))


@styled(table=table("d", "rows", "share", "count"), law=function)
def plot_feasible_share(table, law, *, ax: Given = None):
    """Share of feasible data sets over rows and unknowns, with the law as lines.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a kind of data: d, rows (number of constraints), share (of feasible data sets)
        and count (of data sets); at most three values of d.
    law : callable
        From rows and unknowns d^2 to a probability.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure
        Bars are two standard deviations of a share of so many at the law's probability.

    Raises
    ------
    RangeError
        For a column that is missing, or more than three d.

    Examples
    --------
    >>> import pandas
    >>> from attnbias.beyond.overparam.plots import plot_feasible_share
    >>> from attnbias.beyond.overparam.geometry import wendel_share
    >>> table = pandas.DataFrame({"d": 2, "rows": [4, 8], "share": [1.0, 0.5], "count": 100})
    >>> len(plot_feasible_share(table, wendel_share).axes)
    1
    """
    groups = list(table.groupby("d"))
    require_int("number of values of d", len(groups), low=1, high=len(_LOOKS))
    fig = new_figure((WIDTH, 3.6), ax)
    axis = fig.subplots()
    for (d, part), (colour, marker, line) in zip(groups, _LOOKS, strict=False):
        rows = np.arange(1, int(part["rows"].max()) + 1)
        axis.plot(
            rows / d**2, [law(int(n), int(d) ** 2) for n in rows], line, color=COLOURS[colour]
        )
        sure = np.array([law(int(n), int(d) ** 2) for n in part["rows"]])
        spread = 2 * np.sqrt(sure * (1 - sure) / part["count"])
        axis.errorbar(
            part["rows"] / d**2,
            part["share"],
            yerr=spread,
            fmt=marker,
            color=COLOURS[colour],
            markersize=7,
            label=f"d = {d}",
        )
    words = r"constraints over unknowns, $n(T-1)/d^2$"
    axis.set(xlabel=words, ylabel="share of feasible data sets")
    shared_legend(fig, fig.axes, columns=3)
    return fig
