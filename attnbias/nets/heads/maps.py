"""The affine maps that make a layer's queries and keys, found by what its parts do.

A part is read where it is a plain linear map that holds its weights; any other, such as an adapter,
a quantised or an offloaded one, is called on zero and on the unit vectors. How the rows of a part
are shared out among the heads is not known beforehand: each way is offered, and the recorded
queries and keys decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from .calls import KEY, QUERY, VALUE, Call, Part

ALL = frozenset({QUERY, KEY, VALUE})


def maps_of(call: Call, x: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Maps to all heads' keys (H', m, r) and queries (H, m, r) that the layer may have.

    r is the width of x, or one more where a map has a bias.
    """
    heads, kv, width = call.q.shape[1], *call.k.shape[1::2]
    if heads % kv:
        return
    of_x = (part for part in reversed(call.parts) if part.given.shape == x.shape)
    found = {part.roles: affine_of(part) for part in of_x}
    for shares in _shared_out(found.get(ALL), (heads // kv, 1, 1), width, kv):
        yield shares[1].unflatten(0, (kv, width)), shares[0].unflatten(0, (heads, width))
    query, keys = found.get(frozenset({QUERY})), [found.get(frozenset({KEY}))]
    keys += [each[0] for each in _shared_out(found.get(frozenset({KEY, VALUE})), (1, 1), width, kv)]
    for key in keys:
        if key is not None and query is not None and len(query) == heads * width:
            longest = max(key.shape[1], query.shape[1])
            pair = (nn.functional.pad(each, (0, longest - each.shape[1])) for each in (key, query))
            key, query = pair
            yield key.unflatten(0, (-1, width)), query.unflatten(0, (-1, width))


def _shared_out(rows, counts: tuple[int, ...], width: int, groups: int) -> Iterator:
    """The rows of a fused part by what they make, as blocks, then group by group of heads."""
    if rows is None or len(rows) != groups * sum(counts) * width:
        return
    yield rows.split([groups * count * width for count in counts])
    by_group = rows.unflatten(0, (groups, sum(counts), width)).split(counts, dim=1)
    yield [each.flatten(0, 2) for each in by_group]


def affine_of(part: Part) -> torch.Tensor:
    """The map (rows, d) of a part, or (rows, d + 1) of (x, 1) if it has a bias, in float64."""
    maps: Any = part.maps
    if not isinstance(maps, nn.Module):
        weight, bias = maps
    elif _plain(maps):
        weight, bias = maps.weight.T if _transposed(maps) else maps.weight, maps.bias
    else:
        weight, bias = _probed(maps, part.given)
    both = [weight] if bias is None else [weight, bias[:, None]]
    return torch.cat([each.detach().cpu().double() for each in both], dim=1)


def _plain(part: nn.Module) -> bool:
    """Whether the part is what its weights say: no hook, nothing in place of its forward."""
    return (
        (type(part) is nn.Linear or _transposed(part))
        and "forward" not in vars(part)
        and not part.weight.is_meta
        and not part._forward_hooks
        and len(part._forward_pre_hooks) <= 1  # that of the tape
    )


def _transposed(part: nn.Module) -> bool:
    return (type(part).__module__, type(part).__name__) == ("transformers.pytorch_utils", "Conv1D")


def _probed(part: nn.Module, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """By its values at 0 and at the unit vectors, these so long that the bias rounds none away."""
    d, size = like.shape[-1], 1.0
    for _ in range(2):
        points = torch.cat([like.new_zeros(1, d), size * torch.eye(d).to(like)])
        values = part(points[None]).detach().cpu().double().reshape(d + 1, -1)
        bias, weight = values[0], (values[1:] - values[0]).T / size
        ratio = float(bias.abs().max()) / max(float(weight.abs().max()), 1e-30)
        if ratio <= 1:
            break
        size = 2.0 ** min(10, math.ceil(math.log2(ratio)))
    biased = bool(bias.any()) or getattr(part, "bias", None) is not None
    return weight, bias if biased else None
