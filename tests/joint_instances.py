"""Tokens of joint training whose Gram matrix is prescribed: exactly at a limit, or past it."""

import math

import torch

from attnbias import Dataset
from book.claims.joint.instances import from_gram


def orthogonal() -> Dataset:
    """e_1, e_2 and e_3 / 3, e_4 / 3; the query of the first sequence is optimal."""
    sizes = torch.tensor([1.0, 1.0, 1 / 9, 1 / 9], dtype=torch.float64)
    return from_gram(torch.diag(sizes), [1, -1], [True, False])


def repelling(n: int, coupling: float) -> Dataset:
    """Products y_i y_j <x, x'> = -nu of all pairs: the worst for Lemmas 12 and 13 (1)."""
    sizes = torch.full((2 * n,), 0.9, dtype=torch.float64)
    sizes[n:] = 0.1
    sizes[1:n] = 1.0
    nu = coupling * 0.1 / n
    y = 1.0 - 2.0 * (torch.arange(n) % 2).double()
    both = torch.cat([y, y])
    gram = torch.diag(sizes + nu) - nu * torch.outer(both, both)
    return from_gram(gram, y, [True] * n)


def largest_eta(n: int, p: float, a: float = 1.0) -> float:
    """iv) of Condition 2, written out a second time."""
    limits = (0.04 / a**0.5, 0.0145 * (1 - p) / (a * n**0.5))
    return min(*limits, 0.08 / ((a * n) ** 0.5 * (2.1 + 1.3 * math.sqrt(a))))
