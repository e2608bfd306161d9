"""Arguments that several rooms take, validated in one place."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_type_hints

import numpy as np
import torch

from ..._validate import as_floats, require_seed, require_type, short
from ...dataset import Dataset, require_dataset
from ...errors import DtypeError, RangeError, ShapeError
from ...geometry.solution import SVMSolution

R = TypeVar("R")  # rows of a hard-margin problem
WIDER = {int: numbers.Integral, float: numbers.Real, bool: bool | np.bool_}


def seeded(seed: int) -> torch.Generator:
    """A generator of this seed, which is refused unless torch takes it."""
    return torch.Generator().manual_seed(require_seed(seed))


def as_finite(name: str, value, shape: tuple, letters: str) -> torch.Tensor:
    """Finite numbers of this shape, a copy in float64."""
    return as_floats(name, value, shape, letters).to(torch.float64, copy=True)


def as_start(W0, shape: tuple[int, ...], letters: str) -> torch.Tensor:
    """The first iterate in float64, zero by default."""
    if W0 is None:
        return torch.zeros(shape, dtype=torch.float64)
    return as_finite("W0", W0, shape, letters)


def require_kind(name: str, value, kind: type, remedy: str) -> None:
    """Refuse anything but an instance of a class."""
    require_type(name, value, kind, f"a {kind.__name__}", remedy)


def require_svm(name: str, svm, rows: type[R], solver: str) -> R:
    """The rows of a solution, which are of this kind, as `solver` gives it."""
    if not isinstance(svm, SVMSolution) or not isinstance(svm.rows, rows):
        raise DtypeError(
            name, expected=f"the SVMSolution of {solver}", got=short(svm), remedy=f"pass {solver}"
        )
    return svm.rows


@dataclass(frozen=True, eq=False)
class Typed:
    """A dataclass whose fields are of the types that it names."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            wanted, remedy = f"a field of type {kind.__name__}", "see what its maker puts there"
            require_type(name, getattr(self, name), WIDER.get(kind, kind), wanted, remedy)


def alternating(n: int) -> torch.Tensor:
    """(n,) labels 1 and -1 in turn, in float64."""
    return 1.0 - 2.0 * (torch.arange(n) % 2).double()


def require_even(data: Dataset, *, cross: bool = False) -> None:
    """Refuse anything but a data set with sequences of one length."""
    require_dataset(data, cross=cross)
    if not bool((data.lengths == data.T).all()):
        raise ShapeError(
            "data",
            expected="sequences of one length",
            got="ragged ones",
            remedy="drop padded sequences",
        )


def listed(name: str, values, require: Callable) -> list:
    """At least one value, each as `require` returns it; one alone may stand without a list."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    values = list(values) if isinstance(values, list | tuple | range) else [values]
    if not values:
        raise RangeError(
            name, expected="at least one value", got="none", remedy="leave it out for the default"
        )
    return [require(name, value) for value in values]
