"""Figures of next-token prediction: the direction, and what settles within a component."""

from __future__ import annotations

from ...plots.axes import shared_legend
from ...plots.theme import WIDTH, Given, new_figure, styled
from ..common.plots import arrays, by_label, draw_runs


@styled(runs=by_label(arrays(3)))
def plot_hard_and_soft(runs, *, ax: Given = None):
    """1 - cosine with the graph SVM, and the distance of the finite part from its target.

    Parameters
    ----------
    runs : dict
        Label to (step, alignment error, distance), three arrays of one length.
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
    >>> from attnbias.beyond.next_token.plots import plot_hard_and_soft
    >>> len(plot_hard_and_soft({"GD(0.5)": ([1, 10], [0.5, 0.1], [0.2, 0.1])}).axes)
    2
    """
    fig = new_figure((WIDTH, 3.6), ax)
    left, right = fig.subplots(1, 2)
    draw_runs(left, runs)
    draw_runs(right, runs, part=2)
    left.set_ylabel("1 - cosine with the SVM")
    right.set_ylabel("distance of the finite part")
    shared_legend(fig, [left], columns=min(len(runs), 3))
    return fig
