"""Paths of a prompt in the plane of the keys, beside the directions of SVMs."""

from __future__ import annotations

import numpy as np

from ..._validate import as_numbers, require_type, short
from ...errors import DtypeError, RangeError, ShapeError
from ...plots.axes import shared_legend
from ...plots.series import text
from ...plots.theme import COLOURS, FAINT, INK, WIDTH, Given, new_figure, styled

_HUES = ("blue", "vermillion", "green", "purple", "orange", "black")
_DASHES = ("--", ":", "-.")
RANKS = {"paths": 2, "rays": 1}  # dimensions of the arrays of a panel


def _given(name: str, panels) -> list[dict]:
    """The panels, with arrays for paths and rays."""
    if not isinstance(panels, list | tuple) or not all(isinstance(p, dict) for p in panels):
        raise DtypeError(
            name,
            expected="a list of dicts",
            got=short(panels),
            remedy="give one a panel, with paths",
        )
    return [panel | {key: _vectors(key, panel.get(key, {})) for key in RANKS} for panel in panels]


def _vectors(name: str, given) -> dict[str, np.ndarray]:
    require_type(name, given, dict, "a dict", "{label: points}")
    found = {
        text(f"a label of {name}", k): as_numbers(name, v, dtype=float) for k, v in given.items()
    }
    for label, points in found.items():
        if points.ndim != RANKS[name] or points.shape[-1] != 2 or not np.isfinite(points).all():
            raise ShapeError(
                name,
                expected=f"finite points of two coordinates, in {RANKS[name]} dimensions",
                got=f"{short(given[label])} under {label!r}",
                remedy="give (R, 2) for a path, (2,) for a ray",
            )
    return found


@styled(panels=_given)
def plot_prompt_paths(panels, *, ax: Given = None):
    """Paths in the plane, one panel each, with tokens, and rays that were predicted.

    Parameters
    ----------
    panels : list of dict
        With "title", "paths" ({label: (R, 2) array}), and, if wanted, "tokens" ((m, 2) array)
        with "chosen" (indices of the filled ones), "rays" ({label: (2,) vector}), "window"
        ((left, right, bottom, top)). Labels have one look in all panels; a path whose label
        begins with "_" is grey and unnamed.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Without a panel, with one that has no paths, with more than six labels or three rays.

    Examples
    --------
    >>> from attnbias.beyond.prompt.plots import plot_prompt_paths
    >>> panel = {"title": "one", "paths": {"_": [[0, 0], [1, 2]]}, "rays": {"SVM": [0.4, 1]}}
    >>> len(plot_prompt_paths([panel]).axes)
    1
    """
    paths = _labels(panels, "paths")
    rays = _labels(panels, "rays")
    if not panels or not all(p["paths"] for p in panels) or len(paths) > 6 or len(rays) > 3:
        raise RangeError(
            "panels",
            expected="panels with paths, at most six labels and three rays",
            got=f"{len(panels)} panels, {len(paths)} labels, {len(rays)} rays",
            remedy="draw fewer lines in one figure",
        )
    fig = new_figure((WIDTH, 3.9), ax)
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    hues = dict(zip(paths, _HUES, strict=False))
    dashes = dict(zip(rays, _DASHES, strict=False))
    for axis, panel in zip(axes, panels, strict=True):
        _draw(axis, panel, hues, dashes)
    count = len(paths) + len(rays)
    if count:
        shared_legend(fig, axes, columns=3 if count == 3 else 2)
    return fig


def _labels(panels, part: str) -> list[str]:
    seen = [label for panel in panels for label in panel[part] if label[:1] != "_"]
    return list(dict.fromkeys(seen))


def _draw(axis, panel, hues, dashes) -> None:
    far = 10.0
    for label, path in panel["paths"].items():
        far = max(far, 2 * np.abs(path).max())
        named = label in hues
        axis.plot(
            *path.T,
            color=COLOURS[hues[label]] if named else FAINT,
            label=label if named else None,
            linewidth=1.8 if named else 1.4,
        )
        axis.plot(*path[0], "o", color=axis.lines[-1].get_color(), markersize=4)
    for label, ray in panel["rays"].items():
        end = far * ray / np.linalg.norm(ray)
        axis.plot([0, end[0]], [0, end[1]], dashes[label], color=INK, label=label, linewidth=1.5)
    tokens, chosen = np.asarray(panel.get("tokens", np.zeros((0, 2)))), panel.get("chosen", ())
    for k, (x, y) in enumerate(tokens):
        fill = COLOURS["sky"] if k in chosen else "white"
        axis.plot(x, y, "s", markersize=7, mfc=fill, mec=INK, mew=1.4, zorder=5)
    if "window" in panel:
        left, right, bottom, top = panel["window"]
        axis.set(xlim=(left, right), ylim=(bottom, top))
    axis.set(title=panel.get("title", ""), xlabel="$p_1$", ylabel="$p_2$")
