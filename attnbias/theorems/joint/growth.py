"""Lemmas 10 and 11: what grows along a joint run by Eq. 10."""

from __future__ import annotations

import math

import numpy as np

from ...checks import Check
from ..statements import Checks, Statement, at_least, run_check
from .constants import GAP_RATIO, LOSS_RATIO
from .run import JointView, joint_check

_U_NORM = Statement("u_norm", "|u_t|, against U_t = eta sum_{s<=t} s^-p", "Lemma 10")
_U_POWER = Statement("u_power", "|u_t|, against eta t^(1-p) / (1-p)", "Lemma 10")
_W_NORM = Statement("W_norm", "|W_t|, against eta sum_{2<=s<=t} s^-q", "Lemma 10")
_W_LOG = Statement("W_log", "|W_t|, against eta log t", "Lemma 10")

_GAP = at_least("gap_low", "smallest score gap, against 0.032 sqrt(a/n) U_t", "Lemma 11 (i)")
_GAP_TOP = Statement("gap_high", "largest score gap, against 35 sqrt(a/n) U_t", "Lemma 11 (i)")
_GAP_RATIO = Statement(
    "gap_ratio", "log of largest over smallest score gap, against log C_Delta", "Lemma 11 (i)"
)
_SCORE = at_least(
    "opt_score", "smallest opt score over all iterations so far", "Lemma 11 (ii), Eq. 11"
)
_GROWS = at_least(
    "growth",
    "least growth of a logit gap, a unit of W's path, at opt scores up to 3/4",
    "Lemma 11 (ii), Eq. 12",
)
_RATIO = Statement(
    "loss_ratio", "log of the largest ratio of two losses, against log C", "Lemma 11 (iii), Eq. 13"
)


@run_check(_U_NORM, _U_POWER, _W_NORM, _W_LOG, given=(JointView.refuse_start,), view=JointView)
def check_lemma10(joint: JointView) -> Checks:
    """Lemma 10: |u_t| <= eta sum_{s<=t} s^-p and |W_t| <= eta sum_{2<=s<=t} s^-q.

    The sum for W begins at 2, because u_0 = 0 makes W's first gradient vanish.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training by Eq. 10, NGD(eta, decay=(p, q)), from zero.
    svm : SVMSolution, optional
        Of the W-SVM.

    Returns
    -------
    CheckTable
        Both sums, then the closed forms that bound them: eta t^(1-p) / (1-p) if p < 1, and
        eta log t if q = 1.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Lemma 10, [a] for p = 2/3 and q = 1, [c] for others. Any T, any tokens. The first
    bound is attained by n = 1 once the softmax no longer moves u's direction.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_lemma10(data, trace)]
    ['holds', 'holds', 'holds', 'holds']
    """
    (p, q), eta = joint.decay, joint.step_size
    u, W, late = joint.trace.u_norm, joint.W_norm, np.maximum(joint.step, 1)
    # attained, and a norm is measured to 1e-9 of itself, which `later` allows for
    yield _U_NORM.later(joint, u, joint.u_path())
    if p < 1:
        yield _U_POWER.later(joint, u, eta * late ** (1 - p) / (1 - p))
    yield _W_NORM.later(joint, W, joint.W_path())
    if q == 1:
        yield _W_LOG.later(joint, W, eta * np.log(late))


@joint_check(_GAP, _GAP_TOP, _GAP_RATIO, _SCORE, _GROWS, _RATIO)
def check_lemma11(joint: JointView) -> Checks:
    """Lemma 11: score gaps grow, opt scores stay above 1/2, losses stay comparable.

    For all t >= 1, with U_t = eta sum_{s<=t} s^-p:

    (i) 0.032 sqrt(a/n) U_t <= y_i u_t'(x_{i,opt} - x_{i,tau}) <= 35 sqrt(a/n) U_t, so that two
    score gaps differ by a factor of at most C_Delta = 1100;
    (ii) every opt score is at least 1/2, and does not fall while it is at most 3/4;
    (iii) two losses differ by a factor of at most C = 11.

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
        Opt scores over every iteration, recorded or not; the growth of gaps from the gradient
        at the recorded ones, <z_k, -grad_W L> / |grad_W L|.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Lemma 11, Eq. 11 to 13: [a] the form, [c] the constants and p in [0, 1).

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_lemma11(data, trace)]
    ['holds', 'holds', 'holds', 'holds', 'holds', 'holds']
    """
    path = joint.sizes.speed * joint.u_path()
    least, largest = joint.delta.min(axis=1), joint.delta.max(axis=1)
    # a gap that is not positive has no ratio to others: the check must fail
    spread = np.where(least > 0, np.log(largest / least), np.inf)
    yield _GAP.later(joint, least, 0.032 * path, 0)
    yield _GAP_TOP.later(joint, largest, 35 * path, 0)
    yield _GAP_RATIO.later(joint, spread, math.log(GAP_RATIO), 0)
    # softmax at W_0 = 0 is 1/T up to its rounding
    half = 1 / int(joint.data.lengths.max())
    yield _SCORE.along(joint, joint.trace.least_opt_score, half, rounding=1e-15)
    yield _gap_growth(joint)
    yield _RATIO.along(joint, np.ptp(joint.log_loss, axis=1), math.log(LOSS_RATIO))


def _gap_growth(joint: JointView) -> Check:
    """Least <z_k, -grad L> / |grad L| of sequences whose opt score is at most 3/4."""
    open_rows = (joint.log_opt <= math.log(0.75))[:, joint.sequence]
    keep = (joint.step > 0) & open_rows.any(axis=1) & np.isfinite(joint.log_scale)
    growth = np.where(open_rows, joint.gap_speed, np.inf).min(axis=1)
    # a sum of N products, each right to 2e-16 of the largest |z|
    rounding = 1e-15 * joint.N * math.sqrt(joint.K.diagonal().max())
    empty = "every opt score is past 3/4 at the recorded steps"
    return _GROWS.along(joint, growth, 0.0, keep, empty=empty, rounding=rounding)
