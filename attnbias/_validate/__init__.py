"""Checks of arguments shared by all public functions; each raises a named error."""

from __future__ import annotations

import contextlib
import math
import numbers
import os
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike

from ..errors import (
    DeviceError,
    DtypeError,
    MemoryLimitError,
    NonFiniteError,
    RangeError,
    ShapeError,
    printable,
)
from .frames import holds_frames, listing, unframed

# What the public functions accept, in words for a type checker.
TensorLike: TypeAlias = torch.Tensor | ArrayLike  # a tensor, an array or nested lists of numbers
PathLike: TypeAlias = str | os.PathLike[str]
DeviceLike: TypeAlias = str | torch.device

Word = TypeVar("Word", bound=str | int)

FLOATS = (torch.float32, torch.float64)
AXES = "check the order of the axes: sequences, tokens, features"


def as_tensor(name: str, value) -> torch.Tensor:
    """A dense tensor of any numeric dtype from a tensor, an array or nested lists."""
    if isinstance(value, torch.Tensor):
        require_dense(name, value)
        return value
    given, value = value, unframed(name, value)
    try:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError("a mask, which would be lost")
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"entries of dtype {array.dtype}")
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DtypeError(
            name,
            expected="a tensor, a numpy array or nested lists of numbers",
            got=f"{type(given).__name__} ({first_sentence(error)})",
            remedy=_numbers(name, given),
        ) from None


def _numbers(name: str, value) -> str:
    """How to pass the numbers of something that is no array of them."""
    own = name.rstrip("0")  # W of W0
    with contextlib.suppress(Exception):  # of any object's attributes
        if isinstance(getattr(value, own, None), torch.Tensor):
            return f"pass its {own}: {name}={type(value).__name__.lower()}.{own}"
    try:
        entries = np.asarray(value, dtype=object).flat
        ragged = any(isinstance(each, list | tuple) or getattr(each, "ndim", 0) for each in entries)
    except (TypeError, ValueError, RuntimeError):  # lengths that numpy can't even list
        ragged = True
    if ragged:
        return "give its rows one length; sequences of several are for Dataset.from_sequences"
    return "pass numbers, for example a tensor"


