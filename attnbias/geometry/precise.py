"""Margins <z_k, W> by matrix products in which nothing is rounded, where rounding matters.

A float64 product of rows and weights is off by about 1e-16 |z_k| |W|: more than the margin 1
where units of 1e5 and 1e-5 meet. So numbers are cut into slices of few enough bits that a sum of
products of two slices is an integer below 2^53 in its units, which BLAS computes without an error
in any order. Only their sum, held by two floats, is rounded.

Source: Ozaki, Ogita, Oishi and Rump (2012), "Error-free transformations of matrix multiplication";
the use is ours [c].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.linalg import vector_norm

from .active_set import EPS
from .tokens import GapRows, VectorRows

# Rounding of a margin, over its right side, from which on it is looked at more closely.
FINE = 1e-11
BITS = 53
# Bits that go to the number of terms and of slices, for up to 2e4 features.
SPENT = 12
MOST = 104  # bits that two floats hold of a sum

Pair = tuple[torch.Tensor, torch.Tensor]  # a number as the sum of two floats, the second small


class Margins(NamedTuple):
    """Margins (N',), bounds on the rounding left in each, and the norms of the rows."""

    values: torch.Tensor
    unsure: torch.Tensor
    sizes: torch.Tensor


def margins_of(rows, right: torch.Tensor, W: torch.Tensor, *, fine: bool = True) -> Margins:
    """The margins of W as it stands.

    Where no right side is above 0, or not `fine`, as float64 gives them.

    Examples
    --------
    >>> from attnbias.geometry.tokens import VectorRows
    >>> each, W = torch.arange(1), torch.tensor([1e16, 1.0, -1e16]).double()
    >>> rows = VectorRows(torch.ones(1, 3).double(), each, each, (3,))
    >>> margins, unsure, _ = margins_of(rows, torch.ones(1), W)
    >>> float(margins), float(unsure) < 1e-9
    (1.0, True)
    """
    terms = sum(W.shape) if isinstance(rows, GapRows) else W.numel()
    sizes = rows.norms()
    unsure = 4 * EPS * math.sqrt(terms) * float(vector_norm(W)) * sizes
    asked = right.cpu().numpy() > 0
    worst = float((unsure.cpu().numpy()[asked] / right.cpu().numpy()[asked]).max())
    if not (fine and FINE < worst < math.inf):
        return Margins(rows.gaps(W), unsure, sizes)
    depth = min(BITS + SPENT + math.log2(worst / EPS), MOST)
    high, low = _margins(rows, W, depth)
    return Margins(high + low, unsure * 2.0 ** (SPENT - depth) / EPS, sizes)


def _margins(rows: GapRows | VectorRows, W: torch.Tensor, depth: float) -> Pair:
    if isinstance(rows, VectorRows):
        return _contracted(_single(rows.rows), _single(W.reshape(-1)), depth, torch.matmul)
    across = lambda queries, W: queries @ W.T  # noqa: E731
    V = _contracted(_single(rows.queries), _single(W), depth, across)
    D, chosen = _single(rows.differences), (V[0][rows.sequence], V[1][rows.sequence])
    if rows.keys is not None:  # the differences in float64 are rounded
        keys, i = rows.keys.double(), rows.sequence
        D = _sum(keys[i, rows.opt[i]], -keys[i, rows.token])
    return _contracted(D, chosen, depth, lambda D, V: (D * V).sum(dim=1))


def _contracted(a: Pair, b: Pair, depth: float, product: Callable) -> Pair:
    """`product`, which sums over the last axis of both, right to 2^-depth of its largest term."""
    bits = (BITS - math.ceil(math.log2(a[0].shape[-1]))) // 2
    count = math.ceil(depth / bits)
    first, second = _slices(a, bits, count), _slices(b, bits, count)
    high = low = torch.zeros((), dtype=torch.float64, device=a[0].device)
    for k in range(count):
        for i in range(k + 1):
            high, error = _sum(high, product(first[i], second[k - i]))
            low = low + error
    return _sum(high, low)


def _slices(pair: Pair, bits: int, count: int) -> list[torch.Tensor]:
    """Multiples of 2^-bits, 2^-2bits, ... of a power of two above the last axis' largest entry."""
    high, low = pair
    _, exponent = torch.frexp(high.abs().amax(dim=-1, keepdim=True))
    unit = torch.ldexp(torch.ones_like(high[..., :1]), exponent - bits)
    found = []
    for _ in range(count):
        shift = 1.5 * 2.0 ** (BITS - 1) * unit  # what is added to it is rounded to the unit
        found.append((high + shift) - shift)
        high, low = _sum(high - found[-1], low)
        unit = unit * 2.0**-bits
    return found


def _single(values: torch.Tensor) -> Pair:
    return values, torch.zeros_like(values)


def _sum(a: torch.Tensor, b: torch.Tensor) -> Pair:
    """a + b, rounded, and what rounding took."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)
