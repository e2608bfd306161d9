"""What training settles within a component: a finite solution, and when there is none."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..._validate import require_int, require_number
from ...dynamics.trace import Trace
from ...errors import SolverError
from .data import NextTokenData
from .geometry import PriorityRows, label_components, priority_rows, require_rows

# Newton's decrement below which a step changes nothing but rounding.
STILL = 1e-14


def soft_parts(trace: Trace, rows) -> np.ndarray:
    """(R, d, d) projections of recorded W on the span of the ties of `rows`."""
    basis, W = rows.basis.numpy(), trace.W.numpy()
    return ((W.reshape(len(W), -1) @ basis) @ basis.T).reshape(W.shape)


def soft_solution(data: NextTokenData, rows: PriorityRows | None = None) -> torch.Tensor:
    """The W in F, the span of the ties, with the smallest log loss within components.

    Each sequence's softmax is taken over the tokens of its label's component alone, as if all
    tokens of other components had gone:

        minimise over W in F   mean of -log softmax(e_k' W e_q, k in the component)_label .

    Parameters
    ----------
    data : NextTokenData
    rows : PriorityRows, optional
        Of these data.

    Returns
    -------
    (d, d) float64
        0 where there is no tie.

    Raises
    ------
    InfeasibleError, SolverError, DtypeError

    Notes
    -----
    Source: the finite part of Li et al. 2024 [b]. That the minimiser exists and is unique [c]:
    along a direction D of F the loss stays bounded only if (e_i - e_j)' D e_q >= 0 for each tie
    i -> j. A tie lies on a cycle, along which these numbers sum to 0, so that all are 0; then D
    is orthogonal to F, hence 0. So the convex loss grows along each direction. It is strictly
    convex by the same argument: its second derivative along D is a sum of variances of
    e_k' D e_q over the tokens of components, zero only if all of these are equal.

    Examples
    --------
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2]] * 4, [0, 0, 0, 1])
    >>> W = soft_solution(data)
    >>> round(float(W[0, 2] - W[1, 2]), 6), round(math.log(3), 6)
    (1.098612, 1.098612)
    """
    rows = priority_rows(data) if rows is None else rows
    require_rows("rows", rows, data)
    r = rows.basis.shape[1]
    if r == 0:
        return torch.zeros(data.d, data.d, dtype=torch.float64)
    log_counts, features = _components(data, rows)
    n = torch.arange(data.n)
    x, decrement = rows.basis.new_zeros(r), math.inf
    for _ in range(200):
        log_p = torch.log_softmax(log_counts + features @ x, dim=1)
        p = log_p.exp()
        mean = torch.einsum("nk,nkr->nr", p, features)
        gradient = (mean - features[n, data.labels]).mean(dim=0)
        spread = features - mean[:, None, :]
        curvature = torch.einsum("nk,nkr,nks->rs", p, spread, spread) / data.n
        step, singular = torch.linalg.solve_ex(curvature, gradient)
        if int(singular):
            break
        decrement = float(gradient @ step)
        x = x - step / (1 + max(decrement, 0.0) ** 0.5 * 4 if decrement > 1e-4 else 1.0)
        if decrement < STILL**2:
            return (rows.basis @ x).reshape(data.d, data.d)
    raise SolverError(
        "soft_solution",
        expected="Newton's decrement below 1e-28",
        got=f"{decrement:.1e}, at most 200 steps",
        remedy="labels that are nearly always the same make the solution large: add sequences",
    )


def _components(data: NextTokenData, rows: PriorityRows):
    """Log counts within each label's component (-inf outside), and e_k' B_r e_q (n, V, r)."""
    log_counts = data.counts.log().masked_fill(~label_components(data), -math.inf)
    E = data.embeddings
    basis = rows.basis.reshape(data.d, data.d, -1)
    features = torch.einsum("ka,abr,nb->nkr", E, basis, E[data.queries])
    return log_counts, features


def soft_threshold(scale: float, V: int) -> float:
    """Share of the more frequent of two tied labels from which cross-entropy ignores the other.

    One context, two tied tokens of an orthonormal vocabulary, decoder `scale` times the
    embeddings. The more frequent label's share is s. If s >= the value returned, all attention
    goes to it and no finite part exists; below, both keep some.

    Parameters
    ----------
    scale : float in (0, 700]
        beta: logits are beta times attention.
    V : int
        Classes, at least 2.

    Returns
    -------
    float

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. With attention p on one and 1 - p on the other the loss is
    f(p) = log(exp(beta p) + exp(beta (1 - p)) + V - 2) - beta (s p + (1 - s)(1 - p)), strictly
    convex, and its slope at p = 1 is beta ((exp(beta) - 1) / (exp(beta) + V - 1) - (2 s - 1)).
    At p = 1/2 it is -beta (2 s - 1) <= 0. So the minimum is at 1 if and only if the slope there
    is at most 0. Attention to a third token of the context does not lower it.

    Examples
    --------
    >>> round(soft_threshold(3.0, 8), 4)
    0.8523
    """
    scale = require_number("scale", scale, low=0, high=700, open_low=True)
    V = require_int("V", V, low=2)
    return 0.5 * (1 + math.expm1(scale) / (math.exp(scale) + V - 1))


def soft_attention(scale: float, V: int, share: float) -> float:
    """Attention p on the more frequent of two tied labels at the minimum of `soft_threshold`.

    Parameters
    ----------
    scale, V
        As in `soft_threshold`.
    share : float in [0.5, 1]

    Returns
    -------
    float
        1 from the threshold on.

    Examples
    --------
    >>> round(soft_attention(3.0, 8, 0.7), 4), soft_attention(3.0, 8, 0.9)
    (0.7373, 1.0)
    """
    share = require_number("share", share, low=0.5, high=1)
    if share >= soft_threshold(scale, V):
        return 1.0
    low, high = 0.5, 1.0
    for _ in range(60):  # the slope is increasing: halving finds its zero to rounding
        p = (low + high) / 2
        a, b = math.exp(scale * p), math.exp(scale * (1 - p))
        low, high = (p, high) if (a - b) / (a + b + V - 2) < 2 * share - 1 else (low, p)
    return (low + high) / 2
