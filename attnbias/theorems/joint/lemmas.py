"""Lemmas 10 to 13: what grows along a joint run by Eq. 10, and the landscape around it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np

from ...checks import Check
from ..run import MEASURED
from ..statements import (
    Checks,
    Statement,
    at_least,
    fails,
    needs_exponential,
    needs_joint,
    refused,
    run_check,
)
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


_SEPARATED = at_least(
    "separation",
    "smallest y_i <X_i' phi_i, unit sum_k y_k x_{k,opt}>, against tau = 0.44 sqrt(a/n)",
    "Lemma 12",
)
_PL = at_least("gradient_low", "|grad_u L| / L, against tau", "Lemma 13 (1)")
_PL_TOP = Statement("gradient_high", "|grad_u L| / L, against B", "Lemma 13 (1)")
_SEGMENT = Statement(
    "segment", "log of largest loss on the way to the next iterate over L_t", "Lemma 13 (2)"
)
_HESSIAN = Statement(
    "hessian", "|Hessian L| / L, against B^2 + B^6 |u|^2 + B^3 + 2 B^5 |u|", "Lemma 13 (3)"
)
_HESSIAN_TWO = Statement(
    "hessian_two",
    "|Hessian L| / L, against B^2 + B^6 |u|^2 + B^3 + 0.77 B^5 |u|, two tokens",
    "Lemma 13 (3)",
)
_POINTS = 33
_LARGEST = 1000  # tokens n T up to which the Hessian's norm is computed


@joint_check(_SEPARATED)
def check_lemma12(joint: JointView) -> Checks:
    """Lemma 12: the attended tokens X_i' phi_i are separated by one fixed direction.

    With ubar the unit vector along sum_k y_k x_{k,opt}, y_i <X_i' phi_i, ubar> >= tau =
    0.44 sqrt(a/n) for every sequence and step.

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
    Source: Lemma 12, [a] with the constant [c].

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_lemma12(data, trace)]
    ['holds']
    """
    opt = joint.tokens[joint.opt[1:]]
    total = joint.labels @ opt  # ubar is its unit vector
    along = joint.labels[:, None] * (joint.tokens @ (total / np.linalg.norm(total)))
    least = (joint.softmax * along).sum(axis=2).min(axis=1)
    yield _SEPARATED.along(joint, least, joint.sizes.tau)


@joint_check()
def check_lemma13(joint: JointView) -> Checks:
    """Lemma 13: gradient against loss, loss between iterates, Hessian against loss.

    (1) tau L <= |grad_u L| <= B L, with tau = 0.44 sqrt(a/n).
    (2) L <= 1.05 L_t on the segment from theta_t to theta_{t+1}.
    (3) |Hessian L| <= (B^2 + B^6 |u|^2 + B^3 + c B^5 |u|) L at every theta = (u, W), with
    c = 2, or 0.77 for two tokens a sequence.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training with the exponential loss; (1) and (2) ask for Eq. 10, NGD(eta,
        decay=(p, 1)), from zero, (3) for nothing.
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
    Source: Lemma 13: [a] the three parts; [c] the constants, the 2 in (3) for every T, and
    1.05 in (2). Each side is divided by the loss, so that exp(-5000) is no obstacle. The step
    that leaves a recorded iterate is Eq. 10 evaluated there, so that (2) needs no consecutive
    records; the loss is then exact at 33 points of the segment, and the largest is reported.
    In (3) the Hessian's norm is that of a matrix of order 2 n T, exactly: L depends on theta
    through the scores and the logits alone, 2 T numbers a sequence.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_lemma13(data, trace)]
    ['holds', 'holds', 'holds', 'holds', 'holds']
    """
    yield from joint.table((_PL, _PL_TOP, _SEGMENT), _slopes)
    yield from _hessian(joint)


def _slopes(joint: JointView) -> Checks:
    pull, B = np.linalg.norm(joint.pull, axis=1), joint.sizes.B  # |grad_u L| / L
    yield _PL.along(joint, pull, joint.sizes.tau)
    yield _PL_TOP.along(joint, pull, B, rounding=MEASURED * B)  # equal for n = 1
    losses = segment_losses(joint, np.linspace(0, 1, _POINTS))
    words = f"largest of {_POINTS} points of each segment; L_t itself is one of them"
    # a loss's logarithm, up to 10^4, is right to 1e-14 of itself
    rise, room = losses.max(axis=0) - losses[0], 1e-14 * np.abs(losses[0])
    yield _SEGMENT.along(joint, rise, math.log(1.05), rounding=room, reason=words)


def _hessian(joint: JointView) -> Checks:
    reason = fails(joint, needs_joint, needs_exponential)
    if not reason and joint.tokens[..., 0].size > _LARGEST:
        reason = f"computed for at most {_LARGEST} tokens"
    statements = (_HESSIAN,) if joint.data.mask[:, 2:].any() else (_HESSIAN, _HESSIAN_TWO)
    if reason:
        yield from refused(statements, reason)
        return
    norm, B, u = hessian_over_loss(joint), joint.sizes.B, joint.trace.u_norm
    for statement, factor in zip(statements, (2.0, 0.77), strict=False):
        bound = B**2 + B**6 * u**2 + B**3 + factor * B**5 * u
        yield statement.along(joint, norm, bound)


def hessian_over_loss(joint: JointView) -> np.ndarray:
    """(R,) spectral norm of the Hessian of L in (u, W), over L.

    With h_i = y_i Phi_i a function of the scores and logits v of a sequence, the Hessian over
    L is J' D J, where J maps theta to all scores and logits, and D has a block
    share_i (grad h_i grad h_i' - Hessian h_i) for each sequence. Its eigenvalues other than 0
    are those of C' D C with C C' = J J', a Gram matrix of tokens.
    """
    flat = joint.tokens.reshape(-1, joint.data.d)
    gram, T = flat @ flat.T, joint.tokens.shape[1]
    queries = joint.tokens[:, 0] @ joint.tokens[:, 0].T
    labels = np.repeat(joint.labels, T)
    roots = _root(gram * np.outer(labels, labels)), _root(gram * np.kron(queries, np.ones((T, T))))
    mean = joint.top - joint.margin  # of top - score
    spread = np.zeros_like(joint.softmax)  # score minus the softmax's mean score; 0 at padding
    spread[joint.opt] = mean
    spread[joint.others] = mean[:, joint.sequence] - joint.delta
    parts = zip(joint.softmax, spread, joint.shares, strict=True)
    return np.array([_norm_at(*part, *roots) for part in parts])


def _root(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _norm_at(weights, spread, shares, root_scores, root_logits) -> float:
    """The norm at one iterate: softmax and score spread (n, T), shares (n,)."""
    from scipy.linalg import block_diag  # here, as scipy takes half a second

    T = weights.shape[1]
    outer = functools.partial(np.einsum, "it,is->its")
    lift = weights * spread  # gradient of h in the logits; that in the scores is the softmax
    scores = outer(weights, weights)
    mixed = outer(weights, lift) - weights[:, :, None] * np.eye(T) + scores
    logits = outer(lift, lift) - lift[:, :, None] * np.eye(T)
    logits += outer(weights, lift) + outer(lift, weights)
    blocks = [block_diag(*(shares[:, None, None] * part)) for part in (scores, mixed, logits)]
    ss = root_scores @ blocks[0] @ root_scores
    sv = root_scores @ blocks[1] @ root_logits
    vv = root_logits @ blocks[2] @ root_logits
    return float(np.abs(np.linalg.eigvalsh(np.block([[ss, sv], [sv.T, vv]]))).max())


def segment_losses(joint: JointView, parts: Iterable[float]) -> np.ndarray:
    """(parts, R) log L at theta_t + part (theta_{t+1} - theta_t), the next iterate by Eq. 10.

    Scores are linear in u and logit gaps linear in W, so that both are known on the whole
    segment from their values at its start and their changes. W's is 0 where its gradient
    vanishes, as at u_0 = 0.
    """
    (p, q), eta, late = joint.decay, joint.step_size, joint.step[:, None] + 1.0
    unit = joint.pull / np.linalg.norm(joint.pull, axis=1, keepdims=True)
    scores = (unit @ joint.tokens.reshape(-1, joint.data.d).T).reshape(joint.softmax.shape)
    scores *= joint.labels[:, None]
    top = scores[joint.opt]
    top_change = eta * late**-p * top
    delta_change = eta * late**-p * (top[:, joint.sequence] - scores[joint.others])
    speed = np.where(np.isfinite(joint.log_scale)[:, None], joint.gap_speed, 0.0)
    gap_change = eta * late**-q * speed

    def log_loss(part: float) -> np.ndarray:
        gaps = joint.gaps + part * gap_change
        delta = joint.delta + part * delta_change
        low = np.minimum(np.minimum.reduceat(gaps, joint.first_row, axis=1), 0.0)
        weights = np.exp(low[:, joint.sequence] - gaps)
        total = np.exp(low) + joint.per_sequence(weights)
        lost = joint.per_sequence(weights * delta) / total
        log = lost - joint.top - part * top_change
        high = log.max(axis=1, keepdims=True)
        return high[:, 0] + np.log(np.exp(log - high).mean(axis=1))

    return np.array([log_loss(part) for part in parts])
