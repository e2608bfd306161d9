"""Theorem 4, restated as Theorem 10, and sharper: margin and direction of the decoder."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution
from ..statements import Statement
from .constants import LOSS_RATIO, first_step, power_sum
from .run import JointView, joint_check

_MARGIN = Statement(
    "smallest y_i u_t'x_{i,opt} / |u_t|, against 0.39 gamma_* - log n / U_t", "Theorem 4/10", ">="
)
_POSITIVE = Statement("smallest y_i u_t'x_{i,opt} / |u_t|", "Theorem 4/10, the early steps", ">=")
_SHARPER = Statement(
    "smallest y_i u_t'x_{i,opt} / |u_t|, against gamma_* - (gamma_* + sqrt(a)) avg_t - "
    "(log n + eta^2 a (1.03 + 0.62 sqrt(a)) sum_{s<=t} s^-2p) / U_t",
    "sharper Theorem 4",
    ">=",
)
_DIRECTION = Statement(
    "1 - cosine(u_t, u_mm), against 6 ((2 log 11 / tau + eta) / U_t + 9.7 sqrt(n) avg_t)",
    "the decoder's direction",
)
_LARGEST = 2.0  # 1 - cosine never exceeds it


@joint_check()
def check_theorem4(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, assume_conditions: bool = False
) -> CheckTable:
    """Theorem 4 (restated as Theorem 10): u_t's margin is a fixed part of the largest one.

    With gamma_* = 1 / |u_mm| and U_t = eta sum_{s<=t} s^-p, for t >= 1

        min_i y_i u_t'x_{i,opt} / |u_t| >= 0.39 gamma_* - log n / U_t,

    and it is never negative.

    Returns
    -------
    CheckTable
        Vacuous, with the t from which it is not, where the bound is nowhere positive.

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
    joint = JointView(data, trace, svm, assume=assume_conditions)
    return joint.table((_MARGIN, _POSITIVE), _margins)


def _margins(joint: JointView) -> Iterator[Check]:
    U, best = joint.u_path(), joint.u_svm.margin
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = 0.39 * best - math.log(joint.run.n) / U
    margin = _margin(joint)
    yield joint.along(_MARGIN, margin, bounds, **_bite(joint, bounds, best))
    yield joint.along(_POSITIVE, margin, 0.0)


@joint_check()
def check_sharper_theorem4(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, assume_conditions: bool = False
) -> CheckTable:
    """Theorem 4, sharper: the whole largest margin once the attention saturates, for p > 0.

    With avg_t the mean of 1 - min_i softmax_{i,opt} over the steps s < t, weighted by
    (s + 1)^-p, for t >= 1

        min_i y_i u_t'x_{i,opt} / |u_t| >= gamma_* - (gamma_* + sqrt(a)) avg_t
            - (log n + eta^2 a (1.03 + 0.62 sqrt(a)) sum_{s<=t} s^-2p) / U_t.

    The last term is O(t^-(1-p)) for p > 1/2, O(t^-1/2 log t) for p = 1/2, O(t^-p) for
    0 < p < 1/2, and does not vanish for p = 0.

    Returns
    -------
    CheckTable

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
    joint = JointView(data, trace, svm, assume=assume_conditions)
    return joint.table((_SHARPER,), _sharper)


def _sharper(joint: JointView) -> Iterator[Check]:
    average, best = mean_nonopt_softmax(joint), joint.u_svm.margin
    bounds = _sharper_bound(joint, average)
    small = best / (best + math.sqrt(joint.constants.a))
    vacuous = not bool((bounds[joint.run.step > 0] > 0).any())
    reason = f"positive only {_saturation(joint, average, small)}"
    yield joint.along(_SHARPER, _margin(joint), bounds, vacuous=vacuous, reason=reason)


@joint_check()
def check_decoder_direction(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, assume_conditions: bool = False
) -> CheckTable:
    """u_t tends to u_mm in direction once the attention saturates, for every p in [0, 1).

    With tau = 0.44 sqrt(a/n) and avg_t as in the sharper Theorem 4, whenever
    U_t >= 10 log n / gamma_*,

        1 - cosine(u_t, u_mm) <= 6 ((2 log 11 / tau + eta) / U_t + 9.7 sqrt(n) avg_t).

    Returns
    -------
    CheckTable
        Not applicable where no recorded step has such a U_t; vacuous where the bound is
        nowhere under 2.

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
    joint = JointView(data, trace, svm, assume=assume_conditions)
    return joint.table((_DIRECTION,), _direction)


