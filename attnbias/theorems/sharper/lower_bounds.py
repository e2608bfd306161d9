"""M3: no rule turns faster than 1 / path^2; Section 3.3: on a pair GD is slower than NGD."""

from __future__ import annotations

import math

import numpy as np

from ..run import FLOOR, MEASURED, TraceView
from ..statements import (
    NO_STEP,
    Checks,
    Statement,
    at_least,
    needs_alignment,
    needs_exponential,
    needs_full_steps,
    needs_gd,
    needs_ngd,
    needs_plain_steps,
    needs_start,
    run_check,
)

# Less than this share of |W_0|^2 outside the span is what rounding leaves of none: the share
# is a difference of two numbers that each are right to a few 1e-16, times the condition
# number of the rows, with room for sums of some thousand terms.
OUTSIDE = 1e-12

RATE = at_least(
    "rate_low", "1 - cosine(W_t, W_mm), against |W_0 outside span z|^2 / (2 (|W_0| + S_t)^2)", "M3"
)


@run_check(RATE, given=(needs_plain_steps, needs_start, needs_alignment))
def check_rate_lower_bound(run: TraceView) -> Checks:
    """M3, the lower bound that makes M2's rate the right one.

    What W_0 has outside the span of the rows z_k is never updated, so

        1 - cosine(W_t, W_mm) >= |W_0 outside|^2 / (2 (|W_0| + S_t)^2).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run by a rule without momentum, with step 0 recorded; any loss, u fixed or not.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable
        One check. Vacuous if W_0 lies in the span: then the bound is 0, and the cosine can
        be exactly 1.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: M3, [c]. It needs neither assumption, only a feasible W-SVM.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> trace = train(data, NGD(0.5), 10, W0=[[0.0, 0.1], [0.0, 0.0]])
    >>> check_rate_lower_bound(data, trace).all_hold
    True
    """
    yield outside_check(RATE, run, run.path, run.W_norm > 0, empty="W stays zero")


def outside_check(statement: Statement, run: TraceView, path, keep, *, empty: str, reason=""):
    """1 - cosine against M3's bound for (R,) paths of at most this length; 0 where W is zero."""
    outside, reach = norm_outside(run), run.W_norm[0] + path
    bounds = np.where(reach > 0, (outside / reach) ** 2 / 2, 0.0)
    words = reason or f"|W_0 outside| = {outside:.4g}"
    return statement.along(
        run,
        run.error,
        bounds,
        keep,
        empty=empty,
        rounding=MEASURED * bounds,
        vacuous=outside == 0,
        reason=words if outside else "W_0 lies in the span of the rows",
    )


def norm_outside(run: TraceView) -> float:
    """Norm of what W_0 has outside the span of the rows, from |W_0| and the gaps at step 0.

    Rounding is taken off, so that it is a lower bound; exactly 0 if nothing is left.
    """
    total = float(run.W_norm[0]) ** 2
    if total == 0:
        return 0.0
    values, vectors = np.linalg.eigh(run.K)
    in_span = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    coordinates = vectors[:, in_span].T @ run.gaps[0]
    inside = float((coordinates**2 / values[in_span]).sum())
    condition = float(values[-1] / values[in_span].min())
    rounding = max(OUTSIDE, 64 * np.finfo(float).eps * condition)
    return math.sqrt(max(0.0, total - inside - rounding * total))


