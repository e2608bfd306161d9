"""Sliders in the plane: a token that moves, and a start at any angle."""

from __future__ import annotations

import math

import numpy as np
import torch

from .._validate import require_number
from ..dynamics.trace import Trace
from ..errors import DtypeError, InfeasibleError, RangeError
from ..geometry.solution import SVMSolution, require_w_svm
from .explore import HUES, Control, Picture, stroke
from .panel import GRID, W_MM, Panel, decades, digits
from .slider_runs import run_table

_BOTH = (0, 1)


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
    >>> from attnbias.figures import slider_support
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
            "tokens", expected="tokens in the plane, the last of them not optimal",
            got=f"shape {tokens.shape}, opt {opt}", remedy="put the token that moves last",
        )  # fmt: skip
    solutions = [_certified(each) for each in solutions]
    controls = [
        Control(f"token {len(tokens)}, across", [f"{x:g}" for x in xs], start[0]),
        Control(f"token {len(tokens)}, up", [f"{y:g}" for y in ys], start[1]),
    ]
    picture = Picture(controls, (420, 372))
    moved = np.array([(x, y) for x in xs for y in ys], dtype=float)
    reach = 1.25 * max(np.abs(tokens[:-1]).max(), np.abs(moved).max())
    plane = Panel((30, 12, 360, 320), (-reach * 1.125, reach * 1.125), (-reach, reach))
    ticks = range(-math.floor(reach), math.floor(reach) + 1)
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
            "solutions", expected="certified solutions, or InfeasibleError where there is none",
            got=type(given).__name__, remedy="pass what solve_w_svm returns or raises",
        )  # fmt: skip
    return given


def _held(given, count: int, opt: int) -> list[int]:
    """Tokens, from 0, that hold W_mm back or, without a solution, rule it out."""
    others = [t for t in range(count) if t != opt]
    if isinstance(given, InfeasibleError):
        return [t for t, a in zip(others, given.certificate.tolist(), strict=True) if a > 1e-9]
    return [others[k] for k in given.support.tolist()]


def _draw_band(picture: Picture, plane: Panel, tokens, opt: int, solutions) -> None:
    """From the optimal token to its nearest rivals along v; nothing without a solution."""
    left, top, width, height = plane.box
    picture.add(
        f'<svg x="{left}" y="{top}" width="{width}" height="{height}" '
        f'viewBox="{left} {top} {width} {height}">'  # cuts off what is outside
    )
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
        spots = plane.place(*(moved if t == last else np.tile(tokens[t], (len(moved), 1))).T)
        if t != opt:
            rings = [_ring(*s) if t in each else "" for s, each in zip(spots, held, strict=True)]
            picture.follow("path", "d", rings, _BOTH, **stroke("vermillion"))
        fill = blue if t == opt else "var(--pst-color-background,#fff)"
        mark = {"r": 6, "style": f"fill:{fill};stroke:{blue}", "stroke_width": 2}
        if t == last:
            places = [f"translate( {x:.1f} {y:.1f} )" for x, y in spots]
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
    weights = ", ".join(f"{a:.2f}" for a in given.dual[given.support].tolist())
    return f"margin {given.margin:.2f}, held back by {tokens}, dual weights {weights}"


