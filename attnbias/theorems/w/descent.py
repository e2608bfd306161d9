"""Theorem 6: gradient descent, made non-asymptotic by M1, and our matching lower bound.

Theorem 7: Polyak steps, the gradient sandwich behind them, and that under their cap they are GD.
"""

from __future__ import annotations

import math

import numpy as np

from ..run import MEASURED, TraceView
from ..sharper import rate
from ..sharper.lower_bounds import outside_check
from ..statements import (
    GRADIENT,
    M1,
    Checks,
    Statement,
    at_least,
    needs_gd,
    needs_polyak,
    run_check,
)

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


# log(L - L*) and log |grad| are both about minus the gap, and each is right to 2e-16 of
# itself: past this gap their difference is no longer known to 1e-9.
LARGEST_GAP = 1e6
# A step size goes through its logarithm and back: a few roundings.
EXACT = 1e-12

# A bound on a step's length under this one is not held to 1e-9 in float64.
SHORTEST_STEP = 1e-290

LOWER = at_least(
    "gradient_low",
    "log(|grad L| / (L - L*)), against log(Xi min softmax of an optimal token)",
    "Theorem 7, proof, lower side",
)
UPPER = Statement(
    "gradient_high",
    "log(|grad L| / (L - L*)), against log(2 B^2) + largest score gap",
    "Theorem 7, proof, upper side",
)
SHORTEST = at_least(
    "step_low", "step length before the cap, against 1 / (4 B^2 e^Delta)", "Theorem 7"
)
LONGEST = Statement(
    "step_high", "step length before the cap, against 1 / (2 Xi phi_low)", "Theorem 7"
)
FLOOR = at_least("path", "path length before the cap, against t / (4 B^2 e^Delta)", "Theorem 7")
FREE_RATE = Statement(
    "rate",
    "1 - cosine before the cap, against M1 with the path that t steps guarantee",
    "Theorem 7, by M1",
)
CAPPED = Statement(
    "capped",
    "|log(step size / max_step)| where |grad L| <= 1 / (4 B^2 e^Delta max_step)",
    "Theorem 7, capped",
)
AS_GD = at_least(
    "height",
    "Xi <W_t, unit W_mm> under the cap, against Theorem 6's growth with step size max_step",
    "Theorem 7, capped, by Theorem 6",
)
NOT_AT_THE_END = "the cap does not bind at the end"
ALWAYS_CAPPED = "the cap binds from the start"
FREE_NEVER = "no step is recorded between <W, W_mm> >= 0 and the cap"
SKIPPED = "the cap may bind at later steps, which are not recorded"


@run_check(LOWER, UPPER, given=GRADIENT)
def check_polyak_sandwich(run: TraceView) -> Checks:
    """The gradient lies between two multiples of the loss gap, at every recorded step.

        Xi min_i phi_i (L - L*) <= |grad L| <= 2 B^2 e^Delta (L - L*),

    with phi_i the softmax at the optimal token of sequence i and Delta the largest score gap.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of any rule, with the exponential loss and u fixed.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        Both sides, in logarithms, at the records whose logit gaps are at most 1e6: farther
        on the difference of the two logarithms is rounding.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 7's proof; the explicit upper side is [c]. Needs Assumption 2. The
    lower side is attained by one sequence with two tokens, as Delta (1 - phi) tends to 0.

    Examples
    --------
    >>> from attnbias import Polyak, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_polyak_sandwich(data, train(data, Polyak(), 1000)).all_hold
    True
    """
    keep, rounding = resolved(run)
    ratio = run.trace.log_grad_norm - run.trace.log_loss_gap
    settings = {"empty": "all logit gaps exceed 1e6", "rounding": rounding}
    settings["reason"] = "" if keep.all() else f"up to t = {run.step[keep].max(initial=0)}"
    lower = math.log(run.Xi) + run.log_opt.min(axis=1)
    yield LOWER.along(run, ratio, lower, keep, **settings)
    yield UPPER.along(run, ratio, log_steepest(run), keep, **settings)


def _true_floor(run: TraceView) -> str:
    floor = run.rule["loss_floor"]
    return "" if floor is None else f"the loss floor is set to {floor:g}, not to the true L*"


