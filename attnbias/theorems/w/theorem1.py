"""Theorem 1 = Theorem 5: the rate of NGD in the paper's form, with explicit constants."""

from __future__ import annotations

import math

import numpy as np

from ..._validate import as_numbers
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import MEASURED, TraceView
from ..sharper.rate import TRIVIAL
from ..statements import M1, Checks, Statement, at_least, fails, needs_full_steps, needs_ngd, table
from .gradient import lemma5_start
from .lemma7 import log_D

RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against the explicit (log t)^2 / t",
    "Theorem 1 = 5, our constants",
)
TELESCOPED = at_least(
    "telescoped",
    "<W_t - W_s, unit W_mm>, against |W_t| - |W_s| less the two sums of the proof, s the first of "
    "consecutive records",
    "Theorem 5, Eq. 37",
)
NO_STEP = "no step from t_0 = {0:.4g} on is recorded"
NOT_CONSECUTIVE = "no two consecutive steps from t_0 = {0:.4g} on are recorded"


def check_theorem1(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, phi: float | None = None
) -> CheckTable:
    """Theorem 1 (Theorem 5 of the appendix): NGD's alignment at the paper's rate.

    With t_0 = max(1, 4 B^2 |W_0| / (eta Xi)) and D = 10 n kappa T B^2 / (Xi phi_low^2), for
    t >= t_0,

        1 - cosine <= 4 B^2 / (eta Xi t) [2 (|W_0| + eta t_0) + (2 eta B^2 / Xi) (1 + log t)
                                          + (20 B^2 / Xi^2) log(D t) (1 + log t)].

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of NGD with the exponential loss, u fixed, no cap that bound, and step 0 recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.
    phi : float in (0, 1], optional
        A lower bound on all softmax scores of optimal tokens, as Lemma 3 gives; by default
        the smallest of the run. phi_low is the smaller of it and 1/4.

    Returns
    -------
    CheckTable
        The rate, and Eq. 37 if two consecutive steps from t_0 on are recorded.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 1 and its restatement, Theorem 5. The rate's form is the paper's as far
    as its text shows; this explicit version is [c].
    Needs Assumption 2 and eta B^2 <= 1. M1 removes one (log t)^2 and the condition on eta.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_theorem1(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    run = TraceView(data, trace, svm, phi=phi)
    reason = fails(run, needs_ngd, *M1, _short_steps, needs_full_steps)
    return table(reason, (RATE, TELESCOPED), _rows, run)


def _short_steps(run: TraceView) -> str:
    speed = run.step_size * run.constants().B ** 2
    return "" if speed <= 1 + MEASURED else f"eta B^2 = {speed:.3g} exceeds 1"


def start_time(run: TraceView) -> float:
    """max(1, t_0 of Lemma 5), from which |W_t| >= eta Xi t / (4 B^2)."""
    return max(1.0, lemma5_start(run))


def theorem1_bounds(run: TraceView, constants, log_t) -> np.ndarray:
    """(R,) Theorem 1's bound at exp(log_t)."""
    c, eta, log_t = constants, run.step_size, as_numbers("log_t", log_t)
    start = 2 * (run.W_norm[0] + eta * start_time(run))
    curvature = 2 * eta * c.B**2 / c.Xi * (1 + log_t)
    preference = 20 * c.B**2 / c.Xi**2 * (log_D(c) + log_t) * (1 + log_t)
    return 4 * c.B**2 / (eta * c.Xi) * np.exp(-log_t) * (start + curvature + preference)


def log_biting_time(run: TraceView, constants) -> float:
    """log of the t from which Theorem 1's bound stays below 1; the bound falls for t >= 2."""
    from scipy.optimize import brentq  # here, as scipy takes half a second

    def above(log_t: float) -> float:
        return float(theorem1_bounds(run, constants, log_t)) - TRIVIAL

    low = max(math.log(2.0), math.log(start_time(run)))
    high = low + 1.0
    while above(high) >= 0:
        high *= 2
    return low if above(low) < 0 else brentq(above, low, high, xtol=1e-13)


def _rows(run: TraceView) -> Checks:
    constants, start = run.constants(), start_time(run)
    keep = run.step >= start
    bounds = theorem1_bounds(run, constants, np.where(keep, np.log(run.step), 0.0))
    yield RATE.along(
        run,
        run.error,
        bounds,
        keep,
        empty=NO_STEP.format(start),
        trivial=TRIVIAL,
        reason=f"below 1 from t = 10^{log_biting_time(run, constants) / math.log(10):.1f} on",
    )
    yield _telescoped(run, constants, start)


def _telescoped(run: TraceView, constants, start: float) -> Check:
    """Eq. 37, summed over consecutive records from the first at or after t_0."""
    step, eta = run.step, run.step_size
    single = np.flatnonzero((np.diff(step) == 1) & (step[:-1] >= math.ceil(start)))
    if not len(single):
        return TELESCOPED.refused(NOT_CONSECUTIVE.format(start))
    first = int(single[0])
    last = first + int(np.logical_and.accumulate(np.diff(single, prepend=first - 1) == 1).sum())
    t, norm = step[first:last].astype(float), run.W_norm[first:last]
    epsilon = 20 * constants.B**2 / (eta * constants.Xi**2) * (log_D(constants) + np.log(t)) / t
    lost = np.full(len(step), np.nan)
    lost[first + 1 : last + 1] = np.cumsum(eta**2 / (2 * norm) + eta * epsilon)
    return TELESCOPED.along(
        run,
        run.along - run.along[first],
        run.W_norm - norm[0] - lost,
        (step > step[first]) & (step <= step[last]),
        rounding=MEASURED * run.W_norm,
        reason=f"s = {step[first]}",
    )
