"""M2: with strict complementarity |P_t| stays bounded; without it, on a triple, it does not."""

from __future__ import annotations

import math

import numpy as np

from ..._validate import require_number
from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import FLOOR, MEASURED, NO_OFFSET, TraceView
from ..statements import (
    M1,
    Checks,
    Statement,
    at_least,
    fails,
    needs_alignment,
    needs_assumption2,
    needs_full_steps,
    needs_ngd,
    needs_zero_start,
    refused,
    run_check,
    table,
)
from .lower_bounds import EXACT, norm_outside
from .rate import biting_path, least_scores

# A constraint outside the support with excess theta moves W across W_mm for as long as
# exp(-theta Xi <W, W_mm>) counts, one with a share a of the largest dual weight like log t until
# Xi <W, W_mm> is about 1 / a. Past this multiple of both, and where M1 bites, so that |P_t| is
# well below |W_t|, it should have settled.
LATE = 20.0
# Steps of a fixed length never let |P_t| come to rest, and from one decade's records to the next
# its largest value moves: on 120 random data sets by 3% of a step at most.
FLICKER = 0.1
# Rows whose Cholesky pivot, a root of rounding error, says nothing.
DEPENDENT = 1e-7

SETTLED = Statement("settled", "relative growth of |P_t| over the last decade of path", "M2")
ALONG_RATE = Statement("rate", "1 - cosine(W_t, W_mm), against P^2 / (2 <W_t, unit W_mm>^2)", "M2")
PATH_RATE = Statement(
    "path_rate",
    "1 - cosine(W_t, W_mm), against 2 B^4 P^2 / (Xi S_t - 2 B^2 |W_0|)^2 in the last decade",
    "M2",
)
BALL = Statement(
    "offset",
    "|P_t|, against the root of |W_0 outside|^2 + max(|Q_0|, Q_* + sbar)^2, "
    "Q_* = (log(N' kappa / phi_low^2) + B^2 sbar) / lambda",
    "M2, every row active",
)
TOO_SHORT = "no step with <W, W_mm> > 0 is recorded before a tenth of the path"
TOO_EARLY = (
    "a decade before the end Xi <W, unit W_mm> was {0:.3g} and the path {1:.3g}, where {2:.3g} and "
    "{3:.3g} are late: too early to tell"
)
IDLE = "not every row supports W_mm: the bound is not explicit"
TIED = "the rows are linearly dependent: the bound is not explicit"
STATEMENTS = (SETTLED, ALONG_RATE, PATH_RATE, BALL)


