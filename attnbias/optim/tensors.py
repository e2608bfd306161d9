"""What a step does to tensors: the norm of a gradient as one vector, and the move itself."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)
BLOCK = 8192  # numbers whose squares are added up in single precision: an error of 1e-8
# A size beyond the largest of bfloat16 is taken as this factor on the gradient and the rest.
LIFT, LARGEST = 2.0**100, torch.finfo(torch.bfloat16).max


def grad_norm(grads: list[torch.Tensor]) -> float:
    """The norm of tensors as one vector, added up in float64.

    In float32 the sum over ten million squares is wrong in the fourth digit, and the squares of
    a gradient of 1e-20 vanish.
    """
    kinds = defaultdict(list)
    for grad in grads:
        grad = _coalesced(grad).values() if grad.is_sparse else grad
        grad = torch.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad
        grad = grad.float() if grad.itemsize < 2 else grad  # no arithmetic in a byte
        if grad.numel():
            sharding = None
            if type(grad) not in PLAIN:
                sharding = getattr(grad, "device_mesh", None), getattr(grad, "placements", None)
            kinds[grad.device, grad.dtype, sharding].append(grad)
    return math.hypot(*map(_norm, kinds.values()))


def _norm(tensors: list[torch.Tensor]) -> float:
    """Of tensors of one kind; where single or double precision can't hold their squares, with
    more of it or by the largest entry.
    """
    if tensors[0].device.type == "cpu" and type(tensors[0]) in PLAIN:
        norm = _norm_of_blocks(tensors)
        if 1e-10 < norm < math.inf:
            return norm
    norm = _plain_norm(tensors, 2)
    if 1e-140 < norm < math.inf:
        return norm
    peak = _plain_norm(tensors, math.inf)
    if not 0 < peak < math.inf:
        return peak
    return peak * _plain_norm([tensor.double() / peak for tensor in tensors], 2)


def _norm_of_blocks(tensors: list[torch.Tensor]) -> float:
    """A third of the time that torch takes for a norm in double precision."""
    wide = torch.promote_types(tensors[0].dtype, torch.float32)
    norms, rest = [], [t if t.dim() == 1 else t.reshape(-1) for t in tensors if t.numel() < BLOCK]
    for flat in (tensor.reshape(-1) for tensor in tensors if tensor.numel() >= BLOCK):
        end = len(flat) // BLOCK * BLOCK
        rest.append(flat[end:])
        norms.append(torch.linalg.vector_norm(flat[:end].view(-1, BLOCK), dim=1, dtype=wide))
    last = torch.linalg.vector_norm(torch.cat(rest), dtype=torch.float64).to(wide)
    return float(torch.linalg.vector_norm(torch.cat([*norms, last[None]]), dtype=torch.float64))


def _plain_norm(tensors: list[torch.Tensor], order: float) -> float:
    wide = torch.float32 if tensors[0].device.type == "mps" else torch.float64
    norms = torch._foreach_norm(tensors, order, dtype=wide)
    norm = torch.linalg.vector_norm(torch.stack(norms), order)
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def local(tensors: list) -> list:
    """What lies here of tensors that several processes hold; of sparse ones each entry once."""
    if all(type(tensor) in PLAIN and not tensor.is_sparse for tensor in tensors):
        return tensors
    here = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    return [_coalesced(tensor) for tensor in here]


def _coalesced(grad: torch.Tensor) -> torch.Tensor:
    return grad.coalesce() if grad.is_sparse else grad


def advance(group: dict, size: float, weights: list, grads: Any, buffers=()) -> None:
    """Make v <- momentum v - size g and W <- (1 - lr decay) W + v; a buffer holds -v."""
    if size > LARGEST:
        grads, size = torch._foreach_mul(grads, LIFT), size / LIFT
    if group["weight_decay"]:
        torch._foreach_mul_(weights, 1 - float(group["lr"]) * group["weight_decay"])
    if group["momentum"]:
        torch._foreach_mul_(buffers, float(group["momentum"]))
        torch._foreach_add_(buffers, grads, alpha=size)
        torch._foreach_sub_(weights, buffers)
    else:
        torch._foreach_add_(weights, grads, alpha=-size)
