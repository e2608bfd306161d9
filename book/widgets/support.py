"""A slider that moves a token of one sequence in the plane."""

import math

import numpy as np
import torch

from attnbias.errors import DtypeError, InfeasibleError, RangeError
from attnbias.geometry.solution import SVMSolution

from .panel import Panel
from .picture import HUES, Control, Picture, stroke

_BOTH = (0, 1)
_MOST_TICKS = 20  # to each side of the origin
_FAR = 1e6  # in units of the drawing


def slider_support(tokens, opt: int, xs, ys, solutions, *, label: str, start=(0, 0), name=None):
    """The attention SVM of one sequence in the plane while its last token moves.

    Parameters
    ----------
    tokens : (T, 2) array
        The first is the query; the last is the one that moves, and its place is not read.
    opt : int
        The optimal token, neither the last.
    xs, ys : sequences of float
        Places of the last token.
    solutions : sequence of SVMSolution or InfeasibleError
        What `solve_w_svm` gives or raises at each place, ys fastest.
    label : str
        What the figure shows; read out by screen readers.
    start : (int, int)
        Positions in `xs` and `ys` when the page opens.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. The band has the width 1 / |v| of v = W_mm x_1, whose
        direction is the arrow; rings mark the tokens that hold it back.

    Raises
    ------
    DtypeError, RangeError, ShapeError
        Also when a solution is not certified.

    Examples
    --------
    >>> from attnbias import Dataset, solve_w_svm
    >>> from book.widgets import slider_support
    >>> tokens = [[1.0, 0], [0, 1], [-1, -1]]
    >>> places = [(x, y) for x in (-1.0, 0.0) for y in (-1.0, -2.0)]
    >>> solved = [solve_w_svm(Dataset([[*tokens[:2], p]], [1], u=[0.0, 1])) for p in places]
    >>> markup = slider_support(tokens, 1, (-1.0, 0.0), (-1.0, -2.0), solved, label="Support")
    >>> "margin 1.34, held back by tokens 1 and 3, dual weights 0.44, 0.11" in markup
    True
    """
    tokens = np.asarray(tokens, dtype=float)
    if tokens.ndim != 2 or tokens.shape[1] != 2 or not 0 <= opt < len(tokens) - 1:
        raise RangeError(
            "tokens",
            expected="tokens in the plane, the last of them not optimal",
            got=f"shape {tokens.shape}, opt {opt}",
            remedy="put the token that moves last",
        )
    solutions = [_certified(each) for each in solutions]
    controls = [
        Control(f"token {len(tokens)}, across", [f"{x:g}" for x in xs], start[0]),
        Control(f"token {len(tokens)}, up", [f"{y:g}" for y in ys], start[1]),
    ]
    picture = Picture(controls, (420, 372))
    moved = np.array([(x, y) for x in xs for y in ys], dtype=float)
    reach = 1.25 * np.abs(np.concatenate([tokens[:-1], moved])).max()
    if not 0 < reach < _FAR:
        raise RangeError(
            "tokens, xs and ys",
            expected=f"numbers below {_FAR:g} in size, not all zero",
            got=f"{reach / 1.25:g}",
            remedy="scale the tokens, or drop what is not finite",
        )
    plane = Panel((30, 12, 360, 320), (-reach * 1.125, reach * 1.125), (-reach, reach))
    every = 10 ** max(0, math.ceil(math.log10(reach / _MOST_TICKS)))
    last = math.floor(reach / every)
    ticks = [k * every for k in range(-last, last + 1)]
    picture.add(plane.frame("", "", ticks, ticks))
    _draw_band(picture, plane, tokens, opt, solutions)
    _draw_tokens(picture, plane, tokens, moved, opt, solutions)
    return picture.markup(
        label, [_support_said(each, len(tokens), opt) for each in solutions], name=name
    )


def _certified(given):
    if isinstance(given, InfeasibleError):
        return given
    if not isinstance(given, SVMSolution) or not given.is_optimal():
        raise DtypeError(
            "solutions",
            expected="certified solutions, or InfeasibleError where there is none",
            got=type(given).__name__,
            remedy="pass what solve_w_svm returns or raises",
        )
    return given


