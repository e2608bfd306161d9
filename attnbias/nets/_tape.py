"""What a model's attention layers are called with: written down while it runs, the model unchanged.

Layers of `transformers` call the function that its `AttentionInterface` names, with queries and
keys as the softmax sees them: after biases, norms and rotary positions. `nn.MultiheadAttention` has
no such door, so a hook makes them from its arguments and its weights, and from those of the
`LocalAttention` of `ViTSmall`.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from ..errors import RangeError
from .vit import LocalAttention

NAME = "attnbias_tape"
# The linear maps to queries and keys, as the layers of `transformers` name them.
MAPS = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"))
UNSEEN = ("softcap", "s_aux", "position_bias")  # what else may enter a softmax
_tape: ContextVar[Tape] = ContextVar("tape")


@dataclass(eq=False)
class Call:
    """One call of an attention layer, on one batch.

    q (b, H, S, m), k and v (b, H', T, m) with H' dividing H; allowed (b, 1 or H, S, T) bool;
    x (b, T, d), what queries, keys and values are linear maps of, or None where that is not known.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    allowed: torch.Tensor
    scale: float
    x: torch.Tensor | None


@dataclass
class Tape:
    """The calls of one pass, by layer: a module, in the order in which they are called."""

    calls: dict[nn.Module, Call] = field(default_factory=dict)
    inputs: dict[nn.Module, torch.Tensor] = field(default_factory=dict)

    def add(self, module: nn.Module, call: Call) -> None:
        if module in self.calls or call.q.shape[1] % call.k.shape[1]:
            refuse(module, "a layer that each pass calls once", "one that is called again")
        self.calls[module] = call


def refuse(module, expected: str, got: str):
    """Refuse a layer that can't be recorded exactly."""
    raise RangeError(
        type(module).__name__, expected=expected, got=got,
        remedy="take the queries and keys yourself: head_from_qk(q, k)",
    ) from None  # fmt: skip


def _interface(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **others):
    """The attention of `transformers`, which is called in place of its own."""
    for name in UNSEEN:
        if others.get(name) is not None:
            refuse(module, "a softmax of q'k and a mask", f"one with {name}")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    causal = attention_mask is None and bool(others.get("is_causal"))
    allowed = allowed_by(attention_mask, query, key, module, causal=causal)
    tape = _tape.get()
    tape.add(module, Call(query, key, value, allowed, scale, tape.inputs.pop(module, None)))
    repeats = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(repeats, dim=1) for each in (key, value))
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=scale)
    return out.transpose(1, 2).contiguous(), None


def allowed_by(mask, q, k, module, *, causal: bool = False) -> torch.Tensor:
    """(b, 1 or H, S, T): True where the mask, True or 0, lets a query see a key."""
    (b, _, S, _), T = q.shape, k.shape[2]
    if mask is None:
        full = torch.ones(S, T, dtype=torch.bool, device=q.device)
        return (full.tril() if causal else full).expand(b, 1, S, T)
    mask = mask[..., :T]
    if mask.dtype != torch.bool:
        seen = mask == 0
        if not bool((seen | (mask <= torch.finfo(mask.dtype).min / 2)).all()):
            refuse(module, "a mask that hides keys or shows them", "one that adds to their logits")
        mask = seen
    return mask.expand(b, -1, S, T)


def maps_of(module) -> tuple[torch.Tensor, ...] | None:
    """The maps to all heads' queries and keys, (rows, d), or (rows, d + 1) from (x, 1), or None."""
    if isinstance(module, nn.MultiheadAttention):
        return tuple(map(_map, *zip(*_in_parts(module)[:2], strict=True)))
    if isinstance(module, LocalAttention):
        return _map(module.qkv.weight, None).chunk(3)[:2]
    if hasattr(module, "query_key_value"):  # GPT-NeoX's, head by head
        both = _map(module.query_key_value.weight, module.query_key_value.bias)
        both = both.unflatten(0, (-1, 3, module.head_size)).transpose(0, 1).flatten(1, 2)
        return tuple(both[:2])
    if hasattr(module, "c_attn"):  # GPT-2's, transposed
        both = _map(module.c_attn.weight.T, module.c_attn.bias)
        return both.chunk(3)[:2] if len(both) % 3 == 0 else None
    if hasattr(module, "Wqkv"):  # ModernBERT's
        return _map(module.Wqkv.weight, module.Wqkv.bias).chunk(3)[:2]
    parts = _linear(module)
    if parts is None:
        return None
    pairs = [(part.weight, part.bias) for part in parts]
    biased = any(bias is not None for _, bias in pairs)
    return tuple(_map(weight, bias, biased) for weight, bias in pairs)


def _map(weight, bias, biased: bool = False) -> torch.Tensor:
    if bias is None and biased:
        bias = weight.new_zeros(len(weight))
    whole = weight if bias is None else torch.cat([weight, bias[:, None]], dim=1)
    return whole.detach().double().cpu()


