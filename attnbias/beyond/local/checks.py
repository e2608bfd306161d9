"""The smallest data on which unequal scores trap training, with the threshold in closed form."""

from __future__ import annotations

import math

import numpy as np

from ..._validate import as_numbers, require_number
from ...checks import CheckTable
from ...theorems.run import MEASURED, TraceView
from ...theorems.statements import (
    Statement,
    fails,
    made_by,
    needs_fixed_decoder,
    needs_start,
    refused,
)

INSIDE = {"low": 0, "high": 1, "open_low": True, "open_high": True}
_SOURCE = "the score trap, ours"
OPTIMAL = Statement(
    "optimal", "log of softmax at x_1 over that at x_2, against the last record", _SOURCE
)
MIDDLE = Statement(
    "middle", "log of softmax at x_2 over that at x_3, against the last record", _SOURCE
)
RISES = Statement(
    "rises", "log of softmax at x_1 over that at x_2, against the last record", _SOURCE, ">="
)


def trap_threshold(score: float) -> float:
    """Distance up to which every start against W_mm comes back.

    Parameters
    ----------
    score : float in (0, 1)
        Of the wrong token of `make_score_trap`.

    Returns
    -------
    float
        log(3 / score - 1), on the scale of the optimal token's logit lag -g_2. A lag of this
        or less always escapes; `lock_threshold` is the other side.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c].

    Examples
    --------
    >>> round(trap_threshold(0.3), 4)
    2.1972
    """
    return math.log(3 / require_number("score", score, **INSIDE) - 1)


def lock_threshold(score: float) -> float:
    """Distance from which every start against W_mm is locked for ever.

    Parameters
    ----------
    score : float in (0, 1)
        Of the wrong token of `make_score_trap`.

    Returns
    -------
    float
        The R at which `trap_level` of the gaps -R and -R (3 - score) / 2 is 0, found by halving.
        It lies above `trap_threshold`, by about 0.38 sqrt(score) for small scores, and by much
        where the score is near 1. Between the two the theorem is silent.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. W = -R times the unit W_mm, over the margin, has these gaps, and the level
    rises with R.

    Examples
    --------
    >>> [round(lock_threshold(score), 2) for score in (0.01, 0.3, 0.9)]
    [5.74, 2.56, 3.06]
    """
    low = trap_threshold(score)
    high = low + math.log1p(2 / ((1 - score) * (3 - score)))  # the level with c = 1
    for _ in range(100):
        middle = (low + high) / 2
        inside = trap_level(score, -middle, -middle * (3 - score) / 2) > 0
        low, high = (low, middle) if inside else (middle, high)
    return high


def trap_level(score: float, gap2, gap3):
    """How far inside the trap logits are: positive locks for ever.

    With r = exp(gap2) and c = exp(gap3 - gap2), the softmax of x_1 over that of x_2 and of
    x_2 over that of x_3, it is log(score) - log(r (3 - score + 2 c / (1 - score))).

    Parameters
    ----------
    score : float in (0, 1)
    gap2, gap3 : float or array
        Logit gaps of x_1 to x_2 and to x_3.

    Returns
    -------
    float or array

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> bool(trap_level(0.3, -2.3, -9.0) > 0), bool(trap_level(0.3, -2.1, -9.0) > 0)
    (True, False)
    """
    score = require_number("score", score, **INSIDE)
    r, rc = as_numbers("gap2", gap2, dtype=float), as_numbers("gap3", gap3, dtype=float)
    weight = np.logaddexp(math.log(3 - score) + r, math.log(2 / (1 - score)) + rc)
    return math.log(score) - weight


def check_score_trap(data, trace, *, svm=None) -> CheckTable:
    """On `make_score_trap` the start decides: locked for ever, or up from the first step.

    With r and c as in `trap_level`, if r (3 - s + 2 c / (1 - s)) < s at the start, both r and c
    fall at every step, whatever the rule and its steps; if r >= s / (3 - s), r rises at every
    step.

    Parameters
    ----------
    data : Dataset
        `make_score_trap(s)` with s in (0, 1).
    trace : Trace
        Of any rule with step 0 recorded and u fixed.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable
        Two checks where the start is inside the trap, one where it is outside; not
        applicable in the sliver between, of relative width 2 c / ((1 - s) (3 - s)).

    Raises
    ------
    ShapeError, DtypeError, RangeError

    Notes
    -----
    Source: ours [c]. Logits are linear in W, so a step of any length moves log r and log c by
    the step times their derivatives.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> data = make_score_trap(0.3)
    >>> trace = train(data, NGD(0.1), 100, W0=[[-0.7, -0.7], [-0.7, -0.7]])
    >>> check_score_trap(data, trace).all_hold, len(check_score_trap(data, trace))
    (True, 2)
    """
    run = TraceView(data, trace, svm)
    score = data.meta.get("score", 0)
    made = made_by(data, "make_score_trap", "score")
    other = "" if made else "for make_score_trap(s) with s > 0"
    reason = other or fails(run, needs_fixed_decoder, needs_start)
    if reason:
        return refused((OPTIMAL, MIDDLE), reason)
    log_r, log_rc = run.gaps.T
    log_c = log_rc - log_r
    if trap_level(score, log_r[0], log_rc[0]) > 0:
        pairs = [(OPTIMAL, log_r), (MIDDLE, log_c)]
    elif log_r[0] >= -trap_threshold(score):
        pairs = [(RISES, log_r)]
    else:
        return refused((OPTIMAL, MIDDLE), "the start lies between the two conditions")
    return CheckTable(
        statement.along(
            run, values, np.r_[values[:1], values[:-1]], rounding=MEASURED * (1 + np.abs(values))
        )
        for statement, values in pairs
    )
