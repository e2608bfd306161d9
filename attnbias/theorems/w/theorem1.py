"""Theorem 1 = Theorem 5: the rate of NGD in the paper's form, with explicit constants."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..._validate import require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import TraceView
from ..sharper.rate import TRIVIAL, rate_hypotheses
from ..statements import (
    MEASURED,
    Statement,
    full_steps,
    table,
)
from .gap_sets import log_D
from .gradient import lemma5_start

RATE = Statement(
    "1 - cosine(W_t, W_mm), against the explicit (log t)^2 / t", "Theorem 1 = 5, our constants"
)
TELESCOPED = Statement(
    "<W_t - W_s, unit W_mm>, against |W_t| - |W_s| less the two sums of the proof, s the first of "
    "consecutive records",
    "Theorem 5, Eq. 37",
    ">=",
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
    if phi is not None:
        phi = require_number("phi", phi, low=0, high=1, open_low=True)
    run = TraceView(data, trace, svm)
    return table(theorem1_hypotheses(run, phi), (RATE, TELESCOPED), _rows, run, phi)


check_theorem5 = check_theorem1


def theorem1_hypotheses(run: TraceView, phi) -> str:
    """'' or the first hypothesis of Theorem 1 that fails."""
    reason = run.refuse(run.needs_rule("NGD"), rate_hypotheses(run, phi))
    if reason:
        return reason
    speed = run.step_size * run.constants(phi).B ** 2
    if speed > 1 + MEASURED:
        return f"eta B^2 = {speed:.3g} exceeds 1"
    return full_steps(run)


def start_time(run: TraceView) -> float:
    """max(1, t_0 of Lemma 5), from which |W_t| >= eta Xi t / (4 B^2)."""
    return max(1.0, lemma5_start(run))


def theorem1_bounds(run: TraceView, constants, log_t) -> np.ndarray:
    """(R,) Theorem 1's bound at exp(log_t)."""
    c, eta, log_t = constants, run.step_size, np.asarray(log_t, dtype=float)
    start = 2 * (run.W_norm[0] + eta * start_time(run))
    curvature = 2 * eta * c.B**2 / c.Xi * (1 + log_t)
    preference = 20 * c.B**2 / c.Xi**2 * (log_D(c) + log_t) * (1 + log_t)
    return 4 * c.B**2 / (eta * c.Xi) * np.exp(-log_t) * (start + curvature + preference)


def log_biting_time(run: TraceView, constants) -> float:
    """log of the t from which Theorem 1's bound stays below 1; the bound falls for t >= 2."""
    low = max(math.log(2.0), math.log(start_time(run)))
    if theorem1_bounds(run, constants, low) < TRIVIAL:
        return low
    high = low + 1.0
    while theorem1_bounds(run, constants, high) >= TRIVIAL:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if theorem1_bounds(run, constants, middle) < TRIVIAL else (middle, high)
        )
    return high


def _rows(run: TraceView, phi) -> Iterator[Check]:
    yield _rate(run, phi)
    yield _telescoped(run, phi)


def _rate(run: TraceView, phi) -> Check:
    constants = run.constants(phi)
    start = start_time(run)
    keep = run.step >= start
    with np.errstate(divide="ignore"):
        log_t = np.log(run.step)
    bounds = theorem1_bounds(run, constants, np.where(keep, log_t, 0.0))
    bites = f"below 1 from t = 10^{log_biting_time(run, constants) / math.log(10):.1f} on"
    vacuous = bool(keep.any() and not bounds[keep].min() < TRIVIAL)
    return RATE.along(
        run, run.trace.W_alignment_error, bounds, keep, empty=NO_STEP.format(start),
        vacuous=vacuous, reason=bites,
    )  # fmt: skip


def _telescoped(run: TraceView, phi):
    """Eq. 37, summed over consecutive records from the first at or after t_0."""
    constants = run.constants(phi)
    start, eta = start_time(run), run.step_size
    first = int(np.searchsorted(run.step, math.ceil(start)))
    while first + 1 < len(run.step) and run.step[first + 1] != run.step[first] + 1:
        first += 1
    if first + 1 >= len(run.step):
        return TELESCOPED.refused(NOT_CONSECUTIVE.format(start))
    last = first + 1
    while last + 1 < len(run.step) and run.step[last + 1] == run.step[last] + 1:
        last += 1
    t, norm = run.step[first:last].astype(float), run.W_norm[first:last]
    epsilon = 20 * constants.B**2 / (eta * constants.Xi**2) * (log_D(constants) + np.log(t)) / t
    lost = np.cumsum(eta**2 / (2 * norm) + eta * epsilon)
    values, bounds = np.full(len(run.step), np.nan), np.full(len(run.step), np.nan)
    values[first + 1 : last + 1] = run.along[first + 1 : last + 1] - run.along[first]
    bounds[first + 1 : last + 1] = run.W_norm[first + 1 : last + 1] - norm[0] - lost
    keep = (run.step > run.step[first]) & (run.step <= run.step[last])
    return TELESCOPED.along(
        run, values, bounds, keep, rounding=MEASURED * run.W_norm,
        reason=f"s = {run.step[first]}",
    )  # fmt: skip
