"""Lemma 1 = Lemma 8: once W points near W_mm, attention sparsifies exponentially fast."""

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
from ..sharper.rate import biting_path
from ..statements import EPS, MEASURED, Statement, alignment_recorded, softmax_stays_up, table
from .gradient import lemma5_start, ngd_hypotheses

GAPS = Statement(
    "least logit gap over |W_t|, against Xi - 2 B^2 |unit W_t - unit W_mm|",
    "Lemma 8, first line",
    ">=",
)
HALF = Statement("least logit gap over |W_t|, against Xi / 2", "Lemma 8, second line", ">=")
RATE = Statement(
    "-log(1 - optimal softmax score), the smallest, against log(1 + exp(x_t) / (T - 1)), "
    "x_t = eta Xi^2 t / (8 B^2)",
    "Lemma 1 = 8",
    ">=",
)
PROVED = Statement("the same from the proved t_1 on", "Lemma 1 = 8, with M1's t_1", ">=")
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
    if phi is not None:
        phi = require_number("phi", phi, low=0, high=1, open_low=True)
    if t0 is not None:
        t0 = require_number("t0", t0, low=0)
    run = TraceView(data, trace, svm)
    reason = ngd_hypotheses(run) or alignment_recorded(run)
    return table(reason, STATEMENTS, _rows, run, phi, t0)


check_lemma8 = check_lemma1


def near_enough(run: TraceView) -> float:
    """Xi^2 / (32 B^4): with 1 - cosine at most this all gaps are at least Xi |W| / 2."""
    return run.Xi**2 / (32 * run.constants().B ** 4)


def rate_bound(run: TraceView, t) -> np.ndarray:
    """(R,) Lemma 1's bound on -log(1 - optimal softmax score) at iterations t."""
    c = run.constants()
    exponent = run.step_size * run.Xi**2 / (8 * c.B**2) * np.asarray(t, dtype=float)
    return np.logaddexp(0.0, exponent - math.log(c.T - 1))


def proved_start(run: TraceView, phi: float | None = None) -> float:
    """The t_1 of Lemma 1 that M1 proves, known before the run; infinite beyond float range.

    M1 is started at t_0 = first t with <W_t, W_mm> >= 0, whose path is at most
    2 B^2 |W_0| / Xi + eta, and solved for the path at which its bound is Xi^2 / (32 B^4).
    """
    c, eta, start = run.constants(phi), run.step_size, float(run.W_norm[0])
    late = 2 * c.B**2 * start / run.Xi + eta if start else 0.0
    path = biting_path(c, eta, start + late, near_enough(run))
    return max(lemma5_start(run), (path + late) / eta)


def _rows(run: TraceView, phi: float | None, t0: float | None) -> Iterator[Check]:
    moved, B2 = run.W_norm > 0, run.constants().B ** 2
    least = run.gaps.min(axis=1) / np.where(moved, run.W_norm, 1.0)
    error = np.nan_to_num(run.trace.W_alignment_error, nan=2.0)  # where W = 0
    room, bounds = 64 * EPS * B2 + MEASURED * run.Xi, run.Xi - 2 * B2 * np.sqrt(2 * error)
    vague = bool((bounds[moved] <= -2 * B2).all())  # no gap is below -2 B^2 |W|
    yield GAPS.along(
        run, least, bounds, moved, empty="W is zero throughout", rounding=room, vacuous=vague,
        reason="says something once 1 - cosine < (1 + Xi / (2 B^2))^2 / 2" if vague else "",
    )  # fmt: skip
    near = moved & (error <= near_enough(run))
    never = f"1 - cosine stays above {near_enough(run):.3g}"
    yield HALF.along(run, least, run.Xi / 2, near, empty=never, rounding=room)
    yield _rate(run, t0)
    yield _proved(run, phi)


def _rate(run: TraceView, t0: float | None):
    proved = lemma5_start(run)
    near = run.trace.W_alignment_error <= near_enough(run)
    start = proved if t0 is None else t0
    keep = near & (run.step >= start)
    if start < proved:
        return RATE.refused(_misread(run, start, proved, keep))
    reason = f"1 - cosine is at most {near_enough(run):.3g} at no recorded t >= {proved:.4g}"
    return _compare(RATE, run, keep, empty=reason, reason=f"t_0 = {start:.4g}")


def _compare(statement: Statement, run: TraceView, keep, **words):
    values, bounds = -run.log_nonopt.max(axis=1), rate_bound(run, run.step)
    # gaps and their logarithms, both as large as the exponent
    room = MEASURED * (1 + np.abs(values))
    return statement.along(run, values, bounds, keep, rounding=room, **words)


def _misread(run: TraceView, start: float, proved: float, keep) -> str:
    words = f"t_0 = {start:.4g} is before 4 B^2 |W_0| / (eta Xi) = {proved:.4g}"
    check = _compare(RATE, run, keep & (run.step < proved))
    if check.applicable and not check.holds:
        score, least = -math.expm1(-check.value), -math.expm1(-check.bound)
        words += f", where it fails: score {score:.4g}, not at least {least:.4g}"
    return words


def _proved(run: TraceView, phi: float | None):
    reason = softmax_stays_up(run, phi)
    if reason:
        return PROVED.refused(reason)
    start = proved_start(run, phi)
    late = f"proved from t_1 = {start:.3g} on, and the run ends at {run.step[-1]}"
    if math.isinf(start):
        late = "proved only from a t_1 beyond the range of floats on"
    return _compare(
        PROVED, run, run.step >= start, empty=late, reason=f"t_1 = {start:.5g}"
    )  # fmt: skip