def require_dense(name: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor that holds no entries, or not all of them one after another."""
    if tensor.is_meta:
        raise DeviceError(
            name,
            expected="a tensor with entries",
            got="one on the meta device, which holds none",
            remedy="make it on 'cpu' or on a GPU",
        )
    parts = (
        "pass its parts, [*nested.unbind()], where a list is taken, as in Dataset.from_sequences"
    )
    kinds = {
        "nested": (tensor.is_nested, parts),
        "quantized": (tensor.is_quantized, "use dequantize()"),
        "sparse": (tensor.layout != torch.strided, "use to_dense()"),
    }
    for kind, (found, remedy) in kinds.items():
        if found:
            raise DtypeError(name, expected="a dense tensor", got=f"a {kind} one", remedy=remedy)


def as_float_tensor(name: str, value) -> torch.Tensor:
    """A tensor of dtype float32 or float64, from a tensor, an array or nested lists."""
    given, value = value, as_tensor(name, value)
    if holds_frames(given) and not (value.is_floating_point() or value.is_complex()):
        value = value.double()  # which of its columns hold whole numbers is an accident
    if value.dtype not in FLOATS:
        raise DtypeError(
            name,
            expected="dtype float64 (or float32)",
            got=dtype_name(value),
            remedy=f"convert it: {name}.double() in torch, {name}.astype(float) in numpy",
        )
    return value


def as_numbers(name: str, value, shape: tuple | None = None, dtype=None) -> np.ndarray:
    """Real numbers, NaN among them, as an array; of a shape, to which one number is repeated."""
    if isinstance(value, torch.Tensor):
        require_dense(name, value)
    try:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu()
            value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError("a mask, which would be lost")
        array = np.asarray(value)
        if array.dtype.kind == "O" and not any(each is None for each in array.flat):
            array = array.astype(float)  # integers beyond 64 bits, fractions
        if array.dtype.kind not in "biuf":
            raise TypeError(f"entries of dtype {array.dtype}")
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise DtypeError(
            name,
            expected="real numbers: a tensor, an array or a list",
            got=f"{type(value).__name__} ({error})",
            remedy="pass floats",
        ) from None
    # in C's order, since torch takes no negative strides
    array = np.asarray(array, dtype, order="C")
    if shape is None or array.shape == shape:
        return array
    if array.size == 1 and array.ndim <= len(shape):
        return np.broadcast_to(array, shape)
    raise ShapeError(
        name,
        expected=f"shape {shape}, or a single number",
        got=f"shape {array.shape}",
        remedy="pass one number for each value beside it",
    )


def require_finite(name: str, tensor: torch.Tensor, columns: list | None = None) -> None:
    """Refuse NaN and infinity, naming how many there are, and in which columns of a table."""
    bad = ~torch.isfinite(tensor)
    if bool(bad.any()):
        got = f"{int(bad.sum())} NaN or infinite of {tensor.numel()}"
        if columns is not None:
            got += ", in column " + listing(columns[k] for k in bad.any(dim=0).nonzero().flatten())
        raise NonFiniteError(
            name, expected="finite numbers", got=got, remedy="clean or drop the rows that hold them"
        )


def require_shape(name: str, tensor, shape: tuple, meaning: str, remedy: str = AXES) -> None:
    """Refuse any other shape of a tensor or an array; None stands for any size of at least 1."""
    right = tensor.ndim == len(shape) and all(
        size >= 1 and (want is None or size == want)
        for size, want in zip(tensor.shape, shape, strict=True)
    )
    if not right:
        expected = f"shape {meaning}" + ("" if None in shape else f" = {tuple(shape)}")
        got = f"shape {tuple(tensor.shape)}"
        raise ShapeError(name, expected=expected, got=got, remedy=remedy)


def as_floats(name: str, value, shape: tuple, meaning: str, device=None) -> torch.Tensor:
    """A float tensor of that shape without NaN and infinity, on that device if one is given."""
    value = as_float_tensor(name, value).detach()
    require_shape(name, value, shape, meaning)
    require_device(name, value, value.device if device is None else device)
    require_finite(name, value)
    return value


def require_vectors(**tensors) -> None:
    """Dense float tensors of shapes that broadcast, as they are: none is read or copied."""
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor) or value.dtype not in FLOATS:
            raise DtypeError(
                name,
                expected="a tensor of dtype float32 or float64",
                got=short(value),
                remedy="pass torch.as_tensor of floats",
            )
        require_dense(name, value)
    if len(tensors) == 1:
        return
    try:
        np.broadcast_shapes(*(tuple(value.shape) for value in tensors.values()))
    except ValueError:  # torch's own function would import sympy
        got = " and ".join(str(tuple(value.shape)) for value in tensors.values())
        raise ShapeError(
            ", ".join(tensors),
            expected="shapes that broadcast",
            got=got,
            remedy="pass one number for each value beside it",
        ) from None


def require_device(name: str, tensor: torch.Tensor, device: torch.device) -> None:
    """Refuse a tensor that lies on another device than the data."""
    if tensor.device != device:
        raise DeviceError(
            name,
            expected=f"a tensor on {device}",
            got=f"one on {tensor.device}",
            remedy=f"move it with {name}.to({str(device)!r})",
        )


def as_device(name: str, device) -> torch.device:
    """A device that torch can use here."""
    expected = "a device that torch has here, such as 'cpu'"
    if isinstance(device, torch.dtype):
        raise DeviceError(
            name, expected=expected, got=f"the dtype {device}", remedy=f"name it: dtype={device}"
        )
    try:
        return torch.empty(0, device=torch.device(device)).device
    except (TypeError, ValueError, RuntimeError, AssertionError, OverflowError) as error:
        remedy = "ask torch.cuda.is_available() whether torch sees a GPU"
        if not (isinstance(device, str | torch.device) and str(device).startswith("cuda")):
            remedy = "name a device as torch does; a dtype goes by its name, dtype=torch.float64"
        raise DeviceError(
            name,
            expected=expected,
            got=f"{short(device)} ({first_sentence(error)})",
            remedy=remedy,
        ) from None


def require_float_dtype(name: str, dtype) -> torch.dtype:
    """The dtype, which must be torch.float32 or torch.float64."""
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATS:
        raise DtypeError(
            name,
            expected="torch.float64 (or torch.float32)",
            got=short(dtype),
            remedy="half precision and integers can't hold the log domain",
        )
    return dtype


def dtype_name(tensor: torch.Tensor) -> str:
    """The dtype of a tensor, as numpy would call it."""
    return str(tensor.dtype).removeprefix("torch.")


def require_type(name: str, value, kinds, expected: str, remedy: str):
    """A value of one of the types."""
    if not isinstance(value, kinds):
        raise DtypeError(name, expected=expected, got=type(value).__name__, remedy=remedy)
    return value


def short(value) -> str:
    """What a message shows of a value: at most 60 characters of its repr, of arrays the shape."""
    kind = f"a {type(value).__name__}"
    try:
        shape = None if isinstance(value, np.generic) else getattr(value, "shape", None)
        text = f"{kind} of shape {tuple(shape)}" if isinstance(shape, tuple) else repr(value)
    except (ValueError, RuntimeError):  # an int of more digits than Python prints, a nested tensor
        text = kind.replace("a int", "a huge int")
    text = kind if any(mark in text for mark in ("tensor(", "array(", "\n")) else text
    return text if len(text) <= 60 else text[:57] + "..."


def first_sentence(error: Exception) -> str:
    """The first sentence of another's message, cut between words where it is long."""
    text = " ".join((str(error).strip() or type(error).__name__).splitlines()[0].split())
    return textwrap.shorten(re.split(r"\.\s", text)[0].rstrip(".:"), 160, placeholder=" ...")


def as_name(value) -> str:
    """A word for tables and captions, of anything, with its control characters escaped."""
    return printable(value if isinstance(value, str) else short(value))


def require_flag(name: str, value) -> bool:
    """True or False; a word or a number is refused, since any non-empty word is true."""
    if not isinstance(value, bool | np.bool_):
        raise DtypeError(name, expected="True or False", got=short(value), remedy="pass a bool")
    return bool(value)


def require_number(
    name: str, value, *, low=-math.inf, high=math.inf, open_low=False, open_high=False
) -> float:
    """A real number between `low` and `high`, open ends left out; bool and NaN are refused."""
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_meta:
        value = value.item()
    # numpy registers its time differences as integers
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Real):
        got = type(value).__name__
        raise DtypeError(name, expected="a real number", got=got, remedy="pass a float")
    try:
        value = float(value)
    except OverflowError:  # an integer or a fraction beyond float64
        value = math.inf if value > 0 else -math.inf
    if math.isnan(value):
        raise NonFiniteError(name, expected="a number", got="NaN", remedy="check how it was made")
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    outside = value < low or value > high
    if outside or (open_low and value == low) or (open_high and value == high):
        raise RangeError(
            name,
            expected=f"a number in {left}{low:g}, {high:g}{right}",
            got=f"{value:g}",
            remedy="choose a value in that range",
        )
    return value


