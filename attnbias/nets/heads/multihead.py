"""Hooks for the attention layers of torch and of `ViTSmall`, which the interface does not reach.

Queries, keys and values are made anew from a layer's arguments and weights, and what the layer
returns is made anew from those: `agreement` then holds it against the softmax as for all others.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..vit import LocalAttention
from .calls import KEY, QUERY, VALUE, Call, Part, hiding, note, refuse

NAMES = (
    "query",
    "key",
    "value",
    "key_padding_mask",
    "need_weights",
    "attn_mask",
    "average_attn_weights",
    "is_causal",
)
EACH = (frozenset({QUERY}), frozenset({KEY}), frozenset({VALUE}))


def hooks_of(module: nn.Module) -> list:
    """The hooks of such a layer."""
    if isinstance(module, nn.MultiheadAttention):
        return [module.register_forward_hook(_multihead, with_kwargs=True)]
    if isinstance(module, LocalAttention):
        return [module.register_forward_pre_hook(_local)]
    return []


def _multihead(module, inputs, named, found) -> None:
    """Of `nn.MultiheadAttention`, from its arguments: self-attention if the query is the key."""
    given = dict(zip(NAMES, inputs, strict=False)) | named
    if module.bias_k is not None or module.add_zero_attn:
        refuse(module, "keys of the tokens alone", "one with bias_k or add_zero_attn")
    out, weights = found
    batched = given["query"].ndim == 3
    parts = [given[name] if batched else given[name][None] for name in NAMES[:3]]
    out = out if batched else out[None]
    if batched and not module.batch_first:
        *parts, out = (part.transpose(0, 1) for part in (*parts, out))
    maps = _in_parts(module)
    made = [Part(*each) for each in zip(EACH, maps, parts, strict=True)]
    q, k, v = (
        F.linear(part, *each).unflatten(2, (module.num_heads, -1)).transpose(1, 2)
        for part, each in zip(parts, maps, strict=True)
    )
    if weights is not None:
        weights = weights[:1] if weights.ndim == 4 else None  # else it is their mean
    call = Call(
        q,
        k,
        v,
        out,
        _masks(given, q, k),
        q.shape[-1] ** -0.5,
        weights=weights,
        last=(module.out_proj.weight, module.out_proj.bias),
    )
    note(module, call, made)


def _masks(given: dict, q, k) -> tuple[torch.Tensor, ...]:
    """What its masks, True or -inf where they hide, let queries see; none if they add to logits."""
    (b, heads, S, _), T = q.shape, k.shape[2]
    seen = torch.ones(b, 1, S, T, dtype=torch.bool, device=q.device)
    padding, mask = given.get("key_padding_mask"), given.get("attn_mask")
    if padding is not None:
        padding = padding.reshape(b, 1, 1, T)
    if mask is not None:
        mask = mask.reshape(-1, heads if mask.ndim == 3 else 1, S, T)
    for each in (padding, mask):
        if each is not None:
            found = hiding(each if each.is_floating_point() else ~each)
            if not found:
                return ()
            seen = seen & found[0]
    return (seen,)


def _local(module, inputs) -> None:
    """Of `LocalAttention`: all tokens' queries, also where its layer needs one alone."""
    x = module.norm(inputs[0])
    parts = F.linear(x, module.qkv.weight).unflatten(2, (3, module.heads, -1))
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    others = ~torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
    mask = others.expand(len(x), 1, -1, -1)
    made = Part(frozenset().union(*EACH), (module.qkv.weight, None), x)
    scale = float(module.log_temperature.exp())
    note(module, Call(q, k, v, None, (mask,), scale), [made])


def _in_parts(module) -> list[tuple]:
    weights = module.in_proj_weight
    weights = (
        (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        if weights is None
        else weights.chunk(3)
    )
    bias = module.in_proj_bias
    return list(zip(weights, (None,) * 3 if bias is None else bias.chunk(3), strict=True))
