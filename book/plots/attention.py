"""Attention as maps over sequences and tokens, and as streams along a run."""

import numpy as np
import torch
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnbias._validate import require_shape
from attnbias.errors import RangeError
from attnbias.plots.theme import COLOURS, FAINT, INK, WIDTH, new_figure, styled


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


@styled
def plot_streams(runs, names):
    """Where the attention of one sequence goes: a panel a run, a stream a token.

    Parameters
    ----------
    runs : dict of str to (S + 1, T) array
        By title, the attention to T tokens at the steps 0 to S; T is at most four.
    names : sequence of T str
        Of the tokens, the optimal one first, whose stream is the lowest.

    Returns
    -------
    matplotlib.figure.Figure
        A dot stands where a stream that had grown begins to shrink. One that only shrinks feeds
        those that have gained by the time it has lost half.

    Raises
    ------
    ShapeError, RangeError

    Examples
    --------
    >>> from book.plots import plot_streams
    >>> race = [[0.4, 0.4, 0.2], [0.4, 0.5, 0.1], [1.0, 0.0, 0.0]]
    >>> axis = plot_streams({"a race": race}, ["first", "second", "third"]).axes[0]
    >>> [text.get_text() for text in axis.texts][-3:]
    ['loses from step 1', 'third feeds the second', 'all on the first']
    """
    fig = new_figure((4.8, 0.5 + 2.6 * len(runs)))
    axes = fig.subplots(len(runs), 1, squeeze=False, sharex=True).ravel()
    for axis, (title, shares) in zip(axes, runs.items(), strict=True):
        shares = torch.as_tensor(np.asarray(shares, dtype=np.float64))
        require_shape("runs", shares, (None, len(names)), f"(S + 1, T), {len(names)} names")
        _draw_streams(axis, shares.numpy(), names)
        axis.set(title=title, xlim=(1, len(shares)), ylim=(0, 1), ylabel="attention")
    axes[-1].set_xlabel("step t + 1")
    return fig


def _draw_streams(axis, shares, names) -> None:
    time = np.arange(len(shares)) + 1
    colours = [COLOURS["blue"], COLOURS["vermillion"], FAINT, COLOURS["purple"]][: len(names)]
    axis.stackplot(time, shares.T, colors=colours, alpha=0.4, edgecolor="white", linewidth=1)
    axis.set_xscale("log")
    axis.grid(False)
    middles = shares.cumsum(axis=1) - shares / 2
    near = {"textcoords": "offset points", "va": "center", "fontsize": 11}
    for k, (name, step) in enumerate(zip(names, shares.argmax(axis=0), strict=True)):
        said = name if step else f"{name} feeds {_fed(shares, names, k)}"
        axis.annotate(said, (1, _clear(shares, k, 0, len(said))), (8, 0), **near)
        if 0 < step < len(shares) - 1 and shares[step, k] > shares[-1, k]:
            said, early = f"loses from step {step}", step**2 < len(shares)
            spot = time[step], _clear(shares, k, step, len(said) if early else -len(said))
            axis.plot(*spot, "o", color=INK, markersize=4.5)
            side = {"xytext": (7, 0), "ha": "left"} if early else {"xytext": (-7, 0), "ha": "right"}
            axis.annotate(said, spot, **side, **near)
    last = int(shares[-1].argmax())
    if shares[-1, last] > 0.99:
        height = middles[round(len(shares) ** 0.65), last]
        said = f"locked on the {names[last]}" if last else f"all on the {names[0]}"
        axis.annotate(said, (time[-1], height), (-8, 0), ha="right", **near)


def _clear(shares, k: int, step: int, letters: int) -> float:
    """A height inside stream k all along so many letters, after a step or, if negative, before."""
    ends = sorted((step + 1, (step + 1) * len(shares) ** (0.02 * letters)))
    beside = slice(int(ends[0]) - 1, int(ends[1]) + 1)
    tops = shares[beside].cumsum(axis=1)[:, k]
    return float(tops.min() + (tops - shares[beside, k]).max()) / 2


def _fed(shares, names, k: int) -> str:
    """Who has gained when token k has lost half of what it had."""
    half = (shares[:, k] <= shares[0, k] / 2).argmax()
    gained = [j for j in range(len(names)) if shares[half, j] > shares[0, j]]
    if len(gained) == len(names) - 1:
        return "the others"
    return " and ".join(f"the {names[j]}" for j in gained) or "none"


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