CLOSED = Statement(
    "closed_form",
    "|1 - cosine(W_t, W_mm) - (1 - w_t / sqrt(w_t^2 + r^2))|, against its rounding",
    "Section 3.3, Eq. 3",
)
BELOW = at_least(
    "gap_low", "w_t, against log(exp(w_0) + eta phi_0^2 e^-phi_0 t)", "Section 3.3, our bracket"
)
ABOVE = Statement(
    "gap_high", "w_t, against log(exp(w_0) + eta e^(eta/4 - 1) t)", "Section 3.3, our bracket"
)
SLOW = at_least(
    "rate_low",
    "1 - cosine(W_t, W_mm), against r^2 / (2 (w^2 + r^2)) at the largest w that t allows",
    "Section 3.3: GD is no faster than 1 / log^2 t",
)
LINEAR = Statement("gap", "|w_t - w_0 - eta t| / (|w_0| + eta t)", "Appendix A.4")
NGD_BELOW = at_least(
    "rate_low", "1 - cosine(W_t, W_mm), against r^2 / (2 ((w_0 + eta t)^2 + r^2))", "Appendix A.4"
)
NGD_ABOVE = Statement(
    "rate_high", "1 - cosine(W_t, W_mm), against r^2 / (2 (w_0 + eta t)^2)", "Appendix A.4"
)
# Tokens and scores typed in, or rotated by an orthogonal matrix: a few roundings.
EXACT = 1e-12
# Relative, of a difference of two squares: a few roundings of the larger.
EXACT_SQUARE = 1e-15


def separation_fault(run: TraceView) -> str:
    """'' or how the data differ from the separation pair, rotations aside."""
    if run.joint or run.n != 1 or run.N != 1 or int(run.rows.opt[0]) != 0:
        return "for one sequence of two tokens with the query optimal, u fixed"
    query, other = run.data.X[0, 0].double(), run.data.X[0, 1].double()
    if bool(other.any()):
        return "the second token is not zero"
    if abs(float(query.norm()) - 1) > EXACT or abs(float(run.top[0, 0]) - 1) > EXACT:
        return "the query's norm and score are not both 1"
    return ""


@run_check(
    CLOSED,
    BELOW,
    ABOVE,
    SLOW,
    given=(needs_gd, separation_fault, needs_exponential, needs_start, needs_alignment),
)
def check_gd_lower_bound(run: TraceView) -> Checks:
    """Section 3.3: on the separation pair GD's 1 - cosine is at least of order 1 / log^2 t.

    With w_t the logit gap of W_t and r the norm of the rest of W_0, which never moves,

        log(e^w_0 + eta phi_0^2 e^-phi_0 t) <= w_t <= log(e^w_0 + eta e^(eta/4 - 1) t),

    cosine = w_t / sqrt(w_t^2 + r^2), and 1 - cosine >= r^2 / (2 (w_t^2 + r^2)).

    Parameters
    ----------
    data : Dataset
        `make_separation_pair()` or a rotation of it, in any dimension: one sequence of two
        tokens, the query optimal with norm 1 and score 1, the other token zero.
    trace : Trace
        Of GD with the exponential loss, u fixed, step 0 recorded; any w_0 and eta.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Section 3.3, Eq. 3; the two-sided bracket with constants is ours [c].

    Examples
    --------
    >>> from attnbias import GD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_gd_lower_bound(data, train(data, GD(1.0), 1000)).all_hold
    True
    """
    w, log_eta, t = run.gaps[:, 0], math.log(run.step_size), run.step
    log_phi = run.log_opt[0, 0]
    below = np.logaddexp(w[0], log_eta + 2 * log_phi - math.exp(log_phi) + np.log(t))
    above = np.logaddexp(w[0], log_eta + run.step_size / 4 - 1 + np.log(t))
    later, rounding = (t > 0) & (run.W_norm > 0), MEASURED * (1 + np.abs(w))
    settings = {"keep": later, "empty": NO_STEP, "rounding": rounding}
    lag = w[-1] - log_eta - math.log(max(t[-1], 1))
    settings["reason"] = f"w_t - log(eta t) at the end {lag:.4g}, with limit -1"
    yield _closed_form(run)
    yield BELOW.along(run, w, below, **settings)
    yield ABOVE.along(run, w, above, **settings)
    yield _no_faster(run, SLOW, above, later)


