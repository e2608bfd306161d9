"""The few functions a step size needs, for a float at hand and for a 0-dim tensor on a device.

A GPU's numbers must not be read within a step; on a CPU a float costs a hundredth of a tensor.
"""

from __future__ import annotations

import math

import torch

LARGEST_EXPONENT = 709.0


def real_dtype(device: torch.device) -> torch.dtype:
    """float64, or the widest that the device has."""
    return torch.float32 if device.type == "mps" else torch.float64


def scalar(value, home: torch.device) -> torch.Tensor:
    """A number as a 0-dim tensor on `home`, without waiting for the device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(home, real_dtype(home), non_blocking=True).reshape(())
    return torch.full((), value, dtype=real_dtype(home), device=home)


def log(x):
    """-inf at 0 and NaN below."""
    if isinstance(x, torch.Tensor):
        return x.log()
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def exp(x):
    """inf where a float can't hold it."""
    if isinstance(x, torch.Tensor):
        return x.exp()
    return math.inf if x > LARGEST_EXPONENT else math.exp(x)


def least(x, y):
    """The smaller one; y may be a float beside a tensor."""
    return x.clamp(max=y) if isinstance(x, torch.Tensor) else min(x, y)


def choose(condition, x, y):
    """x where the condition holds, else y."""
    if isinstance(condition, torch.Tensor):
        return torch.where(condition, x, y)
    return x if condition else y


def is_finite(x):
    """Neither NaN nor infinite."""
    return x.isfinite() if isinstance(x, torch.Tensor) else math.isfinite(x)


def negate(x):
    """`not`, which would read a tensor."""
    return ~x if isinstance(x, torch.Tensor) else not x
