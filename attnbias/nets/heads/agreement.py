"""Whether a layer's attention is the softmax of q'k under a mask, by what the layer returned.

No list says which models are. What comes out of a layer's own function is held against the softmax
of its queries and keys in float64, within what the function's own precision rounds: logits, weights
and sums of numbers with unit roundoff u.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from .calls import Call, refuse

ROUNDINGS = 4  # of a logit in an eager attention: the product, its scale, its mask, the softmax
# What a product of float32 is rounded to where a faster arithmetic is asked of torch.
FASTER = {"high": 2.0**-11, "medium": 2.0**-8}


def units(dtype: torch.dtype) -> tuple[float, float]:
    """Unit roundoff of a stored number, and of a sum of products, which is made in float32."""
    own = torch.finfo(dtype).eps / 2
    single = min(own, torch.finfo(torch.float32).eps / 2)
    single = FASTER.get(torch.get_float32_matmul_precision(), single) if own > 1e-10 else single
    return max(own, single if dtype == torch.float32 else 0.0), single


def softmax_of(q, k, v, seen, scale: float, dtype) -> tuple[torch.Tensor, ...]:
    """Weights (H, S, T) and outputs (H, S, m) in float64, and how far rounding may move each.

    Of one sequence: q (H, S, m), k and v (H', T, m), seen (1 or H, S, T).
    """
    own, summed = units(dtype)
    entries = 2 * own if torch.finfo(q.dtype).eps < own else 0.0  # autocast rounds q and k as well
    repeats = q.shape[0] // k.shape[0]
    q, (k, v) = q.double(), (each.double().repeat_interleave(repeats, 0) for each in (k, v))
    logits = q @ k.transpose(1, 2) * scale
    moved = ROUNDINGS * own * logits.abs()
    moved += (16 * summed + entries) * (q.abs() @ k.abs().transpose(1, 2)) * scale
    moved = moved.clamp(max=1.0)
    weights = F.softmax(logits.masked_fill(~seen, -torch.inf), dim=2)
    mean = (weights * moved).sum(dim=2, keepdim=True)
    out = weights @ v
    near = 2 * (weights * (moved + own)) @ v.abs() + 2 * (mean + 2 * own) * out.abs()
    return weights, out, 2 * weights * (moved + mean) + 4 * own, near


def agrees(call: Call, mask: torch.Tensor, sequence: int) -> bool:
    """Whether the softmax under this mask is what the layer has returned of one sequence."""
    if call.out is None:
        return True
    q, k, v, seen, own = (
        each[sequence].detach().cpu() for each in (call.q, call.k, call.v, mask, call.out)
    )
    dtype = max((each.dtype for each in (q, k, v, own)), key=lambda each: torch.finfo(each).eps)
    weights, out, weights_near, near = softmax_of(q, k, v, seen, call.scale, dtype)
    out, near = (each.transpose(0, 1).flatten(1) for each in (out, near))  # (S, H m)
    if call.last is not None:
        weight, bias = call.last[0].detach().cpu().double(), call.last[1]
        bias = None if bias is None else bias.detach().cpu().double()
        sizes = out.abs() @ weight.abs().T
        out = F.linear(out, weight, bias)
        near = near @ weight.abs().T + 16 * max(units(dtype)) * (sizes + out.abs())
    if own.numel() != out.numel():
        return False
    some = seen.any(dim=2)  # what sees nothing is padding
    pairs = [(own.reshape(out.shape), out, near, some.all(dim=0)[:, None])]
    if call.weights is not None and sequence == 0 and call.weights.shape[1:] == weights.shape:
        pairs.append((call.weights[0].cpu(), weights, weights_near, some[:, :, None]))
    return not any(
        bool((((one.double() - other).abs() > allowed) & real & one.isfinite()).any())
        for one, other, allowed, real in pairs
    )


def settled(module, call: Call) -> torch.Tensor:
    """The mask under which the first sequence agrees, (b, 1 or H, S, T)."""
    if call.q.shape[2] != call.k.shape[2]:
        refuse(
            module,
            "queries and keys of the same tokens",
            "keys kept from an earlier pass, or of other tokens",
            "give whole sequences, without past_key_values",
        )
    if not call.masks:
        refuse(module, "a mask that hides keys or shows them", "one that adds to their logits")
    for mask in call.masks:
        if agrees(call, mask, 0):
            return mask
    return differs(module, call)


def differs(module, call: Call):
    """Refuse a layer that returns another attention than the softmax of q'k."""
    refuse(module, "a softmax of q'k and a mask", f"another attention, called with {call.others}")
