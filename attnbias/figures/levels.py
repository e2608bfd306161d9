"""Measured lines beside the levels that were predicted for them."""

from __future__ import annotations

import numpy as np

from ..errors import RangeError
from .looks import COLOURS, WIDTH, new_figure, styled

_LOOKS = tuple(zip(
    ("blue", "vermillion", "green", "purple", "black", "orange", "sky"),
    ("o", "s", "^", "D", "v", "P", "X"), strict=True,
))  # fmt: skip


@styled
def plot_levels(panels, *, names, log=(True, True), height=3.9):
    """Lines over steps, each with its predicted level or curve dashed in the same colour.

    Parameters
    ----------
    panels : list of dict
        One panel each: a label to (x, y, predicted), arrays, and a number, an array or None.
        A label has the same colour and marker in every panel.
    names : list of (str, str)
        Labels of the two axes of each panel.
    log : (bool, bool) or list of such
        Whether the axes are logarithmic, for all panels or for each.
    height : float
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Without a panel, with more than seven labels, or with other than one pair of names a
        panel.

    Examples
    --------
    >>> from attnbias.figures import plot_levels
    >>> fig = plot_levels([{"a": ([1, 10], [3, 2], 2.0)}], names=[("step", "value")])
    >>> len(fig.axes)
    1
    """
    labels = list(dict.fromkeys(label for panel in panels for label in panel))
    if not panels or len(names) != len(panels) or not 0 < len(labels) <= len(_LOOKS):
        raise RangeError(
            "panels", expected="panels with one to seven labels, and names for each panel",
            got=f"{len(panels)} panels, {len(labels)} labels, {len(names)} pairs of names",
            remedy="draw fewer lines in one figure",
        )  # fmt: skip
    scales = [log] * len(panels) if isinstance(log, tuple) else log
    fig = new_figure((WIDTH, height))
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel, words, (log_x, log_y) in zip(axes, panels, names, scales, strict=True):
        for label, (x, y, predicted) in panel.items():
            colour, marker = _LOOKS[labels.index(label)]
            look = {"color": COLOURS[colour], "marker": marker, "markevery": 0.17}
            axis.plot(x, y, label=label, **look)
            if predicted is not None:
                level = np.broadcast_to(np.asarray(predicted, dtype=float), np.shape(x))
                axis.plot(x, level, color=COLOURS[colour], linestyle="--", linewidth=1.2)
        axis.set_xscale("log" if log_x else "linear")
        axis.set_yscale("log" if log_y else "linear")
        axis.set_xlabel(words[0])
        axis.set_title(words[1])
    shown = {}
    for axis in axes:
        shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    fig.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=3)
    return fig
