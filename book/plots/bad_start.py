"""A run from a bad start in the plane of its tokens (Fig. 8)."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Polygon

from attnbias.beyond.prompt.paths import query_images, sequence_scores
from attnbias.dataset import Dataset
from attnbias.dynamics.trace import Trace
from attnbias.errors import RangeError
from attnbias.geometry.tokens import resolve_opt
from attnbias.plots.axes import exponent_axis, step_axis, thinned
from attnbias.plots.series import SERIES, log10_series
from attnbias.plots.theme import COLOURS, FAINT, HALO, INK, WIDTH, new_figure, styled

SEQUENCES = ("blue", "vermillion", "green", "purple")  # one colour a sequence, four at most
LINES = ("-", "--", "-.", ":")
# Where a name may stand beside its spot: the side of each coordinate on which it lies.
CORNERS = ((1, 1), (-1, 1), (1, -1), (-1, -1))


@styled
def plot_bad_start(data: Dataset, trace: Trace, W0):
    """The four panels of Fig. 8: tokens and start in the plane, softmax, alignment and loss.

    Parameters
    ----------
    data : Dataset
        With d = 2 and at most four sequences.
    trace : Trace
        Of a run on them, with its logit gaps.
    W0 : (2, 2) tensor
        The run's start.

    Returns
    -------
    matplotlib.figure.Figure
        Filled tokens are optimal. A sequence attends most to the token farthest along the
        arrow of its colour, W_0 x_{i,1}.

    Raises
    ------
    ShapeError, RangeError, MissingDecoderError
        And those of `query_images`.

    Examples
    --------
    >>> from attnbias import GD, make_bad_start, train
    >>> from book.plots import plot_bad_start
    >>> data, W0 = make_bad_start(4.0)
    >>> len(plot_bad_start(data, train(data, GD(1.0), 1000, W0=W0), W0).axes)
    4
    """
    images, scores = _path(data, trace, W0), sequence_scores(data, trace)
    fig = new_figure((WIDTH, 6.2))
    plane, softmax, cosine, loss = fig.subplots(2, 2).ravel()
    _draw_tokens(plane, data)
    reach = float(data.X.abs().max())
    for i, image in enumerate(images[0]):
        _draw_start(plane, image, reach, i)
    _finish_plane(plane, 1.35 * reach)
    plane.set_title("tokens, and start $W_0 x_1$")
    kept = thinned(trace.step)
    step = trace.step[kept]
    for axis in (softmax, cosine, loss):
        step_axis(axis, step)
        axis.set_xlabel("step t")
    for i in range(data.n):
        look = {"color": COLOURS[SEQUENCES[i]], "linestyle": LINES[i]}
        softmax.plot(step, scores[kept, i], label=f"sequence {i + 1}", **look)
    softmax.plot(step[[0, -1]], [0.5, 0.5], color=FAINT, linewidth=1.0)
    softmax.set_ylim(-0.04, 1.04)
    softmax.set_title("attention to the optimal token")
    softmax.set_ylabel("attention")
    for axis, name in ((cosine, "alignment"), (loss, "loss_gap")):
        values = log10_series(trace, name)[kept]
        axis.plot(step, np.where(np.isfinite(values), values, np.nan), color=INK)
        exponent_axis(axis, values)
        axis.set_ylabel(SERIES[name].label)
    fig.legend(*softmax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


@styled
def plot_plane_trajectory(data: Dataset, trace: Trace, W0, svm=None):
    """Where W_t x_{i,1} goes in the plane of tokens, one panel a sequence.

    Parameters
    ----------
    data : Dataset
        With d = 2 and at most four sequences.
    trace : Trace
        Of a run on them, with its logit gaps.
    W0 : (2, 2) tensor
        The run's start.
    svm : SVMSolution, optional
        Of (W-SVM): draws the direction of W_mm x_{i,1}.

    Returns
    -------
    matplotlib.figure.Figure
        Shaded is where the optimal token has the largest logit. Dots mark steps 10, 100, ...
        A panel is 2.2 times as wide as the farther of the start and the tokens is away: a run
        that goes to infinity leaves it.

    Raises
    ------
    ShapeError, RangeError, DtypeError, MissingDecoderError
        And those of `query_images`.

    Examples
    --------
    >>> from attnbias import NGD, make_bad_start, train
    >>> from book.plots import plot_plane_trajectory
    >>> data, W0 = make_bad_start(2.0)
    >>> len(plot_plane_trajectory(data, train(data, NGD(0.1), 100, W0=W0), W0).axes)
    2
    """
    images = _path(data, trace, W0)
    reach = 2.2 * max(float(data.X.abs().max()), float(np.abs(images[0]).max()))
    columns = min(data.n, 2)
    rows = -(-data.n // columns)
    fig = new_figure((WIDTH, 0.5 + 3.3 * rows))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    opt = resolve_opt(data, None).tolist()
    for i, axis in enumerate(axes[: data.n]):
        tokens = data.X[i, : data.lengths[i]].double().cpu().numpy()
        _shade_right_side(axis, np.delete(tokens[opt[i]] - tokens, opt[i], axis=0), reach)
        _draw_tokens(axis, data, only=i)
        path, names = images[:, i], _Names(axis, reach)
        names.avoid(tokens)
        names.avoid(_along(path))
        if svm is not None:
            image = (svm.weights.cpu() @ data.X[i, 0].double().cpu()).numpy()
            _draw_direction(axis, image, reach, names)
        _draw_path(axis, trace.step, path, reach, names)
        _finish_plane(axis, reach)
        axis.set_title(f"sequence {i + 1}")
    for axis in axes[data.n :]:
        axis.remove()
    return fig


def _path(data: Dataset, trace: Trace, W0) -> np.ndarray:
    """(R, n, 2) images of the queries, of data that a plane can show."""
    if data.d != 2 or data.n > len(SEQUENCES):
        raise RangeError(
            "data",
            expected=f"tokens in the plane, d = 2, and at most {len(SEQUENCES)} sequences",
            got=f"d = {data.d}, n = {data.n}",
            remedy="make_bad_start() gives such data",
        )
    return query_images(data, trace, W0)


def _draw_tokens(axis, data: Dataset, only: int | None = None) -> None:
    opt = resolve_opt(data, None).tolist()
    for i in range(data.n) if only is None else [only]:
        colour = COLOURS[SEQUENCES[i]]
        for t, (x, y) in enumerate(data.X[i, : data.lengths[i]].tolist()):
            fill = colour if t == opt[i] else "white"
            axis.plot(x, y, "os^D"[i], markersize=9, mfc=fill, mec=colour, mew=1.8, zorder=5)


def _draw_start(axis, image, reach: float, i: int) -> None:
    """The line through 0 and W_0 x_{i,1}, with an arrow on the side of the larger logits."""
    size = np.linalg.norm(image)
    if size == 0:
        return
    end = 1.2 * reach * image / size
    look = {"color": COLOURS[SEQUENCES[i]], "linestyle": LINES[i]}
    side = 0.03 * reach * (2 * i - 1) * np.array([-end[1], end[0]]) / np.linalg.norm(end)
    axis.plot(*np.column_stack([side - end, side + end]), linewidth=1.6, **look)
    arrow = {"arrowstyle": "-|>", "color": look["color"], "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", side + end, side + 0.9 * end, arrowprops=arrow)


def _shade_right_side(axis, differences, reach: float) -> None:
    """The v with <x_opt - x_tau, v> > 0 for all tau: half-planes, cut one after the other."""
    corners = 3 * reach * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)
    for normal in differences:
        corners = _cut(corners, normal)
        along = np.array([-normal[1], normal[0]])
        size = np.linalg.norm(along)
        if size > 0:
            ends = np.outer([-1, 1], 3 * reach * along / size)
            axis.plot(*ends.T, color=FAINT, linewidth=1.0)
    if len(corners) > 2:
        axis.add_patch(Polygon(corners, color=COLOURS["blue"], alpha=0.09, linewidth=0, zorder=0))


def _cut(corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The part of a convex polygon on the side of `normal`."""
    height, kept = corners @ normal, []
    for k in range(len(corners)):
        here, there = height[k - 1], height[k]
        if (here > 0) != (there > 0):
            share = here / (here - there)
            kept.append(corners[k - 1] + share * (corners[k] - corners[k - 1]))
        if there > 0:
            kept.append(corners[k])
    return np.array(kept)


