"""Strict complementarity: whether some dual solution is positive on every active constraint."""

from __future__ import annotations

import torch

from .active_set import solve_dual


def can_all_be_positive(rows, positive: torch.Tensor, zero: torch.Tensor, tiny: float) -> bool:
    """Whether weights can move, their sum of rows fixed, until those at `zero` are positive.

    With S the Gram matrix of the rows at `zero`, less their projections on the supporting
    rows, that asks for c > 0 with Sc = 0. By Stiemke's lemma it is one more hard margin:
    the rows of a basis of S's null space, with a vector that has a positive product with all.

    Parameters
    ----------
    rows : GapRows or LabelRows
    positive, zero : (N',) bool
        Where the dual weights are positive, and where they are zero at an active constraint.
    tiny : float
        Squared length, of rows at unit norm, that counts as zero.
    """
    H, norms = rows.gram(), rows.norms()
    H = H / norms / norms[:, None]
    L, info = torch.linalg.cholesky_ex(H[positive][:, positive])
    if int(info):
        return False
    cross = H[positive][:, zero]
    S = H[zero][:, zero] - cross.T @ torch.cholesky_solve(cross, L)
    values, vectors = torch.linalg.eigh(S)
    basis = vectors[:, values < tiny]
    movable = basis.shape[1] > 0 and float(basis.norm(dim=1).min()) > tiny
    return movable and solve_dual(basis @ basis.T).status == "optimal"
