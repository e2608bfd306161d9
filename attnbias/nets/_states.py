"""What the queries and keys of a recorded layer are linear maps of.

Without rotary positions these are the states x that enter the layer, with a 1 appended where there
are biases. Rotary positions turn the pair j of a key by the angle w_j t of its position t, so that
the key is a linear map of x (x) (cos w_j t, sin w_j t)_j instead, and so is the query. Their inner
products are x'x' times the mean over j of cos w_j (t - t'): the features are never formed, and
coordinates in the span of the recorded tokens' features, by an eigendecomposition, do for all that
these tokens can see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .._sequences import as_lengths
from .._validate import require_int, require_number
from ..errors import RangeError, ShapeError
from ._tape import Call, maps_of

MOST = 4096  # tokens whose Gram matrix is decomposed: a minute, and 130 MB


@dataclass(eq=False)
class Record:
    """A layer's calls at the queries that stand at `position` (n, S); `real` (n, T) is no padding.

    Keys are the linear maps (H', m, r) and queries the (H, m, r) of `states` (n, T, r), times
    `factor` in the logits, unless these are None.
    """

    call: Call
    position: torch.Tensor
    real: torch.Tensor
    states: torch.Tensor | None = None
    maps: tuple[torch.Tensor, torch.Tensor] | None = None
    factor: float = 1.0
    turned: bool = False


def at_queries(call: Call, position: torch.Tensor) -> Call:
    """The call at some queries (n, S) alone, on the CPU."""
    place = position.to(call.q.device)[:, None, :, None]
    q, seen = call.q, call.allowed
    q = q.gather(2, place.expand(-1, q.shape[1], -1, q.shape[3]))
    seen = seen.gather(2, place.expand(-1, seen.shape[1], -1, seen.shape[3]))
    parts = (q, call.k, call.v, seen, call.x)
    q, k, v, seen, x = (None if part is None else part.detach().cpu() for part in parts)
    return Call(q, k, v, seen, call.scale, x)


def joined(parts, queries: int, module, turns: Sequence[torch.Tensor]) -> Record:
    """The passes of a layer, one after another, at so many queries, and their linear maps.

    `turns` are the frequencies of rotary positions that the model may have.
    """
    calls, places = zip(*parts, strict=True)
    position = torch.cat([each[:, :queries] for each, _ in places])
    whole = {
        name: torch.cat([getattr(call, name) for call in calls])
        for name in ("k", "v", "x") if getattr(calls[0], name) is not None
    }  # fmt: skip
    cut = {
        name: torch.cat([getattr(call, name)[:, :, :queries] for call in calls])
        for name in ("q", "allowed")
    }
    x, k = whole.pop("x", None), whole["k"]
    call = Call(**cut, **whole, scale=calls[0].scale, x=None)
    record = Record(call, position, torch.cat([real for _, real in places]))
    maps = None if x is None else maps_of(module)
    if maps is None:
        return record
    factor = float(getattr(module, "scaling", call.scale))  # some scale the queries beforehand
    x = x.double()
    if maps[0].shape[1] > x.shape[2]:  # there are biases
        x = torch.cat([x, torch.ones_like(x[..., :1])], dim=2)
    if any(each.shape[1] != x.shape[2] or each.shape[0] % k.shape[3] for each in maps):
        return record
    Q, K = (each.unflatten(0, (-1, k.shape[3])) for each in maps)
    record = dataclasses.replace(record, states=x, maps=(K, Q), factor=factor)
    images = _mapped(record)
    if _alike(record, *images):
        return record
    return _turned(record, images, turns) or dataclasses.replace(record, states=None)


def _mapped(record: Record) -> tuple[torch.Tensor, torch.Tensor]:
    """All tokens' (n, H', T, m) and (n, H, T, m) images under the maps."""
    K, Q = (torch.einsum("ntd,hmd->nhtm", record.states, each) for each in record.maps)
    return K, Q


def _alike(record: Record, keys, queries) -> bool:
    """Whether these are the recorded ones, far above rounding and far below what a turn changes."""
    call, rows = record.call, torch.arange(len(record.position))[:, None]
    asked = queries.transpose(1, 2)[rows, record.position].transpose(1, 2)
    for own, other in ((call.k, keys), (call.q * call.scale, asked * record.factor)):
        eps = torch.finfo(own.dtype if own.dtype != torch.float64 else torch.float32).eps
        close = eps**0.5 * own.abs().max()  # models turn in float32 at best
        if own.shape != other.shape or bool((own - other).abs().max() > close):
            return False
    return True


def _turned(record: Record, images, turns) -> Record | None:
    """The record with features of rotary positions for states, if they give keys and queries.

    `images` are those of the states themselves, not turned.
    """
    n, T, _ = record.states.shape
    real = record.call.allowed.any(dim=2).any(dim=1)
    if int(real.sum()) > MOST:
        return None
    for frequencies in {tuple(each.double().cpu().tolist()) for each in turns}:
        w = torch.tensor(frequencies, dtype=torch.float64)
        if 2 * len(w) > record.call.k.shape[3]:
            continue
        for halves in (True, False):
            keys, queries = (_turn(each, w, halves) for each in images)
            if _alike(record, keys, queries):
                return _in_coordinates(record, keys, queries, w, real)
    return None


def _turn(vectors: torch.Tensor, w: torch.Tensor, halves: bool) -> torch.Tensor:
    """(n, H, T, m) with the pairs (j, j + J) or (2j, 2j + 1) of token t turned by w_j t."""
    J, angle = len(w), torch.arange(vectors.shape[2])[:, None] * w
    pairs = (slice(0, J), slice(J, 2 * J)) if halves else (slice(0, 2 * J, 2), slice(1, 2 * J, 2))
    a, b = (vectors[..., pair] for pair in pairs)
    turned = vectors.clone()
    turned[..., pairs[0]] = a * angle.cos() - b * angle.sin()
    turned[..., pairs[1]] = b * angle.cos() + a * angle.sin()
    return turned


def _in_coordinates(record: Record, keys, queries, w, real) -> Record:
    """States (n, T, r) of the features' inner products, and the maps from them."""
    x, t = record.states[real], real.nonzero()[:, 1]
    angle = t[:, None] * w
    still = int(2 * len(w) < keys.shape[3])  # parts of a key that are not turned see x itself
    cosines = angle.cos() @ angle.cos().T + angle.sin() @ angle.sin().T + still
    values, vectors = torch.linalg.eigh(x @ x.T * cosines / (len(w) + still))
    kept = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    vectors, sizes = vectors[:, kept], values[kept].sqrt()
    states = torch.zeros(*real.shape, len(sizes), dtype=torch.float64)
    states[real] = vectors * sizes
    inverse = (vectors / sizes).T
    maps = tuple((inverse @ each.transpose(1, 2)[real].flatten(1)).T.unflatten(0, each.shape[1::2])
                 for each in (keys, queries))  # fmt: skip
    return dataclasses.replace(record, states=states, maps=maps, turned=True)


