"""The gradient's norm between two multiples of its weights (G), and Eq. 14 on a recorded run."""

from __future__ import annotations

import math

import numpy as np

from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..rounding import EPS, norm_rounding, weight_rounding
from ..run import TraceView
from ..statements import Statement, refused

EQ14 = Statement(
    "|grad L| recorded, less that of Eq. 14's weights: share, against rounding", "Eq. 14"
)
LEFT = Statement(
    "|grad L| over the mean weight (1/n) sum p, against Xi", "Eq. 14, norm from below", ">="
)
RIGHT = Statement(
    "|grad L| over the mean weight (1/n) sum p, against 2 B^2", "Eq. 14, norm from above"
)
WEIGHT = Statement("largest weight p_i of a sequence over Upsilon / 4", "Eq. 14, weights")
FLOOR = Statement(
    "smallest C_i over upsilon phi_i^2, with p_k = C_i exp(-g_k)", "Eq. 14, weights", ">="
)


def check_gradient_bounds(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None
) -> CheckTable:
    """Eq. 14's weights on a run, and (G), at every recorded step.

    With -grad L = (1/n) sum_k p_k z_k and Assumption 2 all p_k are positive, and

        (Xi / n) sum p <= |grad L| <= (2 B^2 / n) sum p.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss and u fixed, by any rule.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        The recorded norm against the one that Eq. 14 gives, both sides of (G), and the bounds
        p_i <= Upsilon / 4 and C_i >= upsilon phi_i^2 on the weights.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Eq. 14 [a]; (G) [c]. Left: test with W_mm, whose margins are at least 1. Right: no
    row is longer than 2 B^2. The left side is attained, by one sequence of two tokens.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_gradient_bounds(data, train(data, NGD(0.5), 100)).all_hold
    True
    """
    run = TraceView(data, trace, svm)
    reason = gradient_hypotheses(run)
    if reason:
        return refused((EQ14, LEFT, RIGHT, WEIGHT, FLOOR), reason)
    c, room = run.constants(), weight_rounding(run) + norm_rounding(run)
    recorded = run.trace.log_grad_norm
    mean = run.log_scale + np.log(run.p.sum(axis=1) / run.n)
    largest = run.log_scale + np.log(run.per_sequence(run.p).max(axis=1))
    share = (run.log_weight + run.gaps - 2 * run.log_opt[:, run.sequence]).min(axis=1)
    with np.errstate(over="ignore"):
        error = np.abs(np.expm1(recorded - run.log_scale - np.log(run.grad_size)))
        ratio, floor = np.exp(recorded - mean), np.exp(share - c.log_upsilon)
    values = (
        (EQ14, error, room, 0.0),
        (LEFT, ratio, c.Xi, room * c.Xi),
        (RIGHT, ratio, 2 * c.B**2, room * 2 * c.B**2),
        (WEIGHT, np.exp(largest - c.log_Upsilon + math.log(4)), 1.0, room),
        (FLOOR, floor, 1.0, 64 * EPS * (1 + np.abs(run.gaps).max(axis=1))),
    )
    return CheckTable(
        statement.along(run, value, bound, rounding=rounding)
        for statement, value, bound, rounding in values
    )


def gradient_hypotheses(run: TraceView) -> str:
    """'' or why Eq. 14 in the form of Assumption 2 does not describe the run."""
    return run.refuse(run.needs_fixed_decoder(), run.needs_exponential(), run.needs_assumption2())
