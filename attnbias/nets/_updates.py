"""Norm of a list of gradients, and v <- momentum v - size g, W <- (1 - decay) W + v.

A parameter's state holds a buffer B and a number `scale` that stand for v = -scale B, so that
torch's fused SGD kernel makes the whole update in one pass over memory, whatever the sizes
are: with scale' = max(momentum scale, size),
B' = (momentum scale / scale') B + (size / scale') g and W' = W - scale' B'.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import torch

ROW = 4096
_fused = getattr(torch, "_fused_sgd_", None)
FUSED_DEVICES = ("cpu", "cuda")


class Leaf(NamedTuple):
    """A parameter, its gradient and, with momentum, its state."""

    param: torch.Tensor
    grad: torch.Tensor
    state: dict | None


def real_dtype(device: torch.device) -> torch.dtype:
    """float64, or the widest that the device has."""
    return torch.float32 if device.type == "mps" else torch.float64


def gradient_norm(grads: list[torch.Tensor], home: torch.device) -> torch.Tensor:
    """Norm of all gradients as one vector: 0-dim, float64, on `home`.

    Squares are added up in float64, or in float32 over short rows: one float32 sum over ten
    million entries is wrong in the fourth digit.
    """
    norm = _norm(grads, home, exact=home.type != "cpu")
    if home.type == "cpu" and not 1e-15 < float(norm) < 1e15:  # float32 squares may not hold it
        norm = _norm(grads, home, exact=True)
    return norm


def _norm(grads: list[torch.Tensor], home: torch.device, exact: bool) -> torch.Tensor:
    whole, parts = defaultdict(list), []
    for grad in grads:
        grad = grad.values() if grad.is_sparse else grad
        if exact or grad.numel() <= ROW or grad.dtype != torch.float32 or not _is_plain(grad):
            whole[grad.device, grad.dtype, type(grad)].append(grad)
            continue
        flat = grad.view(-1)
        even = flat.numel() // ROW * ROW
        parts.append(torch.linalg.vector_norm(flat[:even].view(-1, ROW), dim=1))
        parts.append(torch.linalg.vector_norm(flat[even:])[None])
    for (device, _, _), tensors in whole.items():
        wide = real_dtype(device)
        wide = wide.to_complex() if tensors[0].is_complex() else wide
        norms = torch._foreach_norm(tensors, 2, dtype=wide)
        parts.append(torch.stack([n.full_tensor() if _sharded(n) else n for n in norms]))
    if not parts:
        return torch.zeros((), dtype=real_dtype(home), device=home)
    parts = [part.to(home, real_dtype(home), non_blocking=True) for part in parts]
    return torch.linalg.vector_norm(torch.cat(parts))


def _sharded(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not _sharded(tensor)


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """What lies here of a sharded tensor; complex numbers as pairs of reals."""
    tensor = tensor.to_local() if _sharded(tensor) else tensor
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _dense(grad: torch.Tensor) -> torch.Tensor:
    return _local(grad.to_dense() if grad.is_sparse else grad)


def update_by_numbers(leaves: list[Leaf], size: float, momentum: float, decay: float) -> None:
    """One step where the step size is at hand, on a CPU."""
    params = [_local(leaf.param) for leaf in leaves]
    if decay and params:
        torch._foreach_mul_(params, 1 - decay)
    if not momentum:
        _add(params, leaves, -size)
        return
    batches = defaultdict(list)
    for param, leaf in zip(params, leaves, strict=True):
        row = (param, _dense(leaf.grad), _buffer(leaf))
        old = leaf.state["scale"]
        leaf.state["scale"] = max(momentum * old, size)
        batches[param.dtype, old, _is_whole(row)].append(row)
    for (_, old, whole), rows in batches.items():
        scale = max(momentum * old, size)
        if scale:
            keep = max(momentum * old / scale, 1e-300)  # at 0 the kernel wants no buffers
            _call(rows, whole, keep, scale, 1 - size / scale)


def _add(params: list[torch.Tensor], leaves: list[Leaf], alpha: float) -> None:
    dense = [
        (p, _local(leaf.grad))
        for p, leaf in zip(params, leaves, strict=True)
        if not leaf.grad.is_sparse
    ]
    if dense:
        torch._foreach_add_(*map(list, zip(*dense, strict=True)), alpha=alpha)
    for param, leaf in zip(params, leaves, strict=True):
        if leaf.grad.is_sparse:
            param.add_(leaf.grad, alpha=alpha)


def update_on_device(leaves, size, momentum: float, decay, still: torch.Tensor) -> None:
    """One step where `size`, `decay` and the flag `still` are tensors that nobody may read."""
    batches = defaultdict(list)
    for leaf in leaves:
        param = _local(leaf.param)
        row = (param, _dense(leaf.grad)) + ((_velocity(leaf),) if momentum else ())
        batches[param.device, param.dtype, _is_whole(row)].append(row)
    for (device, dtype, whole), rows in batches.items():
        params, grads, *rest = map(list, zip(*rows, strict=True))
        if decay is not None:
            factor = torch.where(still, 1, 1 - decay)
            torch._foreach_mul_(params, factor.to(device, dtype, non_blocking=True))
        steps = _times(grads, size.to(device, non_blocking=True), dtype)
        whole = whole and device.type in FUSED_DEVICES
        found_inf = still.to(device, torch.float32, non_blocking=True)
        _call(zip(params, steps, *rest, strict=True), whole, momentum, 1.0, 0.0, found_inf)


def _times(grads: list, size: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    """size * gradient; half precision would round the size to three digits."""
    if dtype in (torch.float32, torch.float64):
        return torch._foreach_mul(grads, size.to(dtype))
    return [(grad.float() * size.float()).to(dtype) for grad in grads]


def _buffer(leaf: Leaf) -> torch.Tensor:
    if "momentum_buffer" not in leaf.state:
        leaf.state["momentum_buffer"] = torch.zeros_like(leaf.param)
        leaf.state["scale"] = 0.0
    return _local(leaf.state["momentum_buffer"])


def _velocity(leaf: Leaf) -> torch.Tensor:
    """The buffer at scale 1; one that `update_by_numbers` left is rescaled in place."""
    buffer = _buffer(leaf)
    if leaf.state["scale"] != 1:
        buffer.mul_(leaf.state["scale"])
        leaf.state["scale"] = 1.0
    return buffer


def _is_whole(row: tuple) -> bool:
    """Whether torch's fused kernel, which walks memory in order, may take these tensors."""
    return _fused is not None and all(tensor.is_contiguous() for tensor in row)


def _call(rows, whole: bool, momentum, lr: float, dampening: float, found_inf=None) -> None:
    params, grads, *buffers = map(list, zip(*rows, strict=True))
    kernel = _fused if whole else _plain
    kernel(
        params,
        grads,
        buffers[0] if buffers else [],
        weight_decay=0.0,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=False,
        maximize=False,
        is_first_step=False,
        found_inf=found_inf,
    )


def _plain(params, grads, buffers, *, momentum, lr, dampening, found_inf=None, **_) -> None:
    """torch's fused kernel again, for layouts, devices and versions that lack it."""
    for i, (param, step) in enumerate(zip(params, grads, strict=True)):
        if buffers:
            step = torch.add(buffers[i] * momentum, step, alpha=1 - dampening)
            if found_inf is not None:
                step = torch.where(found_inf > 0, buffers[i], step)
            buffers[i].copy_(step)
        if found_inf is not None:
            step = torch.where(found_inf > 0, 0, step)
        param.sub_(step, alpha=lr)
