"""Theorems 2 to 4, restated as 8 to 10: the joint loss, where W points, and u's margin."""

from __future__ import annotations

import math

import numpy as np

from ...geometry.constants import lambert
from ..run import MEASURED, NO_OFFSET
from ..statements import Checks, Statement, at_least, refused, table
from .constants import GAP_RATIO, LOSS_RATIO, first_step, power_sum
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


_MARGIN = at_least(
    "margin",
    "smallest y_i u_t'x_{i,opt} / |u_t|, against 0.39 gamma_* - log n / U_t",
    "Theorem 4/10",
)
_POSITIVE = at_least(
    "positive", "smallest y_i u_t'x_{i,opt} / |u_t|", "Theorem 4/10, the early steps"
)
_SHARPER = at_least(
    "margin",
    "smallest y_i u_t'x_{i,opt} / |u_t|, against gamma_* - (gamma_* + sqrt(a)) avg_t - "
    "(log n + eta^2 a (1.03 + 0.62 sqrt(a)) sum_{s<=t} s^-2p) / U_t",
    "sharper Theorem 4",
)
_DIRECTION = Statement(
    "direction",
    "1 - cosine(u_t, u_mm), against 6 ((2 log 11 / tau + eta) / U_t + 9.7 sqrt(n) avg_t)",
    "the decoder's direction",
)


@joint_check(_MARGIN, _POSITIVE)
def check_theorem4(joint: JointView) -> Checks:
    """Theorem 4 (restated as Theorem 10): u_t's margin is a fixed part of the largest one.

    With gamma_* = 1 / |u_mm| and U_t = eta sum_{s<=t} s^-p, for t >= 1

        min_i y_i u_t'x_{i,opt} / |u_t| >= 0.39 gamma_* - log n / U_t,

    and it is never negative.

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
        Vacuous, with the t from which it is not, where the bound is nowhere positive.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 4/10: [a] that a constant part of the largest margin is reached; [c] the
    constant 0.39, the remainder and every p in [0, 1).

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_theorem4(data, trace)]
    ['holds, vacuous', 'holds']
    """
    best, margin = joint.u_svm.margin, _margin(joint)
    bounds = 0.39 * best - math.log(joint.n) / joint.u_path()
    start = first_step(math.log(joint.n) / (0.39 * best) / joint.step_size, joint.decay[0])
    words = f"positive from t = {start:.4g} on"
    yield _MARGIN.later(joint, margin, bounds, 0, trivial=0.0, reason=words)
    yield _POSITIVE.later(joint, margin, 0.0)


@joint_check(_SHARPER)
def check_sharper_theorem4(joint: JointView) -> Checks:
    """Theorem 4, sharper: the whole largest margin once the attention saturates, for p > 0.

    With avg_t the mean of 1 - min_i softmax_{i,opt} over the steps s < t, weighted by
    (s + 1)^-p, for t >= 1

        min_i y_i u_t'x_{i,opt} / |u_t| >= gamma_* - (gamma_* + sqrt(a)) avg_t
            - (log n + eta^2 a (1.03 + 0.62 sqrt(a)) sum_{s<=t} s^-2p) / U_t.

    The last term is O(t^-(1-p)) for p > 1/2, O(t^-1/2 log t) for p = 1/2, O(t^-p) for
    0 < p < 1/2, and does not vanish for p = 0.

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

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours, [c]. avg_t counts unrecorded iterations by `mean_nonopt_softmax`, never too low.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_sharper_theorem4(data, trace)]
    ['holds, vacuous']
    """
    average, best, a = mean_nonopt_softmax(joint), joint.u_svm.margin, joint.sizes.a
    squares = joint.step_size**2 * power_sum(joint.step, 2 * joint.decay[0])
    remainder = math.log(joint.n) + a * (1.03 + 0.62 * math.sqrt(a)) * squares
    whole = best + math.sqrt(a)
    words = f"positive only {_saturation(joint, average, best / whole)}"
    bounds = best - whole * average - remainder / joint.u_path()
    yield _SHARPER.later(joint, _margin(joint), bounds, 0, trivial=0.0, reason=words)


