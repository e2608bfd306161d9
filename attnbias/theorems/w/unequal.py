"""Scores that differ: gaps grow until sequences settle, and W turns to W_mm; or a lock holds it.

The lock is a region that no step leaves: of three tokens the wrong second one keeps the attention.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ...geometry.coherence import Coherence, coherence_table
from ...geometry.tokens import token_scores
from ..run import EPS, MEASURED, TraceView
from ..sharper.rate import TRIVIAL, biting_path, rate_bounds
from ..statements import (
    Checks,
    Statement,
    at_least,
    needs_alignment,
    needs_exponential,
    needs_fixed_decoder,
    needs_plain_steps,
    needs_start,
    run_check,
)

SOURCE = "unequal scores"
LEAST = at_least("least_gap", "least logit gap, against -e_0", SOURCE)
GROWTH = at_least(
    "growth",
    "least change of a gap a unit of path, where E_i >= Delta_i / 4, against 1 / psi",
    SOURCE,
)
STAYS = Statement(
    "stays",
    "largest E_i / Delta_i of a sequence once it was recorded below 1/2, against 1/2",
    SOURCE,
)
SETTLED = Statement("settled", "largest E_i / Delta_i from path S_1 on, against 1/2", SOURCE)
SLOPE = at_least("gradient", "n |grad L| over sum_i l_i E_i, against 2 f sqrt(w) / (3 T n)", SOURCE)
RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against M1 with phi_low = 1/2 from the first record on by which all "
    "sequences were below 1/2",
    SOURCE,
)
ALL_SETTLED = "every sequence is below 1/4 from the start on"
NEVER = "some sequence is never recorded with E_i below Delta_i / 2"


def _coherent(run: TraceView) -> str:
    """'' or the condition that fails, of tokens, start or steps."""
    c, longest = run.coherence, run.longest_step[-1]
    for check in coherence_table(c):
        if not check.holds:
            return f"{check.statement} is {check.value:.3g}, above {check.bound:.3g}"
    if longest > c.largest_step:
        return f"a step of length {longest:.3g} is above C3's {c.largest_step:.3g}"
    return ""


@run_check(
    LEAST,
    GROWTH,
    STAYS,
    SETTLED,
    SLOPE,
    RATE,
    given=(
        needs_fixed_decoder,
        needs_exponential,
        needs_plain_steps,
        needs_start,
        needs_alignment,
        _coherent,
    ),
)
def check_unequal_scores(run: TraceView) -> Checks:
    """Convergence without Assumption 2, from tokens that are coherent below the score gaps.

    E_i is how far the mean score under the softmax lies below the optimal one. Under C1, C2 and
    C3 (`check_coherence`) every gap of a sequence grows by at least (step) / psi while
    E_i >= Delta_i / 4; a sequence once below Delta_i / 2 stays there; from path S_1 on all are; and
    from where all are, M1 holds with phi_low = 1/2.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss, u fixed, by a rule without momentum, with step 0
        recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        Gaps, their growth at every recorded step, what stays settled, the gradient from below,
        and the rate.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. Neither Assumption 1 nor 2 is needed. S_1 is a worst case: runs settle on a
    path hundreds of times shorter, and the rate counts from where this one was seen to.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_unequal_scores(data, train(data, NGD(1.0), 1000)).all_hold
    True
    """
    yield from _measured(run)


def _measured(run: TraceView) -> Checks:
    c, path = run.coherence, run.path
    score_gap = np.minimum.reduceat(run.delta, run.first_row, axis=1)
    missing = run.per_sequence(np.exp(run.log_other) * run.delta)  # E_i, without cancellation
    share = missing / score_gap
    yield LEAST.along(run, run.gaps.min(axis=1), -c.start, rounding=run.gap_rounding())
    moving = (share >= 0.25)[:, run.sequence]
    least = np.where(moving, run.gap_speed, np.inf).min(axis=1)
    room = run.cosine_rounding() * (2 * c.B**2) ** 2 / run.Xi
    yield GROWTH.where(run, least, 1 / c.rho, never=ALL_SETTLED, rounding=room)
    # seen below 1/2 at a record before this one, or at this one
    seen: np.ndarray = np.logical_or.accumulate(share < 0.5, axis=0)
    worst = np.where(seen, share, -np.inf).max(axis=1)
    yield STAYS.along(run, worst, 0.5, seen.any(axis=1), empty=NEVER, rounding=MEASURED)
    short = f"the path of {path[-1]:.4g} does not reach S_1 = {c.settling_path:.4g}"
    yield SETTLED.along(
        run, share.max(axis=1), 0.5, path >= c.settling_path, empty=short, rounding=MEASURED
    )
    yield _slope(run, c)
    yield _rate(run, c, seen.all(axis=1))


def _slope(run: TraceView, c: Coherence):
    """The gradient's norm in units of sum_i l_i E_i, both of which underflow late in a run."""
    log_size = run.log_loss[:, run.sequence] + run.log_other + np.log(run.delta)
    drive = np.exp(log_size - run.log_scale[:, None]).sum(axis=1)
    bound = 2 * c.f * math.sqrt(c.w) / (3 * c.T * c.n)
    values = run.n * run.grad_size / drive
    return SLOPE.along(run, values, bound, rounding=run.norm_rounding() * values)


