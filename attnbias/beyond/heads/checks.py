"""Several heads: each heads for the W-SVM of its own decoder; and two heads on one row."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..._validate import as_float_tensor, require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace, require_trace_of
from ...geometry.constants import lambert
from ...geometry.svm import solve_w_svm
from ...geometry.tokens import optimal_tokens, token_scores

STATEMENT = "1 - cosine(head {}, its own W_mm), against M1 with the weights of all heads"
SOURCE = "M1 for several heads, ours"


def check_heads(data: Dataset, decoders, trace: Trace) -> CheckTable:
    """Each head's 1 - cosine with the W-SVM of its own optimal tokens, against M1.

    With S the head's path since <W_h, W_mm> was recorded non-negative, and P_0 its part across
    W_mm then,

        1 - cosine <= 2 B^4 / Xi^2 (|P_0|^2 + (2 Lambda / Xi + s) S) / S^2,

    where Lambda exp(Lambda) = N kappa / (e phi^2), kappa is the ratio of largest to smallest
    Delta_ih exp(-m_i) over all margins m_i that the heads can reach together, and phi the least
    softmax at an optimal token so far.

    Parameters
    ----------
    data : Dataset
    decoders : (H, d)
    trace : Trace
        Of `train_heads`, with the exponential loss.

    Returns
    -------
    CheckTable
        One check a head; not applicable where Assumption 2 fails for its decoder.

    Raises
    ------
    DtypeError, InfeasibleError, TiedTokensError

    Notes
    -----
    Source: ours [c]. The gradient in W_h is (1/n) sum of p z over the head's own rows z, and
    p = Delta_ih exp(-m_i) softmax(opt)^2 exp(-g): the C_i of M1, with m_i for the head's own
    margin. Its proof uses nothing of C_i but its two bounds.

    Examples
    --------
    >>> from attnbias import NGD, make_example1
    >>> from attnbias.beyond.heads.dynamics import train_heads
    >>> data = make_example1(n=4, T=3, d=20, seed=0)
    >>> u = torch.stack([data.u, 2 * data.u])
    >>> check_heads(data, u, train_heads(data, u, NGD(0.1), 300)).all_hold
    True
    """
    require_trace_of(trace, "heads", "train_heads")
    u = as_float_tensor("decoders", decoders).double()
    scores = torch.stack([token_scores(data, each) for each in u])  # (H, n, T)
    top = scores.amax(dim=2)
    low = scores.amin(dim=2).sum(dim=0)
    return CheckTable(
        _head_check(data, trace, h, optimal_tokens(data, u[h]), scores[h], low, top.sum(dim=0))
        for h in range(len(u))
    )


def _head_check(data, trace, h, opt, scores, low, high) -> Check:
    statement = STATEMENT.format(h)
    best = scores.amax(dim=1)
    delta = best - scores.amin(dim=1)
    spread = (scores < best[:, None]).sum(dim=1) * delta - (best[:, None] - scores).sum(dim=1)
    if float(spread.abs().max()) > 1e-12 * float(delta.max()):
        return Check.not_applicable(statement, "for decoders under Assumption 2", source=SOURCE)
    svm = solve_w_svm(data, opt)
    unit = svm.weights.numpy() / svm.norm
    along = np.tensordot(trace.W[:, h].numpy(), unit, 2)
    ahead = np.flatnonzero(along >= 0)
    if len(ahead) == 0 or ahead[0] + 1 >= len(trace.step):
        return Check.not_applicable(statement, "the head never pointed to W_mm", source=SOURCE)
    start, later = int(ahead[0]), slice(int(ahead[0]) + 1, None)
    kappa = float((delta * torch.exp(-low)).max() / (delta * torch.exp(-high)).min())
    path = trace.path_length[:, h]
    longest = float(np.max(np.diff(path) / np.diff(trace.step)))
    log_A = math.log(len(svm.dual) * kappa) - 1 - 2 * trace.log_least_opt_score[later, h]
    speed = 2 * lambert(log_A) / svm.margin + longest
    B = float(data.X.double().norm(dim=2).max())
    across = float(np.linalg.norm(trace.W[start, h].numpy() - along[start] * unit))
    S = path[later] - path[start]
    bound = 2 * B**4 / svm.margin**2 * (across**2 + speed * S) / S**2
    error = trace.alignment_error(svm.weights, h)[later]
    empty = bool(bound[-1] >= 2)
    reason = f"the bound is {bound[-1]:.3g} at the end, falling like 1/path" if empty else ""
    return Check.along(
        statement, trace.step[later], error, bound, source=SOURCE, vacuous=empty, reason=reason
    )


def gap_invariant(gap):
    """G(w) = 2 w + 2 sinh w: on one row the flow keeps G(w_1)/Delta_1 - G(w_2)/Delta_2.

    Parameters
    ----------
    gap : float or array

    Returns
    -------
    float or array

    Notes
    -----
    Source: ours [c]. One sequence of two tokens, or several that share their two tokens, the
    same optimal one and query: dw_h/dt = k(t) Delta_h f(w_h), f = softmax (1 - softmax), and
    1/f = exp(w) + 2 + exp(-w) is the derivative of G. k, a sum over sequences of loss slopes
    that may have either sign where labels differ, is common to the heads.

    Examples
    --------
    >>> gap_invariant(0.0)
    0.0
    """
    value = 2 * np.asarray(gap, dtype=float) + 2 * np.sinh(gap)
    return float(value) if np.ndim(gap) == 0 else value


def invert_gap_invariant(value: float) -> float:
    """The w with 2 w + 2 sinh w = value.

    Examples
    --------
    >>> round(invert_gap_invariant(gap_invariant(1.5)), 12)
    1.5
    """
    value = require_number("value", value, low=-1e300, high=1e300)
    low, high = -701.0, 701.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gap_invariant(middle) < value else (low, middle)
    return (low + high) / 2


def growth_of_difference(start: float) -> float:
    """Largest factor by which a tiny difference of two equal heads grows, from gap `start`.

    1 / (4 p (1 - p)) with p the softmax of the optimal token at the start if p < 1/2, else 1.

    Examples
    --------
    >>> round(growth_of_difference(-3.0), 3), growth_of_difference(1.0)
    (5.534, 1.0)
    """
    start = require_number("start", start, low=-700, high=700)
    return (1 + math.cosh(start)) / 2 if start < 0 else 1.0
