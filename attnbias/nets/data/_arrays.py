"""What the sets and the examples ask of their arrays."""

from __future__ import annotations

import numpy as np

from ..._validate import as_numbers, require_shape, require_type, short
from ...errors import DtypeError, LabelError, RangeError


def require_array(name: str, value, dtype: type, shape: tuple, meaning: str) -> None:
    """A numpy array of this dtype and shape."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        raise DtypeError(
            name,
            expected=f"a numpy array of {dtype.__name__}",
            got=str(getattr(value, "dtype", type(value).__name__)),
            remedy=f"convert with numpy.asarray({name}, numpy.{dtype.__name__})",
        )
    require_shape(name, value, shape, meaning)


def require_labels(labels, classes: tuple[str, ...], *counts: int) -> None:
    """One label for each of so many examples, a position in `classes`."""
    named = isinstance(classes, tuple | list) and all(isinstance(c, str) for c in classes)
    words = "the names of the classes"
    require_type("classes", classes, tuple | list if named else (), words, "pass a tuple of str")
    for count in counts:
        require_array("labels", labels, np.int64, (count,), "(m,), one for each image or text")
    if labels.min() < 0 or labels.max() >= len(classes):
        raise LabelError(
            "labels",
            expected=f"integers from 0 to {len(classes) - 1}",
            got=f"{labels.min()} to {labels.max()}",
            remedy="labels are positions in classes",
        )


def as_rows(name: str, value, count: int, least: int = 0) -> np.ndarray:
    """Row numbers, so many at least, each from 0 to count - 1."""
    rows = as_numbers(name, value)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise DtypeError(
            name,
            expected="a vector of integers",
            got=short(value),
            remedy="pass row numbers, for example generator.permutation(len(examples))",
        )
    if len(rows) < least or (rows.size and not 0 <= rows.min() <= rows.max() < count):
        raise RangeError(
            name,
            expected=f"at least {least} row numbers, each from 0 to {count - 1}",
            got=f"{rows.min()} to {rows.max()}" if rows.size else "none",
            remedy="they number the rows of a table",
        )
    return rows.astype(np.int64)
