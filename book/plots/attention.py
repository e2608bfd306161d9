"""Attention as maps over sequences and tokens."""

import numpy as np
import torch
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnbias._validate import require_shape
from attnbias.errors import RangeError
from attnbias.plots.theme import COLOURS, WIDTH, new_figure, styled


@styled
def plot_attention(maps, steps=None, opt=None):
    """Attention maps side by side: one row a sequence, one column a token.

    Parameters
    ----------
    maps : (F, n, T) or (n, T) array
        Softmax scores.
    steps : sequence of int, optional
        The iteration of each map, for its title.
    opt : (n,) array of int, optional
        Optimal tokens, to be framed.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError, RangeError

    Examples
    --------
    >>> import numpy as np
    >>> from book.plots import plot_attention
    >>> fig = plot_attention(np.full((2, 4, 3), 1 / 3), steps=[0, 10], opt=[0, 1, 2, 0])
    >>> [axis.get_title(loc="left") for axis in fig.axes[:2]]
    ['step 0', 'step 10']
    """
    maps = torch.as_tensor(np.asarray(maps, dtype=np.float64))
    maps = maps[None] if maps.dim() == 2 else maps
    require_shape("maps", maps, (None, None, None), "(F, n, T)")
    steps = [None] * len(maps) if steps is None else [int(step) for step in steps]
    if len(steps) != len(maps):
        raise RangeError(
            "steps",
            expected=f"one a map, {len(maps)}",
            got=str(len(steps)),
            remedy="pass the steps of the same snapshots",
        )
    rows = -(-len(maps) // 4)
    columns = -(-len(maps) // rows)
    height = min(max(0.17 * maps.shape[1], 1.3), 3.6)
    fig = new_figure((WIDTH, 0.7 + rows * (height + 0.45)))
    axes = fig.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, weights, step in zip(axes, maps, steps, strict=False):
        image = _attention_axis(axis, weights.numpy(), opt)
        axis.set_title("" if step is None else f"step {step}")
    for axis in axes[len(maps) :]:
        axis.remove()
    for index, axis in enumerate(axes[: len(maps)]):
        axis.set_ylabel("sequence i" if index % columns == 0 else "")
        axis.set_xlabel("token" if index + columns >= len(maps) else "")
        axis.tick_params(labelbottom=index + columns >= len(maps))
    fig.colorbar(image, ax=list(axes[: len(maps)]), label="attention", pad=0.02)
    return fig


def _attention_axis(axis, weights, opt):
    image = axis.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis.grid(False)
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for row, column in enumerate(() if opt is None else np.asarray(opt)):
        corner = (int(column) - 0.5, row - 0.5)
        frame = {"edgecolor": COLOURS["vermillion"], "linewidth": 1.4}
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, **frame))
    return image
