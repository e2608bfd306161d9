"""What tells one thing from another: a checksum of what is exact, projections of what is rounded.

Code is known by what it makes. Two machines make the same numbers but for rounding, which no
checksum allows; a few random projections of them move as little as they do, and as much.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

import numpy as np
import torch

COUNT = 6  # of projections: a change hides from one by chance, not from all
PLAIN = bool | int | float | complex | str | bytes | None


def digest(value) -> str:
    """A short checksum of numbers, words, tensors and collections of them."""
    return "sha256 " + hashlib.sha256(in_words(value).encode()).hexdigest()[:16]


def in_words(value) -> str:
    """A value in words that are equal where it is, also in another process; of code its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        if np.prod(value.shape) == 1:
            return repr(value.item())
        array = value
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().to_dense().resolve_conj().contiguous().reshape(-1)
            array = flat.view(torch.uint8).numpy()  # numpy has no bfloat16
        bits = hashlib.sha256(np.asarray(array).tobytes()).hexdigest()
        return f"{value.dtype} {list(value.shape)} {bits}"
    if isinstance(value, Mapping):
        return f"({', '.join(f'{key!r}: {in_words(each)}' for key, each in value.items())})"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(in_words, value))})"
    return repr(value) if isinstance(value, PLAIN | torch.dtype) else kind(value)


def kind(value) -> str:
    """The name of a function or a class, or of the class of anything else."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def projections(values) -> list[float]:
    """Of an array, each row of its last axis by its direction and by the logarithm of its size.

    Where every row moves by a share e of its largest entry, each number moves by about e / 5.
    """
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().double()
    values = np.atleast_1d(np.asarray(values, dtype=float))
    size = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    with np.errstate(invalid="ignore"):  # NaN and infinite ones are known by being so
        return (_projected(values / size) + _projected(np.log(size))).tolist()


def _projected(values: np.ndarray) -> np.ndarray:
    found = values[..., None, :]
    for axis, length in enumerate(reversed(values.shape)):
        # of numpy the one stream that never changes
        factors = np.random.RandomState(axis).uniform(-1, 1, (length, COUNT))
        found = found @ factors if axis == 0 else (found * factors[:, None]).sum(axis=-3)
    return found[0] / np.sqrt(max(values.size, 1))


def differing(marks: Mapping, others: Mapping, tolerance: float) -> list[str]:
    """Names under which two collections of marks, words or lists of numbers, disagree."""
    names = {**marks, **others}
    return [name for name in names if not _alike(marks.get(name), others.get(name), tolerance)]


def _alike(one, other, tolerance: float) -> bool:
    if not (isinstance(one, list) and isinstance(other, list) and len(one) == len(other)):
        return one == other
    return np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