@joint_check(_DIRECTION)
def check_decoder_direction(joint: JointView) -> Checks:
    """u_t tends to u_mm in direction once the attention saturates, for every p in [0, 1).

    With tau = 0.44 sqrt(a/n) and avg_t as in the sharper Theorem 4, whenever
    U_t >= 10 log n / gamma_*,

        1 - cosine(u_t, u_mm) <= 6 ((2 log 11 / tau + eta) / U_t + 9.7 sqrt(n) avg_t).

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
        Not applicable where no recorded step has such a U_t; vacuous where the bound is
        nowhere under 2.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours, [c]. avg_t counts unrecorded iterations by `mean_nonopt_softmax`, never too low.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_decoder_direction(data, trace)]
    ['not applicable']
    """
    c, p, U, eta = joint.sizes, joint.decay[0], joint.u_path(), joint.step_size
    needed = 10 * math.log(joint.n) / joint.u_svm.margin
    start, average = first_step(needed / eta, p), mean_nonopt_softmax(joint)
    speed = 2 * math.log(LOSS_RATIO) / c.tau + eta
    late = first_step(3 * speed / eta, p)  # where the bound's first term alone is 2
    small = _saturation(joint, average, 1 / (3 * 9.7 * math.sqrt(joint.n)))
    yield _DIRECTION.along(
        joint,
        joint.trace.u_alignment_error,
        6 * (speed / U + 9.7 * math.sqrt(c.n) * average),
        (joint.step > 0) & (needed <= U),
        empty=f"speaks of t >= {start:.4g}, where U_t reaches 10 log n / gamma_*",
        trivial=_LARGEST,
        reason=f"below 2 only from t = {late:.3g} on and {small}",
    )


def mean_nonopt_softmax(joint: JointView) -> np.ndarray:
    """(R,) upper bound on avg_t, exact where all iterations up to t are recorded.

    Between records r and r' a logit gap changes by at most D = |z_k| times the length of W's
    path, so that at each iteration between it is at least the mean of its two recorded values
    less D / 2.

    Notes
    -----
    Source: [c]: max(g_r - D_1, g_r' - D_2) >= (g_r + g_r' - D) / 2 for D_1 + D_2 = D.
    """
    path = joint.step_size * power_sum(joint.step, joint.decay[1])
    drift = np.diff(path)[:, None] * np.sqrt(joint.K.diagonal())
    between = (joint.gaps[:-1] + joint.gaps[1:] - drift) / 2
    single = (np.diff(joint.step) == 1)[:, None]
    gaps = np.where(single, joint.gaps[:-1], between)
    # 1 - smallest softmax score of an optimal token
    low = gaps.min(axis=1, keepdims=True)
    rest = joint.per_sequence(np.exp(low - gaps)).max(axis=1)  # of sum exp(-gap), times exp(low)
    worst = 1 / (1 + np.exp(np.minimum(low[:, 0], 700.0)) / rest)  # exp(710) would overflow
    total = np.concatenate([[0.0], np.cumsum(np.diff(joint.u_path()) * worst)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return total / joint.u_path()


def _margin(joint: JointView) -> np.ndarray:
    """(R,) smallest y_i u_t'x_{i,opt} / |u_t|; NaN at u_0 = 0."""
    return joint.top.min(axis=1) / joint.trace.u_norm


def _saturation(joint: JointView, average, small: float) -> str:
    """In words: how small avg_t must be, and how late that is at the earliest.

    A logit gap is at most |z_k| times the length of W's path, eta log t for q = 1.
    """
    longest = math.sqrt(float(joint.K.diagonal().max()))
    words = f"with avg_t under {small:.2g} (at last {average[-1]:.3g})"
    if joint.decay[1] != 1 or small >= 0.5:
        return words
    needed = math.log(1 / small - 1) / (longest * joint.step_size)
    return f"{words}, for which log t must exceed {needed:.3g}"
