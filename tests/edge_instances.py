"""Seeded data sets at the edge of infeasibility, by kind."""

import numpy as np
import torch

from attnbias import Dataset

MARGINS = (0.0, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)


def simplex_tokens(n, c, least=None):
    """One optimal token for all; queries and the other tokens of a sequence have products -c.

    At c = 1/(n - 1) both are the corners of a simplex, and one eigenvalue of their Gram matrix
    is 0: `least`, where rounding is to have left something. Its root is the tokens' margin.
    """
    size, weight = torch.linalg.eigh((1 + c) * torch.eye(n).double() - c)
    left = 1 - (n - 1) * c
    size[0] = (left if left > 1e-15 else 0) if least is None else least
    corners = weight * size.clamp(min=0).sqrt()
    X = torch.zeros(n, n + 2, 1 + n + n * n).double()
    X[:, 0, 1 : n + 1], X[:, 1, 0] = corners, 1
    for i in range(n):
        start = 1 + n + i * n
        X[i, 2:, start : start + n] = corners
    return Dataset(X, [1] * n, opt=[1] * n)


def simplex(rng):
    n = int(rng.integers(3, 9))
    offset = rng.choice([0.0, 1e-16, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, -1e-12, -1e-6])
    least = rng.choice([0, 1e-18, 1e-17, 2e-16]) if abs(offset) < 1e-12 else None
    return simplex_tokens(n, (1 - offset) / (n - 1), least)


def cancelling(rng, margin=None):
    """Random tokens whose rows have a convex sum of relative norm about `margin`."""
    n, T, d = int(rng.integers(1, 9)), int(rng.integers(3, 7)), int(rng.integers(4, 41))
    margin = rng.choice(MARGINS) if margin is None else margin
    X = rng.standard_normal((n, T, d))
    shift = rng.standard_normal((n, d))
    share = rng.dirichlet(np.ones(T - 1), n)
    # the mean of the other tokens is the optimal one, but for the shift
    X[:, 0] = np.einsum("nt,ntd->nd", share, X[:, 1:]) + margin * shift
    kind = rng.integers(3)
    if kind == 1:  # one sequence alone cancels, the others are as they come
        X[1:] = rng.standard_normal((n - 1, T, d))
    if kind == 2:  # all queries the same
        X = np.concatenate([np.broadcast_to(X[:1, :1], (n, 1, d)), X], axis=1)
        return Dataset(X, [1] * n, opt=[1] * n)
    return Dataset(X, [1] * n, opt=[0] * n)


def contradictory(rng):
    """A sequence and the same with another optimal token, nearly; zeros behind, others beside."""
    n, T, d = int(rng.integers(2, 9)), int(rng.integers(2, 6)), int(rng.integers(2, 21))
    X = np.zeros((n, T, 2 * d))
    X[..., :d] = rng.standard_normal((n, T, d))
    X[1] = X[0]
    X[1, :, : d + int(rng.integers(2))] += rng.choice(MARGINS) * rng.standard_normal((T, 1))
    opt = rng.integers(T, size=n)
    opt[1] = (opt[0] + 1) % T
    return Dataset(X, [1] * n, opt=opt)


def repeated(rng):
    """Sequences repeated, tokens repeated inside them, some opposite, perhaps zero."""
    data = cancelling(rng) if rng.integers(2) else simplex(rng)
    X = data.X.numpy()
    pick = rng.integers(len(X), size=min(8, 2 * len(X)))
    X = X[pick].copy()
    opt = data.opt.numpy()[pick]
    if rng.integers(2):
        X = np.concatenate([X, X[:, -1:]], axis=1)
    if rng.integers(2):  # a query and its differences reversed give the same rows
        X[-1] *= -1
    if rng.integers(4) == 0:
        X[0, -1] = X[0, opt[0]]  # a zero row
    return Dataset(X, [1] * len(X), opt=opt)


def ragged(rng):
    data = repeated(rng)
    least = int(data.opt.max()) + 1
    lengths = rng.integers(max(2, least), data.T + 1, size=data.n)
    return Dataset(data.X, data.y, opt=data.opt, lengths=lengths)


def scaled(rng):
    """Tokens of a sequence by a factor, from 1e-3 to 1e3, and all by another."""
    data = (cancelling, contradictory, simplex)[rng.integers(3)](rng)
    sizes = 10 ** rng.uniform(-3, 3, (data.n, 1, 1)) * 10 ** rng.uniform(-20, 20)
    return Dataset(data.X.numpy() * sizes, data.y, opt=data.opt)


FAMILIES = (simplex, cancelling, contradictory, repeated, ragged, scaled)