def check_fast_rate(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, growth: float = 0.01
) -> CheckTable:
    """What a finite run can show of M2: |P_t| is bounded, and 1 - cosine is O(1 / S_t^2).

    Where every row supports W_mm and the rows are independent, the bound on |P_t| is explicit, by
    a ball that steps do not leave, and holds or fails at every step. Elsewhere
    M2 says that sup |P_t| is finite without a number. A bounded |P_t| and one that grows like the
    log of the path part all the same: the latter grows by log 10 / log S_t of itself each decade
    of path, 17% at 1e6, far above `growth`. The tokens, not the run's offset, decide when that
    is evidence: before a decade that begins late, by the slack of the idle constraints and the
    smallest dual weight, these checks are not applicable. GD seldom comes so far.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss, u fixed, by a rule without momentum, with step 0
        and one before a tenth of the path recorded.
    svm : SVMSolution, optional
    growth : float in (0, 1]
        By how much, relative, the largest |P_t| may still grow from one decade of path, the last
        but one, to the next.

    Returns
    -------
    CheckTable
        The growth, and 1 - cosine over the last decade against bounds with P as measured in the
        decade before, times 1 + growth and a tenth of a step more; and the explicit bound on |P_t|.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: M2, [c]. Needs strict complementarity, Assumption 2, and softmax scores that stay
    up: the smallest of the run must not fall over the last decade. Strict complementarity
    holds for almost all tokens if d >= n T, which is a statement about all data sets and
    not one that a run can check; `SVMSolution.strictly_complementary` decides it for one.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_fast_rate(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    growth = require_number("growth", growth, low=0, high=1, open_low=True)
    run = TraceView(data, trace, svm)
    reason = fails(run, *M1)
    if not reason and not run.svm.strictly_complementary:
        reason = "no strict complementarity: an active constraint has a zero dual variable"
    return table(reason, STATEMENTS, _rows, run, growth)


def _rows(run: TraceView, growth: float) -> Checks:
    decade = last_decade(run)
    if decade is None:
        yield from refused(STATEMENTS[:3], TOO_SHORT)
    else:
        reason = _undecided(run, decade)
        yield from refused(STATEMENTS[:3], reason) if reason else _late(run, decade, growth)
    yield _ball(run)


def last_decade(run: TraceView) -> int | None:
    """Index of the last record before a tenth of the final path, with <W, W_mm> > 0."""
    path = run.path
    early = np.flatnonzero((path <= path[-1] / 10) & (run.along > 0) & (run.step > 0))
    return int(early[-1]) if len(early) else None


def offset_before(run: TraceView, decade: int) -> float:
    """The largest |P_t| of the decade of path that ends at the record `decade`."""
    early = slice(0, decade + 1)
    before = (run.path > run.path[-1] / 100) & (run.along > 0)
    return run.across[early].max(where=before[early], initial=run.across[decade])


def offset_growth(run: TraceView, decade: int) -> float:
    """How far |P_t| rises by the end above the decade before, relative to it."""
    early, late = offset_before(run, decade), run.across[decade:].max()
    if late <= NO_OFFSET * run.W_norm[-1]:
        return 0.0
    return max(late / early - 1, 0.0) if early > 0 else np.inf


def _undecided(run: TraceView, decade: int) -> str:
    """'' or why the tokens and the path leave open whether |P_t| should have settled."""
    least = run.trace.least_opt_score
    if least[-1] < least[decade]:
        return f"the smallest softmax score still falls, to {least[-1]:.3g}: no phi_low in sight"
    height, path = run.Xi * run.along[decade], run.path[decade]
    late = LATE / min(1.0, run.svm.least_slack, run.svm.least_dual)
    bites = biting_path(run.constants(), run.longest_step[-1], run.W_norm[0])
    told = height >= late and path >= bites
    return "" if told else TOO_EARLY.format(height, path, late, bites)


def least_lean(run: TraceView) -> float:
    """lambda: each offset Q in the span of the rows has a row with -<z_k, Q> >= lambda |Q|.

    For independent rows that all support W_mm. Infinite for a single row, which has no such Q.

    Notes
    -----
    Source: ours [c]. With q_k = <z_k, Q> and sum alpha_k q_k = 0, |Q|^2 = q' K^-1 q is convex in
    q, and largest over q >= -1 at a corner, where all q but one are -1.
    """
    if run.N == 1:
        return math.inf
    corner = np.diag(np.linalg.inv(run.K)) / (run.Xi * run.svm.dual.cpu().numpy()) ** 2 - 1
    return run.Xi / math.sqrt(corner.max())


def _ball(run: TraceView):
    if len(run.svm.support) < run.N:
        return BALL.refused(IDLE)
    try:
        pivots = np.diag(np.linalg.cholesky(run.K))
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min() <= DEPENDENT * pivots.max():
        return BALL.refused(TIED)
    c, longest, lean = run.constants(), run.longest_step, least_lean(run)
    log_spread = 1 + c.log_A_at(least_scores(run)) + c.B**2 * longest
    radius = log_spread / lean + longest if math.isfinite(lean) else 0.0
    bounds = np.maximum(run.across[0], np.hypot(norm_outside(run), radius))
    # both sides are measured, and where |P_0| is the larger they are equal at the start
    room = MEASURED * bounds + NO_OFFSET * run.W_norm
    return BALL.along(run, run.across, bounds, rounding=room, reason=f"lambda = {lean:.4g}")


def _late(run: TraceView, decade: int, growth: float) -> Checks:
    late = run.step >= run.step[decade]
    level, flicker = offset_before(run, decade), FLICKER * run.longest_step[-1]
    bound = (1 + growth) * level + flicker
    first = f"from t = {run.step[decade]} to {run.step[-1]}; |P| at the end {run.across[-1]:.6g}"
    grown, room = offset_growth(run, decade), flicker / level if level > 0 else 0.0
    yield SETTLED.once(grown, growth, rounding=room, reason=first)
    room = MEASURED * run.error + FLOOR
    yield ALONG_RATE.along(run, run.error, (bound / run.along) ** 2 / 2, late, rounding=room)
    # <W_t, unit W_mm> >= -|W_0| + Xi S_t / (2 B^2), by Lemma 4
    path = run.Xi * run.path - run.longest_row * run.W_norm[0]
    bounds = 2 * run.constants().B ** 4 * bound**2 / path**2
    words = {"empty": "S_t is still below 2 B^2 |W_0| / Xi", "vacuous": bool(bounds[-1] >= 1)}
    words["reason"] = "its constant is measured, not proved"
    yield PATH_RATE.along(run, run.error, bounds, late & (path > 0), rounding=room, **words)


ACROSS_BELOW = at_least(
    "across_low", "|P_t|, against log(1 + eta t / sqrt 5)", "the degenerate triple, ours"
)
ACROSS_ABOVE = Statement(
    "across_high", "|P_t|, against log(1 + eta e^eta t)", "the degenerate triple, ours"
)
ALONG_BELOW = at_least(
    "along_low",
    "<W_t, unit W_mm>, against the larger of 2 eta t / sqrt 5 and eta t - eta - sqrt 5",
    "the degenerate triple, ours",
)
ALONG_ABOVE = Statement(
    "along_high", "<W_t, unit W_mm>, against eta t", "the degenerate triple, ours"
)
RATE_BELOW = at_least(
    "rate_low",
    "1 - cosine(W_t, W_mm), against the brackets' lower side",
    "the degenerate triple, ours",
)
RATE_ABOVE = Statement(
    "rate_high",
    "1 - cosine(W_t, W_mm), against the brackets' upper side",
    "the degenerate triple, ours",
)


def degenerate_fault(run: TraceView) -> str:
    """'' or how the data differ from the degenerate triple, rotations aside."""
    if run.joint or run.n != 1 or run.N != 2 or int(run.rows.opt[0]) != 0:
        return "for one sequence of three tokens with the query optimal, u fixed"
    query, second, third = run.data.X[0].double()
    if bool(third.any()):
        second, third = third, second
    if bool(third.any()) or abs(float(second.norm()) - 1) > EXACT:
        return "the other two tokens are not zero and of norm 1"
    if abs(float(query.norm()) - 1) > EXACT or abs(float(query @ second)) > EXACT:
        return "the query is not of norm 1 and orthogonal to the other tokens"
    return ""


TRIPLE = (ACROSS_BELOW, ACROSS_ABOVE, ALONG_BELOW, ALONG_ABOVE, RATE_BELOW, RATE_ABOVE)


@run_check(
    *TRIPLE,
    given=(
        needs_ngd,
        degenerate_fault,
        needs_assumption2,
        needs_zero_start,
        needs_alignment,
        needs_full_steps,
    ),
)
def check_degenerate_rate(run: TraceView) -> Checks:
    """On the degenerate triple 1 - cosine is (log t)^2 / (2 eta^2 t^2), not 1 / t^2.

    One constraint is active with a zero dual variable. NGD from W_0 = 0 has, for t >= 1,

        log(1 + eta t / sqrt 5) <= |P_t| <= log(1 + eta e^eta t),
        max(2 eta t / sqrt 5, eta t - eta - sqrt 5) <= <W_t, unit W_mm> <= eta t,

    and 1 - cosine lies between the values that these leave.

    Parameters
    ----------
    data : Dataset
        `make_degenerate()` or a rotation of it: one sequence of three tokens, the query
        optimal with norm 1, one other token zero and one of norm 1 orthogonal to the query.
    trace : Trace
        Of NGD from W_0 = 0 with u fixed, no cap that bound, step 0 recorded.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c], the counter-example to M2 without strict complementarity. The side
    eta t - eta - sqrt 5 is from (c_+ - c)^2 + (P_+ - P)^2 = eta^2 and
    P_+ - P <= eta / (1 + eta t / sqrt 5), whose squares sum to at most eta (eta + sqrt 5).

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.data.degenerate import make_degenerate
    >>> data = make_degenerate()
    >>> check_degenerate_rate(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    reach, error = run.step_size * run.step, run.error
    low_P = np.log1p(reach / math.sqrt(5))
    low_c = np.maximum(2 / math.sqrt(5) * reach, reach - run.step_size - math.sqrt(5))
    high_P = np.logaddexp(0.0, run.step_size + np.log(reach))
    # P^2 / (2 (c^2 + P^2)) <= 1 - cosine <= P^2 / (2 c^2), with c and P at their brackets
    below, above = low_P**2 / (2 * (reach**2 + low_P**2)), high_P**2 / (2 * low_c**2)
    across, rate = _limits(run, reach[-1])
    yield ACROSS_BELOW.later(run, run.across, low_P, reason=across)
    yield ACROSS_ABOVE.later(run, run.across, high_P, reason=across)
    yield ALONG_BELOW.later(run, run.along, low_c)
    yield ALONG_ABOVE.later(run, run.along, reach)
    yield RATE_BELOW.later(run, error, below, reason=rate)
    yield RATE_ABOVE.later(run, error, above, reason=rate)


def _limits(run: TraceView, reach: float) -> tuple[str, str]:
    """What the last record says of the limits of |P| and of the rate."""
    if reach <= 1:
        return "", ""
    ratio = run.error[-1] * 2 * (reach / math.log(reach)) ** 2
    return (
        f"|P| - log(eta t) at the end {run.across[-1] - math.log(reach):.3g}",
        f"over (log(eta t))^2 / (2 eta^2 t^2) at the end {ratio:.5g}",
    )
