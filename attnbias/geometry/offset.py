"""The part of W orthogonal to W_mm at which training settles, from the weights of the rows."""

from __future__ import annotations

import torch

from ..data import Dataset
from ..losses import as_loss
from .solution import ZERO
from .tokens import GapRows, first_equal, gap_rows, optimal_tokens, token_scores

DEPENDENT = 1e-7  # rows whose Cholesky pivot, a root of rounding error, says nothing


def saturated_weights(data: Dataset, u=None, loss="exponential") -> tuple[GapRows, torch.Tensor]:
    """The rows, and the logs (N',) of their weights in n times the gradient beside exp(-gap).

    Once the softmax is saturated: -l'(gamma_{i,opt}) (gamma_{i,opt} - gamma_{i,tau}).
    """
    loss = as_loss(loss)
    opt = optimal_tokens(data, u)
    rows, scores = gap_rows(data, opt), token_scores(data, u)
    best = scores[rows.sequence, opt[rows.sequence]]
    return rows, loss.log_slope(best) + (best - scores[rows.sequence, rows.token]).log()


def settled_offset(rows: GapRows, log_weight: torch.Tensor, svm) -> float | None:
    """Norm of the offset at which given weights of the rows balance.

    Parameters
    ----------
    rows : GapRows
    log_weight : (N',) tensor
        Logs of the weights that the rows have in the gradient beside exp(-gap); a common
        summand changes nothing.
    svm : SVMSolution
        Solution of the W-SVM on these rows.

    Returns
    -------
    float or None
        As `limit_offset`.

    Notes
    -----
    Source: [c]. Weight times exp(-gap) is proportional to the dual variables where
    gap = height + log weight - log dual, and the height takes what lies along W_mm. Equal rows
    are one, with the sum of their weights: a token said m times adds log m to its gap.
    """
    support = svm.supports
    idle = (svm.margins <= 1 + ZERO) & ~support  # another dual solution has them positive
    log_weight = log_weight[support]
    if bool(idle.any()) or not bool(torch.isfinite(log_weight).all()):
        return None
    kept, group = first_equal(rows, support).unique(return_inverse=True)
    alpha = log_weight.new_zeros(len(kept)).index_add(0, group, svm.dual[support])
    largest = log_weight.new_full((len(kept),), -torch.inf)
    largest = largest.scatter_reduce(0, group, log_weight, "amax")
    total = torch.zeros_like(alpha).index_add(0, group, (log_weight - largest[group]).exp())
    gaps = largest + total.log() - alpha.log()
    gaps = gaps - (alpha @ gaps) / alpha.sum()  # orthogonal to W_mm
    places = support.nonzero().flatten()[kept]
    K = rows.gram()[places][:, places]
    factor, info = torch.linalg.cholesky_ex(K)
    pivots = factor.diagonal()
    if int(info) != 0 or bool(pivots.min() < DEPENDENT * pivots.max()):
        return None
    # |offset|^2 = gaps' K^{-1} gaps
    return float(torch.linalg.solve_triangular(factor, gaps[:, None], upper=False).norm())
