"""Bounds on the rank of every solution of the nuclear-norm W-SVM."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ..._validate import short
from ...data import Dataset
from ...errors import DtypeError
from ...geometry.active_set import EPS
from ...geometry.solution import SVMSolution
from ...geometry.tokens import GapRows, gap_rows
from ..norms.geometry import solve_norm_svm
from ..norms.nuclear import guess, polish_nuclear
from .bounds import ROUNDING, RankBounds


class _Parts(NamedTuple):
    """A primal point W and a dual one G with |G| = 1, and how far they are from optimal."""

    rows: GapRows
    weights: torch.Tensor
    total: torch.Tensor
    dual: torch.Tensor
    active: torch.Tensor
    slack: torch.Tensor
    size: float  # |W|_nuc
    gap: float  # |W|_nuc - 1'a, at least rounding


def nuclear_rank(data: Dataset, opt=None, *, solution: SVMSolution | None = None) -> RankBounds:
    """Bounds on the rank of every solution of the W-SVM in the nuclear norm.

    Parameters
    ----------
    data : Dataset
        With queries of its own or without.
    opt : (n,) integers, optional
    solution : SVMSolution, optional
        From `solve_norm_svm(data, "nuclear")`, if it is at hand; it is polished first.

    Returns
    -------
    RankBounds
        Where the data leave the solution or its dual free, the errors are infinite and the
        bounds apart.

    Raises
    ------
    DtypeError
        For a solution in another norm.
    InfeasibleError, SolverError, MissingExtraError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: ours [c]; the argument is in the chapter on ranks. Every solution lies in the top
    singular space of G = sum_k a_k z_k, for every dual solution a, so its rank is at most the
    multiplicity of G's largest singular value. Both sides are proved from the computed pair
    alone: from its duality gap e follow bounds of order sqrt(e) on the distance to any true
    solution and to any true G.

    Examples
    --------
    >>> from attnbias.beyond.ranks.data import make_free_queries
    >>> from attnbias.beyond.ranks.geometry import nuclear_rank
    >>> [nuclear_rank(make_free_queries(5, 5, d, opt=True)).rank for d in (4, 20)]
    [3, 2]
    """
    if solution is not None and getattr(solution, "norm_name", None) != "nuclear":
        raise DtypeError(
            "solution", expected="the SVMSolution of the nuclear norm", got=short(solution),
            remedy='pass solve_norm_svm(data, "nuclear"), or leave it out',
        )  # fmt: skip
    rows = gap_rows(data, opt)
    given = solve_norm_svm(data, "nuclear", opt) if solution is None else solution
    return nuclear_bounds(rows, polish_nuclear(rows, given))


def nuclear_bounds(rows: GapRows, solution: SVMSolution) -> RankBounds:
    """What a computed pair proves about the rank of every solution, whoever found it.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.norms.geometry import solve_norm_svm
    >>> from attnbias.geometry.tokens import gap_rows
    >>> data = make_separation_pair()
    >>> found = nuclear_bounds(gap_rows(data), solve_norm_svm(data, "nuclear"))
    >>> found.lower, found.upper
    (1, 1)
    """
    rank, active = guess(rows, solution)
    parts = _parts(rows, solution, active)
    values = torch.linalg.svdvals(parts.weights)
    top = torch.linalg.svdvals(parts.total)
    error = min(_primal_error(parts, p) for p in {rank, *_multiplicities(top)})
    dual_error = _dual_error(parts, rank)
    sequences = len(rows.sequence[active].unique())
    n, d = rows.queries.shape
    below = max(int((top + dual_error >= 1).sum()), 1)
    return RankBounds(
        "nuclear", max(int((values > error).sum()), 1), min(below, n, d), values, error, top,
        dual_error, len(active), sequences, solution.duality_gap,
    )  # fmt: skip


def _parts(rows: GapRows, solution: SVMSolution, active: torch.Tensor) -> _Parts:
    total, weights = rows.combine(solution.dual), solution.weights
    # a product of length d is off by at most about d EPS times the sizes multiplied
    unit = 2 * weights.shape[0] * EPS
    scale = float(torch.linalg.svdvals(total)[0])
    scale += unit * float((solution.dual * rows.norms()).sum())
    dual, margins = solution.dual / scale, rows.gaps(weights)
    least = min(float(margins.min()), 1.0) - unit * float(rows.norms().max() * weights.norm())
    size = float(torch.linalg.svdvals(weights).sum()) * (1 + unit)
    gap = max(size / least - float(dual.sum()) * (1 - unit), 0.0) if least > 0 else math.inf
    return _Parts(rows, weights, total / scale, dual, active, margins - 1, size, gap)


def _multiplicities(top: torch.Tensor) -> list[int]:
    """Where the singular values of G near 1 may be cut: any cut is right, the best is kept."""
    near = int((top > 0.5).sum())
    return list(range(1, near + 1))


def _primal_error(parts: _Parts, p: int) -> float:
    """Bound on |W - W*| for every solution W*, from the p largest singular values of G."""
    U, s, Vh = torch.linalg.svd(parts.total)
    below = float(s[p]) if p < len(s) else 0.0
    room, e = 1 - below, parts.gap
    if not (room > 0 and e < math.inf):
        return math.inf
    beyond = e / room if p < len(s) else 0.0
    within = e / (2 * float(s[p - 1]))
    outside = parts.size**0.5 * 2 * (within**0.5 + beyond**0.5) + within + beyond
    S = parts.active
    left = parts.rows.differences[S] @ U[:, :p]
    right = (parts.rows.queries @ Vh[:p].T)[parts.rows.sequence[S]]
    least = _least(_symmetric(left, right))
    if not least > 0:
        return math.inf
    off = e / parts.dual[S] + 2 * outside * parts.rows.norms()[S]
    return float(off.norm()) / least + 2 * outside


def _symmetric(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(m, p(p+1)/2) the map M -> left_k' M right_k on symmetric M, in an orthonormal basis."""
    p = left.shape[1]
    both = left[:, :, None] * right[:, None, :]
    both = (both + both.mT) / 2
    i, j = torch.triu_indices(p, p)
    return both[:, i, j] * torch.where(i == j, 1.0, 2**0.5).to(both.dtype)


