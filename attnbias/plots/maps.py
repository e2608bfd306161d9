"""Maps: attention over sequences and tokens, and shares of runs over a grid."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .._validate import require_number, require_shape
from ..errors import RangeError
from .series import require_columns
from .theme import COLOURS, MAP, ON_DARK, ON_LIGHT, WIDTH, new_figure, styled


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
    >>> from attnbias.plots import plot_attention
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


@styled
def plot_lock_map(table, rows: str, columns: str, panels: str, value: str, *, names=("", "", "")):
    """Share of runs in each cell of a grid, a panel a value of a third column.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a run.
    rows, columns, panels : str
        Columns of the table: the axes of a panel from below and from the left, and what
        tells panels apart.
    value : str
        A column of bool, whose share is shown in percent.
    names : (str, str, str)
        Labels for rows, columns and panels; the columns' names by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For a column that is missing.

    Examples
    --------
    >>> import pandas
    >>> from attnbias.plots import plot_lock_map
    >>> runs = pandas.DataFrame({"W0_norm": [1, 1, 2, 2], "spread": [0, 1, 0, 1], "rho": 0,
    ...                          "locked": [False, False, False, True]})
    >>> len(plot_lock_map(runs, "W0_norm", "spread", "rho", "locked").axes)
    2
    """
    require_columns(table, rows, columns, panels, value)
    keys = sorted(table[panels].unique())
    across = min(len(keys), 3)
    down = -(-len(keys) // across)
    fig = new_figure((WIDTH, 0.9 + 2.2 * down))
    axes = fig.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axis, key in zip(axes.flat, keys, strict=False):
        part = table[table[panels] == key]
        share = 100 * part.pivot_table(index=rows, columns=columns, values=value, aggfunc="mean")
        image = _draw_shares(axis, share)
        axis.set_title(f"{names[2] or panels} {key if isinstance(key, str) else f'{key:g}'}")
    for axis in list(axes.flat)[len(keys) :]:
        axis.set_visible(False)
    fig.supxlabel(names[1] or columns, fontsize=11.5)
    fig.supylabel(names[0] or rows, fontsize=11.5)
    fig.colorbar(image, ax=axes, shrink=0.8, pad=0.02).set_label("% of runs")
    return fig


def _draw_shares(axis, share):
    image = axis.imshow(share, cmap=MAP, vmin=0, vmax=100, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(share.to_numpy()):
        ink = ON_DARK if value < 50 else ON_LIGHT
        text = "" if np.isnan(value) else f"{require_number('share', value):.0f}"
        axis.text(j, i, text, ha="center", va="center", color=ink, fontsize=11)
    axis.set_xticks(range(share.shape[1]), [f"{each:g}" for each in share.columns])
    axis.set_yticks(range(share.shape[0]), [f"{each:g}" for each in share.index])
    axis.grid(False)
    return image