def packed(allowed: torch.Tensor, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, L) positions of the tokens that a query sees, its own first, and (n,) how many.

    `allowed` (n, T) says which it sees, and `place` (n,) where it stands.
    """
    lengths = allowed.sum(dim=1)
    if int(lengths.min()) < 2:
        raise RangeError(
            "query", expected="one that sees at least 2 tokens of each sequence",
            got=f"{int(lengths.min())} in sequence {int(lengths.argmin())}",
            remedy="attention over one token selects nothing: take a later query, or drop these",
        )  # fmt: skip
    rank = 2 - allowed.long()
    own = torch.arange(allowed.shape[1]) == place[:, None]
    rank = torch.where(own & allowed, 0, rank)
    return rank.argsort(dim=1, stable=True)[:, : int(lengths.max())], lengths


def gathered(values: torch.Tensor, order: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(n, L, ...) the rows of (n, T, ...) in that order; padding is 0."""
    rows = values[torch.arange(len(order))[:, None], order]
    inside = torch.arange(order.shape[1]) < lengths[:, None]
    return rows * inside.reshape(*inside.shape, *[1] * (rows.ndim - 2))


def scaled(scale, width: int) -> float:
    return width**-0.5 if scale is None else require_number("scale", scale, high=1e100, low=1e-100)


def asked(name: str, X: torch.Tensor, lengths, query) -> tuple[torch.Tensor, torch.Tensor]:
    """`packed` for sequences (n, T, d) that a query sees whole."""
    n, T, _ = X.shape
    if T < 2:
        raise ShapeError(
            name, expected="at least 2 tokens a sequence", got="T = 1",
            remedy="attention over one token selects nothing; add tokens",
        )  # fmt: skip
    lengths = torch.full((n,), T) if lengths is None else lengths
    lengths = as_lengths(lengths, X, low=2)
    shortest = int(lengths.min())
    query = require_int("query", query, low=-shortest, high=shortest - 1)
    return packed(torch.arange(T) < lengths[:, None], query % lengths)
