"""Without strict complementarity NGD's part across W_mm grows like log t."""

from __future__ import annotations

import math

import numpy as np

from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..run import TraceView
from ..statements import MEASURED, Statement, alignment_recorded, full_steps, refused
from .separation import EXACT

ACROSS_BELOW = Statement(
    "|P_t|, against log(1 + eta t / sqrt 5)", "the degenerate triple, ours", ">="
)
ACROSS_ABOVE = Statement("|P_t|, against log(1 + eta e^eta t)", "the degenerate triple, ours")
ALONG_BELOW = Statement(
    "<W_t, unit W_mm>, against the larger of 2 eta t / sqrt 5 and eta t - eta - sqrt 5",
    "the degenerate triple, ours",
    ">=",
)
ALONG_ABOVE = Statement("<W_t, unit W_mm>, against eta t", "the degenerate triple, ours")
RATE_BELOW = Statement(
    "1 - cosine(W_t, W_mm), against the brackets' lower side", "the degenerate triple, ours", ">="
)
RATE_ABOVE = Statement(
    "1 - cosine(W_t, W_mm), against the brackets' upper side", "the degenerate triple, ours"
)
STATEMENTS = (ACROSS_BELOW, ACROSS_ABOVE, ALONG_BELOW, ALONG_ABOVE, RATE_BELOW, RATE_ABOVE)


def check_degenerate_rate(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None
) -> CheckTable:
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
    run = TraceView(data, trace, svm)
    reason = run.refuse(
        run.needs_rule("NGD"),
        degenerate_fault(run),
        run.needs_assumption2(),
        run.needs_zero_start(),
        alignment_recorded(run),
        full_steps(run),
    )
    if reason:
        return refused(STATEMENTS, reason)
    reach = run.step_size * run.step
    low_across = np.log1p(reach / math.sqrt(5))
    with np.errstate(divide="ignore"):  # at step 0, where nothing is compared
        high_across = np.logaddexp(0.0, run.step_size + np.log(reach))
    low_along = np.maximum(2 / math.sqrt(5) * reach, reach - run.step_size - math.sqrt(5))
    pairs = ((run.across, low_across), (run.across, high_across), (run.along, low_along))
    pairs += ((run.along, reach), *_rates(run, low_across, high_across, low_along, reach))
    later = run.step > 0
    return CheckTable(
        statement.along(
            run, values, bounds, later, empty="no step", rounding=MEASURED * bounds, **extra
        )
        for statement, (values, bounds), extra in zip(STATEMENTS, pairs, _remarks(run), strict=True)
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


def _rates(run: TraceView, low_across, high_across, low_along, reach):
    """P^2 / (2 (c^2 + P^2)) <= 1 - cosine <= P^2 / (2 c^2), with c and P at their brackets."""
    error = run.trace.W_alignment_error
    with np.errstate(invalid="ignore", divide="ignore"):
        below = low_across**2 / (2 * (reach**2 + low_across**2))
        above = high_across**2 / (2 * low_along**2)
    return (error, below), (error, above)


def _remarks(run: TraceView) -> list[dict]:
    """What the last record says of the two limits."""
    reach = run.step_size * float(run.step[-1])
    if reach <= 1:
        return [{}] * len(STATEMENTS)
    across = {"reason": f"|P| - log(eta t) at the end {run.across[-1] - math.log(reach):.3g}"}
    ratio = run.trace.W_alignment_error[-1] * 2 * (reach / math.log(reach)) ** 2
    rate = {"reason": f"over (log(eta t))^2 / (2 eta^2 t^2) at the end {ratio:.5g}"}
    return [across, across, {}, {}, rate, rate]
