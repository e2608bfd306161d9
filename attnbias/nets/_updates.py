"""Norm of a list of gradients, and v <- momentum v - size g, W <- (1 - decay) W + v.

The momentum buffer B and a number `scale` in a parameter's state stand for v = -scale B, so
that torch's fused SGD kernel makes the whole update in one pass over memory whatever the step
sizes are: with scale' = max(momentum scale, size),
B' = (momentum scale / scale') B + (size / scale') g and W' = W - scale' B'.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import torch

_fused = getattr(torch, "_fused_sgd_", None)
FUSED_DEVICES = ("cpu", "cuda")


class Leaf(NamedTuple):
    """A parameter, its gradient and its state."""

    param: torch.Tensor
    grad: torch.Tensor
    state: dict


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a sharded tensor that lies here, complex numbers as pairs of reals."""
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def gradient_norm(grads: list[torch.Tensor], home: torch.device) -> torch.Tensor:
    """Norm of all gradients as one vector, a 0-dim float64 tensor on `home`."""
    by_kind = defaultdict(list)
    for grad in grads:
        grad = grad.values() if grad.is_sparse else grad
        by_kind[grad.device, grad.dtype, type(grad)].append(grad)
    parts = []
    for (_, dtype, _), tensors in by_kind.items():
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        norms = torch._foreach_norm(tensors, 2, dtype=None if dtype == wide else wide)
        norms = [n.full_tensor() if hasattr(n, "full_tensor") else n for n in norms]
        total = torch.stack(norms).to(torch.float64)
        parts.append(total.to(home, non_blocking=True))
    if not parts:
        return torch.zeros((), dtype=torch.float64, device=home)
    return torch.linalg.vector_norm(torch.cat(parts))


def update_by_numbers(leaves: list[Leaf], size: float, momentum: float, decay: float) -> None:
    """One step on a CPU, where the step size is at hand."""
    params = [local(leaf.param) for leaf in leaves]
    if decay and params:
        torch._foreach_mul_(params, 1 - decay)
    if not momentum:
        _add(params, leaves, -size)
        return
    batches = defaultdict(list)
    for param, leaf in zip(params, leaves, strict=True):
        grad, buffer = _dense(leaf.grad), _buffer(param, leaf.state)
        whole = param.is_contiguous() and grad.is_contiguous() and buffer.is_contiguous()
        old = leaf.state["scale"]
        leaf.state["scale"] = scale = max(momentum * old, size)
        batches[param.dtype, old, scale, whole].append((param, grad, buffer))
    for (_, old, scale, whole), rows in batches.items():
        if not scale:
            continue
        kernel = _fused if _fused and whole else _plain
        keep = max(momentum * old / scale, 1e-300)  # the kernel takes no buffers with a zero
        _call(kernel, rows, keep, scale, 1 - size / scale)


def _add(params, leaves: list[Leaf], alpha: float) -> None:
    dense = [(p, local(leaf.grad)) for p, leaf in zip(params, leaves, strict=True)]
    dense = [pair for pair in dense if not pair[1].is_sparse]
    if dense:
        torch._foreach_add_(*map(list, zip(*dense, strict=True)), alpha=alpha)
    for param, leaf in zip(params, leaves, strict=True):
        if leaf.grad.is_sparse:
            param.add_(leaf.grad, alpha=alpha)


def update_on_device(leaves, size, momentum: float, decay: float, dead: torch.Tensor) -> None:
    """One step where `size` and the flag `dead` are tensors that the host must not read."""
    batches, factor = defaultdict(list), torch.where(dead, 1.0, 1.0 - decay)
    for leaf in leaves:
        param = local(leaf.param)
        if decay:
            param.mul_(factor.to(param.device, param.dtype, non_blocking=True))
        if leaf.grad.is_sparse and not momentum:
            _add_sparse(param, leaf.grad, size, dead)
            continue
        grad, row = _dense(leaf.grad), (param,)
        if momentum:
            row = (param, _velocity(param, leaf.state))
        whole = all(t.is_contiguous() for t in (grad, *row))
        batches[param.device, param.dtype, whole].append((param, grad, *row[1:]))
    for (device, dtype, whole), rows in batches.items():
        step = _times(rows, size.to(device, non_blocking=True), dtype)
        found = dead.to(device, torch.float32, non_blocking=True)
        kernel = _fused if _fused and whole and device.type in FUSED_DEVICES else _plain
        _call(kernel, step, momentum, 1.0, 0.0, found)


def _times(rows: list[tuple], size: torch.Tensor, dtype: torch.dtype) -> list[tuple]:
    """The rows with size * gradient for the gradient; half precision multiplies in float32."""
    grads = [row[1] for row in rows]
    if dtype in (torch.float32, torch.float64):
        steps = torch._foreach_mul(grads, size.to(dtype))
    else:
        steps = [(g.float() * size.float()).to(dtype) for g in grads]
    return [(row[0], step, *row[2:]) for row, step in zip(rows, steps, strict=True)]


def _add_sparse(param, grad, size, dead) -> None:
    values = (grad.values() * size).to(grad.dtype)
    values = torch.where(dead, torch.zeros_like(values), values)
    param.sub_(torch.sparse_coo_tensor(grad.indices(), values, grad.shape, is_coalesced=True))


def _dense(grad: torch.Tensor) -> torch.Tensor:
    return grad.to_dense() if grad.is_sparse else local(grad)


def _buffer(param: torch.Tensor, state: dict) -> torch.Tensor:
    if "momentum_buffer" not in state:
        state["momentum_buffer"], state["scale"] = torch.zeros_like(param), 0.0
    return state["momentum_buffer"]


def _velocity(param: torch.Tensor, state: dict) -> torch.Tensor:
    """The buffer with scale 1; one that an update by numbers left is rescaled in place."""
    buffer = _buffer(param, state)
    if state["scale"] != 1.0:
        buffer.mul_(state["scale"])
        state["scale"] = 1.0
    return buffer


def _call(kernel, rows, momentum, lr, dampening, found_inf=None) -> None:
    params, grads, *buffers = map(list, zip(*rows, strict=True))
    kernel(
        params,
        grads,
        buffers[0] if buffers else [],
        weight_decay=0.0,
        momentum=momentum if buffers else 0.0,
        lr=lr,
        dampening=dampening,
        nesterov=False,
        maximize=False,
        is_first_step=False,
        found_inf=found_inf,
    )


def _plain(params, grads, buffers, *, momentum, lr, dampening, found_inf=None, **_) -> None:
    """What torch's fused kernel does, for layouts, devices and versions that lack it."""
    for i, (param, step) in enumerate(zip(params, grads, strict=True)):
        if buffers:
            step = torch.add(buffers[i] * momentum, step, alpha=1 - dampening)
            if found_inf is not None:
                step = torch.where(found_inf > 0, buffers[i], step)
            buffers[i].copy_(step)
        if found_inf is not None:
            step = torch.where(found_inf > 0, torch.zeros_like(step), step)
        param.sub_(step, alpha=lr)