def _linear(module) -> list[nn.Linear] | None:
    for names in MAPS:
        parts = [getattr(module, name, None) for name in names]
        if all(isinstance(part, nn.Linear) for part in parts):
            return parts
    return None


def _first_of(module) -> nn.Module | None:
    """The part of an attention layer whose input is the x of its queries and keys."""
    linear = _linear(module)
    if linear is not None:
        return linear[0]
    fused = (getattr(module, name, None) for name in ("c_attn", "query_key_value", "Wqkv"))
    return next((part for part in fused if part is not None), None)


@contextlib.contextmanager
def recording(model: nn.Module):
    """Give a function that starts a new tape; every pass in the block is written on the last one.

    Afterwards mode, attention and hooks of the model are what they were, whatever happened.
    """
    training = {module: module.training for module in model.modules()}
    fast = torch.backends.mha.get_fastpath_enabled()
    hooks, token = [], None

    def start() -> Tape:
        _tape.set(tape := Tape())
        return tape

    token = _tape.set(Tape())
    try:
        model.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # it passes the layers by
        for module in model.modules():
            hooks += _hooks(module)
        with _interfaces(model), torch.no_grad():
            yield start
    finally:
        _tape.reset(token)
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()
        for module, mode in training.items():
            module.training = mode


def _hooks(module) -> list:
    if isinstance(module, nn.MultiheadAttention):
        return [module.register_forward_pre_hook(_multihead, with_kwargs=True)]
    if isinstance(module, LocalAttention):
        return [module.register_forward_pre_hook(_local)]
    first = _first_of(module)
    if first is None:
        return []

    def keep(_, inputs):
        _tape.get().inputs[module] = inputs[0]

    return [first.register_forward_pre_hook(keep)]


@contextlib.contextmanager
def _interfaces(model):
    """Let the models of `transformers` inside call `_interface`, with eager attention's masks."""
    parts = [part for part in model.modules() if hasattr(part, "set_attn_implementation")]
    if parts:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface, eager_mask

        AttentionInterface.register(NAME, _interface)
        AttentionMaskInterface.register(NAME, eager_mask)  # without one causal masks are left out
    before = {id(part.config): (part.config, part.config._attn_implementation) for part in parts}
    try:
        for part in parts:
            part.set_attn_implementation(NAME)
        yield
    finally:
        for config, kind in before.values():
            config._attn_implementation = kind


def _multihead(module, inputs, named) -> None:
    """A hook of `nn.MultiheadAttention`: queries and keys of its arguments."""
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask",
             "average_attn_weights", "is_causal")  # fmt: skip
    given = dict(zip(names, inputs, strict=False)) | named
    if module.bias_k is not None or module.add_zero_attn:
        refuse(module, "keys of the tokens alone", "one with bias_k or add_zero_attn")
    batched = given["query"].ndim == 3
    parts = [given[name] if batched else given[name][None] for name in names[:3]]
    if batched and not module.batch_first:
        parts = [part.transpose(0, 1) for part in parts]
    maps = _in_parts(module)
    q, k, v = (
        F.linear(x, *pair).unflatten(2, (module.num_heads, -1)).transpose(1, 2)
        for x, pair in zip(parts, maps, strict=True)
    )
    allowed = allowed_by(_by_head(given.get("attn_mask"), q), q, k, module)
    padding = given.get("key_padding_mask")
    if padding is not None:
        padding = padding if padding.ndim == 2 else padding[None]
        shown = ~padding if padding.dtype == torch.bool else padding
        allowed = allowed & allowed_by(shown[:, None, None], q, k, module)
    same = parts[0].data_ptr() == parts[1].data_ptr() and parts[0].shape == parts[1].shape
    x = parts[0] if same else None
    _tape.get().add(module, Call(q, k, v, allowed, q.shape[-1] ** -0.5, x))


def _local(module, inputs) -> None:
    """A hook of `LocalAttention`: all tokens' queries, also where its layer needs one alone."""
    x = module.norm(inputs[0])
    parts = F.linear(x, module.qkv.weight).unflatten(2, (3, module.heads, -1))
    q, k, v = parts.permute(2, 0, 3, 1, 4)
    others = ~torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
    scale = float(module.log_temperature.exp())
    _tape.get().add(module, Call(q, k, v, others.expand(len(x), 1, -1, -1), scale, x))


def _in_parts(module) -> list[tuple]:
    weights = module.in_proj_weight
    weights = (
        (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        if weights is None else weights.chunk(3)
    )  # fmt: skip
    bias = module.in_proj_bias
    return list(zip(weights, (None,) * 3 if bias is None else bias.chunk(3), strict=True))


def _by_head(mask, q) -> torch.Tensor | None:
    """An attn_mask (S, T) or (b H, S, T), True or -inf where it hides, as `allowed_by` takes it."""
    if mask is None:
        return None
    mask = ~mask if mask.dtype == torch.bool else mask
    return mask[None, None] if mask.ndim == 2 else mask.unflatten(0, q.shape[:2])