def _rate(run: TraceView, c: Coherence, settled):
    """M1 from the first record by which all sequences were settled."""
    if not settled.any():
        return RATE.refused(NEVER)
    turn, longest = int(settled.argmax()), run.longest_step
    constants = dataclasses.replace(run.constants(), phi_low=0.5)
    path, offset = run.path - run.path[turn], run.across[turn]
    needed = run.path[turn] + biting_path(constants, longest[-1], offset)
    return RATE.along(
        run,
        run.error,
        rate_bounds(constants, 0.5, path, longest, offset),
        (run.step > run.step[turn]) & (path > 0),
        empty="no step after that is recorded",
        trivial=TRIVIAL,
        reason=f"settled by t = {run.step[turn]}, below 1 from path length {needed:.4g} on",
    )


LOCK = "the lock"
OBTUSE = Statement(
    "obtuse", "|x_a - x_3|^2, against <x_a - x_o, x_a - x_3>: an obtuse angle at x_3", LOCK
)
INSIDE = Statement("inside", "F, against theta, since it was first recorded below", LOCK)
FALLS = Statement("falls", "largest rise of F from one record to the next since then", LOCK)
AHEAD = at_least(
    "ahead", "least velocity since then of the logits of x_a less those of others", LOCK
)
NEVER_INSIDE = "F is never recorded below theta"


@dataclasses.dataclass(frozen=True)
class Lock:
    """The region F < theta of three tokens: optimal o, second a, least 3 by their scores.

    Attributes
    ----------
    order : (3,) int array
        Where o, a and 3 stand in the sequence.
    gap : float
        (gamma_o - gamma_a) / (gamma_o - gamma_3), between 0 and 1.
    own, cross, least : float
        |x_a - x_o|^2, <x_a - x_o, x_a - x_3> and |x_a - x_3|^2.
    """

    order: np.ndarray
    gap: float
    own: float
    cross: float
    least: float

    @property
    def theta(self) -> float:
        """Below it log(phi_o / phi_3) falls at every step; 0 where the angle at x_3 is not obtuse.

        Where it is, own - cross is no less than cross - least, as |x_o - x_3|^2 is not negative.
        """
        gain = self.cross - self.least
        return gain / (self.own - self.cross) if gain > 0 else 0.0

    def level(self, behind: np.ndarray) -> np.ndarray:
        """F = phi_o / mean + (phi_o / phi_3) gap / (1 - gap), scores mapped to 1, 1 - gap, 0.

        `behind` are (R, 2) logits of a less those of o and of 3.
        """
        with np.errstate(over="ignore"):
            share = 1 / (1 + (1 - self.gap) * np.exp(behind[:, 0]))
            return share + np.exp(behind[:, 1] - behind[:, 0]) * self.gap / (1 - self.gap)


def _three(run: TraceView) -> str:
    if run.n != 1 or run.N != 2:
        return "for one sequence of three tokens"
    return "two tokens have one score" if run.assumption2 else ""


def lock_of(data) -> Lock:
    """The region of a data set of one sequence of three tokens with three different scores."""
    scores = token_scores(data).cpu().numpy()[0]
    order = np.argsort(-scores, kind="stable")
    top, second, last = scores[order]
    best, middle, third = data.X.double().cpu().numpy()[0][order]
    first, other = middle - best, middle - third
    return Lock(
        order,
        float((top - second) / (top - last)),
        float(first @ first),
        float(first @ other),
        float(other @ other),
    )


@run_check(
    OBTUSE,
    INSIDE,
    FALLS,
    AHEAD,
    given=(needs_fixed_decoder, needs_exponential, needs_plain_steps, _three),
)
def check_lock(run: TraceView) -> Checks:
    """A run that is in the region F < theta of three tokens stays there, on the wrong token.

    By their scores the tokens are x_o, x_a and x_3. Inside the region F falls and both logits of
    x_a less those of x_o and x_3 grow at every step, whatever its length: attention goes to x_a.

    Parameters
    ----------
    data : Dataset
        One sequence of three tokens with three scores.
    trace : Trace
        Of a run by a rule without momentum, with u fixed.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        The condition on the tokens, and what it implies from the first record inside on.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c], the counter-example to convergence with unequal scores.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.data import make_score_lock
    >>> data = make_score_lock(0.01)
    >>> check_lock(data, train(data, NGD(0.1), 100)).all_hold
    True
    """
    lock = lock_of(run.data)
    theta = lock.theta
    yield OBTUSE.once(lock.least, lock.cross)
    behind = _behind(run.gaps, lock)
    level = lock.level(behind)
    inside = np.logical_or.accumulate(level < theta)
    reason = f"from t = {run.step[inside.argmax()]} on" if inside.any() else ""
    yield INSIDE.along(run, level, theta, inside, empty=NEVER_INSIDE, reason=reason)
    change = np.diff(level, prepend=level[:1])
    later = np.logical_and(inside, np.roll(inside, 1))
    yield FALLS.along(run, change, 0.0, later, empty=NEVER_INSIDE, rounding=64 * EPS)
    speed = _behind(run.gap_speed, lock).min(axis=1)
    # an entry of the rows' Gram matrix is no larger, and the velocity is right to a share of it
    doubt = run.cosine_rounding() * run.K.max() / run.Xi
    yield AHEAD.along(run, speed, 0.0, inside, empty=NEVER_INSIDE, rounding=doubt)


def _behind(gaps: np.ndarray, lock: Lock) -> np.ndarray:
    """(R, 2) of a less o and of a less 3, from (R, 2) of o less the others in their order."""
    second, third = lock.order[1] > lock.order[2], lock.order[1] < lock.order[2]
    a, least = gaps[:, int(second)], gaps[:, int(third)]
    return np.stack([-a, least - a], axis=1)