def _direction(joint: JointView) -> Iterator[Check]:
    run, p, U = joint.run, joint.decay[0], joint.u_path()
    needed = 10 * math.log(run.n) / joint.u_svm.margin
    keep, start = (run.step > 0) & (needed <= U), first_step(needed / joint.eta, p)
    average = mean_nonopt_softmax(joint)
    bounds, path = _direction_bound(joint, average)
    late = first_step(path / joint.eta, p)
    small = _saturation(joint, average, 1 / (3 * 9.7 * math.sqrt(run.n)))
    yield joint.along(
        _DIRECTION, run.trace.u_alignment_error, bounds, keep,
        empty=f"speaks of t >= {start:.4g}, where U_t reaches 10 log n / gamma_*",
        vacuous=not bool((bounds[keep] < _LARGEST).any()),
        reason=f"below 2 only from t = {late:.3g} on and {small}",
    )  # fmt: skip


def mean_nonopt_softmax(joint: JointView) -> np.ndarray:
    """(R,) upper bound on avg_t, exact where all iterations up to t are recorded.

    Between records r and r' a logit gap changes by at most D = |z_k| times the length of W's
    path, so that at each iteration between it is at least the mean of its two recorded values
    less D / 2.

    Notes
    -----
    Source: [c]: max(g_r - D_1, g_r' - D_2) >= (g_r + g_r' - D) / 2 for D_1 + D_2 = D.
    """
    run = joint.run
    path = joint.eta * power_sum(run.step, joint.decay[1])
    drift = np.diff(path)[:, None] * np.sqrt(run.K.diagonal())
    between = (run.gaps[:-1] + run.gaps[1:] - drift) / 2
    single = (np.diff(run.step) == 1)[:, None]
    worst = _nonopt(run, np.where(single, run.gaps[:-1], between))
    weights = np.diff(joint.u_path())
    total = np.concatenate([[0.0], np.cumsum(weights * worst)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return total / joint.u_path()


def _nonopt(run, gaps: np.ndarray) -> np.ndarray:
    """1 - smallest softmax score of an optimal token, for rows of gaps."""
    low = gaps.min(axis=1, keepdims=True)
    rest = run.per_sequence(np.exp(low - gaps)).max(axis=1)  # of sum exp(-gap), times exp(low)
    return 1 / (1 + np.exp(np.minimum(low[:, 0], 700.0)) / rest)  # exp(710) would overflow


def _margin(joint: JointView) -> np.ndarray:
    """(R,) smallest y_i u_t'x_{i,opt} / |u_t|; NaN at u_0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return joint.run.top.min(axis=1) / joint.run.trace.u_norm


def _sharper_bound(joint: JointView, average) -> np.ndarray:
    c, best, p = joint.constants, joint.u_svm.margin, joint.decay[0]
    root = math.sqrt(c.a)
    squares = joint.eta**2 * power_sum(joint.run.step, 2 * p)
    remainder = math.log(joint.run.n) + c.a * (1.03 + 0.62 * root) * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        return best - (best + root) * average - remainder / joint.u_path()


def _direction_bound(joint: JointView, average) -> tuple[np.ndarray, float]:
    """(R,) the bound, and the U_t at which its first term alone is 2."""
    c, U = joint.constants, joint.u_path()
    speed = 2 * math.log(LOSS_RATIO) / c.tau + joint.eta
    with np.errstate(divide="ignore", invalid="ignore"):
        return 6 * (speed / U + 9.7 * math.sqrt(c.n) * average), 3 * speed


def _saturation(joint: JointView, average, small: float) -> str:
    """In words: how small avg_t must be, and how late that is at the earliest.

    A logit gap is at most |z_k| times the length of W's path, eta log t for q = 1.
    """
    longest = math.sqrt(float(joint.run.K.diagonal().max()))
    words = f"with avg_t under {small:.2g} (at last {average[-1]:.3g})"
    if joint.decay[1] != 1 or small >= 0.5:
        return words
    needed = math.log(1 / small - 1) / (longest * joint.eta)
    return f"{words}, for which log t must exceed {needed:.3g}"


def _bite(joint: JointView, bounds, best: float) -> dict:
    """Fields of a Check: whether Theorem 4's bound is positive anywhere, and from which t."""
    needed = math.log(joint.run.n) / (0.39 * best) / joint.eta
    start = first_step(needed, joint.decay[0])
    keep = joint.run.step > 0
    return {
        "vacuous": not bool((bounds[keep] > 0).any()),
        "reason": f"positive from t = {start:.4g} on",
    }


check_theorem10 = check_theorem4
