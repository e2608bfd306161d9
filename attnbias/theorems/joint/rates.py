"""Theorems 2 and 3, restated as 8 and 9: how fast the joint loss falls, and where W points."""

from __future__ import annotations

import math

import numpy as np

from ...geometry.constants import lambert
from ..run import MEASURED, NO_OFFSET
from ..statements import Checks, Statement, at_least, refused, table
from .constants import GAP_RATIO, LOSS_RATIO
from .run import JointView, joint_check

_RATE = at_least(
    "rate", "log(1 / L), against 0.4 sqrt(a/n) U_t with U_t = eta sum_{s<=t} s^-p", "Theorem 2/8"
)
_CONVERSE = Statement("converse", "log(1 / L), against B U_t", "Theorem 2/8, the converse")
_RATE_ROOT = at_least(
    "closed_rate", "log(1 / L), against 1.2 eta sqrt(a/n) ((t + 1)^(1/3) - 1)", "Theorem 2/8"
)
_CONVERSE_ROOT = Statement(
    "closed_converse", "log(1 / L), against 3 eta B t^(1/3)", "Theorem 2/8, the converse"
)
_RATE_LINE = at_least(
    "rate", "log(1 / L), against 0.4 eta sqrt(a/n) t", "the loss without decay, Theorem 8 at p = 0"
)
_CONVERSE_LINE = Statement(
    "converse", "log(1 / L), against eta B t", "the loss without decay, the converse"
)


@joint_check()
def check_theorem2(joint: JointView) -> Checks:
    """Theorem 2 (restated as Theorem 8): the joint loss falls as exp(-Theta(t^(1-p))).

    With U_t = eta sum_{s<=t} s^-p, at every step

        0.4 sqrt(a/n) U_t <= log(1 / L(theta_t)) <= B U_t.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training by Eq. 10, NGD(eta, decay=(p, 1)), from zero; p = 2/3 in the paper.
    svm : SVMSolution, optional
        Of the W-SVM.
    assume_conditions : bool
        Compare although Condition 2, T = 2 or q = 1 fails, and say so.

    Returns
    -------
    CheckTable
        Both sides; for p = 2/3 the closed forms as well, 1.2 eta sqrt(a/n) ((t+1)^(1/3) - 1)
        and 3 eta B t^(1/3). The converse asks for the start and the rule alone.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 2/8: [a] the rate exp(-Theta(t^(1/3))); [c] the constants and every p in
    [0, 1).

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_theorem2(data, trace)]
    ['holds', 'holds', 'holds', 'holds']
    """
    yield from _both_sides(joint, _RATE, _CONVERSE)
    if not joint.refuse_rule() and math.isclose(joint.decay[0], 2 / 3):
        eta, t, c = joint.step_size, joint.step, joint.sizes
        root = 1.2 * eta * c.speed * (np.cbrt(t + 1.0) - 1), 3 * eta * c.B * np.cbrt(t)
        yield from _both_sides(joint, _RATE_ROOT, _CONVERSE_ROOT, root)


@joint_check()
def check_loss_without_decay(joint: JointView) -> Checks:
    """The loss without Eq. 10's factor on u: exp(-Theta(t)), not exp(-Theta(t^(1/3))).

    With p = 0 and q = 1 at every step 0.4 eta sqrt(a/n) t <= log(1 / L(theta_t)) <= eta B t.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training by NGD(eta, decay=(0, 1)), from zero.
    svm : SVMSolution, optional
        Of the W-SVM.
    assume_conditions : bool
        Compare although Condition 2, T = 2 or q = 1 fails, and say so.

    Returns
    -------
    CheckTable

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours, [c]: Theorem 8 with p = 0. The paper asks for p >= 2/3 because it bounds the
    Hessian as a whole; bounded by blocks, every p in [0, 1) serves.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(0, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_loss_without_decay(data, trace)]
    ['holds', 'holds']
    """
    if not joint.refuse_rule() and joint.decay[0] != 0:
        reason = f"for a step of u without decay, p = 0; here p = {joint.decay[0]:g}"
        yield from joint.as_assumed(refused((_RATE_LINE, _CONVERSE_LINE), reason))
        return
    yield from _both_sides(joint, _RATE_LINE, _CONVERSE_LINE)


