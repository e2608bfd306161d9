"""Bounds on the rank of an SVM's solution, and the one for the Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...data import Dataset
from ...geometry.active_set import EPS
from ...geometry.solution import SVMSolution
from ...geometry.svm import solve_w_svm

# Entries of products here are sums of at most a few hundred terms: rounding is below
# this times the sizes multiplied.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class RankBounds:
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

    def numerical_rank(self, tol: float) -> int:
        """Singular values above a tolerance: what is often called the rank."""
        return int((self.values > tol).sum())

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
    >>> from attnbias.beyond.ranks.bounds import frobenius_rank
    >>> [frobenius_rank(make_free_queries(5, 5, d, opt=True)).rank for d in (4, 20)]
    [4, 5]
    """
    svm = solve_w_svm(data, opt)
    weights, error, proved = _proved_support(svm)
    values = torch.linalg.svdvals(weights)
    sequences = len(svm.rows.sequence[svm.support].unique())
    n, d = svm.rows.queries.shape
    return RankBounds(
        "frobenius", int((values > error).sum()), min(sequences, d) if proved else min(n, d),
        values, error, values / values[0], error / float(values[0]), len(svm.support), sequences,
        svm.duality_gap,
    )  # fmt: skip


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