@run_check(
    CLOSED,
    LINEAR,
    NGD_BELOW,
    NGD_ABOVE,
    given=(needs_ngd, separation_fault, needs_start, needs_alignment, needs_full_steps),
)
def check_ngd_separation(run: TraceView) -> Checks:
    """Appendix A.4: on the separation pair NGD has t^2 (1 - cosine) -> r^2 / (2 eta^2).

    w_t = w_0 + eta t exactly, whence r^2 / (2 (w_t^2 + r^2)) <= 1 - cosine <= r^2 / (2 w_t^2).

    Parameters
    ----------
    data : Dataset
        As for `check_gd_lower_bound`.
    trace : Trace
        Of NGD with any loss, u fixed, no cap that bound, step 0 recorded.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Appendix A.4.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_ngd_separation(data, train(data, NGD(1.0), 1000)).all_hold
    True
    """
    line, rest = run.gaps[0, 0] + run.step_size * run.step, _rest(run)
    moved = np.abs(run.gaps[0, 0]) + run.step_size * run.step
    error, ahead = run.error, (line > 0) & (run.W_norm > 0)
    above = (rest / line) ** 2 / 2
    # w_t is known to 1e-9 of itself, its square to twice that
    rounding = FLOOR + 2 * MEASURED * above + _doubt(run, rest, line)
    limit = f"r^2 / (2 eta^2) = {(rest / run.step_size) ** 2 / 2:.6g}"
    measured = f"{limit}; t^2 (1 - cosine) at the end {error[-1] * float(run.step[-1]) ** 2:.6g}"
    settings = {"empty": "w is still negative", "rounding": rounding}
    settings |= {"vacuous": rest == 0, "reason": measured}
    yield _closed_form(run)
    away = np.abs(run.gaps[:, 0] - line) / np.where(moved > 0, moved, 1.0)
    yield LINEAR.later(run, away, MEASURED, rounding=0.0)
    yield _no_faster(run, NGD_BELOW, line, ahead, **settings)
    yield NGD_ABOVE.along(run, error, above, ahead, **settings)


def _rest(run: TraceView) -> float:
    """c, the norm of all of W_0 but its component along the one row; 0 if that is rounding."""
    total = run.W_norm[0]
    share = 1 - (float(run.gaps[0, 0]) / total) ** 2 if total else 0.0
    return total * math.sqrt(share) if share > OUTSIDE else 0.0


def _doubt(run: TraceView, rest: float, norm: np.ndarray) -> np.ndarray:
    """How far c^2 / (2 norm^2) may be off, c^2 being a difference of two squares."""
    return (EXACT_SQUARE if rest else OUTSIDE) * (run.W_norm[0] / norm) ** 2 / 2


def _closed_form(run: TraceView):
    """Eq. 3 without cancellation: 1 - w / r = c^2 / (r (r + w)) with r^2 = w^2 + c^2."""
    w, rest = run.gaps[:, 0], _rest(run)
    norm = np.hypot(w, rest)
    error = np.where(w > 0, (rest / norm) * (rest / (norm + w)), 1 - w / norm)
    # the slope of 1 - w / r in c^2 is at most 1 / (2 r^2)
    allowed = FLOOR + MEASURED * error + _doubt(run, rest, norm)
    away = np.abs(run.error - error)
    return CLOSED.along(run, away, allowed, run.W_norm > 0, empty="W stays zero")


def _no_faster(run: TraceView, statement: Statement, height, keep, **settings):
    """1 - cosine falls as w grows, and is at least c^2 / (2 (w^2 + c^2))."""
    rest = _rest(run)
    norm = np.hypot(height, rest)
    bounds = (rest / norm) ** 2 / 2
    rounding = MEASURED * bounds + _doubt(run, rest, norm)
    defaults = {"empty": NO_STEP, "rounding": rounding, "vacuous": rest == 0}
    if rest == 0:
        defaults["reason"] = "W_0 has nothing outside the one row, and the bound is 0"
    return statement.along(run, run.error, bounds, keep, **defaults | settings)
