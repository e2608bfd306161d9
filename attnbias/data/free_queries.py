"""Unit tokens and a free unit query for each sequence: data for the rank of an SVM's solution."""

from __future__ import annotations

import torch

from .._validate import require_int
from ..errors import MissingDecoderError
from .dataset import Dataset, require_dataset


def make_free_queries(n: int = 5, T: int = 5, d: int = 5, seed: int = 0) -> Dataset:
    """Random unit tokens with a query for each sequence that is none of them.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens (2 at least) and features.
    seed : int

    Returns
    -------
    Dataset
        With `query`, and with optimal tokens in place of a decoder: those of the largest
        y_i v'x for a random v. Where tokens tie, as they do for d = 1, it is the first.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: the draws behind the figure on ranks of Tarzanagh et al. 2023 [d]: v, labels, tokens
    and queries from one generator, in this order and in float32, so that a seed gives the data
    that their notebook draws from it.

    Examples
    --------
    >>> from attnbias.data.free_queries import make_free_queries
    >>> data = make_free_queries(3, 4, 6)
    >>> data.cross, tuple(data.queries.shape)
    (True, (3, 6))
    """
    n, d = require_int("n", n, low=1), require_int("d", d, low=1)
    T = require_int("T", T, low=2)
    generator = torch.Generator().manual_seed(require_int("seed", seed, low=0, high=2**63 - 1))

    def unit(*shape: int) -> torch.Tensor:
        draw = torch.randn(shape, generator=generator)
        return draw / draw.norm(dim=-1, keepdim=True)

    v = unit(d)
    y = torch.where(torch.randn(n, generator=generator) > 0, 1.0, -1.0)
    X, query = unit(n, T, d), unit(n, d)
    opt = (y[:, None] * (X @ v)).argmax(dim=1)
    return Dataset(
        X.double(), y.double(), opt=opt, query=query.double(), name="free queries",
        meta={"n": n, "T": T, "d": d, "seed": seed},
    )  # fmt: skip


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
    >>> from attnbias.data.free_queries import make_free_queries, with_unit_values
    >>> token_scores(with_unit_values(make_free_queries(2, 3, 4))).sum(dim=1).tolist()
    [1.0, 1.0]
    """
    require_dataset(data, cross=True)
    if data.opt is None:
        raise MissingDecoderError(
            "data", expected="optimal tokens", got="none",
            remedy="Dataset(X, y, opt=opt), or make_free_queries",
        )  # fmt: skip
    values = torch.zeros_like(data.X)
    values[torch.arange(data.n), data.opt, 0] = data.y
    u = torch.zeros_like(data.X[0, 0])
    u[0] = 1
    return Dataset(
        values, data.y, u=u, lengths=data.lengths, query=data.queries, key=data.keys,
        name=f"{data.name}, unit values", meta=dict(data.meta),
    )  # fmt: skip
