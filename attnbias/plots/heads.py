"""What heads do while they train."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._validate import require_choices, require_type
from ..nets import HeadTrace
from .axes import draw_panels
from .theme import COLOURS, INK, styled

# Of each quantity in a HeadTrace, what an axis calls it.
NAMES = {
    "entropy": "entropy of the attention",
    "saturation": "largest attention",
    "margin": "share of the margin",
    "cosine": r"cosine with $W_{mm}$",
    "cosine_span": r"cosine with $W_{mm}$ in the span",
    "cosine_end": r"cosine with the last $W_{mm}$",
    "norm": r"norm $\|W\|$",
    "path": r"path of $W$",
    "kept": "selects as at the end",
}


@styled()
def plot_heads(
    trace: HeadTrace,
    panels: str | Sequence[str] = ("saturation", "kept", "margin", "cosine_span"),
    *,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Every head of a model over the steps of its training, one panel a quantity.

    Parameters
    ----------
    trace : HeadTrace
    panels : sequence of str, or str
        Quantities of the trace.
    ax : Axes or sequence of Axes, one a panel, optional
        Of a figure of one's own, whose look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import HeadProbe
    >>> from attnbias.plots import plot_heads
    >>> layer, probe = torch.nn.MultiheadAttention(4, 2), HeadProbe(torch.randn(3, 5, 4))
    >>> for step in (0, 10):
    ...     probe(layer, step)
    >>> [axis.get_ylabel() for axis in plot_heads(probe.trace(), "path").axes]
    ['path of $W$']
    """
    require_type("trace", trace, HeadTrace, "a HeadTrace", "HeadProbe.trace() gives one")
    panels = require_choices("panels", panels, NAMES)

    def draw(axis, name: str) -> None:
        for k, values in enumerate(trace[name].T):
            axis.plot(
                trace.step,
                values,
                color=COLOURS["sky"],
                linewidth=0.8,
                label=None if k else "each head",
            )
        known = ~np.isnan(trace[name]).all(axis=1)
        middle = np.nanmedian(trace[name][known], axis=1)
        axis.plot(trace.step[known], middle, color=INK, label="median")
        axis.set(xlabel="step t", ylabel=NAMES[name])

    return draw_panels(panels, draw, ax, xlabel="", handlelength=None)
