"""Tokens for two layers: pairs, kindred tokens of uneven size, and what one layer cannot do."""

from __future__ import annotations

import math

import torch

from ..._validate import require_int, require_number
from ...dataset import Dataset
from ..common.arguments import alternating, seeded


def make_cue_pair(length: float = 1.0) -> Dataset:
    """Two sequences with one query and contrary wishes, told apart only by a third token.

    X_1 = (e_1, e_2, length e_3) with label 1 wants its second token, X_2 = (e_1, e_2,
    length e_4) with label -1 its first; u = e_2 + e_4 / length scores the optimal tokens 1
    above the others, so that Assumption 2 holds. The logit gap of e_2 over e_1 is the same
    number in both for every W, and has to be positive in one and negative in the other.

    Parameters
    ----------
    length : float in [1e-3, 1e3]
        Of the third token, the cue.

    Returns
    -------
    Dataset
        n = 2, T = 3, d = 4.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. Under one layer the two margins add up to 0 at most, so the mean of any
    convex decreasing loss is at least its value at 0.

    Examples
    --------
    >>> from attnbias import token_scores
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> token_scores(make_cue_pair()).abs().tolist()
    [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    length = require_number("length", length, low=1e-3, high=1e3)
    e = torch.eye(4, dtype=torch.float64)
    X = torch.stack([torch.stack([e[0], e[1], length * e[cue]]) for cue in (2, 3)])
    u = e[1] + e[3] / length
    return Dataset(
        X, [1.0, -1.0], u, name="cue pair", meta={"maker": "make_cue_pair", "length": length}
    )


def make_token_pairs(n: int = 1, other: float = 1.0, cosine: float = 0.0) -> Dataset:
    """n sequences of two tokens, each in a plane of its own.

    In its plane x_1 = (1, 0) and x_2 = other (cosine, sqrt(1 - cosine^2)). The second token
    is optimal, by a score of 1 over 0; labels are 1 and -1 in turn.

    Parameters
    ----------
    n : int
    other : float in [1e-3, 1e3]
        Length of the second token.
    cosine : float in [-0.99, 0.99]

    Returns
    -------
    Dataset
        T = 2, d = 2 n.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [d].

    Examples
    --------
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> make_token_pairs(1, 2.0, 0.6).X.tolist()
    [[[1.0, 0.0], [1.2, 1.6]]]
    """
    n = require_int("n", n, low=1, high=500)
    other = require_number("other", other, low=1e-3, high=1e3)
    cosine = require_number("cosine", cosine, low=-0.99, high=0.99)
    sine = math.sqrt((1 - cosine) * (1 + cosine))
    i, y = torch.arange(n), alternating(n)
    X, u = torch.zeros(n, 2, n, 2, dtype=torch.float64), torch.zeros(n, 2, dtype=torch.float64)
    X[i, 0, i, 0] = 1.0
    X[i, 1, i] = torch.tensor([other * cosine, other * sine], dtype=torch.float64)
    u[:, 1] = y / (other * sine)
    meta = {"maker": "make_token_pairs", "other": other, "cosine": cosine}
    return Dataset(X.flatten(2), y, u.flatten(), name="token pairs", meta=meta)


def make_two_hop(
    n: int = 3, T: int = 3, d: int = 20, *, correlation: float = 0.6, spread: float = 0.4, seed: int
) -> Dataset:
    """Sequences whose tokens have a part in common and uneven lengths.

    x_it = s_it (sqrt(correlation) c_i + sqrt(1 - correlation) g_it), with c_i, g_it Gaussian of
    mean square 1 and s_it uniform in 1 - spread to 1 + spread. One token a sequence, drawn
    uniformly, scores 1 and the others 0 under the smallest such decoder. Labels take turns.

    Parameters
    ----------
    n, T, d : int
        n (T + 1) <= d, so that tokens and common parts are independent.
    correlation : float in [0, 1)
    spread : float in [0, 1)
    seed : int

    Returns
    -------
    Dataset

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [d].

    Examples
    --------
    >>> from attnbias import token_scores
    >>> from attnbias.beyond.depth.data import make_two_hop
    >>> token_scores(make_two_hop(seed=0)).sum(dim=1).round(decimals=9).tolist()
    [1.0, 1.0, 1.0]
    """
    n, T = require_int("n", n, low=1, high=500), require_int("T", T, low=2, high=500)
    d = require_int("d", d, low=n * (T + 1), high=10**6)
    shared = require_number("correlation", correlation, low=0, high=0.999)
    spread = require_number("spread", spread, low=0, high=0.999)
    g = seeded(seed)
    own = torch.randn(n, T, d, generator=g, dtype=torch.float64) / d**0.5
    common = torch.randn(n, 1, d, generator=g, dtype=torch.float64) / d**0.5
    lengths = 1 + spread * (2 * torch.rand(n, T, 1, generator=g, dtype=torch.float64) - 1)
    X = lengths * (shared**0.5 * common + (1 - shared) ** 0.5 * own)
    y, wanted = alternating(n), torch.zeros(n, T, dtype=torch.float64)
    wanted[torch.arange(n), torch.randint(T, (n,), generator=g)] = 1.0
    u = torch.linalg.pinv(X.reshape(n * T, d)) @ (y[:, None] * wanted).flatten()
    meta = {"maker": "make_two_hop", "correlation": shared, "spread": spread, "seed": seed}
    return Dataset(X, y, u, name="kindred tokens", meta=meta)
