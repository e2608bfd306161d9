"""Several heads: each heads for the W-SVM of its own decoder; and two heads on one row."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import brentq

from ..._validate import as_numbers, require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import solve_w_svm
from ...geometry.tokens import optimal_tokens, token_scores
from ...theorems.statements import Statement
from ..common.checks import rate_check, require_trace_of
from .dynamics import as_decoders

WORDS = "1 - cosine(head {}, its own W_mm), against M1 with the weights of all heads"


def check_heads(data: Dataset, decoders, trace: Trace) -> CheckTable:
    """Each head's 1 - cosine with the W-SVM of its own optimal tokens, against M1.

    With S the head's path since <W_h, W_mm> was recorded non-negative, and P_0 its offset
    then,

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
    u = as_decoders(data, decoders)
    shapes = {"W": (len(u), data.d, data.d), "log_nonopt": (len(u), data.n)}
    require_trace_of(trace, "heads", "train_heads", **shapes)
    scores = torch.stack([token_scores(data, each) for each in u])  # (H, n, T)
    top = scores.amax(dim=2)
    low = scores.amin(dim=2).sum(dim=0)
    return CheckTable(
        _head_check(data, trace, h, optimal_tokens(data, u[h]), scores[h], low, top.sum(dim=0))
        for h in range(len(u))
    )


def _head_check(data, trace, h, opt, scores, low, high) -> Check:
    statement = Statement(f"rate_{h}", WORDS.format(h), "M1 for several heads, ours")
    best = scores.amax(dim=1)
    delta = best - scores.amin(dim=1)
    spread = (scores < best[:, None]).sum(dim=1) * delta - (best[:, None] - scores).sum(dim=1)
    if float(spread.abs().max()) > 1e-12 * float(delta.max()):
        return statement.refused("for decoders under Assumption 2")
    svm = solve_w_svm(data, opt)
    kappa = float((delta * torch.exp(-low)).max() / (delta * torch.exp(-high)).min())
    log_A = math.log(len(svm.dual) * kappa) - 1 - 2 * trace.log_least_opt_score[:, h]
    B = float(data.X.double().norm(dim=2).max())
    return rate_check(statement, trace, svm, 2 * B**2, log_A, part=h)


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
    gap = as_numbers("gap", gap, dtype=float)
    with np.errstate(over="ignore"):  # infinite from a gap of 711 on
        value = 2 * gap + 2 * np.sinh(gap)
    return float(value) if value.ndim == 0 else value


def invert_gap_invariant(value: float) -> float:
    """The w with 2 w + 2 sinh w = value.

    Examples
    --------
    >>> round(invert_gap_invariant(gap_invariant(1.5)), 12)
    1.5
    """
    value = require_number("value", value, low=-1e300, high=1e300)
    return float(brentq(lambda gap: gap_invariant(gap) - value, -701.0, 701.0, xtol=1e-15))


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