def _both_sides(joint: JointView, rate: Statement, converse: Statement, closed=()) -> Checks:
    """The rate, which asks for all hypotheses, and its converse, for the start alone.

    Against U_t, or the closed forms of both sides.
    """

    def side(statement: Statement, which: int) -> Checks:
        fall, path, c = -joint.trace.log_loss, joint.u_path(), joint.sizes
        bounds = closed or (0.4 * c.speed * path, c.B * path)
        # log L is measured to 1e-9 of itself
        yield statement.later(joint, fall, bounds[which], rounding=MEASURED * np.abs(fall))

    yield from joint.table((rate,), lambda _: side(rate, 0))
    yield from table(joint.refuse_start(), (converse,), side, converse, 1)


_GROWS = at_least(
    "norm_low", "|W_t|, against (eta Xi / (2 B^2)) log((t + 1) / 2)", "Theorem 3/9, Eq. 55"
)
_TOP = Statement("norm_high", "|W_t|, against eta log t", "Theorem 3/9, Eq. 55")
_TURN_RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against (2 B^4 / Xi^2) (2 Lambda / Xi + eta) / (eta log((t + 1) / 2))",
    "Theorem 3/9",
)
_CONE = Statement(
    "cone", "1 - cosine(W_t, W_mm), against 1 - Xi / (2 B^2)", "Theorem 3/9, by Lemma 4"
)
_LARGEST = 2.0  # 1 - cosine never exceeds it


@joint_check(_GROWS, _TOP, _TURN_RATE, _CONE)
def check_theorem3(joint: JointView) -> Checks:
    """Theorem 3 (restated as Theorem 9): W_t tends to W_mm in direction, as 1 / log t.

    For t >= 2, with Lambda exp(Lambda) = A = (4 n / e) C C_Delta, where C = 11 and
    C_Delta = 1100 come from Lemma 11,

        (eta Xi / (2 B^2)) log((t + 1) / 2) <= |W_t| <= eta log t,
        1 - cosine(W_t, W_mm) <= (2 B^4 / Xi^2) (2 Lambda / Xi + eta) / (eta log((t + 1) / 2)),
        1 - cosine(W_t, W_mm) <= 1 - Xi / (2 B^2).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training by Eq. 10, NGD(eta, decay=(p, 1)), from zero.
    svm : SVMSolution, optional
        Of the W-SVM.
    assume_conditions : bool
        Compare although Condition 2, T = 2 or q = 1 fails, and say so.

    Returns
    -------
    CheckTable
        Eq. 55, the rate, and the cone around W_mm that W never leaves. The rate's bound is far
        above 2 at every t that a computer reaches, and the check says from which t it would not
        be; the cone is below 1 from the first step of W on.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 3/9: [a] the rate O(1 / log t) and Eq. 55's form; [c] the constants, by M1
    with softmax scores of at least 1/2 and C C_Delta for kappa.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_theorem3(data, trace)]
    ['holds', 'holds', 'holds, vacuous', 'holds']
    """
    B, eta, error = joint.sizes.B, joint.step_size, joint.error
    late = np.maximum(joint.step, 2)
    path, top = eta * np.log((late + 1) / 2), eta * np.log(late)
    settings = {"keep": joint.step >= 2, "empty": "no step t >= 2 is recorded"}
    least = joint.Xi / (2 * B**2) * path
    # a norm is measured to 1e-9 of itself
    yield _GROWS.along(joint, joint.W_norm, least, rounding=MEASURED * least, **settings)
    yield _TOP.along(joint, joint.W_norm, top, rounding=MEASURED * top, **settings)
    # N' = n (T - 1) rows, four times for softmax scores of at least 1/2
    Lambda = float(lambert(math.log(4 * joint.N / math.e * LOSS_RATIO * GAP_RATIO)))
    factor = 2 * B**4 / joint.Xi**2 * (2 * Lambda / joint.Xi + eta)
    needed = factor / (_LARGEST * eta)  # of log((t + 1) / 2)
    words = f"below 2 only where log t exceeds {needed + math.log(2):.3g}"
    yield _TURN_RATE.along(joint, error, factor / path, trivial=_LARGEST, reason=words, **settings)
    # each step has at least this cosine, attained where x_2 = -x_1, up to rounding
    cone = 1 - joint.Xi / (2 * B**2)
    yield _CONE.along(joint, error, cone, rounding=NO_OFFSET, **settings)
