"""Figures of two layers: which start ends at which query, and how slowly layer one grows."""

from __future__ import annotations

from ...plots.theme import COLOURS, FAINT, INK, WIDTH, Given, new_figure, styled
from ..common.plots import arrays, by_label


@styled(starts=arrays(3), edge=arrays(2), growth=by_label(arrays(2)), limit=arrays(2))
def plot_depth(starts, edge, growth, limit, *, ax: Given = None):
    """The plane of a token pair with its separatrix, and layer one's gap along layer two's norm.

    Parameters
    ----------
    starts : (w, delta, token) of (n,) arrays
        Each start, and the token (0 or 1) that layer one selected in the end.
    edge : (w, delta) of arrays
        The separatrix.
    growth : dict
        Label to (norm of W_2, gap of layer one).
    limit : (norm, gap) of arrays
        The predicted gap, drawn dashed.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError, ShapeError

    Examples
    --------
    >>> from attnbias.beyond.depth.plots import plot_depth
    >>> line = ([1.0, 2.0], [0.0, 1.0])
    >>> len(plot_depth(([0.0], [1.0], [0]), line, {"a": line}, line).axes)
    2
    """
    w, delta, token = starts
    fig = new_figure((WIDTH, 4.4), ax)
    left, right = fig.subplots(1, 2)
    looks = (("first token", "blue", "o"), ("second token", "vermillion", "s"))
    for value, (label, colour, marker) in enumerate(looks):
        chosen = token == value
        left.plot(w[chosen], delta[chosen], marker, color=COLOURS[colour], ls="", label=label)
    left.plot(*edge, color=INK, linewidth=1.5)
    left.set(xlabel="start: gap w of layer one", ylabel="start: lead $\\delta$ in layer two")
    styles = zip(("-", "-."), ("green", "purple"), strict=True)
    for (label, (norm, gap)), (line, colour) in zip(growth.items(), styles, strict=False):
        right.plot(norm, gap, line, color=COLOURS[colour], label=label)
    right.plot(*limit, color=FAINT, linestyle="--", linewidth=2.2, label="predicted")
    right.set(xscale="log", xlabel="norm of $W_2$", ylabel="gap of layer one")
    for axis in (left, right):
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig
