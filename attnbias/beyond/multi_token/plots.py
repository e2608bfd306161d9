"""Figures of heads that keep several tokens: runs on one data set, and directions on many."""

from __future__ import annotations

import functools

from ..._validate import as_numbers, require_int
from ...plots.theme import COLOURS, INK, MARKS, WIDTH, Given, new_figure, styled
from ..common.plots import arrays, by_label, draw_runs


@styled(
    runs=by_label(arrays(2)),
    medians=by_label(by_label(functools.partial(as_numbers, shape=()))),
    predicted=arrays(2),
)
def plot_several(runs, medians, predicted=None, *, ax: Given = None):
    """1 - cosine with the several-token SVM along runs, and with several candidates on many seeds.

    Parameters
    ----------
    runs : dict
        Label to (step, 1 - cosine).
    medians : dict
        Of at most seven labels, to a dict from a candidate direction's name to its median
        1 - cosine.
    predicted : (step, 1 - cosine), optional
        Drawn as a dashed line on the left.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias.beyond.multi_token.plots import plot_several
    >>> len(plot_several({"a": ([1, 10], [1, 0.1])}, {"d = 4": {"one token": 0.2}}).axes)
    2
    """
    require_int("number of labels in medians", len(medians), low=1, high=len(MARKS))
    fig = new_figure((WIDTH, 4.4), ax)
    left, right = fig.subplots(1, 2)
    draw_runs(left, runs)
    if predicted is not None:
        left.loglog(*predicted, color=INK, linestyle=":", linewidth=2.2, label="predicted")
    left.set_ylabel("1 - cosine")
    names = list(next(iter(medians.values())))
    for (label, given), (colour, marker) in zip(medians.items(), MARKS, strict=False):
        values = [given[name] for name in names]
        right.semilogy(
            range(len(names)),
            values,
            color=COLOURS[colour],
            marker=marker,
            linestyle="none",
            label=label,
        )
    right.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    right.set_xlim(-0.5, len(names) - 0.5)
    for axis in (left, right):
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1.4)
    return fig
