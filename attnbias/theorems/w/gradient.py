"""Eq. 14 and (G): the gradient's weights; Lemma 4: every step leads towards W_mm; Lemma 5: |W|."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import TraceView
from ..statements import (
    EPS,
    MEASURED,
    Statement,
    full_steps,
    gap_rounding,
    norm_rounding,
    table,
    weight_rounding,
)

EQ14 = Statement(
    "|grad L| recorded, less that of Eq. 14's weights: share, against rounding", "Eq. 14"
)
LEFT = Statement(
    "|grad L| over the mean weight (1/n) sum p, against Xi", "Eq. 14, norm from below", ">="
)
RIGHT = Statement(
    "|grad L| over the mean weight (1/n) sum p, against 2 B^2", "Eq. 14, norm from above"
)
WEIGHT = Statement("largest weight p_i of a sequence over Upsilon / 4", "Eq. 14, weights")
FLOOR = Statement(
    "smallest C_i over upsilon phi_i^2, with p_k = C_i exp(-g_k)", "Eq. 14, weights", ">="
)


def check_gradient_bounds(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None
) -> CheckTable:
    """Eq. 14's weights on a run, and (G), at every recorded step.

    With -grad L = (1/n) sum_k p_k z_k and Assumption 2 all p_k are positive, and

        (Xi / n) sum p <= |grad L| <= (2 B^2 / n) sum p.

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
        The recorded norm against the one that Eq. 14 gives, both sides of (G), and the bounds
        p_i <= Upsilon / 4 and C_i >= upsilon phi_i^2 on the weights.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Eq. 14 [a]; (G) [c]. Left: test with W_mm, whose margins are at least 1. Right: no
    row is longer than 2 B^2. The left side is attained, by one sequence of two tokens.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_gradient_bounds(data, train(data, NGD(0.5), 100)).all_hold
    True
    """
    run = TraceView(data, trace, svm)
    return table(gradient_hypotheses(run), (EQ14, LEFT, RIGHT, WEIGHT, FLOOR), _weights, run)


def _weights(run: TraceView) -> Iterator[Check]:
    c, room = run.constants(), weight_rounding(run) + norm_rounding(run)
    recorded = run.trace.log_grad_norm
    mean = run.log_scale + np.log(run.p.sum(axis=1) / run.n)
    largest = run.log_scale + np.log(run.per_sequence(run.p).max(axis=1))
    share = (run.log_weight + run.gaps - 2 * run.log_opt[:, run.sequence]).min(axis=1)
    with np.errstate(over="ignore"):
        error = np.abs(np.expm1(recorded - run.log_scale - np.log(run.grad_size)))
        ratio, floor = np.exp(recorded - mean), np.exp(share - c.log_upsilon)
    yield EQ14.along(run, error, room)
    yield LEFT.along(run, ratio, c.Xi, rounding=room * c.Xi)
    yield RIGHT.along(run, ratio, 2 * c.B**2, rounding=room * 2 * c.B**2)
    yield WEIGHT.along(run, np.exp(largest - c.log_Upsilon + math.log(4)), 1.0, rounding=room)
    far = np.abs(run.gaps).max(axis=1)
    yield FLOOR.along(run, floor, 1.0, rounding=64 * EPS * (1 + far))


def gradient_hypotheses(run: TraceView) -> str:
    """'' or why Eq. 14 in the form of Assumption 2 does not describe the run."""
    return run.refuse(run.needs_fixed_decoder(), run.needs_exponential(), run.needs_assumption2())


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
    return table(gradient_hypotheses(run), (COSINE, SPEED), _directions, run)


def toward_w_mm(run: TraceView) -> np.ndarray:
    """(R,) cosine of -grad L(W_t) and W_mm."""
    return run.toward(run.svm.margins.cpu().numpy() * run.Xi)


def least_cosine(run: TraceView) -> float:
    """Lemma 4's bound Xi / (2 B^2)."""
    return run.Xi / (2 * run.constants().B ** 2)


def _directions(run: TraceView) -> Iterator[Check]:
    bound, reason = least_cosine(run), run.needs_plain_steps()
    # at most 1, and both of its factors are right to these shares
    room = weight_rounding(run) + norm_rounding(run)
    yield COSINE.along(run, toward_w_mm(run), bound, rounding=room)
    if reason:
        yield SPEED.refused(reason)
        return
    path = np.diff(run.trace.path_length, prepend=np.nan)
    gained = np.diff(run.along, prepend=np.nan)
    # a difference of two projections, each right to a rounding of the gaps it is made of
    room = gap_rounding(run) / run.Xi + 4 * EPS * run.trace.path_length
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        speed, room = gained / path, room / path
    yield SPEED.along(
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
    return table(ngd_hypotheses(run), (UPPER, PROJECTION, LOWER), _norms, run)


def ngd_hypotheses(run: TraceView) -> str:
    """'' or why Lemma 5 does not speak of the run."""
    reason = gradient_hypotheses(run)
    return reason or run.refuse(run.needs_rule("NGD"), run.needs_start()) or full_steps(run)


def lemma5_start(run: TraceView) -> float:
    """Lemma 5's t_0 = 4 B^2 |W_0| / (eta Xi)."""
    return 4 * run.constants().B ** 2 * float(run.W_norm[0]) / (run.step_size * run.Xi)


def _norms(run: TraceView) -> Iterator[Check]:
    eta, t, start, t0 = run.step_size, run.step, float(run.W_norm[0]), lemma5_start(run)
    yield UPPER.later(run, run.W_norm, start + eta * t)
    grown = eta * least_cosine(run) * t
    yield PROJECTION.later(
        run, run.along, grown - start, rounding=MEASURED * (start + grown),
        vacuous=bool(start > 0 and t[-1] <= t0 / 2),
        reason=f"positive from t = {math.ceil(t0 / 2)} on" if start else "",
    )  # fmt: skip
    yield LOWER.along(
        run, run.W_norm, grown / 2, (t >= t0) & (t > 0), rounding=MEASURED * grown / 2,
        empty=f"no step recorded from t_0 = {t0:.4g} on", reason=f"t_0 = {t0:.4g}",
    )  # fmt: skip
