"""Checks of arguments shared by all public functions; each raises a named error."""

from __future__ import annotations

import math
import numbers

import numpy as np
import torch

from .errors import DeviceError, DtypeError, NonFiniteError, RangeError, ShapeError

FLOATS = (torch.float32, torch.float64)


def as_tensor(name: str, value) -> torch.Tensor:
    """A tensor of any numeric dtype from a tensor, an array or nested lists."""
    if isinstance(value, torch.Tensor):
        return value
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"entries of dtype {array.dtype}")
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    except (TypeError, ValueError) as error:
        raise DtypeError(
            name,
            expected="a tensor, a numpy array or nested lists of numbers",
            got=f"{type(value).__name__} ({error})",
            remedy="pass a tensor; for ragged sequences pad and give lengths",
        ) from None


def as_float_tensor(name: str, value, *, dtype=None) -> torch.Tensor:
    """A tensor of dtype float32 or float64, from a tensor, an array or nested lists."""
    value = as_tensor(name, value)
    if value.dtype not in FLOATS:
        raise DtypeError(
            name,
            expected="dtype float64 (or float32)",
            got=str(value.dtype).removeprefix("torch."),
            remedy=f"convert it, for example {name}.to(torch.float64)",
        )
    return value if dtype is None else value.to(dtype)


def require_finite(name: str, tensor: torch.Tensor) -> None:
    """Refuse NaN and infinity, naming how many there are."""
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise NonFiniteError(
            name,
            expected="finite numbers",
            got=f"{bad} NaN or infinite of {tensor.numel()}",
            remedy="clean or drop the rows that hold them",
        )


def require_shape(name: str, tensor: torch.Tensor, shape: tuple, meaning: str) -> None:
    """Refuse any other shape; None in `shape` stands for any size of at least 1."""
    right = tensor.dim() == len(shape) and all(
        size >= 1 and (want is None or size == want)
        for size, want in zip(tensor.shape, shape, strict=True)
    )
    if not right:
        raise ShapeError(
            name,
            expected=f"shape {meaning}" + ("" if None in shape else f" = {tuple(shape)}"),
            got=f"shape {tuple(tensor.shape)}",
            remedy="check the order of the axes: sequences, tokens, features",
        )


def require_device(name: str, tensor: torch.Tensor, device: torch.device) -> None:
    """Refuse a tensor that lies on another device than the data."""
    if tensor.device != device:
        raise DeviceError(
            name,
            expected=f"a tensor on {device}",
            got=f"one on {tensor.device}",
            remedy=f"move it with {name}.to({str(device)!r})",
        )


def require_number(name: str, value, *, low=-math.inf, high=math.inf, open_low=False) -> float:
    """A real number in [low, high] (or (low, high]); bool and NaN are refused."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DtypeError(
            name,
            expected="a real number",
            got=type(value).__name__,
            remedy="pass a float",
        )
    value = float(value)
    if math.isnan(value):
        raise NonFiniteError(name, expected="a number", got="NaN", remedy="check how it was made")
    if value < low or value > high or (open_low and value == low):
        left = "(" if open_low else "["
        raise RangeError(
            name,
            expected=f"a number in {left}{low:g}, {high:g}]",
            got=f"{value:g}",
            remedy="choose a value in that range",
        )
    return value


def require_int(name: str, value, *, low: int, high: int | None = None) -> int:
    """An integer in [low, high]; bool is refused, numpy integers are taken."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise DtypeError(
            name,
            expected="an integer",
            got=f"{type(value).__name__} {value!r}",
            remedy="pass an int",
        )
    if value < low or (high is not None and value > high):
        top = "" if high is None else f" and at most {high}"
        raise RangeError(
            name,
            expected=f"an integer of at least {low}{top}",
            got=str(value),
            remedy="choose a value in that range",
        )
    return int(value)


def require_choice(name: str, value, choices) -> str:
    """One of a few words."""
    if value not in choices:
        raise RangeError(
            name,
            expected="one of " + ", ".join(repr(c) for c in choices),
            got=repr(value),
            remedy="pick one of these",
        )
    return value
