"""Several heads: where each turns, how two nearly equal ones differ, and heads of an encoder."""

from __future__ import annotations

import numpy as np

from ..._validate import require_number
from ...plots.axes import shared_legend
from ...plots.theme import COLOURS, FAINT, WIDTH, new_figure, styled
from ..common.arguments import require_kind
from ..common.plots import arrays, by_label, draw_runs
from .result import HeadResult


@styled(errors=by_label(arrays(2)), differences=by_label(arrays(2)), limit=require_number)
def plot_heads(errors, differences, limit=None):
    """1 - cosine of heads with SVMs, and the difference of two heads over that at the start.

    Parameters
    ----------
    errors : dict
        Label to (step, 1 - cosine).
    differences : dict
        Label to (step, difference over its start).
    limit : float, optional
        The largest difference that is expected, drawn as a line.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias.beyond.heads.plots import plot_heads
    >>> len(plot_heads({"a": ([1, 10], [1, 0.1])}, {"b": ([1, 10], [1, 2])}).axes)
    2
    """
    fig = new_figure((WIDTH, 4.6))
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
    "cosine_span": "cosine with $W_{mm}$, in the span",
    "margin": "share of the largest margin",
}


@styled
def plot_head_table(result: HeadResult):
    """Cosine with W_mm and share of the margin, a dot a head, over the layers.

    Parameters
    ----------
    result : HeadResult
        Of `attnbias.beyond.heads.experiments`.

    Returns
    -------
    matplotlib.figure.Figure
        The band holds nine of ten heads at a random start.

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments
    >>> from attnbias.beyond.heads.plots import plot_head_table
    >>> result = experiments.run("heads", model="tiny", sentences=4, random=1)
    >>> len(plot_head_table(result).axes)
    2
    """
    require_kind("result", result, HeadResult, 'run or load the experiment "heads"')
    fig = new_figure((WIDTH, 3.6))
    layers = result.column("layer")
    for axis, (name, words) in zip(fig.subplots(1, 2), PANELS.items(), strict=True):
        low, high = np.quantile(result.column(name, random=True), [0.05, 0.95])
        axis.axhspan(low, high, color="#d9d9d9", linewidth=0, label="random start, 90%")
        axis.plot(
            layers, result.column(name), "o", color=COLOURS["blue"], alpha=0.6,
            markersize=4, label="trained head",
        )  # fmt: skip
        axis.set(xlabel="layer", ylabel=words)
    shared_legend(fig, [axis], columns=2)
    return fig


plot_result = plot_head_table  # what `attnbias figure heads` draws
