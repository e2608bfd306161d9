"""What the queries and keys of a recorded layer are linear maps of.

Without rotary positions these are the states x that enter the layer, with a 1 appended where there
are biases. Rotary positions turn the pair j of a key by the angle w_j t of its position t, so that
the key is a linear map of x (x) (cos w_j t, sin w_j t)_j instead, and so is the query. Their inner
products are x'x' times the mean over j of cos w_j (t - t'): the features are never formed, and
coordinates in the span of the recorded tokens' features, by an eigendecomposition, do for all that
these tokens can see.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..._validate.sequences import without_padding
from ...errors import RangeError
from .agreement import agrees, differs
from .calls import Call
from .maps import maps_of

FLOAT32 = 3.5e-4  # the root of its eps: models turn keys and queries in float32 at best
MOST = 4096  # tokens whose Gram matrix is decomposed: a minute, and 130 MB


class Stream(NamedTuple):
    """The states (n, T, r) of which keys are the maps (H', m, r), and queries the (H, m, r)."""

    states: torch.Tensor
    K: torch.Tensor
    Q: torch.Tensor
    turned: bool = False


@dataclass(eq=False)
class Record:
    """A layer's calls at the queries that stand at `position` (n, S); `real` (n, T) is no padding.

    `stream` has what keys and queries are maps of, times `factor` in the logits, if it was found.
    """

    call: Call
    position: torch.Tensor
    real: torch.Tensor
    factor: float
    stream: Stream | None = None


def at_queries(module, call: Call, mask: torch.Tensor, position: torch.Tensor) -> Call:
    """The call at some queries (n, S) alone, on the CPU; each sequence agrees with them."""
    place = position.to(call.q.device)[:, None, :, None]
    q, mask = call.q.take_along_dim(place, dim=2), mask.take_along_dim(place, dim=2).cpu()
    out = call.out
    if out is not None:
        out = out.flatten(2).take_along_dim(place[:, 0], dim=1)
    parts: dict[str, Any] = {"q": q, "k": call.k, "v": call.v, "out": out, "x": call.x}
    parts = {name: part if part is None else part.detach().cpu() for name, part in parts.items()}
    cut = dataclasses.replace(call, **parts, masks=(mask,), weights=None)
    if not all(agrees(cut, mask, sequence) for sequence in range(len(q))):
        differs(module, call)
    return cut


def joined(parts, queries: int, module, turns: Sequence[torch.Tensor]) -> Record:
    """The passes of a layer, one after another, at so many queries, and their linear maps.

    `turns` are the frequencies of rotary positions that the model may have.
    """
    calls, places = zip(*parts, strict=True)
    position = torch.cat([each[:, :queries] for each, _ in places])
    whole: dict[str, Any] = {
        name: torch.cat([getattr(call, name) for call in calls])
        for name in ("k", "v", "x")
        if getattr(calls[0], name) is not None
    }
    q = torch.cat([call.q[:, :, :queries] for call in calls])
    mask = torch.cat([call.masks[0][:, :, :queries] for call in calls])
    call = dataclasses.replace(calls[-1], q=q, masks=(mask,), out=None, **whole)
    factor = getattr(module, "scaling", call.scale)  # some scale the queries beforehand
    factor = factor if isinstance(factor, float) else call.scale
    record = Record(call, position, torch.cat([real for _, real in places]), factor)
    with contextlib.suppress(Exception):  # whatever the weights are, the keys are there
        record.stream = _stream_of(record, turns)
    return record


def _stream_of(record: Record, turns) -> Stream | None:
    """The states that the keys and queries are maps of, if these are found."""
    if record.call.x is None:
        return None
    x = record.call.x.double()
    one = torch.ones_like(x[..., :1])
    for K, Q in maps_of(record.call, x):
        states = torch.cat([x, one], dim=2) if K.shape[2] > x.shape[2] else x
        images = [torch.einsum("ntd,hmd->nhtm", states, each) for each in (K, Q)]
        if _alike(record, *images):
            return Stream(states, K, Q)
        turned = _turned(record, states, images, turns)
        if turned is not None:
            return turned
    return None


def _alike(record: Record, keys, queries) -> bool:
    """Whether these make the recorded logits: every gap to the largest, beside the head's widest.

    Within what the model's precision leaves of them; what is added to all logits of a query is
    seen by no softmax.
    """
    call = record.call
    asked = queries.take_along_dim(record.position[:, None, :, None], dim=2)
    if keys.shape != call.k.shape or asked.shape != call.q.shape:
        return False
    near = max(FLOAT32, 4 * torch.finfo(call.q.dtype).eps)
    for head in range(call.q.shape[1]):
        group, mask = head * call.k.shape[1] // call.q.shape[1], call.masks[0]
        seen = mask[:, head % mask.shape[1]]
        own, other = (
            torch.einsum("nsm,ntm->nst", q.double(), k.double()) * factor
            for q, k, factor in (
                (call.q[:, head], call.k[:, group], call.scale),
                (asked[:, head], keys[:, group], record.factor),
            )
        )
        top = own.masked_fill(~seen, -torch.inf).argmax(dim=2, keepdim=True)
        own, other = ((each.gather(2, top) - each)[seen] for each in (own, other))
        if not bool(((own - other).abs() <= near * own.max()).all()):
            return False
    return True


def _turned(record: Record, states: torch.Tensor, images, turns) -> Stream | None:
    """Features of rotary positions for states, if they give keys and queries.

    `images` are those of the states themselves, not turned.
    """
    real = record.call.masks[0].any(dim=2).any(dim=1).scatter(1, record.position, value=True)
    if int(real.sum()) > MOST:
        return None
    for frequencies in {tuple(each.double().cpu().tolist()) for each in turns}:
        w = torch.tensor(frequencies, dtype=torch.float64)
        if 2 * len(w) > record.call.k.shape[3]:
            continue
        for halves in (True, False):
            keys, queries = (_turn(each, w, halves) for each in images)
            if _alike(record, keys, queries):
                return _in_coordinates(states, keys, queries, w, real)
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


def _in_coordinates(states: torch.Tensor, keys, queries, w, real) -> Stream:
    """States (n, T, r) of the features' inner products, and the maps from them."""
    x, t = states[real], real.nonzero()[:, 1]
    angle = t[:, None] * w
    still = int(2 * len(w) < keys.shape[3])  # parts of a key that are not turned see x itself
    cosines = angle.cos() @ angle.cos().T + angle.sin() @ angle.sin().T + still
    values, vectors = torch.linalg.eigh(x @ x.T * cosines / (len(w) + still))
    kept = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    vectors, sizes = vectors[:, kept], values[kept].sqrt()
    states = torch.zeros(*real.shape, len(sizes), dtype=torch.float64)
    states[real] = vectors * sizes
    inverse = (vectors / sizes).T
    K, Q = (
        (inverse @ each.transpose(1, 2)[real].flatten(1)).T.unflatten(0, each.shape[1::2])
        for each in (keys, queries)
    )
    return Stream(states, K, Q, turned=True)


def packed(allowed: torch.Tensor, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, L) positions of the tokens that a query sees, its own first, and (n,) how many.

    `allowed` (n, T) says which it sees, and `place` (n,) where it stands.
    """
    lengths = allowed.sum(dim=1)
    if int(lengths.min()) < 2:
        raise RangeError(
            "query",
            expected="one that sees at least 2 tokens of each sequence",
            got=f"{int(lengths.min())} in sequence {int(lengths.argmin())}",
            remedy="attention over one token selects nothing: take a later query, or drop these",
        )
    rank = 2 - allowed.long()
    own = torch.arange(allowed.shape[1]) == place[:, None]
    rank = torch.where(own & allowed, 0, rank)
    return rank.argsort(dim=1, stable=True)[:, : int(lengths.max())], lengths


def gathered(values: torch.Tensor, order: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(n, L, ...) the rows of (n, T, ...) in that order; padding is 0."""
    return without_padding(values[torch.arange(len(order))[:, None], order], lengths)[0]
