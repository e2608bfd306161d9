"""How far W and u travel on even tokens, with one step size for both or one for each."""

from __future__ import annotations

import numpy as np

from ...checks import CheckTable
from ...theorems.run import MEASURED, TraceView
from ...theorems.statements import (
    Statement,
    fails,
    made_by,
    needs_exponential,
    needs_joint,
    needs_zero_start,
    refused,
)

ABOVE = Statement(
    "upper", "G + (e^G - 1) / (T - 1), against e^(Xi s_W) Xi^2 a^2 / 2", "growth by a common step"
)
BELOW = Statement(
    "lower",
    "G + (e^G - 1) / (T - 1), against Xi^2 (1 - s^2 / r^2) (a^2 - s_u a) / 2",
    "growth by a common step",
    ">=",
)
COMMON = (ABOVE, BELOW)
LENGTH = Statement(
    "length", "| |W_t| - eta sum_(s=2)^t s^-q |, relative", "growth by a step of its own"
)
NOT_EVEN = "for make_orthogonal_two_norms with opt_norm > other_norm"


def check_shared_step_size(data, trace) -> CheckTable:
    """With a common step size the gap of W is twice the log of u: both sides, at every record.

    With G = Xi |W_t| the logit gap, a the part of u along the optimal tokens, s_W the longest
    step of W so far and s_u a bound on those of u,

        Xi^2 (1 - s^2 / r^2) (a^2 - s_u a) / 2 <= G + (e^G - 1) / (T - 1)
                                              <= e^(Xi s_W) Xi^2 a^2 / 2.

    Parameters
    ----------
    data : Dataset
        `make_orthogonal_two_norms` with opt_norm r > other_norm s.
    trace : Trace
        Of joint training from zero by GD, Polyak steps or NGD(normalise="shared"), without
        decay, with the exponential loss.

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. s_u is eta for NGD, eta r / sqrt n for GD, and T sqrt n / (2 r) for
    Polyak steps.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.beyond.joint.data import make_orthogonal_two_norms
    >>> from attnbias.beyond.joint.checks import check_shared_step_size
    >>> data = make_orthogonal_two_norms()
    >>> rule = NGD(0.1, normalise="shared")
    >>> check_shared_step_size(data, train(data, rule, 1000, train_u=True)).all_hold
    True
    """
    run = TraceView(data, trace)
    shared = run.kind == "NGD" and run.rule.get("normalise") == "shared"
    common = run.kind in ("GD", "Polyak") or shared
    own = "" if common and not any(run.rule["decay"]) else "a step size of its own for W"
    reason = _fault(run) or own
    if reason:
        return refused(COMMON, reason)
    r, s = data.meta["opt_norm"], data.meta["other_norm"]
    a = run.top[:, 0] * run.n**0.5 / r
    G, T = run.gaps[:, 0], data.T
    with np.errstate(over="ignore"):
        height = G + np.expm1(G) / (T - 1)
    square = run.Xi**2 / 2 * a
    above = np.exp(run.Xi * trace.longest_step) * square * a
    below = (1 - (s / r) ** 2) * square * (a - _longest_of_u(run, r))
    pairs = zip(COMMON, (above, below), strict=True)
    return CheckTable(
        statement.along(
            run, height, bound, run.step > 0, empty="no step", rounding=MEASURED * (1 + abs(bound))
        )
        for statement, bound in pairs
    )


def _longest_of_u(run: TraceView, r: float) -> float:
    """A bound on all steps of u: the norm of its gradient is between r L / (T sqrt n) and
    r L / sqrt n, and L is at most 1."""
    if run.kind == "Polyak":
        return run.data.T * run.n**0.5 / (2 * r)
    return run.step_size * (1.0 if run.kind == "NGD" else r / run.n**0.5)


def check_separate_step_size(data, trace) -> CheckTable:
    """With a step size of its own, W's norm is eta sum_{s=2}^t s^-q, to rounding.

    Parameters
    ----------
    data : Dataset
        As in `check_shared_step_size`.
    trace : Trace
        Of joint training from zero by NGD with separate normalisation and any decay, with the
        exponential loss.

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]: all steps of W but the first, which is void, point along W_mm.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.beyond.joint.data import make_orthogonal_two_norms
    >>> from attnbias.beyond.joint.checks import check_separate_step_size
    >>> data = make_orthogonal_two_norms()
    >>> check_separate_step_size(data, train(data, NGD(0.1), 1000, train_u=True)).all_hold
    True
    """
    run = TraceView(data, trace)
    own = run.kind == "NGD" and run.rule.get("normalise") == "separate"
    reason = _fault(run) or ("" if own else "W shares its step size with u")
    if reason:
        return refused((LENGTH,), reason)
    q, last = run.rule["decay"][1], int(run.step[-1])
    path = np.concatenate([[0.0, 0.0], np.cumsum(np.arange(2.0, last + 1) ** -q)])
    expected = run.step_size * path[run.step]
    error = np.abs(run.W_norm - expected) / np.maximum(expected, run.step_size)
    return CheckTable([LENGTH.along(run, error, 1e-9, run.step > 0, empty="no step")])


def _fault(run: TraceView) -> str:
    """'' or the first hypothesis that fails."""
    meta = run.data.meta
    even = made_by(run.data, "make_orthogonal_two_norms", "opt_norm", "other_norm")
    fits = even and meta["opt_norm"] > meta["other_norm"]
    return fails(run, needs_joint, needs_exponential, needs_zero_start) if fits else NOT_EVEN
