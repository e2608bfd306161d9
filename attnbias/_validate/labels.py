"""Labels -1 and +1; what two other classes are mapped by."""

from __future__ import annotations

import torch

from ..errors import DtypeError, LabelError
from . import as_tensor, dtype_name, require_device, require_shape


def as_labels(y, X: torch.Tensor) -> torch.Tensor:
    """(n,) labels -1 and +1 in the dtype of X (n, T, d), copied."""
    y = labels_of("y", y)
    require_shape("y", y, (X.shape[0],), "(n,)")
    require_device("y", y, X.device)
    return y.to(X.dtype, copy=True)


def labels_of(name: str, y) -> torch.Tensor:
    """Labels -1 and +1; the error for others has the line that maps them."""
    try:
        found = as_tensor(name, y).detach()
    except DtypeError as error:
        remedy = _mapping(name, y) or error.remedy
        raise DtypeError(name, expected="labels -1 and +1", got=error.got, remedy=remedy) from None
    remedy = "map your two classes to -1 and +1"
    if found.dtype == torch.bool or found.is_complex():
        raise DtypeError(
            name,
            expected="numbers -1 and +1",
            got=dtype_name(found),
            remedy=_mapping(name, y) or remedy,
        )
    others = torch.nonzero((found != 1) & (found != -1))  # unsigned integers have no abs
    if len(others):
        raise LabelError(
            name,
            expected="labels in {-1, +1}",
            got=f"{len(others)} others, first {found[tuple(others[0])].item():g}",
            remedy=_mapping(name, y) or remedy,
        )
    return found


def _mapping(name: str, y) -> str:
    """The line of Python that makes labels of two classes; empty where there are not two."""
    try:
        classes = sorted({*(y.tolist() if hasattr(y, "tolist") else y)})
        if classes and {*classes} <= {0, 1}:
            classes = [0, 1]
        if len(classes) != 2 or any(each != each for each in classes):
            return ""
    except (TypeError, ValueError, RuntimeError):  # of any object
        return ""
    word = repr(classes[1])
    line = f"map them: {name} = [1 if label == {word} else -1 for label in {name}]"
    return line if len(word) < 60 else ""
