"""Norm of a list of gradients as one vector, added up in float64.

In float32 the sum over ten million squares is wrong in the fourth digit, and the squares of a
gradient of 1e-20 vanish.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from ..dynamics.compiled.arithmetic import jit_sum
from ._scalars import real_dtype, scalar

SMALL, PIECE = 2**12, 2**18
_pool = functools.cache(ThreadPoolExecutor)


@jit_sum
def sum_of_squares(x):
    """Of a vector; reads at eight places at once, since one stream leaves the bus half idle."""
    n, total = x.size // 8, 0.0
    for i in range(n):
        for j in range(8):
            total += np.float64(x[i + j * n]) ** 2
    for i in range(8 * n, x.size):
        total += np.float64(x[i]) ** 2
    return total


def norm_as_number(grads: list[torch.Tensor]) -> float:
    """The norm as a float, on a CPU, by as many threads as torch uses."""
    small, pieces, rest = [], [], []
    for grad in grads:
        plain = type(grad) is torch.Tensor and grad.layout is torch.strided
        if not plain or grad.dtype is not torch.float32 or not grad.is_contiguous():
            rest.append(grad)
        elif grad.numel() <= SMALL:
            small.append(grad.view(-1))
        else:
            pieces.append(grad.view(-1))
    pieces += [torch.cat(small)] if small else []
    norm = math.sqrt(_squares(pieces))
    return math.hypot(norm, float(norm_on_device(rest, torch.device("cpu")))) if rest else norm


def _squares(flat: list[torch.Tensor]) -> float:
    threads = torch.get_num_threads()
    if threads == 1 or sum(map(torch.numel, flat)) < PIECE:
        return sum(sum_of_squares(part.numpy()) for part in flat)
    pieces = [piece for part in flat for piece in part.split(PIECE)]
    shares = [[piece.numpy() for piece in pieces[k::threads]] for k in range(threads)]
    others = _pool(threads - 1).map(_share, shares[1:])
    return _share(shares[0]) + sum(others)


def _share(pieces: list[np.ndarray]) -> float:
    return sum(map(sum_of_squares, pieces))


def norm_on_device(grads: list[torch.Tensor], home: torch.device) -> torch.Tensor:
    """The norm as a 0-dim tensor on `home`."""
    kinds, norms = defaultdict(list), []
    for grad in grads:
        grad = grad.values() if grad.is_sparse else grad
        sharding = (grad.device_mesh, grad.placements) if is_sharded(grad) else None
        if grad.numel():
            kinds[grad.device, grad.dtype, sharding].append(grad)
    for (device, dtype, sharding), tensors in kinds.items():
        peak = 1.0
        if dtype.itemsize == (16 if dtype.is_complex else 8) and not sharding:
            peak = _peak(tensors)  # float64 itself holds no squares below 1e-154
            tensors = [tensor / peak for tensor in tensors]
        wide = real_dtype(device).to_complex() if dtype.is_complex else real_dtype(device)
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(tensors, 2, dtype=wide)))
        norm = (norm.full_tensor() if sharding else norm) * peak
        norms.append(norm.to(home, real_dtype(home), non_blocking=True))
    return torch.linalg.vector_norm(torch.stack(norms)) if norms else scalar(0.0, home)


def _peak(tensors: list[torch.Tensor]) -> torch.Tensor:
    """The largest entry's size, or 1 where it is no number to divide by."""
    peak = torch.stack(torch._foreach_norm(tensors, math.inf)).amax()
    return torch.where((peak > 0) & peak.isfinite(), peak, 1.0)


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether other processes hold parts of it."""
    return hasattr(tensor, "full_tensor")
