"""The gradient of <grad, W_mm> in the tokens, by linear algebra on the active constraints.

With z_k the rows that support W = sum_k alpha_k z_k, K their Gram matrix, all margins b_k and no
other row active, W is a smooth function of them. P = sum_k beta_k z_k, with K beta = <z_k, G>, is
the projection of G on their span, and the gradient of <G, W> in z_k is

    alpha_k (G - P) - beta_k W :

G - P is what turning the row does to W, and beta_k W what a longer row takes from it. Rows that do
not support W have no part in it. Source: ours [c].
"""

from __future__ import annotations

from dataclasses import replace

import torch

from .._validate import as_floats
from ..errors import RangeError
from .limit import support_basis
from .tokens import GapRows, tokens_of


def pullback(svm, grad) -> torch.Tensor:
    """The gradient for an optimal solution; see `SVMSolution.pullback`."""
    W, rows = svm.weights, svm.rows
    G = as_floats("grad", grad, tuple(W.shape), "that of the weights", W.device).double()
    if svm.norm_name != "frobenius":
        raise RangeError(
            "svm",
            expected="W_mm in the Frobenius norm, of which there is one",
            got=f"the least {svm.norm_name} norm",
            remedy="take solve_w_svm(data)",
        )
    places, factor = _independent(svm)
    alpha = svm.dual[places]
    chosen = {"sequence": rows.sequence[places], "token": rows.token[places]}
    if isinstance(rows, GapRows):
        tokens = tokens_of(rows)
        support = replace(rows, differences=rows.differences[places], **chosen)
    else:
        support = replace(rows, rows=rows.rows[places], **chosen)
        G = _beside(rows.basis, G)
    beta = torch.cholesky_solve(support.gaps(G)[:, None], factor)[:, 0]
    parts = (alpha, G - support.combine(beta)), (-beta, W)  # of the gradient in each row
    if isinstance(rows, GapRows):
        return _in_tokens(support, tokens, parts)
    found = torch.zeros_like(rows.rows)
    found[places] = sum(weight[:, None] * matrix.reshape(1, -1) for weight, matrix in parts)
    return found


def _beside(basis: torch.Tensor | None, G: torch.Tensor) -> torch.Tensor:
    """G less its part in the span of the equalities, which W has no part in."""
    if basis is None:
        return G
    flat = G.reshape(-1)
    return (flat - basis @ (basis.T @ flat)).reshape(G.shape)


def _in_tokens(rows: GapRows, tokens: torch.Tensor, parts) -> torch.Tensor:
    """(n, T, d) what gradients sum of weight_k matrix in the rows are in their tokens."""
    i, queries = rows.sequence, rows.queries[rows.sequence]
    other = sum(weight[:, None] * (queries @ matrix.T) for weight, matrix in parts)
    query = sum(weight[:, None] * (rows.differences @ matrix) for weight, matrix in parts)
    found = torch.zeros_like(tokens, dtype=torch.float64)
    for token, share in ((rows.opt[i], other), (rows.token, -other), (torch.zeros_like(i), query)):
        found.index_put_((i, token), share, accumulate=True)
    return found


def _independent(svm) -> tuple[torch.Tensor, torch.Tensor]:
    """The support rows, all active ones, and a Cholesky factor of their Gram matrix."""
    found = support_basis(svm.rows, svm)
    if found is not None and len(found[0]) == len(svm.support):
        return found[0], found[2]
    got = f"{len(svm.support)} supporting rows that depend on each other, as equal tokens make them"
    if bool(svm.idle.any()):
        i, t = svm.constraints[svm.idle][0].tolist()
        got = f"{int(svm.idle.sum())} without one, the first of sequence {i}, token {t}"
    raise RangeError(
        "svm",
        expected="a dual weight above 0 on each active constraint, and their rows "
        "independent: elsewhere the weights have a kink",
        got=got,
        remedy="move that token off the margin or drop it, or take differences to either side",
    )
