"""Every head of an encoder beside its W_mm, and beside heads at a random start."""

from __future__ import annotations

import numpy as np

from .._validate import short
from ..beyond.heads.result import HeadResult
from ..errors import DtypeError
from .looks import COLOURS, WIDTH, new_figure, styled

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
    >>> from attnbias.figures import plot_head_table
    >>> result = experiments.run("heads", model="tiny", sentences=4, random=1)
    >>> len(plot_head_table(result).axes)
    2
    """
    if not isinstance(result, HeadResult):
        raise DtypeError(
            "result", expected="a HeadResult", got=short(result),
            remedy='run or load the experiment "heads"',
        )  # fmt: skip
    fig = new_figure((WIDTH, 3.6))
    layers = result.column("layer")
    for axis, (name, words) in zip(fig.subplots(1, 2), PANELS.items(), strict=True):
        low, high = np.quantile(result.column(name, random=True), [0.05, 0.95])
        axis.axhspan(low, high, color="#d9d9d9", linewidth=0, label="random start, 90%")
        axis.plot(
            layers, result.column(name), "o", color=COLOURS["blue"], alpha=0.6,
            markersize=4, label="trained head",
        )  # fmt: skip
        axis.set_xlabel("layer")
        axis.set_ylabel(words)
    handles, labels = axis.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=2)
    return fig
