"""Proved bounds on the rank of every solution of the W-SVM, in the Frobenius and nuclear norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ...data import Dataset
from ...geometry.active_set import EPS
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import GapRows, gap_rows
from ..common.arguments import Typed
from ..norms.geometry import solve_norm_svm
from ..norms.nuclear import guess, outer, polish_nuclear, require_nuclear

# Entries of products here are sums of at most a few hundred terms: rounding is below
# this times the sizes multiplied.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class RankBounds(Typed):
    """What is proved about the rank of every solution of a W-SVM.

    Attributes
    ----------
    norm : {"frobenius", "nuclear"}
    lower, upper : int
    values : (d,) float64
        Singular values of the computed solution, descending.
    error : float
        Bound on its Frobenius distance from any true solution; `lower` counts the values above.
    dual_values : (d,) float64
        Singular values of sum_k a_k z_k for the computed dual weights; over the largest.
    dual_error : float
        Bound on how far they are from those of any true dual solution; infinite if unknown.
    rows : int
        Constraints counted as active.
    sequences : int
        Sequences with such a row.
    duality_gap : float
        Relative, of the computed solution.

    Examples
    --------
    >>> from attnbias.beyond.ranks.data import make_free_queries
    >>> bounds = frobenius_rank(make_free_queries(5, 5, 4, opt=True))
    >>> bounds.norm, bounds.lower, bounds.upper
    ('frobenius', 4, 4)
    """

    norm: str
    lower: int
    upper: int
    values: torch.Tensor
    error: float
    dual_values: torch.Tensor
    dual_error: float
    rows: int
    sequences: int
    duality_gap: float

    @property
    def decided(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def rank(self) -> int | None:
        """The rank, or None while it is undecided."""
        return self.upper if self.decided else None

    def __repr__(self) -> str:
        rank = f"rank {self.rank}" if self.decided else f"rank {self.lower} to {self.upper}"
        return (
            f"RankBounds({self.norm}: {rank}; {self.rows} active constraints of "
            f"{self.sequences} sequences, error below {self.error:.1e})"
        )


def frobenius_rank(data: Dataset, opt=None) -> RankBounds:
    """Bounds on the rank of W_mm that meet where the active set is proved.

    Parameters
    ----------
    data : Dataset
        With queries of its own or without.
    opt : (n,) integers, optional

    Returns
    -------
    RankBounds

    Raises
    ------
    InfeasibleError, SolverError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: ours [c]. W_mm = sum_i (sum_tau a_{i tau} (x_opt - x_tau)) q_i', so its rank is at most
    the number of sequences with a positive a, and at most d. Let S hold the positive computed
    weights, K its Gram matrix, r = 1 - K a, l the least eigenvalue of K. If a > |r|/l and no
    other margin falls below 1 within |r|/sqrt(l), then S is the true active set, and the computed
    matrix is off by sqrt(r' K^-1 r) <= |r|/sqrt(l) at most. Where this fails the error is
    sqrt(upper^2 - lower^2) of the bounds on the norm, and the rank is bounded by n and d.

    Examples
    --------
    >>> from attnbias.beyond.ranks.data import make_free_queries
    >>> from attnbias.beyond.ranks.geometry import frobenius_rank
    >>> [frobenius_rank(make_free_queries(5, 5, d, opt=True)).rank for d in (4, 20)]
    [4, 5]
    """
    svm = solve_w_svm(data, opt)
    weights, error, proved = _proved_support(svm)
    values = torch.linalg.svdvals(weights)
    sequences = len(svm.rows.sequence[svm.support].unique())
    n, d = data.n, data.d
    return RankBounds(
        "frobenius",
        int((values > error).sum()),
        min(sequences, d) if proved else min(n, d),
        values,
        error,
        values / values[0],
        error / float(values[0]),
        len(svm.support),
        sequences,
        svm.duality_gap,
    )


def _proved_support(svm: SVMSolution) -> tuple[torch.Tensor, float, bool]:
    """The sum of the support's rows, a bound on its distance from W_mm, and whether S is proved."""
    rows, S = svm.rows, svm.support
    a = torch.zeros_like(svm.dual).index_put_((S,), svm.dual[S])
    weights, sizes = rows.combine(a), rows.norms()
    margins = rows.gaps(weights)
    noise = ROUNDING * float(sizes.max() * (a * sizes).sum())
    residual = float((1 - margins[S]).norm()) + noise * len(S) ** 0.5
    spectrum = torch.linalg.eigvalsh(rows.gram()[S][:, S])
    least = float(spectrum[0]) - len(S) * EPS * float(spectrum[-1])
    if least > 0:
        error = residual / least**0.5
        idle = torch.ones_like(a, dtype=torch.bool).index_fill_(0, S, False)
        room = margins - 1 - sizes * error - noise
        if float(a[S].min()) > residual / least and bool((room[idle] > 0).all()):
            return weights, error, True
    upper, lower = svm.bounds
    return svm.weights, (max(upper**2 - lower**2, 0.0) + ROUNDING * upper**2) ** 0.5, False


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
    Source: ours [c]; the argument is in the replications. Every solution lies in the top
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
    rows = gap_rows(data, opt)
    given = solve_norm_svm(data, "nuclear", opt) if solution is None else solution
    require_nuclear(given, rows)
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
    require_nuclear(solution, rows)
    rank, active = guess(rows, solution)
    parts = _parts(rows, solution, active)
    values = torch.linalg.svdvals(parts.weights)
    top = torch.linalg.svdvals(parts.total)
    # singular values of G near 1 may be cut anywhere: any cut is right, the best is kept
    cuts = {rank, *range(1, int((top > 0.5).sum()) + 1)}
    error = min(_primal_error(parts, p) for p in cuts)
    dual_error = _dual_error(parts, rank)
    sequences = len(rows.sequence[active].unique())
    n, d = rows.queries.shape
    below = max(int((top + dual_error >= 1).sum()), 1)
    return RankBounds(
        "nuclear",
        max(int((values > error).sum()), 1),
        min(below, n, d),
        values,
        error,
        top,
        dual_error,
        len(active),
        sequences,
        solution.duality_gap,
    )


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
    least = _least(torch.cat([outer(left, right @ Vh[:r].T), outer(right, left @ U[:, :r])]))
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
