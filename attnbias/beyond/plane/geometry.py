"""How fast W = K Q' turns to the nuclear-norm SVM: the modes of (K, Q) about its factors."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch

from ...data import Dataset
from ...geometry.solution import SVMSolution
from ...geometry.tokens import GapRows, gap_rows
from ..common.arguments import Typed
from ..norms.nuclear import require_nuclear

RANK = 1e-5  # of the largest: singular values, and dual weights, that an interior point calls 0


@dataclass(frozen=True, eq=False)
class FactorModes(Typed):
    """Growth of small parts of (K, Q) about the factors of the nuclear-norm solution.

    With c the size of (K, Q), a mode of growth mu goes like c^mu, and its share like c^(mu - 1).

    Attributes
    ----------
    rank : int
        Of the solution.
    supporting : int
        Constraints with a dual weight.
    inside : (M,) float64 tensor
        Growths of modes that move W to first order, largest first, rotations left out.
    outside : float
        Largest growth among modes that move W to second order only, those in columns of K and
        Q that the solution does not use; -inf if it has full rank.

    Examples
    --------
    >>> modes = FactorModes(rank=2, supporting=3, inside=torch.tensor([0.9]), outside=-torch.inf)
    >>> modes.rank, modes.supporting
    (2, 3)
    """

    rank: int
    supporting: int
    inside: torch.Tensor
    outside: float

    @property
    def exponent(self) -> float:
        """p such that 1 - cosine is expected to fall like c^-p, c^2 the norm of K Q'.

        The least of 2 (1 - mu) inside, 4 (1 - mu) outside, and 2, which steps of fixed length
        leave.
        """
        inside = 2 * (1 - float(self.inside[0])) if len(self.inside) else math.inf
        return min(inside, 4 * (1 - self.outside), 2.0)


def factor_modes(data: Dataset, solution: SVMSolution, opt=None) -> FactorModes:
    """Modes of (K, Q) about the factors of a solution of the nuclear-norm W-SVM.

    Parameters
    ----------
    data : Dataset
    solution : SVMSolution
        `solve_norm_svm(data, "nuclear", opt)`.
    opt : (n,) integers, optional
        The tokens it selects.

    Returns
    -------
    FactorModes

    Raises
    ------
    DtypeError
        For a solution in another norm or of other data; and the errors of `gap_rows`.

    Notes
    -----
    Source: ours [c] for the linear algebra, and a heuristic for the dynamics. Let
    G = sum_k a_k z_k / |.|_spectral be the certificate. The flow moves K along G Q and Q along
    G' K, with weights that hold all supporting margins level, so a small part of (K, Q) in the
    tangent space of these margins grows by the operator (A, B) -> (G B, G' A) projected on it.
    Skew rotations of the columns, which leave K Q' as it is, are left out. Columns that the
    solution does not use decouple, with the singular values of G as growths.

    Examples
    --------
    >>> from attnbias.beyond.norms.geometry import solve_norm_svm
    >>> from attnbias.beyond.plane.data import make_plane_pair
    >>> from attnbias.beyond.plane.geometry import factor_modes
    >>> data = make_plane_pair(5)
    >>> modes = factor_modes(data, solve_norm_svm(data, "nuclear"))
    >>> modes.rank, modes.supporting, round(modes.exponent, 2)
    (2, 3, 1.64)
    """
    rows = gap_rows(data, opt)
    require_nuclear(solution, rows)
    dual = solution.dual.masked_fill(solution.dual < RANK * solution.dual.max(), 0.0)
    G = rows.combine(dual)
    growths = torch.linalg.svdvals(G)
    G, growths = G / growths[0], growths / growths[0]
    U, s, Vt = torch.linalg.svd(solution.weights)
    rank = int((s > RANK * s[0]).sum())
    K, Q = U[:, :rank] * s[:rank].sqrt(), Vt[:rank].T * s[:rank].sqrt()
    fixed = _constraints(rows, dual, K, Q) + _rotations(K, Q)
    free = _beyond(torch.stack(fixed))
    inside = torch.linalg.eigvalsh(free.T @ _apply(G, free, rank)).flip(0)
    outside = float(growths[rank]) if rank < len(s) else -math.inf
    return FactorModes(rank, int((dual > 0).sum()), inside, outside)


def _constraints(rows: GapRows, dual, K, Q) -> list[torch.Tensor]:
    """Gradients of <z_k, K Q'> in (K, Q), over the support."""
    support = dual > 0
    left, right = rows.differences[support], rows.queries[rows.sequence[support]]
    pairs = zip(left, right, strict=True)
    return [_flat(torch.outer(x, q @ Q), torch.outer(q, x @ K)) for x, q in pairs]


def _rotations(K, Q) -> list[torch.Tensor]:
    """Moves (K S, Q S) with S antisymmetric: they leave K Q' alone."""
    unit = torch.eye(K.shape[1], dtype=K.dtype)
    skew = (torch.outer(a, b) - torch.outer(b, a) for a, b in itertools.combinations(unit, 2))
    return [_flat(K @ S, Q @ S) for S in skew]


def _beyond(fixed: torch.Tensor) -> torch.Tensor:
    """Orthonormal columns that span what is orthogonal to given rows."""
    _, s, Vh = torch.linalg.svd(fixed, full_matrices=True)
    return Vh[int((s > 1e-9 * s[0]).sum()) :].T


def _apply(G: torch.Tensor, columns: torch.Tensor, rank: int) -> torch.Tensor:
    A, B = columns.T.reshape(-1, 2, len(G), rank).unbind(1)
    return torch.cat([(G @ B).flatten(1), (G.T @ A).flatten(1)], dim=1).T


def _flat(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.cat([A.flatten(), B.flatten()])
