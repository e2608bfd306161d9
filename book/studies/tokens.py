"""Small families of tokens that several chapters use, orthogonal but for a number given."""

import torch

from attnbias.data import Dataset


def almost_orthogonal(spread, n=4, T=3, seed=0):
    """Unit vectors, each moved a little at random, T to a sequence; scores 1 and 0.

    Parameters
    ----------
    spread : float
        Standard deviation of what is added to each entry.
    n, T : int
        Sequences, an even number, and tokens in each; the dimension is n T.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from attnbias import check_assumption1
    >>> from book.studies.tokens import almost_orthogonal
    >>> check_assumption1(almost_orthogonal(1e-3)).all_hold
    True
    """
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(n * T, n * T, generator=draw, dtype=torch.float64)
    X, y = torch.eye(n * T) + spread * noise, torch.tensor([1.0, -1] * (n // 2)).double()
    optimal = torch.randint(T, (n,), generator=draw)
    scores = torch.nn.functional.one_hot(optimal, T) * y[:, None]
    u = torch.linalg.solve(X, scores.flatten())
    return Dataset(X.reshape(n, T, n * T), y, u)


def simplex_tokens(n, c):
    """One optimal token for all; queries and the other tokens of a sequence have products -c.

    Parameters
    ----------
    n : int
        Sequences.
    c : float
        At most 1 / (n - 1), where the queries close up to a simplex.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from book.studies.tokens import simplex_tokens
    >>> simplex_tokens(3, 0.1).X.shape
    torch.Size([3, 5, 13])
    """
    size, weight = torch.linalg.eigh((1 + c) * torch.eye(n).double() - c)
    size[size < 1e-12] = 0  # at c = 1/(n - 1) one is 0; the root of its rounding is 1e-8
    corners = weight * size.sqrt()
    X = torch.zeros(n, n + 2, 1 + n + n * n).double()
    X[:, 0, 1 : n + 1], X[:, 1, 0] = corners, 1
    for i in range(n):
        start = 1 + n + i * n
        X[i, 2:, start : start + n] = corners
    u = torch.zeros(X.shape[2]).double()
    u[0] = 1e-3
    return Dataset(X, [1] * n, u=u)
