"""Lemmas 12 and 13: the landscape along a joint run."""

from __future__ import annotations

import functools
import math

import numpy as np

from ..run import MEASURED
from ..statements import Checks, Statement, at_least, fails, needs_exponential, needs_joint, refused
from .run import JointView, joint_check

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
    segment = Segment(joint)
    first = segment.log_loss(0.0)
    rise = np.max([segment.log_loss(part) for part in np.linspace(0, 1, _POINTS)], axis=0) - first
    words = f"largest of {_POINTS} points of each segment; L_t itself is one of them"
    # a loss's logarithm, up to 10^4, is right to 1e-14 of itself
    room = 1e-14 * np.abs(first)
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


class Segment:
    """The segments from each recorded iterate to the next iterate of Eq. 10.

    Scores are linear in u and logit gaps linear in W, so that both are known on the whole
    segment from their values at its start and their changes.

    Parameters
    ----------
    joint : JointView

    Attributes
    ----------
    top_change : (R, n)
        y_i (u_{t+1} - u_t)' x_{i,opt}.
    delta_change : (R, N)
        Change of the score gap of each row.
    gap_change : (R, N)
        <z_k, W_{t+1} - W_t>; 0 where W's gradient vanishes, as at u_0 = 0.
    """

    def __init__(self, joint: JointView):
        self.run = joint
        p, q = joint.decay
        late, eta = joint.step[:, None] + 1.0, joint.step_size
        unit = joint.pull / np.linalg.norm(joint.pull, axis=1, keepdims=True)
        scores = (unit @ joint.tokens.reshape(-1, joint.data.d).T).reshape(joint.softmax.shape)
        scores *= joint.labels[:, None]
        top = scores[joint.opt]
        self.top_change = eta * late**-p * top
        self.delta_change = eta * late**-p * (top[:, joint.sequence] - scores[joint.others])
        speed = np.where(np.isfinite(joint.log_scale)[:, None], joint.gap_speed, 0.0)
        self.gap_change = eta * late**-q * speed

    def log_loss(self, part: float) -> np.ndarray:
        """(R,) log L at theta_t + part (theta_{t+1} - theta_t)."""
        run = self.run
        gaps = run.gaps + part * self.gap_change
        delta = run.delta + part * self.delta_change
        low = np.minimum(np.minimum.reduceat(gaps, run.first_row, axis=1), 0.0)
        weights = np.exp(low[:, run.sequence] - gaps)
        total = np.exp(low) + run.per_sequence(weights)
        lost = run.per_sequence(weights * delta) / total
        log = lost - run.top - part * self.top_change
        high = log.max(axis=1, keepdims=True)
        return high[:, 0] + np.log(np.exp(log - high).mean(axis=1))
