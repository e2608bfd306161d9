"""A slider that turns the start of a run, in the plane of two rows."""

import math

import numpy as np
import torch

from attnbias._validate import require_number
from attnbias.beyond.exponents.slack import require_w_svm
from attnbias.dynamics.trace import Trace
from attnbias.errors import RangeError
from attnbias.geometry.svm import SVMSolution

from .panel import GRID, W_MM, Panel, decades, digits, evenly, require_gaps, softmax_of
from .picture import HUES, Control, Picture, stroke
from .runs import run_table

_BOTH = (0, 1)
_POINTS = 40  # of a line


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
    >>> from book.widgets import row_plane, slider_start
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
    require_gaps("traces", runs, "train here, or save with the gaps")
    controls = [
        Control("rule", rules, 0),
        Control("angle of the start", [f"{a:g}°" for a in angles], (3 * len(angles)) // 8),
    ]
    picture = Picture(controls, (420, 530))
    paths = [run.gaps @ basis.T for run in runs if run.gaps.shape[1] == 2]
    norms = [np.hypot(*path.T) for path in paths]
    if len(paths) < len(runs) or not np.allclose(norms, [r.W_norm for r in runs], rtol=1e-6):
        raise RangeError(
            "traces",
            expected="runs on the data of `svm`, started in the plane of its rows",
            got="W outside that plane",
            remedy="start at row_plane(svm, norm, degrees)",
        )
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
    >>> from book.widgets import row_plane
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
            "svm",
            expected="two independent rows",
            got=f"{len(gram)} rows",
            remedy="make_bad_start() gives such data",
        )
    along = svm.dual.numpy() / svm.norm
    other = np.linalg.solve(gram, np.array([-along[1], along[0]]))  # no inner product with along
    return np.stack([along, other / math.sqrt(other @ gram @ other)])


def _draw_plane(picture: Picture, plane: Panel, basis, paths, step) -> None:
    left, top, width, height = plane.box
    picture.add(
        f'<text x="{left}" y="{top - 12}">W in the plane of the rows; to the right, {W_MM}</text>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" {GRID}/>'
        f"{plane.window()}"
    )
    # both gaps are positive between the directions in which one is zero and the other is not
    rays = 9 * plane.x[1] * (basis @ np.eye(2)) / np.linalg.norm(basis, axis=0)
    cone = plane.line(*np.column_stack([[0, 0], rays]))
    (x0, y0), (x1, y1) = plane.place([0, plane.x[1]], [0, 0])
    picture.add(
        f'<polygon points="{cone}" style="fill:{HUES["green"]}" fill-opacity=".16"/>'
        f'<path d="M{x0:.1f} {y0:.1f}H{x1:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>'
    )
    lines = [plane.line(*path[evenly(step, _POINTS)].T) for path in paths]
    picture.follow("polyline", "points", lines, _BOTH, **stroke("ink"))
    places = plane.shifts(*np.transpose([path[0] for path in paths]))
    picture.follow("circle", "transform", places, _BOTH, r=5, style=f"fill:{HUES['ink']}")
    picture.add("</svg>")


def _draw_softmax(picture: Picture, runs) -> None:
    """Softmax at the optimal token over the step + 1, so that the start has a place."""
    step = runs[0].step
    kept = evenly(step, _POINTS)
    panel = Panel((52, 326, 356, 150), (1, step[-1] + 1), (0, 1), "x")
    picture.add(
        panel.frame("step t + 1", "softmax at opt", decades(*panel.x), (0, 0.5, 1))
        + f'<text x="408" y="318" text-anchor="end"><tspan style="fill:{HUES["blue"]}">seq. 1'
        f'</tspan>, <tspan style="fill:{HUES["vermillion"]}">seq. 2 (dashed)</tspan></text>'
    )
    for i, look in enumerate((stroke("blue"), stroke("vermillion", "7 4"))):
        lines = [panel.line(step[kept] + 1, softmax_of(run.gaps[kept, i])) for run in runs]
        picture.follow("polyline", "points", lines, _BOTH, **look)


def _start_said(run: Trace) -> str:
    right = (run.gaps > 0).all(axis=1)
    first = softmax_of(run.gaps[0])
    said = f"softmax at the start {first[0]:.2f} and {first[1]:.2f}; "
    if right[-1]:
        wrong = np.flatnonzero(~right)
        since = run.step[wrong[-1] + 1] if len(wrong) else 0
        said += f"both past one half from step {since} on"
    else:
        said += "not both past one half at the end"
    return said + f"; 1 - cosine at step {run.step[-1]} {digits(run.W_alignment_error[-1])}"