def _dual_error(parts: _Parts, r: int) -> float:
    """Bound on |G - G*| for every dual solution, from the r largest singular values of W."""
    U, s, Vh = torch.linalg.svd(parts.weights)
    e, S = parts.gap, parts.active
    left, right = parts.rows.differences[S], parts.rows.queries[parts.rows.sequence[S]]
    one = torch.einsum("ki,kj->ijk", left, right @ Vh[:r].T).reshape(-1, len(S))
    two = torch.einsum("ki,kj->ijk", right, left @ U[:, :r]).reshape(-1, len(S))
    least = _least(torch.cat([one, two]))
    idle = torch.ones(len(parts.dual), dtype=torch.bool).index_fill_(0, S, False)
    theta = float(parts.slack[idle].min()) if bool(idle.any()) else math.inf
    if not (least > 0 and theta > 0):
        return math.inf
    z = float(parts.rows.norms().max())
    spread = float(torch.linalg.eigvalsh(parts.rows.gram()[S][:, S])[-1]) ** 0.5
    change = (4 * (e / float(s[r - 1])) ** 0.5 + 8**0.5 * z * e / theta) / least
    return spread * change + 2 * z * e / theta + ROUNDING


def _least(matrix: torch.Tensor) -> float:
    """Least singular value of a map into a space at least as large, less its rounding; else 0."""
    if matrix.shape[0] < matrix.shape[1]:
        return 0.0
    values = torch.linalg.svdvals(matrix)
    return float(values[-1]) - ROUNDING * float(values[0])
