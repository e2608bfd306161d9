"""Theorem 6: gradient descent, made non-asymptotic by M1, and our matching lower bound."""

from __future__ import annotations

import math

import numpy as np

from ..run import MEASURED, TraceView
from ..sharper import rate
from ..sharper.lower_bounds import outside_check
from ..statements import M1, Checks, Statement, at_least, needs_gd, run_check

STEP = Statement(
    "step", "longest step, against eta B^2 Upsilon / 2", "Theorem 6, the gradient bound"
)
HEIGHT = at_least(
    "height",
    "Xi <W_t, unit W_mm>, against log(exp(Xi c_0) + eta Xi^2 upsilon phi_low^2 t / n)",
    "Theorem 6, non-asymptotic",
)
RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against M1 with the path that t iterations guarantee",
    "Theorem 6, by M1",
)
CEILING = Statement(
    "ceiling",
    "Xi <W_t, unit W_mm>, against log(exp(Xi c_t0) + Xi eta G exp(Xi sbar) (t - t_0))",
    "Theorem 6, the other side, ours",
)
SLOW = at_least(
    "rate_low",
    "1 - cosine(W_t, W_mm), against |W_0 outside span z|^2 / (2 (|W_0| + path that t allows)^2)",
    "Theorem 6, the other side by M3, ours",
)


@run_check(STEP, HEIGHT, RATE, CEILING, SLOW, given=(needs_gd, *M1))
def check_theorem6(run: TraceView) -> Checks:
    """Theorem 6 (GD turns to W_mm) with constants and rates in t.

    With c_t = <W_t, unit W_mm>,

        Xi c_t >= log(exp(Xi c_0) + eta Xi^2 upsilon phi_low^2 t / n),

    so that the path grows like log t and M1 makes 1 - cosine O(1 / log t). From above,
    |P_t| <= R gives Xi c_t <= log(exp(Xi c_t0) + Xi eta G exp(Xi sbar) (t - t_0)) with
    G = 2 B^2 (N' / n) Upsilon exp(2 B^2 R), hence by M3 a lower bound of order 1 / log^2 t.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of GD with the exponential loss, u fixed, and step 0 recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        The longest step, <W, W_mm> from both sides, 1 - cosine from both sides.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 6 states the limit alone; the rest is ours [c]. phi_low and R are the
    run's own. eta <= 2 sbar / (B^2 Upsilon) keeps the steps within sbar, whence Lemma 3
    guarantees phi_low beforehand.

    Examples
    --------
    >>> from attnbias import GD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_theorem6(data, train(data, GD(0.5), 1000)).all_hold
    True
    """
    c, turn, log_eta = run.constants(), rate.first_turned(run), run.rule["log_scale"]
    longest = run.step_size * c.B**2 * c.Upsilon / 2
    yield STEP.later(run, run.longest_step, longest)
    yield height_check(run, HEIGHT, 0, log_eta)
    yield _rate(run, turn, log_eta)
    yield from _from_above(run, turn, log_eta)


def _log_speed(run: TraceView, log_step_size: float) -> np.ndarray:
    """(R,) log of eta Xi^2 upsilon phi^2 / n, with the least softmax score phi up to there."""
    log_size = log_step_size + 2 * math.log(run.Xi) + run.constants().log_upsilon - math.log(run.n)
    return log_size + 2 * np.log(run.trace.least_opt_score)


def log_heights(run: TraceView, start: int, log_step_size: float) -> np.ndarray:
    """(R,) lower bound on Xi c_t for GD from the record `start` on; -inf before it."""
    log_time = np.log(np.maximum(run.step - run.step[start], 0))
    grown = np.logaddexp(run.Xi * run.along[start], _log_speed(run, log_step_size) + log_time)
    return np.where(run.step >= run.step[start], grown, -np.inf)


def height_check(run: TraceView, statement: Statement, start: int, log_step_size: float):
    """How far W has come along W_mm, against what GD from the record `start` guarantees."""
    height, least = run.Xi * run.along, log_heights(run, start, log_step_size)
    words = {"empty": "no step after it", "reason": f"from t = {run.step[start]} on"}
    # the increments of one sequence with two tokens attain it as the steps shrink
    room = MEASURED * (1 + np.abs(height))
    return statement.along(run, height, least, run.step > run.step[start], rounding=room, **words)


def _rate(run: TraceView, turn: int, log_eta: float):
    # what t iterations guarantee, never more than what was covered
    path = log_heights(run, turn, log_eta) / run.Xi - run.along[turn]
    words = f"below 1 from t = 10^{log10_biting_time(run, turn, log_eta):.1f} on"
    return rate.m1_check(RATE, run, path, run.longest_step, path > 0, reason=words)


def log10_biting_time(run: TraceView, turn: int, log_eta: float) -> float:
    """log10 of the t at which the guaranteed path is long enough for M1 to bite."""
    path = rate.bites_since(run, run.longest_step[-1])
    log_t = run.Xi * (run.along[turn] + path) - _log_speed(run, log_eta)[-1]
    return log_t / math.log(10)


def largest_offset(run: TraceView, turn: int) -> float:
    """Largest |P_r| of all iterations from `turn` on: between two records, no farther from
    the larger of them than half of the path from one to the other."""
    across, path = run.across[turn:], run.path[turn:]
    between = np.maximum(across[1:], across[:-1]) + np.diff(path) / 2
    return between.max(initial=across[0])


def _from_above(run: TraceView, turn: int, log_eta: float):
    height, radius, row = run.Xi * run.along, largest_offset(run, turn), run.longest_row
    log_G = math.log(row * run.N / run.n) + run.constants().log_Upsilon + row * radius
    log_speed = math.log(run.Xi) + log_eta + log_G + run.Xi * run.longest_step[-1]
    time = run.step - run.step[turn]
    later, log_time = time > 0, np.log(np.maximum(time, 1))
    ceiling = np.logaddexp(height[turn], log_speed + log_time)
    words = {"empty": rate.NEVER_TURNS, "reason": f"R = {radius:.4g}, as measured"}
    room = MEASURED * (1 + np.abs(height))
    yield CEILING.along(run, height, ceiling, later, rounding=room, **words)
    path = row / run.Xi * (ceiling / run.Xi - run.along[0])
    yield outside_check(SLOW, run, path, later, **words)
