"""Rows of a hard-margin SVM with equalities: what is left of them across the equalities' span."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.linalg import vector_norm

from .solution import SVMSolution
from .svm import solve_rows

# A row whose part outside the span of the equalities is smaller than this share: only rounding.
TIED = 1e-10


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Inequality rows less their part in F, the span of the rows that must give 0.

    Attributes
    ----------
    rows : (N, d^2) float64
    basis : (d^2, r) float64
        Orthonormal basis of F.
    d : int
    """

    rows: torch.Tensor
    basis: torch.Tensor
    d: int

    def gram(self) -> torch.Tensor:
        """(N, N) inner products."""
        return self.rows @ self.rows.T

    @property
    def factors(self) -> tuple[torch.Tensor]:
        """(N, d^2), the rows themselves."""
        return (self.rows,)

    def gaps(self, W: torch.Tensor) -> torch.Tensor:
        """(N,) <row, W>: the logit gaps, for W without a part in F."""
        return self.rows @ W.reshape(-1)

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """(d, d) weighted sum of the rows."""
        return (self.rows.T @ weights).reshape(self.d, self.d)

    def norms(self) -> torch.Tensor:
        """(N,) norms of the rows."""
        return vector_norm(self.rows, dim=1)

    def thin(self) -> tuple[ProjectedRows, None]:
        """Themselves: d is small here."""
        return self, None

    def soft_part(self, W: torch.Tensor) -> torch.Tensor:
        """(d, d) projection of W on F, in which the equalities are settled."""
        return (self.basis @ (self.basis.T @ W.reshape(-1))).reshape(self.d, self.d)


def project_rows(raw: torch.Tensor, ties: torch.Tensor):
    """Rows less their part in the span F of `ties`, a basis of F, and which rows lie in F.

    Parameters
    ----------
    raw : (N, d^2) float64
    ties : (N0, d^2) float64
        N0 may be 0.

    Returns
    -------
    rows : (N, d^2) float64
    basis : (d^2, r) float64
    lost : (N,) bool
        Rows of which nothing but rounding is left.

    Examples
    --------
    >>> raw, tie = torch.eye(2).double(), torch.tensor([[1.0, 1.0]]).double()
    >>> rows, basis, lost = project_rows(raw, tie)
    >>> [round(x, 3) for x in rows[0].tolist()], lost.tolist()
    ([0.5, -0.5], [False, False])
    """
    left, sizes, _ = torch.linalg.svd(ties.T, full_matrices=False)
    basis = left[:, sizes > TIED * sizes.max()] if len(ties) else raw.new_zeros(raw.shape[1], 0)
    rows = raw - (raw @ basis) @ basis.T
    rows = rows - (rows @ basis) @ basis.T  # twice, so that rounding in F is gone
    return rows, basis, vector_norm(rows, dim=1) <= TIED * vector_norm(raw, dim=1)


def solve_projected(rows: ProjectedRows, problem: str) -> SVMSolution:
    """The smallest W with <row, W> >= 1 on all rows and no part in F, certified.

    Raises
    ------
    InfeasibleError, SolverError

    Notes
    -----
    Source: ours [c]. Equalities cost nothing: W is in the complement of F, and there
    <z, W> = <Pz, W> with P the projection along F. The certificate of the rows Pz is that of
    the problem with equalities: weak duality with free multipliers on F.
    """
    return solve_rows(rows, problem)
