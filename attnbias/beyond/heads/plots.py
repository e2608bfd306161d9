"""Several heads: where each turns, how two nearly equal ones differ, and heads of an encoder."""

from __future__ import annotations

import numpy as np

from ..._validate import require_number
from ...experiments.result import ExperimentResult
from ...plots.axes import MaxNLocator
from ...plots.theme import (
    FAINT,
    MAP,
    ON_DARK,
    ON_LIGHT,
    WIDTH,
    Given,
    new_figure,
    styled,
    withStroke,
)
from ..common.plots import arrays, by_label, draw_runs
from .columns import column


@styled(errors=by_label(arrays(2)), differences=by_label(arrays(2)), limit=require_number)
def plot_head_runs(errors, differences, limit=None, *, ax: Given = None):
    """1 - cosine of heads with SVMs, and the difference of two heads over that at the start.

    Parameters
    ----------
    errors : dict
        Label to (step, 1 - cosine).
    differences : dict
        Label to (step, difference over its start).
    limit : float, optional
        The largest difference that is expected, drawn as a line.
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
    >>> from attnbias.beyond.heads.plots import plot_head_runs
    >>> len(plot_head_runs({"a": ([1, 10], [1, 0.1])}, {"b": ([1, 10], [1, 2])}).axes)
    2
    """
    fig = new_figure((WIDTH, 4.6), ax)
    axes = fig.subplots(1, 2)
    for axis, runs in zip(axes, (errors, differences), strict=True):
        draw_runs(axis, runs)
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    if limit is not None:
        axes[1].axhline(limit, color=FAINT, linestyle="--", linewidth=1.2)
    axes[0].set_ylabel("1 - cosine")
    axes[1].set_ylabel("difference over its start")
    return fig


PANELS = {
    "attention": "saturation",
    "cosine_span": "cosine, in the span",
    "margin": "share of the margin",
}


@styled
def plot_head_table(result: ExperimentResult, *, ax: Given = None):
    """Saturation, cosine with W_mm and share of the margin of each head, layers by heads.

    Parameters
    ----------
    result : ExperimentResult
        Of `attnbias.beyond.heads.experiments`.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure
        In the last two a dot is on heads above nine in ten random ones, a bar on those below as
        many. Of several queries the mean is shown.

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments
    >>> from attnbias.beyond.heads.plots import plot_head_table
    >>> result = experiments.run("heads", model="tiny", sentences=4, random=1)
    >>> len(plot_head_table(result).axes)  # three maps, each with its bar of colours
    6
    """
    layers = len(set(column(result, "layer")))
    fig = new_figure((WIDTH, 1.6 + min(0.14 * layers + 1, 6)), ax)
    for axis, (name, words) in zip(fig.subplots(1, 3, sharey=True), PANELS.items(), strict=True):
        cells = result.to_dataframe()[name].groupby(level=[0, 1]).mean().unstack()
        image = axis.imshow(cells, cmap=MAP, aspect="auto", vmin=0)
        if name != "attention":  # that of a random head is a matter of its size
            _mark(axis, cells, *np.quantile(column(result, name, random=True), [0.1, 0.9]))
        axis.grid(False)
        axis.set(xlabel="head", title=words)
        axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axis.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        fig.colorbar(image, ax=axis, location="bottom", ticks=MaxNLocator(3))
    fig.axes[0].set_ylabel("layer")
    fig.supxlabel("dot: above nine in ten random heads; bar: below nine in ten", fontsize=10.5)
    return fig


def _mark(axis, cells, low: float, high: float) -> None:
    """A dot on the cells above the band, a bar on those below, by day and by night."""
    halo = [withStroke(linewidth=2.5, foreground=ON_DARK)]
    for marked, mark in ((cells > high, "."), (cells < low, "_")):
        rows, columns = np.nonzero(marked.to_numpy())
        axis.plot(columns, rows, mark, color=ON_LIGHT, markersize=4, path_effects=halo)


plot_result = plot_head_table  # what `attnbias figure heads` draws
