"""Tokens of joint training whose Gram matrix is prescribed: exactly at a limit, or past it."""

import math

import torch

from attnbias import Dataset


def from_gram(gram: torch.Tensor, y, query_is_opt) -> Dataset:
    """Tokens with given inner products, the optimal ones first: rows of a Cholesky factor."""
    tokens, opt = torch.linalg.cholesky(gram), torch.where(torch.as_tensor(query_is_opt), 0, 1)
    X = torch.stack(tokens.chunk(2), dim=1)
    X = torch.where((opt == 1)[:, None, None], X.flip(1), X)
    return Dataset(X, y, opt=opt)


def at_the_limit(n: int, *, seed: int = 0, coupling: float = 0.005, a: float = 1.0) -> Dataset:
    """Every item of Condition 2 on the tokens at its limit: products +-nu with random signs."""
    generator = torch.Generator().manual_seed(seed)

    def signs(*shape):
        return 2.0 * torch.randint(2, shape, generator=generator).double() - 1.0

    sizes = torch.ones(2 * n, dtype=torch.float64)
    sizes[signs(2 * n) > 0] = 0.9
    sizes[0] = sizes[n] = 1.0
    sizes[n:] /= 9
    nu = coupling * float(sizes[n:].min()) / n
    upper = nu * signs(2 * n, 2 * n).triu(1)
    return from_gram(a * (torch.diag(sizes) + upper + upper.T), signs(n), signs(n) > 0)


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
