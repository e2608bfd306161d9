"""Where W_t sends the queries of data in the plane, with the directions expected of it."""

from __future__ import annotations

import numpy as np

from ..._validate import as_floats, as_numbers, short
from ...dataset import Dataset
from ...errors import DtypeError, RangeError
from ...plots.theme import COLOURS, FAINT, HALO, INK, WIDTH, Given, new_figure, styled

_LOOKS = (("blue", "-", ":"), ("vermillion", "--", "-."))


@styled
def plot_query_images(data: Dataset, paths, directions, *, marks=None, ax: Given = None):
    """Images W_t z_i of the queries, one panel a sequence, on a radius log10(1 + |W_t z_i|).

    Parameters
    ----------
    data : Dataset
        With d = 2 and at most four sequences.
    paths : dict
        Label to (R, 2, 2) matrices W_t, at most two.
    directions : dict
        Label to a (2, 2) matrix; its image is drawn as a ray. The k-th has the colour of the
        k-th path.
    marks : (R,) bool, optional
        Records to mark with dots.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.beyond.plane.data import make_plane_pair
    >>> from attnbias.beyond.plane.plots import plot_query_images
    >>> W = np.linspace(0, 9, 5)[:, None, None] * np.eye(2)
    >>> len(plot_query_images(make_plane_pair(), {"W": W}, {"limit": np.eye(2)}).axes)
    2
    """
    _require(data, paths, directions)
    paths = {k: as_floats(k, W, (None, 2, 2), "(R, 2, 2)").cpu().numpy() for k, W in paths.items()}
    directions = {k: as_floats(k, W, (2, 2), "(2, 2)").cpu().numpy() for k, W in directions.items()}
    if marks is not None:
        marks = as_numbers("marks", marks, (len(next(iter(paths.values()))),)).astype(bool)
    queries = data.queries.double().cpu().numpy()
    far = max(float(np.linalg.norm(W @ queries.T, axis=1).max()) for W in paths.values())
    reach = 1.05 * np.log10(1 + far)
    fig = new_figure((WIDTH, 0.9 + 3.5 * (-(-data.n // 2))), ax)
    axes = fig.subplots(-(-data.n // 2), min(data.n, 2), squeeze=False).ravel()
    for i, axis in enumerate(axes[: data.n]):
        for (label, matrix), (colour, _, line) in zip(directions.items(), _LOOKS, strict=False):
            ray = matrix @ queries[i]
            ray = 2 * reach * ray / np.linalg.norm(ray)
            look = {"color": COLOURS[colour], "linestyle": line, "linewidth": 2.6, "alpha": 0.55}
            axis.plot([0, ray[0]], [0, ray[1]], label=label, **look)
        for (label, W), (colour, line, _) in zip(paths.items(), _LOOKS, strict=False):
            image = _shrunk(W @ queries[i])
            axis.plot(*image.T, color=COLOURS[colour], linestyle=line, label=label, linewidth=1.6)
            if marks is not None:
                axis.plot(*image[marks].T, "o", color=COLOURS[colour], markersize=5)
        _finish(axis, reach, f"sequence {i + 1}")
    for axis in axes[data.n :]:
        axis.remove()
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


def _require(data, paths, directions) -> None:
    if not isinstance(data, Dataset) or data.d != 2 or data.n > 4:
        raise RangeError(
            "data",
            expected="a Dataset in the plane, d = 2, with at most four sequences",
            got=short(data),
            remedy="make_plane_pair() gives such data",
        )
    for name, given in (("paths", paths), ("directions", directions)):
        if not isinstance(given, dict) or not 0 < len(given) <= len(_LOOKS):
            raise DtypeError(
                name,
                expected=f"a dict of one to {len(_LOOKS)} entries",
                got=short(given),
                remedy='for example {"W": matrices}',
            )


def _shrunk(points: np.ndarray) -> np.ndarray:
    """The same directions at radius log10(1 + r)."""
    size = np.linalg.norm(points, axis=-1, keepdims=True)
    return points * np.log10(1 + size) / np.fmax(size, 1e-300)


def _finish(axis, reach: float, title: str) -> None:
    for power in range(1, int(reach) + 1):
        angle = np.linspace(0, 2 * np.pi, 100)
        axis.plot(power * np.cos(angle), power * np.sin(angle), color=FAINT, linewidth=0.6)
        if power % 2 == 0:
            axis.text(
                -0.7 * power,
                -0.7 * power,
                f"$10^{power}$",
                color=INK,
                path_effects=HALO,
                ha="center",
                va="center",
                fontsize=10.5,
            )
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    axis.set(aspect="equal", title=title)