def _draw_direction(axis, image, reach: float, names: _Names) -> None:
    end = image / np.abs(image).max()
    ray = np.outer([0, 1], 3 * reach * end)
    axis.plot(*ray.T, "--", color=INK, linewidth=1.4)
    names.avoid(_along(ray, 200))
    names.write([share * reach * end for share in (0.7, 0.5, 0.85, 0.3)], "$W_{mm} x_1$", 6)


def _draw_path(axis, step, path, reach: float, names: _Names) -> None:
    axis.plot(*path.T, color=INK, linewidth=2.0, zorder=3)
    axis.plot(*path[0], "x", color=INK, markersize=9, mew=2, zorder=6)
    named = [path[0]]
    names.write([path[0]], "step 0")
    for k in np.flatnonzero(np.isin(step, 10.0 ** np.arange(1, 10))):
        if np.abs(path[k]).max() < 0.95 * reach:
            axis.plot(*path[k], "o", color=INK, markersize=4.5, zorder=4)
            if min(np.abs(path[k] - spot).max() for spot in named) > 0.15 * reach:
                named.append(path[k])
                names.write([path[k]], f"{step[k]}")


def _along(path, count: int = 20) -> np.ndarray:
    """Points along a broken line, `count` a piece where it has few pieces."""
    share = np.linspace(0, 1, max(1, count if len(path) < 200 else 1), endpoint=False)
    between = path[:-1, None] + share[:, None] * np.diff(path, axis=0)[:, None]
    return np.concatenate([between.reshape(-1, 2), path[-1:]])


