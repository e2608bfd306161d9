"""Hard margins at the edge of infeasibility, decided in arithmetic of 50 digits.

A Gram matrix in float64 knows margins to the root of its rounding, 1e-8 of the row norms,
and the dual weights of a margin m are about 1/m^2, so large that float64 loses the small
ones beside them. Here the rows are taken as the numbers that they are, and their products,
the weights and the matrix of least norm are computed with 50 digits, without BLAS: what is
decided depends on the rows alone, on no processor.

The method is Wolfe's for the point of a polytope nearest to the origin. It goes through
vertices: independent active rows, all of whose weights are positive and whose margins are
exact. At each, the row with the worst margin joins. If a weight turns negative on the way to
the next vertex, its row drops out where it crosses zero. The norm of the smallest matrix
grows from vertex to vertex, so none comes twice and it ends; where the nearest point is the
origin itself, the norm passes all bounds and the weights are Gordan's certificate.

Source: ours [c], after Wolfe (1976), "Finding the nearest point in a polytope". Rows of right
side 0, which add directions to the polytope, are [c].
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import numpy as np
import torch

# Rows N' that are decided within about a minute; the time grows with N'^3.
LARGEST = 400

_DIGITS = Context(prec=50, Emin=-(10**9), Emax=10**9)
# Margin over row norm at which rows count as cancelling: float64's rounding, and no row of
# 53 bits means less. Weights are then below 1e30, and 20 digits of their margins are right.
_CANCELS = Decimal("1e-15")
# Margins short of the right side by less than this, in units of |z| |W|, are met.
_MET = Decimal("1e-28")
# Squared distance from the others' span, over the square of its norm, at which a row depends on
# them; one that is taken as this far off gives the weights under which they all cancel.
_DEPENDS = Decimal("1e-40")


def decide(
    rows, right: torch.Tensor, start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The smallest W with <z_k, W> >= b_k, or weights under which the rows cancel.

    Parameters
    ----------
    rows : GapRows or VectorRows
        Zero ones have right side 0.
    right : (N',) float64
        b >= 0, not all 0.
    start : (N',) float64
        Weights >= 0 to begin at: good ones save time.

    Returns
    -------
    dual : (N',) float64
        a >= 0 with W = sum_k a_k z_k; where W is None, 1'a = 1, b'a > 0, and the sum is 0 to
        1e-15 of the rows' norms.
    W : tensor or None

    Examples
    --------
    >>> from attnbias.geometry.tokens import VectorRows
    >>> pair = torch.tensor([[1.0, 1e-9], [-1.0, 1e-9]], dtype=torch.float64)
    >>> ones = torch.ones(2, dtype=torch.float64)
    >>> each = torch.arange(2)
    >>> dual, u = decide(VectorRows(pair, each, each, (2,)), ones, start=ones)
    >>> [abs(round(x, 3)) for x in u.tolist()]
    [0.0, 1000000000.0]
    """
    if not (bool(start.isfinite().all()) and float(start @ right) > 0):
        start = right
    with localcontext(_DIGITS):
        factors = [_decimals(part) for part in rows.factors]
        H = np.prod([part @ part.T for part in factors], axis=0)
        zero = np.flatnonzero(H.diagonal() == 0)
        H[zero, zero] = Decimal(1)  # apart from all others, where a right side of 0 is met
        search = _Search(H, _decimals(right), _decimals(start))
        active, weights = search.run()
        if weights is None:
            shares = search.shares / sum(search.shares)
            return _spread(right, active, shares), None
        first = factors[0][active].T * weights
        W = first @ factors[1][active] if len(factors) > 1 else first.sum(axis=1)
        W = torch.from_numpy(W.astype(float)).reshape(rows.combine(right).shape)
        return _spread(right, active, weights), W


def _decimals(values: torch.Tensor) -> np.ndarray:
    flat = [+Decimal(x) for x in values.flatten().tolist()]
    return np.array(flat, dtype=object).reshape(tuple(values.shape))


def _spread(like: torch.Tensor, active: list[int], values: np.ndarray) -> torch.Tensor:
    dual = torch.zeros_like(like)
    dual[active] = torch.from_numpy(values.astype(float))
    return dual


class _Search:
    """A vertex: `active` rows with positive `shares` of the weights, b'shares = 1."""

    def __init__(self, H: np.ndarray, b: np.ndarray, start: np.ndarray) -> None:
        self.H, self.b = H, b
        self.sizes = np.sqrt(H.diagonal())
        self.active: list[int] = []
        self.L: list[np.ndarray] = []
        used = [(b[k] == 0, -start[k] * self.sizes[k], int(k)) for k in np.flatnonzero(start > 0)]
        for *_, k in sorted(used):  # heavy rows first, and one with b > 0
            if self.extend(k) > _DEPENDS:
                self.active.append(k)
            else:
                self.L.pop()
        self.shares = start[self.active] / (b[self.active] @ start[self.active])

    def run(self) -> tuple[list[int], np.ndarray | None]:
        """The active rows and their weights; None in place of the latter where rows cancel."""
        while True:
            weights = self.settle()
            norm = (self.b[self.active] @ weights).sqrt()  # of W, as W'W = a'Ha = b'a
            if _CANCELS * norm * (self.shares @ self.sizes[self.active]) >= 1:
                return self.active, None
            short = (self.b - self.H[:, self.active] @ weights) / self.sizes
            worst = int(short.argmax())
            if short[worst] <= _MET * norm:
                return self.active, weights
            self.active.append(worst)
            self.shares = np.append(self.shares, [Decimal(0)])

    def settle(self) -> np.ndarray:
        """On to the vertex of the active rows, without those whose weights get there negative."""
        while True:
            weights = self.solve()
            target = weights / (self.b[self.active] @ weights)
            falling = np.flatnonzero(target <= 0)
            if len(falling) == 0:
                self.shares = target
                return weights
            steps = self.shares[falling] / (self.shares[falling] - target[falling])
            moved = self.shares + steps.min() * (target - self.shares)
            keep = (target > 0) | (moved > 0)
            keep[falling[steps.argmin()]] = False
            self.L = self.L[: int(keep.argmin())]
            self.active = [k for k, kept in zip(self.active, keep, strict=True) if kept]
            self.shares = moved[keep]

    def solve(self) -> np.ndarray:
        """The weights under which all active margins equal b, by Cholesky's factor."""
        for k in self.active[len(self.L) :]:
            self.extend(k)
        left = self.forward(self.b[self.active])
        for i in reversed(range(len(left))):
            left[i] /= self.L[i][i]
            left[:i] -= left[i] * self.L[i][:i]
        return left

    def extend(self, new: int) -> Decimal:
        """One more row of the factor; the share of the new row off the span of the others."""
        row = self.forward(self.H[self.active[: len(self.L)], new])
        share = 1 - row @ row / self.H[new, new]
        self.L.append(np.append(row, (max(share, _DEPENDS) * self.H[new, new]).sqrt()))
        return share

    def forward(self, right: np.ndarray) -> np.ndarray:
        """The solution x of L x = right, by rows."""
        x = right.copy()
        for i in range(len(x)):
            x[i] = (x[i] - self.L[i][:i] @ x[:i]) / self.L[i][i]
        return x
