"""Lemma 4: every gradient step leads towards W_mm; Lemma 5: so the norm grows like t."""

from __future__ import annotations

import math

import numpy as np

from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..rounding import EPS, gap_rounding, norm_rounding, weight_rounding
from ..run import TraceView
from ..statements import MEASURED, Statement, full_steps, refused
from .gradient_bounds import gradient_hypotheses

COSINE = Statement("cosine of -grad L(W_t) and W_mm, against Xi / (2 B^2)", "Lemma 4, Eq. 24", ">=")
SPEED = Statement(
    "increase of <W, unit W_mm> between records over the path between them, against Xi / (2 B^2)",
    "Lemma 4, along the run",
    ">=",
)
UPPER = Statement("|W_t|, against |W_0| + eta t", "Lemma 5, Eq. 9")
PROJECTION = Statement(
    "<W_t, unit W_mm>, against eta Xi t / (2 B^2) - |W_0|", "Lemma 5, Eq. 9", ">="
)
LOWER = Statement("|W_t| from t_0 on, against eta Xi t / (4 B^2)", "Lemma 5, Eq. 9", ">=")
NO_STEP = "no step after the start is recorded"


def check_lemma4(data: Dataset, trace: Trace, *, svm: SVMSolution | None = None) -> CheckTable:
    """Lemma 4 (Eq. 24): the gradient is positively correlated with W_mm, at every W.

        <-grad L(W), unit W_mm> >= Xi / (2 B^2) |grad L(W)|

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss and u fixed, by any rule.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        The cosine at every recorded step, and what the steps between two records gained.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Lemma 4 [a], its constant [c]; it follows from (G). Needs Assumption 2 and a
    feasible W-SVM, nothing else; the second check also steps along the gradient, without momentum.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_lemma4(data, train(data, NGD(0.5), 100)).all_hold
    True
    """
    run = TraceView(data, trace, svm)
    reason = gradient_hypotheses(run)
    if reason:
        return refused((COSINE, SPEED), reason)
    return CheckTable((_cosine(run), _speed(run)))


def toward_w_mm(run: TraceView) -> np.ndarray:
    """(R,) cosine of -grad L(W_t) and W_mm."""
    return run.toward(run.svm.margins.cpu().numpy() * run.Xi)


def least_cosine(run: TraceView) -> float:
    """Lemma 4's bound Xi / (2 B^2)."""
    return run.Xi / (2 * run.constants().B ** 2)


def _cosine(run: TraceView):
    # at most 1, and both of its factors are right to these shares
    room = weight_rounding(run) + norm_rounding(run)
    return COSINE.along(run, toward_w_mm(run), least_cosine(run), rounding=room)


def _speed(run: TraceView):
    reason = run.needs_plain_steps()
    if reason:
        return SPEED.refused(reason)
    bound = least_cosine(run)
    path = np.diff(run.trace.path_length, prepend=np.nan)
    gained = np.diff(run.along, prepend=np.nan)
    # a difference of two projections, each right to a rounding of the gaps it is made of
    room = gap_rounding(run) / run.Xi + 4 * EPS * run.trace.path_length
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        speed, room = gained / path, room / path
    return SPEED.along(
        run, speed, bound, (path > 0) & (room < 0.1 * bound), rounding=room,
        empty="between no two records is the path longer than the rounding of <W, W_mm>",
    )  # fmt: skip


def check_lemma5(data: Dataset, trace: Trace, *, svm: SVMSolution | None = None) -> CheckTable:
    """Lemma 5 (Eq. 9): under NGD the norm of W grows like t, from both sides.

        |W_0| + eta t >= |W_t| >= <W_t, unit W_mm> >= eta Xi t / (2 B^2) - |W_0|,

    so that |W_t| >= eta Xi t / (4 B^2) from t_0 = 4 B^2 |W_0| / (eta Xi) on.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run of NGD, without momentum, decay or a cap that binds, with the exponential
        loss, u fixed and step 0 recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Lemma 5 and Eq. 9 [a], constants [c]. Needs Assumption 2 and a feasible W-SVM. The
    upper side is attained where W moves along one row.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_lemma5(data, train(data, NGD(0.5), 100)).all_hold
    True
    """
    run = TraceView(data, trace, svm)
    reason = ngd_hypotheses(run)
    if reason:
        return refused((UPPER, PROJECTION, LOWER), reason)
    return CheckTable((_upper(run), _projection(run), _lower(run)))


def ngd_hypotheses(run: TraceView) -> str:
    """'' or why Lemma 5 does not speak of the run."""
    reason = gradient_hypotheses(run)
    return reason or run.refuse(run.needs_rule("NGD"), run.needs_start()) or full_steps(run)


def lemma5_start(run: TraceView) -> float:
    """Lemma 5's t_0 = 4 B^2 |W_0| / (eta Xi)."""
    return 4 * run.constants().B ** 2 * float(run.W_norm[0]) / (run.step_size * run.Xi)


def _upper(run: TraceView):
    bounds = run.W_norm[0] + run.step_size * run.step
    return UPPER.along(
        run, run.W_norm, bounds, run.step > 0, empty=NO_STEP, rounding=MEASURED * bounds
    )


def _projection(run: TraceView):
    start = float(run.W_norm[0])
    grown = run.step_size * least_cosine(run) * run.step
    bites = lemma5_start(run) / 2
    return PROJECTION.along(
        run, run.along, grown - start, run.step > 0, empty=NO_STEP,
        rounding=MEASURED * (start + grown), vacuous=bool(start > 0 and run.step[-1] <= bites),
        reason=f"positive from t = {math.ceil(bites)} on" if start else "",
    )  # fmt: skip


def _lower(run: TraceView):
    t0 = lemma5_start(run)
    bounds = run.step_size * least_cosine(run) / 2 * run.step
    return LOWER.along(
        run, run.W_norm, bounds, (run.step >= t0) & (run.step > 0),
        empty=f"no step recorded from t_0 = {t0:.4g} on", rounding=MEASURED * bounds,
        reason=f"t_0 = {t0:.4g}",
    )  # fmt: skip