class _Names:
    """Names of spots in a panel, each at the corner of its spot that hides the least.

    A panel of half-width `reach` is about 190 points wide, and a letter 6.5 by 12 of them.
    """

    def __init__(self, axis, reach: float) -> None:
        self.axis, self.reach, self.taken = axis, reach, np.zeros((0, 2))

    def avoid(self, points) -> None:
        self.taken = np.concatenate([self.taken, np.asarray(points, dtype=float)])

    def write(self, spots, text: str, letters: int | None = None) -> None:
        """At the first of the places with the least of what is taken, or off the panel, in it."""
        size = np.array([6.5 * (letters or len(text)), 12.0]) * 2 * self.reach / 190
        gap = np.array([6.0, 4.0]) * 2 * self.reach / 190
        best = None
        for spot in spots:
            for corner in np.array(CORNERS):
                middle = spot + corner * (gap + size / 2)
                # nine columns and five rows of points stand for the name where names are compared
                grid = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 9), np.linspace(-0.5, 0.5, 5)))
                box = middle + grid.reshape(2, -1).T * size
                hidden = (np.abs(self.taken - middle) < 0.55 * size).all(axis=1).sum()
                cost = hidden + 1000 * (np.abs(box) > self.reach).any()
                if best is None or cost < best[0]:
                    best = (cost, spot, corner, box)
        _, spot, corner, box = best
        self.avoid(box)
        self.axis.annotate(
            text,
            spot,
            xytext=corner * [6, 4],
            textcoords="offset points",
            color=INK,
            ha="left" if corner[0] > 0 else "right",
            va="bottom" if corner[1] > 0 else "top",
            fontsize=10.5,
            path_effects=HALO,
            zorder=7,
        )


def _finish_plane(axis, reach: float) -> None:
    axis.axhline(0, color=FAINT, linewidth=0.8)
    axis.axvline(0, color=FAINT, linewidth=0.8)
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-reach, reach)
    axis.set_aspect("equal")
    axis.set_xlabel("first coordinate")
    axis.set_ylabel("second coordinate")
