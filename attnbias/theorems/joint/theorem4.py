"""Theorem 4, restated as Theorem 10, and sharper: margin and direction of the decoder."""

from __future__ import annotations

import math

import numpy as np

from ..statements import Checks, Statement, at_least
from .constants import LOSS_RATIO, first_step, power_sum
from .run import JointView, joint_check

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
_LARGEST = 2.0  # 1 - cosine never exceeds it


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