def slider_start(svm: SVMSolution, traces, *, label: str, name: str | None = None) -> str:
    """Two sequences of two tokens, started at any angle in the plane of their two rows.

    Parameters
    ----------
    svm : SVMSolution
        Of (W-SVM), with two rows.
    traces : dict of str to dict of float to Trace
        By rule, then by the angle of W_0 with W_mm in degrees, with their logit gaps; the same
        angles and records for each rule.
    label : str
        What the figure shows; read out by screen readers.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. Above, W in the plane of the rows, W_mm to the right; shaded
        is where both optimal tokens lead. Below, the softmax of both sequences.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias import NGD, make_bad_start, solve_w_svm, train
    >>> from attnbias.figures import row_plane, slider_start
    >>> svm = solve_w_svm(make_bad_start()[0])
    >>> runs = {}
    >>> for degrees in (0, 90):
    ...     W0 = row_plane(svm, 2.0, degrees)
    ...     runs[degrees] = train(make_bad_start()[0], NGD(0.1), 100, W0=W0)
    >>> "both past one half from step" in slider_start(svm, {"NGD": runs, "too": runs}, label="x")
    True
    """
    basis = _basis(svm)
    rules, angles, runs = run_table(traces)
    if any(run.gaps is None for run in runs):
        raise DtypeError(
            "traces", expected="traces with their logit gaps", got="none in a loaded trace",
            remedy="train here, or save with the gaps",
        )  # fmt: skip
    controls = [
        Control("rule", rules, 0),
        Control("angle of the start", [f"{a:g}°" for a in angles], (3 * len(angles)) // 8),
    ]
    picture = Picture(controls, (420, 530))
    paths = [run.gaps @ basis.T for run in runs if run.gaps.shape[1] == 2]
    norms = [np.hypot(*path.T) for path in paths]
    if len(paths) < len(runs) or not np.allclose(norms, [r.W_norm for r in runs], rtol=1e-6):
        raise RangeError(
            "traces", expected="runs on the data of `svm`, started in the plane of its rows",
            got="W outside that plane", remedy="start at row_plane(svm, norm, degrees)",
        )  # fmt: skip
    reach = 2.2 * max(float(np.abs(path[0]).max()) for path in paths)
    plane = Panel((52, 34, 300, 240), (-reach * 1.25, reach * 1.25), (-reach, reach))
    _draw_plane(picture, plane, basis, paths, runs[0].step)
    _draw_softmax(picture, runs)
    return picture.markup(label, [_start_said(run) for run in runs], name=name)


def row_plane(svm: SVMSolution, norm: float, degrees: float) -> torch.Tensor:
    """The W in the span of two rows with this norm, at this angle with W_mm.

    Parameters
    ----------
    svm : SVMSolution
        Of (W-SVM), with two rows.
    norm, degrees : float

    Returns
    -------
    tensor

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Examples
    --------
    >>> from attnbias import make_bad_start, solve_w_svm
    >>> from attnbias.figures import row_plane
    >>> svm = solve_w_svm(make_bad_start()[0])
    >>> W = row_plane(svm, 3.0, 90)
    >>> abs(float((W * svm.weights).sum())) < 1e-12, round(float(W.norm()), 12)
    (True, 3.0)
    """
    norm, turn = (
        require_number("norm", norm, low=0),
        math.radians(require_number("degrees", degrees)),
    )
    weights = norm * np.array([math.cos(turn), math.sin(turn)]) @ _basis(svm)
    return svm.rows.combine(torch.as_tensor(weights))


def _basis(svm) -> np.ndarray:
    """(2, 2) weights of the rows: of W_mm at norm one, and of a unit matrix across it.

    By the gaps g of W, the coordinates of W in the plane are `basis @ g`.
    """
    svm = require_w_svm("svm", svm)
    gram = svm.rows.gram().numpy()
    if gram.shape != (2, 2) or np.linalg.matrix_rank(gram) < 2:
        raise RangeError(
            "svm", expected="two independent rows", got=f"{len(gram)} rows",
            remedy="make_bad_start() gives such data",
        )  # fmt: skip
    along = svm.dual.numpy() / svm.norm
    other = np.linalg.solve(gram, np.array([-along[1], along[0]]))  # no inner product with along
    return np.stack([along, other / math.sqrt(other @ gram @ other)])


def _draw_plane(picture: Picture, plane: Panel, basis, paths, step) -> None:
    left, top, width, height = plane.box
    picture.add(
        f'<text x="{left}" y="{top - 12}">W in the plane of the rows; to the right, {W_MM}</text>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" {GRID}/>'
        f'<svg x="{left}" y="{top}" width="{width}" height="{height}" '
        f'viewBox="{left} {top} {width} {height}">'  # cuts off what is outside
    )
    # both gaps are positive between the directions in which one is zero and the other is not
    rays = 9 * plane.x[1] * (basis @ np.eye(2)) / np.linalg.norm(basis, axis=0)
    cone = plane.line(*np.column_stack([[0, 0], rays]))
    (x0, y0), (x1, y1) = plane.place([0, plane.x[1]], [0, 0])
    picture.add(
        f'<polygon points="{cone}" style="fill:{HUES["green"]}" fill-opacity=".16"/>'
        f'<path d="M{x0:.1f} {y0:.1f}H{x1:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>'
    )
    lines = [plane.line(*path[_kept(step)].T) for path in paths]
    picture.follow("polyline", "points", lines, _BOTH, **stroke("ink"))
    starts = [plane.place(*path[0]) for path in paths]
    places = [f"translate( {x:.1f} {y:.1f} )" for x, y in starts]
    picture.follow("circle", "transform", places, _BOTH, r=5, style=f"fill:{HUES['ink']}")
    picture.add("</svg>")


def _kept(step, count: int = 40) -> np.ndarray:
    wanted = np.expm1(np.linspace(0, math.log1p(step[-1]), count))
    return np.unique(np.searchsorted(step, wanted).clip(max=len(step) - 1))


def _softmax(run: Trace) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(run.gaps, -700, 700)))


def _draw_softmax(picture: Picture, runs) -> None:
    """Softmax at the optimal token over the step + 1, so that the start has a place."""
    step = runs[0].step
    kept = _kept(step)
    panel = Panel((52, 326, 356, 150), (1, step[-1] + 1), (0, 1), "x")
    picture.add(
        panel.frame("step t + 1", "softmax at opt", decades(*panel.x), (0, 0.5, 1))
        + f'<text x="408" y="318" text-anchor="end"><tspan style="fill:{HUES["blue"]}">seq. 1'
        f'</tspan>, <tspan style="fill:{HUES["vermillion"]}">seq. 2 (dashed)</tspan></text>'
    )
    for i, look in enumerate((stroke("blue"), stroke("vermillion", "7 4"))):
        lines = [panel.line(step[kept] + 1, _softmax(run)[kept, i]) for run in runs]
        picture.follow("polyline", "points", lines, _BOTH, **look)


def _start_said(run: Trace) -> str:
    right = (run.gaps > 0).all(axis=1)
    first = _softmax(run)[0]
    said = f"softmax at the start {first[0]:.2f} and {first[1]:.2f}; "
    if right[-1]:
        wrong = np.flatnonzero(~right)
        since = run.step[wrong[-1] + 1] if len(wrong) else 0
        said += f"both past one half from step {since} on"
    else:
        said += "not both past one half at the end"
    return said + f"; 1 - cosine at step {run.step[-1]} {digits(run.W_alignment_error[-1])}"
