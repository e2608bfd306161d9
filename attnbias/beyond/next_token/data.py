"""Sequences over a small vocabulary, each with the token that comes next."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..._validate import (
    as_name,
    as_tensor,
    dtype_name,
    require_int,
    require_number,
    require_shape,
)
from ...errors import DtypeError, RangeError, ShapeError
from ..common.arguments import as_finite, require_kind, seeded


@dataclass(frozen=True, eq=False)
class NextTokenData:
    """Token sequences with labels in the same vocabulary, validated and frozen.

    Parameters
    ----------
    embeddings : (V, d) float tensor, array or nested list
        One row e_k for each token of the vocabulary; stored as float64.
    sequences : (n, T) integers
        Tokens of each sequence. The last one is the query.
    labels : (n,) integers
        The next token. It must occur in its sequence, for attention can only retrieve what
        is there.
    name : str

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: the setting of Li et al. 2024 [b]. That labels occur in their sequences is an
    assumption of theirs too.

    Examples
    --------
    >>> from attnbias.beyond.next_token.data import NextTokenData
    >>> NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
    NextTokenData(V=3 tokens, d=3 features, n=2 sequences of T=3)
    """

    embeddings: torch.Tensor
    sequences: torch.Tensor
    labels: torch.Tensor
    name: str = ""

    def __post_init__(self) -> None:
        letters = "(V, d), none of them zero"
        embeddings = as_finite("embeddings", self.embeddings, (None, None), letters)
        sequences = _tokens("sequences", self.sequences, len(embeddings))
        require_shape("sequences", sequences, (None, None), "(n, T), none of them zero")
        labels = _tokens("labels", self.labels, len(embeddings))
        require_shape("labels", labels, (len(sequences),), "(n,)")
        absent = (~(sequences == labels[:, None]).any(dim=1)).nonzero().flatten()
        if absent.numel():
            i = int(absent[0])
            raise RangeError(
                "labels",
                expected="tokens that occur in their sequences",
                got=f"{absent.numel()} that don't, first {int(labels[i])} in sequence {i}",
                remedy="drop these sequences: attention retrieves what is there and nothing else",
            )
        vars(self).update(embeddings=embeddings, sequences=sequences, labels=labels)
        vars(self)["name"] = as_name(self.name)

    @property
    def V(self) -> int:
        """Tokens in the vocabulary."""
        return len(self.embeddings)

    @property
    def d(self) -> int:
        """The number of features."""
        return self.embeddings.shape[1]

    @property
    def n(self) -> int:
        """The number of sequences."""
        return len(self.sequences)

    @property
    def queries(self) -> torch.Tensor:
        """(n,) the last token of each sequence."""
        return self.sequences[:, -1]

    @property
    def counts(self) -> torch.Tensor:
        """(n, V) float64: how often each token of the vocabulary occurs in each sequence."""
        return torch.nn.functional.one_hot(self.sequences, self.V).sum(dim=1).double()

    def __repr__(self) -> str:
        title = f"{self.name!r}: " if self.name else ""
        return (
            f"NextTokenData({title}V={self.V} tokens, d={self.d} features, "
            f"n={self.n} sequences of T={self.sequences.shape[1]})"
        )


def _tokens(name: str, value, size: int) -> torch.Tensor:
    value = as_tensor(name, value)
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise DtypeError(
            name,
            expected="integers, token numbers",
            got=dtype_name(value),
            remedy=f"convert with {name}.long()",
        )
    value = value.detach().to(torch.long, copy=True)
    if value.numel() and not 0 <= int(value.min()) <= int(value.max()) < size:
        raise RangeError(
            name,
            expected=f"token numbers from 0 to V - 1 = {size - 1}",
            got=f"{int(value.min())} to {int(value.max())}",
            remedy="tokens are rows of the embeddings, counted from 0",
        )
    return value


def require_next_tokens(data) -> None:
    """Refuse anything but a NextTokenData."""
    remedy = "wrap the tokens: NextTokenData(embeddings, sequences, labels)"
    require_kind("data", data, NextTokenData, remedy)


def make_priorities(
    V: int = 6,
    n: int = 12,
    T: int = 4,
    *,
    d: int | None = None,
    queries: int = 2,
    cycle: float = 0.0,
    noise: float = 0.0,
    seed: int = 0,
) -> NextTokenData:
    """Random sequences whose labels follow a priority order, one for each query token.

    Each of the query tokens 0 to queries - 1 has a random order of the vocabulary. A label is
    the first token of its sequence in that order; where both of the order's first two occur,
    it is the second of them with probability `cycle`, which ties them into a cycle.

    Parameters
    ----------
    V, n, T : int
        Tokens in the vocabulary, sequences, and tokens in each; T <= V, no token twice.
    d : int, optional
        Features, at least V (then embeddings are linearly independent); V by default.
    queries : int
        Tokens that occur as queries, from 1 to V.
    cycle : float in [0, 1]
    noise : float in [0, 10]
        Embeddings are unit vectors plus Gaussian noise of this size over sqrt(d).
    seed : int

    Returns
    -------
    NextTokenData

    Raises
    ------
    RangeError, ShapeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: a choice [d].

    Examples
    --------
    >>> make_priorities(5, n=4, T=3, seed=1)
    NextTokenData('priorities': V=5 tokens, d=5 features, n=4 sequences of T=3)
    """
    V, n = require_int("V", V, low=2, high=1000), require_int("n", n, low=1, high=10**5)
    T = require_int("T", T, low=2, high=V)
    queries = require_int("queries", queries, low=1, high=V)
    cycle = require_number("cycle", cycle, low=0, high=1)
    noise = require_number("noise", noise, low=0, high=10)
    d = V if d is None else require_int("d", d, low=1)
    if d < V:
        remedy = "raise d, or build NextTokenData by hand for dependent embeddings"
        raise ShapeError("d", expected=f"at least V = {V}", got=str(d), remedy=remedy)
    generator = seeded(seed)
    rank = torch.stack([torch.randperm(V, generator=generator) for _ in range(queries)])
    embeddings = torch.eye(V, d, dtype=torch.float64)
    shift = torch.randn(V, d, generator=generator, dtype=torch.float64)
    sequences, labels = [], []
    for i in range(n):
        query = i % queries
        others = torch.randperm(V, generator=generator)
        tokens = torch.cat([others[others != query][: T - 1], torch.tensor([query])])
        ranks, second = rank[query][tokens], bool(torch.rand((), generator=generator) < cycle)
        tied = second and {0, 1} <= set(ranks.tolist())
        label = tokens[(ranks == 1) if tied else ranks == ranks.min()]
        sequences.append(tokens)
        labels.append(label[0])
    embeddings = embeddings + noise / d**0.5 * shift
    return NextTokenData(embeddings, torch.stack(sequences), torch.stack(labels), "priorities")
