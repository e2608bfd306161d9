"""Figures of several heads: where each turns, and how two nearly equal ones differ."""

from __future__ import annotations

import numpy as np

from ..errors import DtypeError
from .looks import FAINT, WIDTH, label_styles, new_figure, styled


@styled
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
    >>> from attnbias.figures.heads import plot_heads
    >>> len(plot_heads({"a": ([1, 10], [1, 0.1])}, {"b": ([1, 10], [1, 2])}).axes)
    2
    """
    for name, runs in (("errors", errors), ("differences", differences)):
        if not isinstance(runs, dict) or not runs:
            raise DtypeError(
                name, expected="a dict of runs", got=type(runs).__name__,
                remedy="{label: (step, values)}",
            )  # fmt: skip
    fig = new_figure((WIDTH, 4.6))
    axes = fig.subplots(1, 2)
    for axis, runs in zip(axes, (errors, differences), strict=True):
        for label, look in label_styles(runs).items():
            step, values = (np.asarray(part, dtype=float) for part in runs[label])
            axis.loglog(step[step > 0], values[step > 0], label=label, **look | {"markersize": 3})
        axis.set_xlabel("step t")
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    if limit is not None:
        axes[1].axhline(limit, color=FAINT, linestyle="--", linewidth=1.2)
    axes[0].set_ylabel("1 - cosine")
    axes[1].set_ylabel("difference over its start")
    return fig