def require_int(name: str, value, *, low: int, high: int = 2**31 - 1) -> int:
    """An integer in [low, high]; bool is refused, numpy integers are taken."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Integral):
        got = f"{type(value).__name__} {short(value)}"
        raise DtypeError(name, expected="an integer", got=got, remedy="pass an int")
    if not low <= int(value) <= high:
        raise RangeError(
            name,
            expected=f"an integer of at least {low} and at most {high}",
            got=short(value),
            remedy="choose a value in that range",
        )
    return int(value)


def require_seed(seed) -> int:
    """An integer that torch's and numpy's generators take."""
    return require_int("seed", seed, low=0, high=2**63 - 1)


@contextlib.contextmanager
def memory_named(what: str, expected: str, remedy: str) -> Iterator[None]:
    """Let an allocation that fails in the block, or in a function, be a MemoryLimitError."""
    try:
        yield
    except MemoryLimitError:
        raise
    except (MemoryError, RuntimeError) as error:
        full = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not full and "allocate memory" not in str(error):
            raise
        got = " ".join(str(error).split()[-25:])  # torch ends with the bytes
        got = got or "an allocation that failed"
        raise MemoryLimitError(what, expected=expected, got=got, remedy=remedy) from error


def require_mapping(name: str, value) -> Mapping:
    """A mapping; None is an empty one."""
    value, remedy = {} if value is None else value, "pass a dict, or leave it out"
    return require_type(name, value, Mapping, "a mapping of names to values", remedy)


def require_choice(name: str, value: Word, choices: Collection[Word]) -> Word:
    """One of a few words."""
    if not isinstance(value, str | int) or value not in choices:
        raise RangeError(
            name,
            expected="one of " + ", ".join(repr(c) for c in choices),
            got=short(value),
            remedy="pick one of these",
        )
    return value


def require_choices(name: str, value, choices) -> list[str]:
    """One of a few words, or several of them: at least one."""
    try:
        given = [value] if isinstance(value, str) else [*value]
    except TypeError:
        given = [value]
    if not given:
        expected = "at least one of " + ", ".join(map(repr, choices))
        raise RangeError(name, expected=expected, got="none", remedy="name one")
    return [require_choice(name, each, tuple(choices)) for each in given]
