"""M2: under strict complementarity the part of W across W_mm stays bounded."""

from __future__ import annotations

import numpy as np

from .._validate import require_number
from ..checks import CheckTable
from ..data import Dataset
from ..dynamics.trace import Trace
from ..geometry.svm import SVMSolution
from .m1 import biting_path, m1_hypotheses
from .run import Run
from .statements import FLOOR, MEASURED, NO_OFFSET, Statement, refused

# A constraint outside the support with excess theta moves W across W_mm for as long as
# exp(-theta Xi <W, W_mm>) counts, one with a share a of the largest dual weight like log t until
# Xi <W, W_mm> is about 1 / a. Past this multiple of both times, and where M1 bites, so that
# |P_t| is well below |W_t|, it should have settled.
LATE = 20.0

SETTLED = Statement("relative growth of |P_t| over the last decade of path", "M2")
ALONG_RATE = Statement("1 - cosine(W_t, W_mm), against P^2 / (2 <W_t, unit W_mm>^2)", "M2")
PATH_RATE = Statement(
    "1 - cosine(W_t, W_mm), against 2 B^4 P^2 / (Xi S_t - 2 B^2 |W_0|)^2 in the last decade",
    "M2",
)
TOO_SHORT = "no step with <W, W_mm> > 0 is recorded before a tenth of the path"
TOO_EARLY = (
    "|P_t| still grew by {0:.2g} of itself, but a decade before the end the path was only {1:.3g}, "
    "where {2:.3g} is late: too early to tell"
)


def check_m2(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, growth: float = 0.01
) -> CheckTable:
    """What a finite run can show of M2: |P_t| has settled, and 1 - cosine is O(1 / S_t^2).

    M2 says that sup |P_t| is finite, with a constant that isn't explicit, so no run can prove
    or refute it. A bounded |P_t| and one that grows like the log of the path part all the
    same: the latter grows by log 10 / log S_t of itself each decade of path, 17% at 1e6, far
    above `growth`. On a short path, which under GD is all there is, a growing |P_t| says
    nothing yet: not applicable.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss, u fixed, by a rule without momentum, with step 0
        and one before a tenth of the path recorded.
    svm : SVMSolution, optional
    growth : float in (0, 1]
        By how much, relative, |P_t| may still grow over the last decade of path.

    Returns
    -------
    CheckTable
        The growth, and 1 - cosine over the last decade against bounds with P as measured at
        its start, times 1 + growth.

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
    >>> check_m2(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    growth = require_number("growth", growth, low=0, high=1, open_low=True)
    run = Run(data, trace, svm)
    reason = run.refuse(m1_hypotheses(run), needs_strict(run))
    decade = None if reason else last_decade(run)
    if not reason:
        reason = TOO_SHORT if decade is None else _undecided(run, decade, growth)
    if reason:
        return refused((SETTLED, ALONG_RATE, PATH_RATE), reason)
    return CheckTable(_checks(run, decade, growth))


def needs_strict(run: Run) -> str:
    """'' or that strict complementarity fails."""
    if run.svm.strictly_complementary:
        return ""
    return "no strict complementarity: an active constraint has a zero dual variable"


def last_decade(run: Run) -> int | None:
    """Index of the last record before a tenth of the final path, with <W, W_mm> > 0."""
    path = run.trace.path_length
    early = np.flatnonzero((path <= path[-1] / 10) & (run.along > 0) & (run.step > 0))
    return int(early[-1]) if len(early) else None


def offset_growth(run: Run, decade: int) -> float:
    """How far |P_t| rises above its value at the record `decade` by the end, relative to it."""
    early, late = float(run.across[decade]), float(run.across[decade:].max())
    if late <= NO_OFFSET * run.W_norm[-1]:
        return 0.0
    return late / early - 1 if early > 0 else np.inf


def _undecided(run: Run, decade: int, growth: float) -> str:
    """'' or why the run does not show what M2 promises, nor its opposite."""
    least = run.trace.least_opt_score
    if least[-1] < least[decade]:
        return f"the smallest softmax score still falls, to {least[-1]:.3g}: no phi_low in sight"
    grown, path = offset_growth(run, decade), run.trace.path_length[decade]
    late = late_path(run)
    if grown > growth and path < late:
        return TOO_EARLY.format(grown, path, late)
    return ""


def late_path(run: Run) -> float:
    """Path length past which a |P_t| that still grows is evidence against M2."""
    c, longest = run.constants(), float(run.trace.longest_step[-1])
    slowest = LATE / min(1.0, run.svm.least_slack, run.svm.least_dual)
    # <W, unit W_mm> >= Xi S_t / (2 B^2) - |W_0|, by Lemma 4
    turned = 2 * c.B**2 / c.Xi * (slowest / c.Xi + run.W_norm[0])
    return max(turned, biting_path(c, longest, float(run.W_norm[0])))


def _checks(run: Run, decade: int, growth: float):
    c, measured = run.constants(), run.trace.W_alignment_error
    late = np.arange(len(run.step)) >= decade
    bound = (1 + growth) * float(run.across[decade])
    first = f"from t = {run.step[decade]} to {run.step[-1]}; |P| at the end {run.across[-1]:.6g}"
    grown, words = offset_growth(run, decade), first + "; M2's constant isn't explicit"
    yield SETTLED.once(grown, growth, reason=words)
    allowance = MEASURED * measured + FLOOR
    height = run.along
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = (bound / height) ** 2 / 2
    yield ALONG_RATE.along(run, measured, bounds, late, empty="", rounding=allowance)
    # <W_t, unit W_mm> >= -|W_0| + Xi S_t / (2 B^2), by Lemma 4
    path = run.Xi * run.trace.path_length - 2 * c.B**2 * run.W_norm[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = 2 * c.B**4 * bound**2 / path**2
    yield PATH_RATE.along(
        run, measured, bounds, late & (path > 0), empty="S_t is still below 2 B^2 |W_0| / Xi",
        rounding=allowance, vacuous=bool(bounds[-1] >= 1),
        reason="its constant is measured, not proved",
    )  # fmt: skip
