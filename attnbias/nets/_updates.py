"""v <- momentum v - size g, W <- (1 - decay) W + v, for lists of tensors in few passes.

A parameter's state holds a buffer B and a number `scale` that stand for v = -scale B. With
the new scale = size, B' = (momentum scale / size) B + g and W' = W - size B': torch's fused SGD
kernel makes the whole update in one pass over memory, and B has the magnitude of a gradient.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

import torch

from ._norm import is_sharded

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_fused = getattr(torch, "_fused_sgd_", None)
FUSED_DEVICES, FUSED_DTYPES = ("cpu", "cuda"), (torch.float32, torch.float64)


class Leaf(NamedTuple):
    """A parameter, its gradient and, with momentum, its state."""

    param: torch.Tensor
    grad: torch.Tensor
    state: dict | None


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """What lies here of a sharded tensor; complex numbers as pairs of reals."""
    if type(tensor) not in PLAIN_TYPES and is_sharded(tensor):
        tensor = tensor.to_local()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _dense(grad: torch.Tensor) -> torch.Tensor:
    return _local(grad.to_dense() if grad.is_sparse else grad)


def update_by_numbers(leaves: list[Leaf], size: float, momentum: float, decay: float) -> None:
    """One step where the step size is at hand, on a CPU."""
    if decay and leaves:
        torch._foreach_mul_([_local(leaf.param) for leaf in leaves], 1 - decay)
    if momentum:
        _add_with_momentum(leaves, size, momentum)
    else:
        _add(leaves, -size)


def _add(leaves: list[Leaf], alpha: float) -> None:
    params, grads = [], []
    for param, grad, _ in leaves:
        if grad.is_sparse:
            param.add_(grad, alpha=alpha)
        else:
            params.append(_local(param))
            grads.append(_local(grad))
    if params:
        torch._foreach_add_(params, grads, alpha=alpha)


def _add_with_momentum(leaves: list[Leaf], size: float, momentum: float) -> None:
    batches = defaultdict(list)
    for leaf in leaves:
        row, scale = (_local(leaf.param), _dense(leaf.grad), _buffer(leaf)), leaf.state["scale"]
        keep = momentum * scale / size if size else math.inf
        if row[0].dtype not in FUSED_DTYPES or not 1e-30 < keep < 1e30:
            row, keep, size_ = (row[0], row[1] * size, _velocity(leaf)), momentum, 1.0
        else:
            leaf.state["scale"] = size_ = size
        batches[row[0].dtype, keep, size_, _is_whole(row)].append(row)
    for (_, keep, size_, whole), rows in batches.items():
        _call(rows, whole, keep, size_)


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
        _call(zip(params, steps, *rest, strict=True), whole, momentum, 1.0, found_inf)


def _times(grads: list, size: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    """size * gradient; half precision would round the size to three digits."""
    if dtype in FUSED_DTYPES:
        return torch._foreach_mul(grads, size.to(dtype))
    return [(grad.float() * size.float()).to(dtype) for grad in grads]


def _buffer(leaf: Leaf) -> torch.Tensor:
    if "momentum_buffer" not in leaf.state:
        leaf.state["momentum_buffer"] = torch.zeros_like(leaf.param)
        leaf.state["scale"] = 1.0
    return _local(leaf.state["momentum_buffer"])


def _velocity(leaf: Leaf) -> torch.Tensor:
    """The buffer at scale 1; one that another form left is rescaled in place."""
    buffer = _buffer(leaf)
    if leaf.state["scale"] != 1:
        buffer.mul_(leaf.state["scale"])
        leaf.state["scale"] = 1.0
    return buffer


def _is_whole(row: tuple) -> bool:
    """Whether torch's fused kernel may take these tensors.

    It walks memory in order, and on a CPU (torch 2.13) it moves no more than the tail of a
    half-precision tensor.
    """
    if _fused is None or row[0].dtype not in FUSED_DTYPES:
        return False
    return all(tensor.is_contiguous() for tensor in row)


def _call(rows, whole: bool, momentum: float, lr: float, found_inf=None) -> None:
    params, grads, *buffers = map(list, zip(*rows, strict=True))
    kernel = _fused if whole else _plain
    kernel(
        params,
        grads,
        buffers[0] if buffers else [],
        weight_decay=0.0,
        momentum=momentum,
        lr=lr,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
        found_inf=found_inf,
    )


def _plain(params, grads, buffers, *, momentum, lr, found_inf=None, **_) -> None:
    """torch's fused kernel again, for layouts, devices and versions that lack it."""
    for i, (param, step) in enumerate(zip(params, grads, strict=True)):
        if buffers:
            step = step + buffers[i] * momentum
            if found_inf is not None:
                step = torch.where(found_inf > 0, buffers[i], step)
            buffers[i].copy_(step)
        if found_inf is not None:
            step = torch.where(found_inf > 0, 0, step)
        param.sub_(step, alpha=lr)
