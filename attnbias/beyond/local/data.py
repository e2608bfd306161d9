"""Data on which Assumption 2 fails by a chosen amount: non-optimal scores that differ."""

from __future__ import annotations

import torch

from ..._validate import require_int, require_number
from ...data.synthetic import least_decoder
from ...dataset import Dataset
from ...errors import RangeError
from ..common.arguments import alternating, seeded


def make_score_trap(score: float = 0.3) -> Dataset:
    """Three tokens in the plane of which the wrong one can trap training.

    x_1 = (1, 1), query and optimal, x_2 = (0, 0) and x_3 = (-1, score), with y = 1 and
    u = (0, 1): the scores are 1, 0 and `score`. The way from x_3 to x_1 leads past x_2. If
    score > 0 then x_3 beats x_2, its only neighbour, and W = x_3 x_1' points to a trap;
    at score 0 Assumption 2 holds and there is none.

    Parameters
    ----------
    score : float in (-1, 1)
        Of the wrong token.

    Returns
    -------
    Dataset
        n = 1, T = 3, d = 2.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. W_mm = e e' / 4 with e = (1, 1), of margin 2.

    Examples
    --------
    >>> from attnbias import token_scores
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> token_scores(make_score_trap(0.3)).tolist()
    [[1.0, 0.0, 0.3]]
    """
    score = require_number("score", score, low=-1, high=1, open_low=True, open_high=True)
    return Dataset(
        [[[1.0, 1.0], [0.0, 0.0], [-1.0, score]]],
        [1.0],
        [0.0, 1.0],
        name=f"score trap {score:g}",
        meta={"maker": "make_score_trap", "score": score},
    )


def make_unequal_scores(
    n: int = 3,
    T: int = 4,
    d: int = 30,
    *,
    spread: float = 0.3,
    correlation: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Gaussian tokens with one common axis, and non-optimal scores evenly spread about 0.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens a sequence, features; d >= n T.
    spread : float in [0, 2)
        Largest minus smallest score among the non-optimal tokens of a sequence; at 0
        Assumption 2 holds. Optimal tokens have score 1. With T = 2 there is but one other
        token, of score 0.
    correlation : float in [0, 1)
        Share of a token's mean square norm that lies along one axis, common to all tokens.
    seed : int

    Returns
    -------
    Dataset
        x = sqrt(correlation) g e + sqrt(1 - correlation) h with g and h Gaussian, E|x|^2 = 1
        and a unit vector e, g of either sign. u is the smallest decoder that gives the
        scores; labels alternate; optimal tokens stand anywhere. Tokens do not change with
        `spread`.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    [d] throughout.

    Examples
    --------
    >>> from attnbias import token_scores
    >>> from attnbias.beyond.local.data import make_unequal_scores
    >>> data = make_unequal_scores(2, 3, 20, spread=0.4, seed=1)
    >>> token_scores(data)[0].sort().values.round(decimals=6).tolist()
    [-0.2, 0.2, 1.0]
    """
    n = require_int("n", n, low=1)
    T = require_int("T", T, low=2)
    d = require_int("d", d, low=2)
    spread = require_number("spread", spread, low=0, high=2, open_high=True)
    correlation = require_number("correlation", correlation, low=0, high=1, open_high=True)
    generator = seeded(seed)
    if d < n * T:
        raise RangeError(
            "d",
            expected=f"at least n T = {n * T}, for independent tokens of any scores",
            got=str(d),
            remedy="raise d, or build a Dataset with a decoder of your own",
        )
    X, y = correlated_tokens(n, T, d, correlation, generator), alternating(n)
    scores = _spread_scores(n, T, spread, generator)
    u, _ = least_decoder(X, y, scores)
    meta = {"maker": "make_unequal_scores", "spread": spread, "correlation": correlation}
    meta["seed"] = generator.initial_seed()
    return Dataset(X, y, u, name="spread scores", meta=meta)


def correlated_tokens(n: int, T: int, d: int, correlation: float, generator) -> torch.Tensor:
    """(n, T, d) Gaussian tokens with one common axis; see `make_unequal_scores`."""

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    axis = normal(d)
    along = normal(n, T, 1) * (axis / axis.norm())
    return correlation**0.5 * along + (1 - correlation) ** 0.5 * normal(n, T, d) / d**0.5


def _spread_scores(n: int, T: int, spread: float, generator) -> torch.Tensor:
    """(n, T) scores: 1 at a random place, the others evenly spaced, in random order."""
    scores = torch.zeros(n, T, dtype=torch.float64)
    if T > 2:
        levels = spread * torch.linspace(-0.5, 0.5, T - 1, dtype=torch.float64)
        for row in scores:
            row[1:] = levels[torch.randperm(T - 1, generator=generator)]
    scores[:, 0] = 1.0
    turn = torch.randint(T, (n, 1), generator=generator)
    return scores.gather(1, (torch.arange(T) + turn) % T)
