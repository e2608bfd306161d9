"""Data models of the tests' own, by name, so that other processes find them."""

import torch

from attnbias import Dataset, make_example1


def sometimes_infeasible(d: int = 20, seed: int = 0) -> Dataset:
    """Example 1; for odd seeds the first sequence twice, with opposite labels."""
    data = make_example1(4, 3, d, seed=seed)
    if seed % 2 == 0:
        return data
    X, y = data.X.clone(), data.y.clone()
    # T = 2: the one wants token a over b, the other b over a, for one query
    X, y = X[:2, :2], torch.tensor([1.0, -1.0], dtype=torch.float64)
    X[1] = X[0]
    return Dataset(X, y, data.u, name="infeasible")


def gaussian_tokens(n: int = 4, T: int = 5, d: int = 12, seed: int = 0) -> Dataset:
    """Scores without Assumption 2."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    u = torch.randn(d, generator=generator, dtype=torch.float64)
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    return Dataset(X, y, u, name="gaussian tokens")


def no_dataset(seed: int = 0):
    return seed


def step(step: int = 1, seed: int = 0) -> Dataset:
    """An argument with the name of a column."""
    return make_example1(3, 3, 10 + step, seed=seed)
