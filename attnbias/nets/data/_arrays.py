"""What the sets and the examples ask of their arrays."""

from __future__ import annotations

import numpy as np

from ..._validate import as_tensor, short
from ...errors import DtypeError, LabelError, RangeError, ShapeError


def require_array(name: str, value, dtype: type) -> None:
    """A numpy array of this dtype."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        raise DtypeError(
            name,
            expected=f"a numpy array of {dtype.__name__}",
            got=str(getattr(value, "dtype", type(value).__name__)),
            remedy=f"convert with numpy.asarray({name}, numpy.{dtype.__name__})",
        )


def require_labels(labels, classes: tuple[str, ...], *counts: int) -> None:
    """One label for each of so many examples, a position in `classes`."""
    if not isinstance(classes, tuple | list) or not all(isinstance(c, str) for c in classes):
        raise DtypeError(
            "classes",
            expected="the names of the classes",
            got=short(classes),
            remedy="pass a tuple of str",
        )
    require_array("labels", labels, np.int64)
    if any(labels.shape != (count,) for count in counts) or not labels.size:
        raise ShapeError(
            "labels",
            expected="shape (m,), with m images, texts or pairs and m > 0",
            got=f"shape {labels.shape} for " + " and ".join(map(str, counts)),
            remedy="one label for each image, text or pair",
        )
    if labels.min() < 0 or labels.max() >= len(classes):
        raise LabelError(
            "labels",
            expected=f"integers from 0 to {len(classes) - 1}",
            got=f"{labels.min()} to {labels.max()}",
            remedy="labels are positions in classes",
        )


def as_rows(name: str, value, count: int, least: int = 0) -> np.ndarray:
    """Row numbers, so many at least, each from 0 to count - 1."""
    rows = as_tensor(name, value).detach().cpu().numpy()
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
