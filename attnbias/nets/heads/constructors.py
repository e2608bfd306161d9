"""Heads without a model: from weights, from queries and keys, and at random."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..._validate import (
    TensorLike,
    as_float_tensor,
    as_floats,
    require_int,
    require_number,
    require_shape,
    require_type,
)
from ..._validate.sequences import as_lengths, real_mask, without_padding
from ...errors import ShapeError
from .head import KEYS, STREAM, Head
from .stream import gathered, packed


def head_from_weights(
    hidden: TensorLike,
    Wq: TensorLike,
    Wk: TensorLike,
    bq: TensorLike | None = None,
    bk: TensorLike | None = None,
    *,
    query: int = 0,
    lengths: TensorLike | None = None,
    scale: float | None = None,
) -> Head:
    """A head from its weights and the states that enter its layer, in the residual stream.

    Parameters
    ----------
    hidden : (n, T, d)
        What Wq and Wk are applied to: after the layer's norm, if it has one in front. The query
        sees all these tokens; of a causal model leave out those behind it.
    Wq, Wk : (width, d)
        As `nn.Linear` stores them: the query is Wq h + bq.
    bq, bk : (width,), optional
    query : int
        Position of the query, negative from the end of a sequence: -1 is its last token.
    lengths : (n,) integers, optional
        Tokens in each sequence, from 2 to T; rows past them may hold anything. None means that
        all have T.
    scale : float, optional
        Factor of the logits; 1 / sqrt(width) by default.

    Returns
    -------
    Head

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Eq. 1 [a], with the appended constant [c]. With rotary positions the logits are others:
    see `head_from_qk`.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_weights
    >>> hidden = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    >>> head = head_from_weights(hidden, [[1.0, 0.0]], [[0.0, 2.0]], bk=[1.0], query=-1)
    >>> head.logits.tolist()  # the last token's own first
    [[3.0, 1.0, 3.0]]
    """
    hidden = _real("hidden", hidden, (None,) * 3, "(n, T, d)", lengths)
    Wq = as_floats("Wq", Wq, (None, hidden.shape[2]), "(width, d)", hidden.device).double()
    maps = [Wq, as_floats("Wk", Wk, tuple(Wq.shape), "that of Wq", hidden.device).double()]
    if bq is not None or bk is not None:
        for i, (name, bias) in enumerate((("bq", bq), ("bk", bk))):
            bias = hidden.new_zeros(len(Wq)) if bias is None else bias
            bias = as_floats(name, bias, (len(Wq),), "(width,)", hidden.device)
            maps[i] = torch.cat([maps[i], bias.double()[:, None]], dim=1)
        hidden = torch.cat([hidden, torch.ones_like(hidden[..., :1])], dim=2)
    W = maps[1].T @ maps[0] * _scaled(scale, len(Wq))
    order, lengths = _asked("hidden", hidden, lengths, query)
    return _head(W, hidden, order, lengths, query)


def head_from_qk(
    q: TensorLike,
    k: TensorLike,
    *,
    query: int = 0,
    lengths: TensorLike | None = None,
    scale: float | None = None,
) -> Head:
    """A head from its queries and keys, as the softmax sees them: in key space.

    Parameters
    ----------
    q, k : (n, T, width)
        After biases, norms and rotary positions, before the scaling: what hooks of TransformerLens
        (`hook_rot_q`, `hook_q`) and of nnsight give.
    query : int
        Position of the query, negative from the end of a sequence: -1 is its last token.
    lengths : (n,) integers, optional
        Tokens in each sequence, from 2 to T; rows past them may hold anything. None means that
        all have T. The query sees them all; of a causal model leave out those behind it.
    scale : float, optional
        Factor of the logits; 1 / sqrt(width) by default.

    Returns
    -------
    Head

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Eq. 1 [a] with keys and queries for tokens [d]; see `Head` for what that W depends on.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_qk
    >>> q, k = torch.ones(1, 3, 4), torch.arange(12.0).reshape(1, 3, 4)
    >>> head_from_qk(q, k, query=-1).logits.tolist()
    [[19.0, 3.0, 11.0]]
    """
    k = _real("k", k, (None,) * 3, "(n, T, width)", lengths)
    q = _real("q", q, tuple(k.shape), "that of k", lengths, k.device)
    W = torch.eye(k.shape[2], dtype=k.dtype, device=k.device) * _scaled(scale, k.shape[2])
    order, lengths = _asked("k", k, lengths, query)
    queries = q[torch.arange(len(q)), order[:, 0]]
    return _head(W, k, order, lengths, query, queries, KEYS)


def random_head(head: Head, width: int | None = None, generator: torch.Generator | int = 0) -> Head:
    """A head at a random start on the tokens of another one: Gaussian W of rank `width`.

    Parameters
    ----------
    head : Head
    width : int, optional
        The head's own by default. The size of W makes no difference to what it selects, nor to
        any cosine or margin.
    generator : torch.Generator or int
        Or its seed.

    Returns
    -------
    Head
        Number -1.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_qk, random_head
    >>> head = head_from_qk(torch.randn(4, 5, 8), torch.randn(4, 5, 8))
    >>> random_head(head).compare().margin > 0
    True
    """
    require_type("head", head, Head, "a Head", "record_heads gives some")
    if not isinstance(generator, torch.Generator):
        seed = require_int("generator", generator, low=0, high=2**63 - 1)
        generator = torch.Generator().manual_seed(seed)
    own = (head.X if head.values is None else head.values).shape[2]
    width = require_int("width", own if width is None else width, low=1)
    shape = (2, width, head.X.shape[2])
    key, query = torch.randn(shape, dtype=torch.float64, generator=generator)
    return dataclasses.replace(head, W=key.T @ query / math.sqrt(width), head=-1)


def _real(name: str, values, shape: tuple, meaning: str, lengths, device=None) -> torch.Tensor:
    """Finite float64 values, past the lengths zeros."""
    values = as_float_tensor(name, values)
    require_shape(name, values, shape, meaning)
    if lengths is not None:
        values, _ = without_padding(values, as_lengths(lengths, values, low=2))
    return as_floats(name, values, shape, meaning, device).double()


def _head(W, X, order, lengths, query: int, queries=None, space: str = STREAM) -> Head:
    """One without a model: its attention is that of its own logits."""
    X = gathered(X, order, lengths)
    head = Head(W, X, lengths, None, X[..., 0], 0, 0, query, queries, None, space, order)
    return dataclasses.replace(head, attention=head.logits.softmax(dim=1))


def _scaled(scale, width: int) -> float:
    return width**-0.5 if scale is None else require_number("scale", scale, high=1e100, low=1e-100)


def _asked(name: str, X: torch.Tensor, lengths, query) -> tuple[torch.Tensor, torch.Tensor]:
    """`packed` for sequences (n, T, d) that a query sees whole."""
    n, T, _ = X.shape
    if T < 2:
        raise ShapeError(
            name,
            expected="at least 2 tokens a sequence",
            got="T = 1",
            remedy="attention over one token selects nothing; add tokens",
        )
    lengths = torch.full((n,), T) if lengths is None else lengths
    lengths = as_lengths(lengths, X, low=2)
    shortest = int(lengths.min())
    query = require_int("query", query, low=-shortest, high=shortest - 1)
    return packed(real_mask(lengths, T), query % lengths)