@run_check(
    SHORTEST, LONGEST, FLOOR, FREE_RATE, CAPPED, AS_GD, given=(needs_polyak, _true_floor, *M1)
)
def check_theorem7(run: TraceView) -> Checks:
    """Theorem 7 (Polyak steps): NGD in disguise until the cap binds, GD while it does.

    Before the cap each step's length lies in [1 / (4 B^2 e^Delta), 1 / (2 Xi phi_low)], so
    that M1 gives O(1 / t). The cap is sure to bind, and Polyak to be GD with step size
    max_step, only where |grad L| <= 1 / (4 B^2 e^Delta max_step).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of Polyak() with the true L*, the exponential loss, u fixed, and step 0 recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        Step and path lengths and the rate before the cap; step sizes and growth under it.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 7 as far as its text shows; constants and the part after the cap are [c].
    The cap may bind early, where a wrong token has nearly all weight, and let go again; it
    binds for good once |grad L| stays below 1 / (4 B^2 e^Delta max_step). A step that is not
    recorded may be one at which it binds: "before the cap" ends, if the rule has one, where
    the records first skip a step, and GD begins where they skip none, or |grad L| is that small.
    Needs Assumption 2. phi_low is the run's own; beforehand it follows by induction: scores
    of at least phi_low make the next step no longer than 1 / (2 Xi phi_low), and Lemma 3
    with mu B^2 <= 1.15 Xi^2 phi_low then keeps them there.

    Examples
    --------
    >>> from attnbias import Polyak, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_theorem7(data, train(data, Polyak(max_step=10.0), 1000)).all_hold
    True
    """
    capped = run.trace.log_step_size >= run.rule["log_max_step"] - EXACT
    yield from _before(run, capped)
    yield from _under_the_cap(run, capped)


def resolved(run: TraceView) -> tuple[np.ndarray, np.ndarray]:
    """Records whose log(L - L*) and log |grad| can be compared, and the rounding of that."""
    logs = np.abs(run.trace.log_loss_gap) + np.abs(run.trace.log_grad_norm)
    keep = np.abs(run.gaps).max(axis=1) <= LARGEST_GAP
    # four roundings of each logarithm, and of the constants beside them
    return keep & np.isfinite(logs), 1e-15 * (4 + np.nan_to_num(logs, posinf=0.0))


def log_steepest(run: TraceView) -> float:
    """log(2 B^2 e^Delta), the upper side of the sandwich."""
    return math.log(run.longest_row) + run.delta.max()


def _before(run: TraceView, capped: np.ndarray):
    """Everything before the cap first binds, as far as the records can tell."""
    free = np.logical_and.accumulate(~capped)
    end = ""
    if math.isfinite(run.rule["log_max_step"]):
        seen = np.logical_and.accumulate(np.diff(run.step, prepend=-1) == 1)
        end = "" if seen[free].all() else f"up to t = {run.step[seen][-1]}: {SKIPPED}"
        free &= seen
    known, rounding = resolved(run)
    length = np.exp(run.trace.log_step_size + run.trace.log_grad_norm)
    shortest = math.exp(-log_steepest(run)) / 2
    longest = 1 / (2 * run.Xi * rate.least_scores(run))
    settings = {"empty": ALWAYS_CAPPED, "rounding": length * rounding, "reason": end}
    long = LONGEST.along(run, length, longest, free & known, **settings)
    if shortest < SHORTEST_STEP:
        lost = f"1 / (4 B^2 e^Delta) = exp({-log_steepest(run) - math.log(2):.4g}) underflows"
        yield from (SHORTEST.refused(lost), long, FLOOR.refused(lost), FREE_RATE.refused(lost))
        return
    yield SHORTEST.along(run, length, shortest, free & known, **settings)
    yield long
    floor = shortest * run.step
    settings = {"empty": end or ALWAYS_CAPPED, "rounding": MEASURED * floor, "reason": end}
    yield FLOOR.along(run, run.path, floor, free & (run.step > 0), **settings)
    turn = rate.first_turned(run)
    path = shortest * (run.step - run.step[turn])
    needed = rate.bites_since(run, longest[-1]) / shortest
    words = end or f"below 1 from t = {run.step[turn] + needed:.3g} on"
    yield rate.m1_check(FREE_RATE, run, path, longest, free, FREE_NEVER, reason=words)


def _under_the_cap(run: TraceView, capped: np.ndarray):
    """What is left of the rule where the cap binds, which it may do early, let go, and do again."""
    log_cap = run.rule["log_max_step"]
    known, rounding = resolved(run)
    away = np.abs(run.trace.log_step_size - log_cap)
    # s_t >= 1 / (4 B^2 e^Delta), so that s_t / |grad L| >= max_step there
    small = run.trace.log_grad_norm <= -log_steepest(run) - math.log(2) - log_cap - rounding
    never = "the gradient is never recorded that small"
    yield CAPPED.along(run, away, EXACT, known & small, empty=never)
    followed = np.diff(run.step, append=run.step[-1] + 1) == 1
    free = np.flatnonzero(~(capped & (small | followed)))
    start = free.max(initial=-1) + 1
    late = start >= len(run.step) - 1
    yield AS_GD.refused(NOT_AT_THE_END) if late else height_check(run, AS_GD, start, log_cap)
