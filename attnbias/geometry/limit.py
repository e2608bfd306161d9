"""The part of W orthogonal to W_mm at which training settles, from the weights of the rows."""

from __future__ import annotations

import torch

from ..data import Dataset
from ..losses import as_loss
from .tokens import GapRows, first_equal, gap_rows, optimal_tokens, token_scores

DEPENDENT = 1e-7  # share of a row's norm at which its Cholesky pivot, a root of rounding, is none


def saturated_weights(data: Dataset, u=None, loss="exponential") -> tuple[GapRows, torch.Tensor]:
    """The rows, and the logs (N',) of their weights in n times the gradient beside exp(-gap).

    Once the softmax is saturated: -l'(gamma_{i,opt}) (gamma_{i,opt} - gamma_{i,tau}).
    """
    loss = as_loss(loss)
    opt = optimal_tokens(data, u)
    rows, scores = gap_rows(data, opt), token_scores(data, u)
    best = scores[rows.sequence, opt[rows.sequence]]
    return rows, loss.log_slope(best) + (best - scores[rows.sequence, rows.token]).log()


def support_basis(rows: GapRows, svm) -> tuple[torch.Tensor, ...] | None:
    """Which support rows are equal, and a Cholesky factor of the Gram matrix of one of each.

    Returns
    -------
    (places, group, factor) or None
        Indices of the rows kept, for each support row which of them it equals, and the factor.
        None without strict complementarity of these dual weights, or with dependent rows.
    """
    if bool(svm.idle.any()):  # another dual solution has them positive
        return None
    kept, group = first_equal(rows, svm.supports).unique(return_inverse=True)
    places = svm.support[kept.to(svm.support.device)]
    factor, info = torch.linalg.cholesky_ex(rows.gram()[places][:, places])
    shares = factor.diagonal() / rows.norms()[places]  # sines of angles with the rows before
    if int(info) != 0 or bool(shares.min() < DEPENDENT):
        return None
    return places, group.to(places.device), factor


def settled_offset(rows: GapRows, log_weight: torch.Tensor, svm, basis=None) -> float | None:
    """Norm of the offset at which given weights of the rows balance.

    Parameters
    ----------
    rows : GapRows
    log_weight : (N',) tensor
        Logs of the weights that the rows have in the gradient beside exp(-gap); a common
        summand changes nothing.
    svm : SVMSolution
        Solution of the W-SVM on these rows.
    basis : optional
        Its `support_basis`, where that is at hand.

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
    basis, log_weight = basis or support_basis(rows, svm), log_weight[svm.supports]
    if basis is None or not bool(torch.isfinite(log_weight).all()):
        return None
    places, group, factor = basis
    alpha = log_weight.new_zeros(len(places)).index_add(0, group, svm.dual[svm.supports])
    largest = torch.full_like(alpha, -torch.inf).scatter_reduce(0, group, log_weight, "amax")
    total = torch.zeros_like(alpha).index_add(0, group, (log_weight - largest[group]).exp())
    gaps = largest + total.log() - alpha.log()
    return _length(factor, gaps - (alpha @ gaps) / alpha.sum())  # orthogonal to W_mm


def offset_within(svm, basis, gaps: torch.Tensor) -> float:
    """Norm of the part of W that is in the span of the support rows and orthogonal to W_mm.

    Parameters
    ----------
    svm : SVMSolution
    basis : its `support_basis`
    gaps : (N',) tensor
        Logit gaps of W.
    """
    places, _, factor = basis
    along = (svm.dual @ gaps) / svm.norm**2
    return _length(factor, (gaps - along * svm.margins)[places])


def _length(factor: torch.Tensor, gaps: torch.Tensor) -> float:
    """Norm of the matrix in the span with these products with the rows: gaps' K^{-1} gaps."""
    return float(torch.linalg.solve_triangular(factor, gaps[:, None], upper=False).norm())
