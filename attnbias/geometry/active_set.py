"""The dual of a hard-margin SVM, solved by active sets on Cholesky factors of a Gram matrix.

Minimise 1/2 a'Ha - 1'a over a >= 0, where H is the Gram matrix of the constraint rows.
Two methods, one after the other:

* block principal pivoting, which exchanges all wrong indices at once. It starts with every
  constraint active, needs 1 to 8 factorisations where H is regular, and has no guarantee;
* a monotone active set in the manner of Lawson and Hanson, for singular H and for whatever
  the first gives up on. The objective falls at each of its vertices, so it ends. A row
  that depends on the active ones opens a ray on which the objective is linear: either an
  active weight drops to zero along it, or the ray is Gordan's certificate of infeasibility.

Source: ours [c]. Portugal, Judice and Vicente (1994) for the first, Lawson and Hanson (1974,
chapter 23) for the second, with rays added as in the dual method of Goldfarb and Idnani (1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .certificate import certificate

EPS = torch.finfo(torch.float64).eps
# Squared distance of a unit row from the span of others under which it counts as dependent.
# Entries of H are right to a few EPS, so pivots below 1e-13 may be nothing but rounding.
DEPENDENT = 1e-13
# The same for a single joining row, relative to the squared sum of its coefficients.
RAY_DEPENDENT = 1e-14
# The same for rows that join many at a time: stricter, as they may join one by one later.
BLOCK_DEPENDENT = 1e-10
# Share of the violated rows that join together: fewer are wrong guesses, more join sooner.
JOINING = 0.25
# Weights that cancel to rounding and leave a gap above this prove infeasibility instead.
UNPROVED = 0.5
# Exchanges in a row without fewer wrong indices after which block pivoting gives up.
PATIENCE = 3


@dataclass(frozen=True, eq=False)
class DualSolution:
    """What the solver found for one Gram matrix.

    Attributes
    ----------
    status : {"optimal", "infeasible", "stalled"}
        "stalled": rounding stopped the descent; the certificate tells how far it got.
    dual : (N',) float64
        The weights; for "infeasible" Gordan's certificate: a >= 0, 1'a = 1, Ha = 0.
    active : (m,) long
        The indices of the last factor, whose rows are linearly independent.
    factor : (m, m) float64
        Cholesky factor of the scaled Gram matrix of those rows.
    shrink : (N',) float64
        Powers of two by which rows were multiplied to norms near 1.
    method : str
    iterations, factorisations : int
    """

    status: str
    dual: torch.Tensor
    active: torch.Tensor
    factor: torch.Tensor
    shrink: torch.Tensor
    method: str
    iterations: int
    factorisations: int

    def correct(self, residual: torch.Tensor) -> torch.Tensor:
        """(N',) change of the weights that adds `residual` to the active margins."""
        shrink = self.shrink[self.active]
        right = (residual[self.active] * shrink)[:, None]
        change = _solve(self.factor, right)[:, 0] * shrink
        return torch.zeros_like(residual).index_put_((self.active,), change)


def solve_dual(gram: torch.Tensor, *, pivoting: bool = True) -> DualSolution:
    """Minimise 1/2 a'Ha - 1'a over a >= 0, or prove it unbounded.

    Parameters
    ----------
    gram : (N', N') float64, symmetric positive semidefinite, CPU or CUDA
        May be singular.
    pivoting : bool
        False leaves block pivoting out.

    Returns
    -------
    DualSolution
        "infeasible" is decided on H, which can't tell a margin below about 1e-7 of the
        row norms from none.

    Notes
    -----
    Rows are scaled to norms near 1 by powers of two, which changes no digit, so rows of very
    different norms and data in any unit are alike.
    """
    diagonal = gram.diagonal()
    if not float(diagonal.min()) > 0:  # a zero row can't have a margin of 1
        return _zero_row(diagonal)
    shrink = torch.exp2(torch.log2(diagonal).mul(-0.5).round())
    H = gram * shrink
    H *= shrink[:, None]
    most = shrink.max()
    problem = _Problem(H, shrink / most)
    found = problem.block_pivoting() if pivoting else None
    # weights that vanish come from a factor whose last pivot was rounding: all of them may be 0
    if found is None or problem.vanishes(found[1]):
        found = problem.monotone()
    status, weights, active, factor, method = found
    dual = weights * shrink * most
    if status == "infeasible" or (
        problem.vanishes(weights) and certificate(gram, dual).gap > UNPROVED
    ):
        status = "infeasible"
        dual = weights * (shrink / most)
        dual = dual / dual.sum()
    return DualSolution(
        status, dual, active, factor, shrink, method, problem.iterations, problem.factorisations
    )


def _zero_row(diagonal: torch.Tensor) -> DualSolution:
    index = diagonal.argmin().reshape(1)
    dual = torch.zeros_like(diagonal).index_fill(0, index, 1.0)
    none, empty = index[:0], diagonal.new_zeros(0, 0)
    return DualSolution(
        "infeasible", dual, none, empty, torch.ones_like(diagonal), "zero row", 0, 0
    )


def _solve(L: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(m, k) solution of L L' x = right; `torch.cholesky_solve` would first copy L."""
    half = torch.linalg.solve_triangular(L, right, upper=False)
    return torch.linalg.solve_triangular(L.mT, half, upper=True)


class _Problem:
    """Minimise 1/2 a'Ha - b'a over a >= 0; H has a diagonal near 1 and 0 < b <= 1."""

    def __init__(self, H: torch.Tensor, b: torch.Tensor) -> None:
        self.H, self.b = H, b
        self.iterations = self.factorisations = 0

    def factor(self, index: torch.Tensor, shift: float = 0.0) -> tuple[torch.Tensor, float]:
        """Cholesky factor of H + shift I on `index`, and its least squared pivot or 0."""
        self.factorisations += 1
        block = self.H
        if len(index) < len(self.b):
            # the transpose in between spares strided reads; H is symmetric
            block = block.index_select(0, index).mT.index_select(0, index)
        if shift:
            block = block + torch.diag_embed(torch.full_like(index, shift, dtype=block.dtype))
        L, info = torch.linalg.cholesky_ex(block)
        if len(index) == 0:
            return L, math.inf
        return L, 0.0 if int(info) else float(L.diagonal().min()) ** 2

    def solve(self, L: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """(m,) solution of L L' x = right."""
        return _solve(L, right[:, None])[:, 0]

    def spread(self, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """(N',) vector with `values` at `index` and zero elsewhere."""
        return torch.zeros_like(self.b).index_put_((index,), values)

    def wrong(self, values: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        """(N',) bool: gradients or weights below zero by more than the rounding of Ha."""
        return values < -8 * EPS * torch.linalg.vector_norm(a, 1)  # at least 1/2, as b is 1 once

    def gradient(self, a: torch.Tensor) -> torch.Tensor:
        """(N',) Ha - b."""
        return torch.addmv(self.b, self.H, a, beta=-1)

    def vanishes(self, a: torch.Tensor) -> bool:
        """Whether a / 1'a at a vertex, where a'Ha = b'a, is Gordan's certificate to rounding."""
        return not float(a @ self.b) > DEPENDENT * float(a.sum()) ** 2

    # --- all at once ---------------------------------------------------------------------

    def block_pivoting(self):
        """The optimum by exchanging all wrong indices at once; None when it gives up."""
        free = torch.ones_like(self.b, dtype=torch.bool)
        fewest, patience = len(free) + 1, PATIENCE
        while patience:
            self.iterations += 1
            index = free.nonzero().flatten()
            L, pivot = self.factor(index)
            if not pivot > DEPENDENT:
                return None
            a = self.spread(index, self.solve(L, self.b.index_select(0, index)))
            gradient = self.gradient(a)
            wrong = self.wrong(a + gradient, a)  # one of the two is zero up to rounding
            count = int(wrong.sum())
            if count == 0:
                a -= self.spread(index, self.solve(L, gradient.index_select(0, index)))  # refined
                return "optimal", a.clamp_(min=0), index, L, "block pivoting"
            patience = PATIENCE if count < fewest else patience - 1
            fewest = min(count, fewest)
            free = free ^ wrong
        return None

    # --- downhill ------------------------------------------------------------------------

    def monotone(self):
        """The optimum, or Gordan's certificate, along vertices of falling objective."""
        index, L = self.independent(torch.arange(len(self.b), device=self.b.device), 0)
        now, best = self.b.new_zeros(len(index)), math.inf
        while True:
            self.iterations += 1
            index, L, now, value = self.descend(index, L, now)
            a = self.spread(index, now)
            gradient = self.gradient(a)
            gradient[index] = 0
            count = int(self.wrong(gradient, a).sum())
            if count == 0 or not value < best:
                status = "stalled" if count else "optimal"
                return status, a, index, L, "monotone active set"
            best, size = value, len(index)
            index, L = self.join(index, L, gradient, count)
            now = torch.cat([now, now.new_zeros(len(index) - size)])
            if len(index) == size:
                index, L, now, ray = self.join_one(index, L, now, gradient.argmin())
                if ray is not None:
                    return "infeasible", ray, index, L, "monotone active set"

    def independent(self, index: torch.Tensor, known: int):
        """Clearly independent rows among `index` with their factor, the first `known` kept."""
        L, pivot = self.factor(index)
        if pivot > BLOCK_DEPENDENT:
            return index, L
        L, pivot = self.factor(index, BLOCK_DEPENDENT)  # dependent rows have tiny pivots
        keep = L.diagonal().square() > 1e4 * BLOCK_DEPENDENT
        keep[:known] = True
        if pivot:
            L, pivot = self.factor(index[keep])
        if pivot > BLOCK_DEPENDENT:
            return index[keep], L
        return index[:known], self.factor(index[:known])[0]

    def descend(self, index: torch.Tensor, L: torch.Tensor, now: torch.Tensor):
        """From weights `now` >= 0 on `index` downhill to a vertex: all positive, all optimal."""
        while True:
            b = self.b.index_select(0, index)
            target = self.solve(L, b)
            if len(index) == 0 or float(target.min()) > 0:
                return index, L, target, -float(b @ target) / 2
            now = self.blocked(L, b, now, target)
            keep = (now > 0) | (target > 0)
            index, now = index[keep], now[keep]
            L, pivot = self.factor(index)
            if pivot == 0:
                a = self.spread(index, now)
                index, L = self.independent(index, 0)
                now = a[index]

    def blocked(self, L: torch.Tensor, b: torch.Tensor, now: torch.Tensor, target: torch.Tensor):
        """A lower point towards `target`, with at least one weight down at zero."""

        def value(x):
            return float((L.T @ x).square().sum() / 2 - b @ x)

        start, falling = value(now), target <= 0
        for share in (1.0, 0.5, 0.25):
            trial = (now + share * (target - now)).clamp_(min=0)
            if value(trial) < start and bool((falling & (trial == 0)).any()):
                return trial
        tiny = torch.finfo(now.dtype).tiny
        ratio = (now / (now - target).clamp_(min=tiny)).masked_fill_(~falling, torch.inf)
        step = ratio.min()
        trial = (now + step * (target - now)).clamp_(min=0)
        return trial.masked_fill_(ratio <= step, 0.0)

    def join(self, index: torch.Tensor, L: torch.Tensor, gradient: torch.Tensor, count: int):
        """Add a share of the violated rows, the worst first; none if they are dependent."""
        share = int(JOINING * count)
        if share < 2:
            return index, L
        worst = gradient.topk(share, largest=False).indices
        return self.independent(torch.cat([index, worst]), len(index))

    def join_one(self, index: torch.Tensor, L: torch.Tensor, now: torch.Tensor, new: torch.Tensor):
        """Add one violated row: itself, or for an active one, or as the end of a ray."""
        row = self.H[new]
        column = row[index]
        v = self.solve(L, column)
        longer = torch.cat([index, new[None]])
        distance = float(row[new] - column @ v)
        if distance > RAY_DEPENDENT * (1 + float(v.abs().sum())) ** 2:
            return longer, self.factor(longer)[0], torch.cat([now, now.new_zeros(1)]), None
        falling = v > 1e-10 * v.abs().max()
        if not bool(falling.any()):
            ray = self.spread(longer, torch.cat([-v, v.new_ones(1)])).clamp_(min=0)
            return index, L, now, ray
        ratio = (now / v).masked_fill_(~falling, torch.inf)
        step = ratio.min()
        keep = torch.cat([ratio > step, falling.new_ones(1)])
        now = torch.cat([(now - step * v).clamp_(min=0), step[None]])
        return longer[keep], self.factor(longer[keep])[0], now[keep], None
