"""Scores that differ: every gap grows until its sequence is settled, and then W turns to W_mm."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ...geometry.coherence import Coherence, coherence_table
from ..run import MEASURED, TraceView
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
