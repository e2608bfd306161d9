"""How many members each of a few sets has along a run."""

from __future__ import annotations

import numpy as np
import torch

from .._validate import require_shape
from ..errors import RangeError
from .axes import step_axis
from .looks import COLOURS, WIDTH, new_figure, styled

FILLS = ("vermillion", "orange", "sky", "blue")


@styled
def plot_sets(step, counts, labels, ylabel: str = "sequences"):
    """Sizes of sets along a run, stacked: Lemma 7's I_1, I_2, I_3, say.

    Parameters
    ----------
    step : (R,) sequence of int
    counts : (R, K) array
        Members of each of at most four sets at each step.
    labels : sequence of str
        Of the sets, from the bottom of the stack.
    ylabel : str
        What is counted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError, RangeError

    Examples
    --------
    >>> from attnbias.figures import plot_sets
    >>> fig = plot_sets([0, 10, 100], [[3, 0], [2, 1], [1, 2]], ["$I_1$", "$I_2$"])
    >>> len(fig.axes[0].collections)
    2
    """
    step, labels = np.atleast_1d(np.asarray(step)), [str(label) for label in labels]
    counts = torch.as_tensor(np.asarray(counts, dtype=np.float64))
    require_shape("counts", counts, (len(step), len(labels)), "(steps, labels)")
    if not 1 <= len(labels) <= len(FILLS):
        raise RangeError(
            "labels", expected=f"1 to {len(FILLS)} sets", got=str(len(labels)),
            remedy="merge some of them",
        )  # fmt: skip
    fig = new_figure((WIDTH, 3.4))
    axis = fig.subplots()
    step_axis(axis, step)
    base = np.zeros(len(step))
    for label, size, colour in zip(labels, counts.numpy().T, FILLS, strict=False):
        # a set keeps its size until the next record: members are whole
        axis.fill_between(
            step, base, base + size, step="post", color=COLOURS[colour], alpha=0.75,
            linewidth=0, label=label,
        )  # fmt: skip
        base = base + size
    axis.set_xlim(step[0], step[-1])
    axis.set_ylim(0, max(base.max(), 1))
    axis.set_xlabel("step t")
    axis.set_ylabel(ylabel)
    fig.legend(loc="outside upper center", ncols=len(labels))
    return fig
