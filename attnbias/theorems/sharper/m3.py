"""M3: no rule turns faster than 1 / path length squared from a start outside the span."""

from __future__ import annotations

import math

import numpy as np

from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import TraceView
from ..statements import MEASURED, Statement, alignment_recorded, refused

# Less than this share of |W_0|^2 outside the span is what rounding leaves of none: the share
# is a difference of two numbers that each are right to a few 1e-16, times the condition
# number of the rows, with room for sums of some thousand terms.
OUTSIDE = 1e-12

RATE = Statement(
    "1 - cosine(W_t, W_mm), against |W_0 outside span z|^2 / (2 (|W_0| + S_t)^2)", "M3", ">="
)


def check_rate_lower_bound(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None
) -> CheckTable:
    """M3, the lower bound that makes M2's rate the right one.

    What W_0 has outside the span of the rows z_k is never updated, so

        1 - cosine(W_t, W_mm) >= |W_0 outside|^2 / (2 (|W_0| + S_t)^2).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run by a rule without momentum, with step 0 recorded; any loss, u fixed or not.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable
        One check. Vacuous if W_0 lies in the span: then the bound is 0, and the cosine can
        be exactly 1.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: M3, [c]. It needs neither assumption, only a feasible W-SVM.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> trace = train(data, NGD(0.5), 10, W0=[[0.0, 0.1], [0.0, 0.0]])
    >>> check_rate_lower_bound(data, trace).all_hold
    True
    """
    run = TraceView(data, trace, svm)
    reason = run.refuse(run.needs_plain_steps(), run.needs_start(), alignment_recorded(run))
    if reason:
        return refused((RATE,), reason)
    outside = norm_outside(run)
    bounds = outside_bound(run, outside, run.trace.path_length)
    words = f"|W_0 outside| = {outside:.4g}" if outside else "W_0 lies in the span of the rows"
    check = RATE.along(
        run, run.trace.W_alignment_error, bounds, run.W_norm > 0, empty="W stays zero",
        rounding=MEASURED * bounds, vacuous=outside == 0, reason=words,
    )  # fmt: skip
    return CheckTable([check])


def outside_bound(run: TraceView, outside: float, path) -> np.ndarray:
    """(R,) the lower bound for a path of at most this length; 0 where W is zero."""
    reach = run.W_norm[0] + np.asarray(path, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(reach > 0, (outside / reach) ** 2 / 2, 0.0)


def norm_outside(run: TraceView) -> float:
    """Norm of what W_0 has outside the span of the rows, from |W_0| and the gaps at step 0.

    Rounding is taken off, so that it is a lower bound; exactly 0 if nothing is left.
    """
    total = float(run.W_norm[0]) ** 2
    if total == 0:
        return 0.0
    values, vectors = np.linalg.eigh(run.K)
    in_span = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    coordinates = vectors[:, in_span].T @ run.gaps[0]
    inside = float((coordinates**2 / values[in_span]).sum())
    condition = float(values[-1] / values[in_span].min())
    rounding = max(OUTSIDE, 64 * np.finfo(float).eps * condition)
    return math.sqrt(max(0.0, total - inside - rounding * total))
