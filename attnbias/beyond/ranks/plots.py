"""Figures of ranks: over features for two norms, and what training leaves outside the rank."""

from __future__ import annotations

from ..._validate import require_number
from ...experiments.result import ExperimentResult
from ...plots.theme import COLOURS, INK, MARKS, WIDTH, Given, new_figure, styled
from ..common.plots import arrays, by_label, table
from .claims import mean_ranks

NORMS = ("Frobenius", "nuclear")


@styled(ours=table("n", "d", *NORMS), theirs=table("n", "d", *NORMS))
def plot_ranks(ours, theirs=None, *, ax: Given = None):
    """Mean ranks over the number of features, a panel a norm, a line a number of sequences.

    Parameters
    ----------
    ours, theirs : pandas.DataFrame
        With columns n, d, Frobenius and nuclear; `theirs` is drawn as hollow markers.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Without these columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from attnbias.beyond.ranks.plots import plot_ranks
    >>> table = pd.DataFrame({"n": [5, 5], "d": [2, 4], "Frobenius": [2, 4], "nuclear": [1, 2]})
    >>> len(plot_ranks(table).axes)
    2
    """
    fig = new_figure((WIDTH, 4.4), ax)
    axes = fig.subplots(1, 2, sharey=True)
    for axis, title in zip(axes, NORMS, strict=True):
        for (n, part), (colour, mark) in zip(ours.groupby("n"), MARKS, strict=False):
            look = {"color": COLOURS[colour], "marker": mark}
            axis.plot(part["d"], part[title], label=f"n = {n}", **look)
            if theirs is not None:
                other = theirs[theirs["n"] == n]
                axis.plot(
                    other["d"],
                    other[title],
                    linestyle=":",
                    linewidth=1.0,
                    markerfacecolor="white",
                    markersize=7,
                    zorder=1,
                    **look,
                )
        axis.set(title=title, xlabel="features d")
    axes[0].set_ylabel("mean rank of the solution")
    axes[0].legend(loc="upper left")
    return fig


def _run(name: str, value) -> tuple:
    """Arrays of norm and share, and an exponent."""
    *series, exponent = value if isinstance(value, tuple | list) and len(value) == 3 else (None,)
    return *arrays(2)(name, series), require_number(f"exponent of {name}", exponent)


@styled(runs=by_label(_run))
def plot_left_over(runs, *, ax: Given = None):
    """Share of the nuclear norm outside the leading directions against the nuclear norm.

    Parameters
    ----------
    runs : dict
        Label to (nuclear norm, share, exponent); through the last point a thin line with that
        exponent is drawn.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias.beyond.ranks.plots import plot_left_over
    >>> len(plot_left_over({"a": ([1, 10], [1, 0.1], -1.0)}).axes)
    1
    """
    fig = new_figure((WIDTH, 3.8), ax)
    axis = fig.subplots()
    for (label, (norm, share, exponent)), (colour, mark) in zip(runs.items(), MARKS, strict=False):
        axis.loglog(norm, share, color=COLOURS[colour], marker=mark, label=label, markersize=4)
        axis.loglog(
            norm,
            share[-1] * (norm / norm[-1]) ** exponent,
            color=INK,
            linewidth=0.9,
            linestyle="--",
        )
    axis.set(xlabel="nuclear norm of W", ylabel="share outside the rank")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def plot_result(result: ExperimentResult):
    """What `attnbias figure ranks` draws: the mean ranks of both norms."""
    return plot_ranks(mean_ranks(result.table))
