"""Eq. 14 and (G): the gradient's weights; Lemma 4: every step leads towards W_mm; Lemma 5: |W|."""

from __future__ import annotations

import math

import numpy as np

from ..run import EPS, MEASURED, TraceView
from ..statements import (
    GRADIENT,
    NGD_RUN,
    Checks,
    Statement,
    at_least,
    needs_plain_steps,
    run_check,
)

EQ14 = Statement(
    "gradient",
    "|grad L| recorded, less that of Eq. 14's weights: share, against rounding",
    "Eq. 14",
)
LEFT = at_least(
    "norm_low", "|grad L| over the mean weight (1/n) sum p, against Xi", "Eq. 14, norm from below"
)
RIGHT = Statement(
    "norm_high",
    "|grad L| over the mean weight (1/n) sum p, against 2 B^2",
    "Eq. 14, norm from above",
)
WEIGHT = Statement(
    "weight_high", "largest weight p_i of a sequence over Upsilon / 4", "Eq. 14, weights"
)
FLOOR = at_least(
    "weight_low", "smallest C_i over upsilon phi_i^2, with p_k = C_i exp(-g_k)", "Eq. 14, weights"
)


@run_check(EQ14, LEFT, RIGHT, WEIGHT, FLOOR, given=GRADIENT)
def check_gradient_bounds(run: TraceView) -> Checks:
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
    Source: Eq. 14 [a], its formula [b]; (G) [c]. Left: test with W_mm, whose margins are at least
    1. Right: no row is longer than 2 B^2. The left side is attained, by one sequence of two tokens.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_gradient_bounds(data, train(data, NGD(0.5), 100)).all_hold
    True
    """
    c, room = run.constants(), run.cosine_rounding()
    recorded = run.trace.log_grad_norm
    mean = run.log_scale + np.log(run.p.sum(axis=1) / run.n)
    largest = run.log_scale + np.log(run.per_sequence(run.p).max(axis=1))
    share = (run.log_weight + run.gaps - 2 * run.log_opt[:, run.sequence]).min(axis=1)
    error = np.abs(np.expm1(recorded - run.log_scale - np.log(run.grad_size)))
    ratio, floor = np.exp(recorded - mean), np.exp(share - c.log_upsilon)
    yield EQ14.along(run, error, room)
    yield LEFT.along(run, ratio, c.Xi, rounding=room * c.Xi)
    yield RIGHT.along(run, ratio, run.longest_row, rounding=room * run.longest_row)
    yield WEIGHT.along(run, np.exp(largest - c.log_Upsilon + math.log(4)), 1.0, rounding=room)
    far = np.abs(run.gaps).max(axis=1)
    yield FLOOR.along(run, floor, 1.0, rounding=64 * EPS * (1 + far))


COSINE = at_least(
    "cosine", "cosine of -grad L(W_t) and W_mm, against Xi / (2 B^2)", "Lemma 4, Eq. 24"
)
SPEED = at_least(
    "gain",
    "increase of <W, unit W_mm> between records over the path between them, against Xi / (2 B^2)",
    "Lemma 4, along the run",
)
UPPER = Statement("norm_high", "|W_t|, against |W_0| + eta t", "Lemma 5, Eq. 9")
PROJECTION = at_least(
    "projection", "<W_t, unit W_mm>, against eta Xi t / (2 B^2) - |W_0|", "Lemma 5, Eq. 9"
)
LOWER = at_least("norm_low", "|W_t| from t_0 on, against eta Xi t / (4 B^2)", "Lemma 5, Eq. 9")


@run_check(COSINE, SPEED, given=GRADIENT)
def check_lemma4(run: TraceView) -> Checks:
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
    bound, reason = least_cosine(run), needs_plain_steps(run)
    # at most 1, and both of its factors are right to these shares
    room = run.cosine_rounding()
    yield COSINE.along(run, toward_w_mm(run), bound, rounding=room)
    if reason:
        yield SPEED.refused(reason)
        return
    path = np.diff(run.path, prepend=np.nan)
    gained = np.diff(run.along, prepend=np.nan)
    # a difference of two projections, each right to a rounding of the gaps it is made of
    room = run.gap_rounding() / run.Xi + 4 * EPS * run.path
    speed, room = gained / path, room / path
    yield SPEED.along(
        run,
        speed,
        bound,
        (path > 0) & (room < 0.1 * bound),
        rounding=room,
        empty="between no two records is the path longer than the rounding of <W, W_mm>",
    )


def toward_w_mm(run: TraceView) -> np.ndarray:
    """(R,) cosine of -grad L(W_t) and W_mm."""
    return run.toward(run.svm.margins.cpu().numpy() * run.Xi)


def least_cosine(run: TraceView) -> float:
    """Lemma 4's bound Xi / (2 B^2)."""
    return run.Xi / run.longest_row


@run_check(UPPER, PROJECTION, LOWER, given=NGD_RUN)
def check_lemma5(run: TraceView) -> Checks:
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
    eta, t, start, t0 = run.step_size, run.step, run.W_norm[0], lemma5_start(run)
    yield UPPER.later(run, run.W_norm, start + eta * t)
    grown = eta * least_cosine(run) * t
    yield PROJECTION.later(
        run,
        run.along,
        grown - start,
        rounding=MEASURED * (start + grown),
        vacuous=bool(start > 0 and t[-1] <= t0 / 2),
        reason=f"positive from t = {math.ceil(t0 / 2)} on" if start else "",
    )
    yield LOWER.along(
        run,
        run.W_norm,
        grown / 2,
        (t >= t0) & (t > 0),
        rounding=MEASURED * grown / 2,
        empty=f"no step recorded from t_0 = {t0:.4g} on",
        reason=f"t_0 = {t0:.4g}",
    )


def lemma5_start(run: TraceView) -> float:
    """Lemma 5's t_0 = 4 B^2 |W_0| / (eta Xi)."""
    return 2 * run.longest_row * run.W_norm[0] / (run.step_size * run.Xi)
