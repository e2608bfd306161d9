"""What checks of several rooms share: the rate of M1 for sums of rows, and whose trace it is."""

from __future__ import annotations

import numpy as np

from ..._validate import require_shape
from ...checks import Check
from ...dynamics.trace import Trace
from ...errors import DtypeError, ShapeError
from ...geometry.constants import row_bound
from ...theorems.statements import Statement


def rate_check(
    statement: Statement,
    trace: Trace,
    svm,
    size: float,
    log_A,
    *,
    part: int | None = None,
    soft=0.0,
) -> Check:
    """1 - cosine with an SVM, against `row_bound`, from where W was first recorded to point to it.

    Parameters
    ----------
    statement : Statement
    trace : Trace
        With every recorded W.
    svm : SVMSolution
    size : float
        The largest norm of a row.
    log_A : float or (R,)
        Lambda exp(Lambda) = A.
    part : int, optional
        Of the iterate, where it has several.
    soft : (R, d, d), optional
        A part of W that the rows do not move.
    """
    W, path, longest = trace.W.numpy(), trace.path_length, trace.longest_step
    if part is not None:
        W, path, longest = W[:, part], path[:, part], longest[:, part]
    require_shape("svm.weights", svm.weights, W.shape[1:], "(d, d), as of the trace")
    unit = svm.weights.numpy() / svm.norm
    along = np.tensordot(W, unit, 2)
    ahead = np.flatnonzero(along[:-1] >= 0)
    if not len(ahead):
        return statement.refused("W never pointed to the SVM")
    start, later = ahead[0], np.arange(len(path)) > ahead[0]
    across = (W - soft)[start] - along[start] * unit
    offset = np.hypot(np.linalg.norm(across), np.linalg.norm(soft + np.zeros_like(W), axis=(1, 2)))
    path = np.where(later, path - path[start], 1.0)
    bounds = row_bound(size, svm.margin, log_A, longest, offset, path)
    last = bounds[-1]
    reason = f"the bound is {last:.3g} at the end, falling like 1/path" if last >= 2 else ""
    error = trace.alignment_with(svm.weights, part)
    return statement.along(trace, error, bounds, later, vacuous=bool(last >= 2), reason=reason)


def require_trace_of(trace, problem: str, maker: str, **shapes: tuple[int, ...]) -> None:
    """Refuse anything but a Trace of the named problem, which the function `maker` trains.

    And one of other data, whose series have other shapes than these at each record.
    """
    own = trace.meta.get("problem") if isinstance(trace, Trace) else None
    if own != problem:
        raise DtypeError(
            "trace",
            expected=f"a Trace of {maker}",
            got=f"{type(trace).__name__} of {own}",
            remedy=f"use {maker}",
        )
    for name, shape in shapes.items():
        found = np.shape(getattr(trace, name, ()))[1:]
        if found != shape:
            raise ShapeError(
                "trace",
                expected=f"{name} of shape {shape} at each record, as of these data",
                got=str(found),
                remedy="pass the data, and the heads, that were trained",
            )
