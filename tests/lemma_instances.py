"""Instances for the lemmas of a fixed decoder: those of closed form, and random ones."""

import dataclasses
import math

import numpy as np
import torch
from hypothesis import assume
from hypothesis import strategies as st
from instances import dyadic_data, feasible, seeds

from attnbias import NGD, Dataset, train
from attnbias.geometry.tokens import gap_rows

sizes = {"n": st.integers(1, 3), "T": st.integers(2, 4), "seed": seeds}
positions = st.sampled_from([-1, 0, 1])  # of the optimal token; -1 is any


def orthonormal(n: int = 2, score_gaps=None) -> Dataset:
    """n sequences of two tokens, all tokens orthonormal; Xi = sqrt(2/n), B = 1."""
    X = torch.eye(2 * n, dtype=torch.float64).reshape(n, 2, 2 * n)
    gaps = [1.0] * n if score_gaps is None else score_gaps
    return Dataset(X, [1] * n, sum(gap * x[0] for gap, x in zip(gaps, X, strict=True)))


def opposed_tokens() -> Dataset:
    """One sequence whose wrong tokens push each other: part (ii) of Lemma 3 fails."""
    return Dataset([[[1.0, 0.0], [0.5, 1.0], [0.5, -1.0]]], [1], u=[2.0, 0.0])


def unequal_scores() -> tuple[Dataset, torch.Tensor]:
    """One sequence without Assumption 2, and a W at which the gradient leads away from W_mm."""
    data = Dataset([[[-1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]], [1], u=[-2.0, 1.0])
    return data, torch.tensor([[-2.0, -3.0], [-3.0, -2.0]], dtype=torch.float64)


def opposite_pair() -> Dataset:
    """x_2 = -x_1, where Lemma 4 and the right side of (G) are attained: Xi = 2 B^2."""
    return Dataset([[[1.0, 0.0], [-1.0, 0.0]]], [1], u=[0.5, 0.0])


def coupled(n: int, T: int, mu: float, seed: int, position: int, score_gap: float = 0.1) -> Dataset:
    """Unit tokens with |<x, x'>| = mu for all pairs with a non-optimal token, signs at random.

    Products of optimal tokens are drawn from 0, mu, 3 mu and 0.9, with either sign.
    """
    generator = np.random.default_rng(seed)
    opt = generator.integers(T, size=n) if position < 0 else np.full(n, position)
    is_opt = (np.arange(T)[None] == opt[:, None]).ravel()
    G = mu * generator.choice([-1.0, 1.0], (n * T, n * T))
    pool = [0.0, mu, -mu, 3 * mu, -3 * mu, 0.9, -0.9]
    pairs = generator.choice(pool, (n, n)) if n < 3 else generator.choice(pool[:5], (n, n))
    G[np.ix_(is_opt, is_opt)] = pairs
    G = np.tril(G, -1)
    factor = np.linalg.cholesky(G + G.T + np.eye(n * T))
    X = torch.from_numpy(factor.reshape(n, T, n * T).copy())
    y = 1.0 - 2.0 * (np.arange(n) % 2)
    target = np.where(is_opt, score_gap, 0.0) * np.repeat(y, T)
    return Dataset(X, y.tolist(), np.linalg.solve(factor, target).tolist())


def start_with_gaps(data: Dataset, gaps) -> torch.Tensor:
    """The smallest W_0 with these logit gaps, for independent rows."""
    rows = gap_rows(data)
    weights = torch.linalg.solve(rows.gram(), torch.as_tensor(gaps, dtype=torch.float64))
    return rows.combine(weights)


def equal_score_data(n: int, T: int, seed: int) -> tuple[Dataset, object]:
    """Random data with Assumption 2 and independent rows, and their W_mm."""
    data = dyadic_data(n, T, n * (T - 1) + 3, seed=seed, equal_scores=True)
    K = gap_rows(data).gram()
    values = torch.linalg.eigvalsh(K)
    assume(bool(values[0] > 1e-3 * values[-1]))
    return data, feasible(data)


def spread_gaps(data: Dataset, size: float, seed: int) -> torch.Tensor:
    """Random gaps between -1 and 3 size, a different level for each sequence."""
    generator = torch.Generator().manual_seed(seed)
    rows = gap_rows(data)
    level = 3 * size * torch.rand(data.n, generator=generator, dtype=torch.float64)
    gaps = level[rows.sequence]
    gaps += 0.3 * size * torch.rand(len(gaps), generator=generator, dtype=torch.float64)
    return gaps - 1


def at(data: Dataset, W, svm=None):
    """The record of one iterate."""
    return train(data, NGD(0.1), 0, W0=W, svm=svm)


def tampered(trace, **changes):
    """The trace with some series multiplied by a number, or replaced by an array; for false gaps
    the W that tells is dropped."""
    new = {
        name: change if isinstance(change, np.ndarray) else change * getattr(trace, name)
        for name, change in changes.items()
    }
    if "gaps" in new:
        new["W"] = torch.zeros(0, 0, dtype=torch.float64)
    return dataclasses.replace(trace, **new)


def failing(table) -> list[str]:
    """Keys of the checks that apply and do not hold."""
    return [check.key for check in table if check.verdict == "fails"]


def verdicts(table) -> list[str]:
    """Verdicts in order."""
    return [check.verdict for check in table]


def assert_refused(table, words: str) -> None:
    """All checks are not applicable, and say why."""
    for check in table:
        assert check.verdict == "not applicable", str(check)
        assert not check.holds
        assert words in check.reason, check.reason
        assert math.isnan(check.value)
