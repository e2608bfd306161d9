"""Unit tokens and a free unit query for each sequence, as Tarzanagh et al. (2023) draw them."""

from __future__ import annotations

import torch

from ..._validate import require_flag, require_int
from ...dataset import Dataset, require_dataset
from ...errors import MissingDecoderError
from ..common.arguments import seeded


def make_free_queries(
    n: int = 6, T: int = 8, d: int = 10, seed: int = 0, *, opt: bool = False
) -> Dataset:
    """Random unit tokens, a unit query apart from them for each sequence, random labels.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens (2 at least) and features.
    seed : int
    opt : bool
        Give the optimal tokens in place of the random unit decoder; where tokens tie, as they
        do for d = 1, the first.

    Returns
    -------
    Dataset
        With `query`. All scores differ, so Assumption 2 fails.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: the draws behind two figures of Tarzanagh, Li, Thrampoulidis and Oymak (2023),
    "Transformers as support vector machines", on ranks and on local convergence [b]: decoder,
    labels, tokens and queries from one generator, in this order and in float32, so that a seed
    gives the data that their notebooks draw from it.

    Examples
    --------
    >>> from attnbias.beyond.ranks.data import make_free_queries
    >>> make_free_queries(3, 4, 6)
    Dataset('free queries': n=3 sequences, T=4 tokens, d=6 features, decoder given, queries given)
    """
    n, d = require_int("n", n, low=1), require_int("d", d, low=1)
    T, opt = require_int("T", T, low=2), require_flag("opt", opt)
    draw = normal_draws(seed)
    u = unit(draw(d))
    y = torch.where(draw(n) > 0, 1.0, -1.0)
    X, query = unit(draw(n, T, d)), unit(draw(n, d))
    best = (y[:, None] * (X @ u)).argmax(dim=1)
    return Dataset(
        X.double(),
        y.double(),
        query=query.double(),
        name="free queries",
        meta={"n": n, "T": T, "d": d, "seed": seed},
        **({"opt": best} if opt else {"u": u.double()}),
    )


def normal_draws(seed: int):
    """A function of a shape that draws normal float32 numbers, one generator throughout."""
    generator = seeded(seed)
    return lambda *shape: torch.randn(*shape, generator=generator)


def unit(values: torch.Tensor) -> torch.Tensor:
    """The vectors along the last axis over their norms."""
    return values / values.norm(dim=-1, keepdim=True)


def with_unit_values(data: Dataset) -> Dataset:
    """The same keys, queries and optimal tokens, with values that score 1 there and 0 elsewhere.

    Parameters
    ----------
    data : Dataset
        With optimal tokens in place of a decoder.

    Returns
    -------
    Dataset
        With a decoder; Assumption 2 holds, so that the data can be trained on.

    Raises
    ------
    DtypeError
    MissingDecoderError
        For data without optimal tokens.

    Examples
    --------
    >>> from attnbias import token_scores
    >>> from attnbias.beyond.ranks.data import make_free_queries, with_unit_values
    >>> token_scores(with_unit_values(make_free_queries(2, 3, 4, opt=True))).sum(dim=1).tolist()
    [1.0, 1.0]
    """
    require_dataset(data, cross=True)
    if data.opt is None:
        raise MissingDecoderError(
            "data",
            expected="optimal tokens",
            got="none",
            remedy="Dataset(X, y, opt=opt), or make_free_queries",
        )
    values = torch.zeros_like(data.X)
    values[torch.arange(data.n), data.opt, 0] = data.y
    u = torch.zeros_like(data.X[0, 0])
    u[0] = 1
    return Dataset(
        values,
        data.y,
        u=u,
        lengths=data.lengths,
        query=data.queries,
        key=data.keys,
        name=f"{data.name}, unit values",
        meta=dict(data.meta),
    )
