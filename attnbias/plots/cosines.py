"""Histograms of token cosines beside what random directions would give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .._validate import require_choices
from ..experiments.cosines import random_density
from ..experiments.result import ExperimentResult, require_result
from .axes import shared_legend
from .theme import COLOURS, INK, WIDTH, Given, new_figure, styled

LOOKS = {
    "text": ("blue", "-", "pieces of one text"),
    "positions": ("vermillion", (0, (1, 1)), "all positions, with repeats"),
    "shuffled": ("orange", "--", "dealt anew over the texts"),
    "uniform": ("green", "-.", "drawn whatever their frequency"),
    "centred": ("purple", (0, (5, 1, 1, 1)), "mean embedding subtracted"),
}
LOWEST = 1e-3  # of the density that is drawn
MERGED = 4  # bins drawn as one


@styled
def plot_cosines(
    result: ExperimentResult,
    kinds: str | Sequence[str] = ("text", "shuffled", "uniform"),
    *,
    ax: Given = None,
) -> Figure:
    """Density of the cosine between two tokens, one panel a corpus.

    Parameters
    ----------
    result : ExperimentResult
        Of `attnbias.experiments.fig10`.
    kinds : sequence of str
        Kinds of pairs that are drawn; random directions always are.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a corpus; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure
        The density is on a log scale, so that the tail of alike tokens can be seen.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias.experiments import fig10
    >>> from attnbias.plots import plot_cosines
    >>> result = fig10.run(source="bundled", texts={"NLI": 20, "toxic": 10})
    >>> [axis.get_title("left") for axis in plot_cosines(result).axes]
    ['NLI', 'toxic']
    """
    remedy = 'run or load the experiment "fig10"'
    require_result(result, "cosines", remedy)
    kinds = require_choices("kinds", kinds, LOOKS)
    fig = new_figure((WIDTH, 3.9), ax)
    axes = fig.subplots(1, len(result.cosines), sharey=True, squeeze=False).ravel()
    for axis, (corpus, found) in zip(axes, result.cosines.items(), strict=True):
        _panel(axis, {kind: found[kind] for kind in kinds}, result.dimension)
        axis.set_title(corpus)
        axis.set_xlabel("cosine of two tokens")
    axes[0].set_ylabel("density")
    shared_legend(fig, axes[:1], columns=2)
    return fig


def _panel(axis, kinds: dict, dimension: int) -> None:
    for kind, cosines in kinds.items():
        colour, line, label = LOOKS[kind]
        density = cosines.density.reshape(-1, MERGED).mean(axis=1)
        middle = ((cosines.edges[:-1] + cosines.edges[1:]) / 2).reshape(-1, MERGED).mean(axis=1)
        drawn = np.where(density >= LOWEST, density, np.nan)
        axis.plot(middle, drawn, linestyle=line, color=COLOURS[colour], label=label)
        if kind == "text":
            axis.fill_between(middle, LOWEST, drawn, color=COLOURS[colour], alpha=0.12, linewidth=0)
    grid = np.linspace(-1, 1, 801)
    random = random_density(grid, dimension)
    random[random < LOWEST] = np.nan
    axis.plot(grid, random, ":", color=INK, label="random directions")
    axis.set(yscale="log", xlim=(-0.45, 1.0))
    axis.set_ylim(bottom=LOWEST)
