"""Lemma 1 = Lemma 8: once W points near W_mm, attention sparsifies exponentially fast."""

from __future__ import annotations

import math

import numpy as np

from ..._validate import as_numbers, require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import EPS, MEASURED, TraceView
from ..sharper.rate import biting_path
from ..statements import (
    NGD_RUN,
    Checks,
    Statement,
    at_least,
    fails,
    needs_alignment,
    needs_softmax,
    table,
)
from .gradient import lemma5_start

GAPS = at_least(
    "gap",
    "least logit gap over |W_t|, against Xi - 2 B^2 |unit W_t - unit W_mm|",
    "Lemma 8, first line",
)
HALF = at_least("half", "least logit gap over |W_t|, against Xi / 2", "Lemma 8, second line")
RATE = at_least(
    "rate",
    "-log(1 - optimal softmax score), the smallest, against log(1 + exp(x_t) / (T - 1)), "
    "x_t = eta Xi^2 t / (8 B^2)",
    "Lemma 1 = 8",
)
PROVED = at_least("proved", "the same from the proved t_1 on", "Lemma 1 = 8, with M1's t_1")
STATEMENTS = (GAPS, HALF, RATE, PROVED)


def check_lemma1(
    data: Dataset,
    trace: Trace,
    *,
    svm: SVMSolution | None = None,
    phi: float | None = None,
    t0: float | None = None,
) -> CheckTable:
    """Lemma 1 (Lemma 8 of the appendix): the softmax rate of NGD.

    At every t >= t_0 = 4 B^2 |W_0| / (eta Xi) with 1 - cosine(W_t, W_mm) <= Xi^2 / (32 B^4),

        optimal softmax score >= 1 / (1 + (T - 1) exp(-eta Xi^2 t / (8 B^2))).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of NGD, without momentum, decay or a cap that binds, with the exponential loss, u
        fixed and step 0 recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.
    phi : float in (0, 1], optional
        A lower bound on the optimal softmax scores, as Lemma 3 gives, for the proved t_1; by
        default the smallest of the run.
    t0 : float, optional
        Another reading of t_0. One that is earlier than the above is refused, and the check
        says whether the inequality fails there.

    Returns
    -------
    CheckTable
        Two lines of the proof, and the rate: with the alignment as measured, and with the t_1
        from which M1 proves that it is small enough. That t_1 is usually astronomically late;
        then the last check is not applicable and says how late.

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, InfeasibleError

    Notes
    -----
    Source: Lemma 1 and Lemma 8 [a], constants and t_0 [c]. Compared as logarithms: in float64
    1 - score is 0 once a gap passes 37. t_0 must be Lemma 5's: with the first t at which
    <W_t, W_mm> >= 0 the statement is false.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_lemma1(data, train(data, NGD(0.5), 100))[2].holds
    True
    """
    if t0 is not None:
        t0 = require_number("t0", t0, low=0)
    run = TraceView(data, trace, svm, phi=phi)
    return table(fails(run, *NGD_RUN, needs_alignment), STATEMENTS, _rows, run, t0)


def near_enough(run: TraceView) -> float:
    """Xi^2 / (32 B^4): with 1 - cosine at most this all gaps are at least Xi |W| / 2."""
    return run.Xi**2 / (32 * run.constants().B ** 4)


def rate_bound(run: TraceView, t) -> np.ndarray:
    """(R,) Lemma 1's bound on -log(1 - optimal softmax score) at iterations t."""
    c = run.constants()
    exponent = run.step_size * run.Xi**2 / (8 * c.B**2) * as_numbers("t", t)
    return np.logaddexp(0.0, exponent - math.log(c.T - 1))


def proved_start(run: TraceView) -> float:
    """The t_1 of Lemma 1 that M1 proves, known before the run; infinite beyond float range.

    M1 is started at t_0 = first t with <W_t, W_mm> >= 0, whose path is at most
    2 B^2 |W_0| / Xi + eta, and solved for the path at which its bound is Xi^2 / (32 B^4).
    """
    c, eta, start = run.constants(), run.step_size, run.W_norm[0]
    late = run.longest_row * start / run.Xi + eta if start else 0.0
    path = biting_path(c, eta, start + late, near_enough(run))
    return max(lemma5_start(run), (path + late) / eta)


def _rows(run: TraceView, t0: float | None) -> Checks:
    moved, B2 = run.W_norm > 0, run.constants().B ** 2
    least = run.gaps.min(axis=1) / np.where(moved, run.W_norm, 1.0)
    error = np.nan_to_num(run.error, nan=2.0)  # where W = 0
    room, bounds = 64 * EPS * B2 + MEASURED * run.Xi, run.Xi - 2 * B2 * np.sqrt(2 * error)
    vague = bool((bounds[moved] <= -2 * B2).all())  # no gap is below -2 B^2 |W|
    yield GAPS.along(
        run,
        least,
        bounds,
        moved,
        empty="W is zero throughout",
        rounding=room,
        vacuous=vague,
        reason="says something once 1 - cosine < (1 + Xi / (2 B^2))^2 / 2" if vague else "",
    )
    limit = near_enough(run)
    never = f"1 - cosine stays above {limit:.3g}"
    yield HALF.along(run, least, run.Xi / 2, moved & (error <= limit), empty=never, rounding=room)
    yield _rate(run, t0)
    reason, start = needs_softmax(run), proved_start(run)
    late = f"proved from t_1 = {start:.3g} on, and the run ends at {run.step[-1]}"
    if math.isinf(start):
        late = "proved only from a t_1 beyond the range of floats on"
    keep = np.full(len(run.step), not reason) & (run.step >= start)
    yield _compare(PROVED, run, keep, empty=reason or late, reason=f"t_1 = {start:.5g}")


def _rate(run: TraceView, t0: float | None) -> Check:
    proved, limit = lemma5_start(run), near_enough(run)
    start = proved if t0 is None else t0
    near = (run.error <= limit) & (run.step >= start)
    if start >= proved:
        reason = f"1 - cosine is at most {limit:.3g} at no recorded t >= {proved:.4g}"
        return _compare(RATE, run, near, empty=reason, reason=f"t_0 = {start:.4g}")
    words = f"t_0 = {start:.4g} is before 4 B^2 |W_0| / (eta Xi) = {proved:.4g}"
    early = _compare(RATE, run, near & (run.step < proved))
    if early.applicable and not early.holds:
        score, least = -math.expm1(-early.value), -math.expm1(-early.bound)
        words += f", where it fails: score {score:.4g}, not at least {least:.4g}"
    return RATE.refused(words)


def _compare(statement: Statement, run: TraceView, keep, **words) -> Check:
    values, bounds = -run.log_nonopt.max(axis=1), rate_bound(run, run.step)
    # gaps and their logarithms, both as large as the exponent
    room = MEASURED * (1 + np.abs(values))
    return statement.along(run, values, bounds, keep, rounding=room, **words)