def _held(given, count: int, opt: int) -> list[int]:
    """Tokens, from 0, that hold W_mm back or, without a solution, rule it out."""
    others = [t for t in range(count) if t != opt]
    if isinstance(given, InfeasibleError):
        return [t for t, a in zip(others, given.certificate.tolist(), strict=True) if a > 1e-9]
    return [others[k] for k in given.support.tolist()]


def _draw_band(picture: Picture, plane: Panel, tokens, opt: int, solutions) -> None:
    """From the optimal token to its nearest rivals along v; nothing without a solution."""
    picture.add(plane.window())
    bands, arrows = [], []
    for given in solutions:
        if isinstance(given, InfeasibleError):
            bands.append("")
            arrows.append("")
            continue
        v = (given.weights @ torch.as_tensor(tokens[0])).numpy()
        size = np.linalg.norm(v)
        across, behind = 9 * np.array([-v[1], v[0]]) / size, tokens[opt] - v / size**2
        corners = [tokens[opt] - across, tokens[opt] + across, behind + across, behind - across]
        bands.append(plane.line(*np.transpose(corners)))
        arrows.append(plane.line(*_arrow(v / size)))
    style = f"fill:{HUES['blue']}"
    picture.follow("polygon", "points", bands, _BOTH, style=style, fill_opacity=0.16)
    picture.follow("polyline", "points", arrows, _BOTH, **stroke("ink"))
    picture.add("</svg>")


def _arrow(tip) -> np.ndarray:
    """(2, 5) corners of an arrow from the origin."""
    side = 0.12 * np.array([-tip[1], tip[0]])
    back = 0.82 * tip
    return np.transpose([0 * tip, tip, back + side, tip, back - side])


def _draw_tokens(picture: Picture, plane: Panel, tokens, moved, opt: int, solutions) -> None:
    """Filled where optimal; rings around the tokens that hold v back; numbers beside them."""
    held = [_held(each, len(tokens), opt) for each in solutions]
    last, blue = len(tokens) - 1, HUES["blue"]
    for t in range(len(tokens)):
        at = (moved if t == last else np.tile(tokens[t], (len(moved), 1))).T
        spots = plane.place(*at)
        if t != opt:
            rings = [_ring(*s) if t in each else "" for s, each in zip(spots, held, strict=True)]
            picture.follow("path", "d", rings, _BOTH, **stroke("vermillion"))
        fill = blue if t == opt else "var(--pst-color-background,#fff)"
        mark = {"r": 6, "style": f"fill:{fill};stroke:{blue}", "stroke_width": 2}
        if t == last:
            places = plane.shifts(*at)
            picture.follow("circle", "transform", places, _BOTH, **mark)
            picture.follow("text", "transform", places, _BOTH, text=t + 1, x=12, y=22)
        else:
            text = f'<text x="{spots[0, 0] + 12:.1f}" y="{spots[0, 1] - 11:.1f}">{t + 1}</text>'
            picture.add(
                f'<circle cx="{spots[0, 0]:.1f}" cy="{spots[0, 1]:.1f}" r="6" '
                f'style="{mark["style"]}" stroke-width="2"/>{text}'
            )


def _ring(x: float, y: float) -> str:
    return f"M {x - 11:.1f} {y:.1f} a 11 11 0 1 0 22 0 a 11 11 0 1 0 -22 0 Z"


def _support_said(given, count: int, opt: int) -> str:
    names = [str(t + 1) for t in _held(given, count, opt)]
    listed = " and ".join([", ".join(names[:-1])] * bool(names[:-1]) + names[-1:])
    tokens = f"token{'s' if len(names) > 1 else ''} {listed}"
    if isinstance(given, InfeasibleError):
        return f"no W attends to token {opt + 1}: it lies among {tokens}"
    # a weight of 3/8 must not turn on its last bit, so it is rounded twice
    weights = ", ".join(f"{round(a, 12):.2f}" for a in given.dual[given.support].tolist())
    return f"margin {round(given.margin, 12):.2f}, held back by {tokens}, dual weights {weights}"
