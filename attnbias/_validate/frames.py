"""pandas' frames and series as arrays: what is no number in them is named by its column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import DtypeError, ShapeError

FEW = 6  # names that a message shows


def is_frame(value) -> bool:
    """Whether it is a DataFrame or a Series of pandas, which is not imported for that."""
    return hasattr(value, "iloc")


def holds_frames(value) -> bool:
    """Whether it is a frame, a series or a list of such."""
    return is_frame(value) or (isinstance(value, list | tuple) and any(map(is_frame, value)))


def unframed(name: str, value):
    """Frames and series, alone or in a list, as arrays; anything else as it is."""
    if is_frame(value) and value.ndim == 1 and len(value) and is_frame(value.iloc[0]):
        value = [*value]
    if is_frame(value):
        return _array(name, value)
    if holds_frames(value):
        require_same_columns(name, value)
        return [unframed(f"{name}[{i}]", each) for i, each in enumerate(value)]
    return value


def _array(name: str, frame) -> np.ndarray:
    array = np.asarray(frame)
    if array.dtype.kind in "biufc":
        return array
    columns = [frame] if frame.ndim == 1 else [frame.iloc[:, k] for k in range(frame.shape[1])]
    faults = [
        f"{'it' if column.name is None else repr(column.name)} is {fault}"
        for column in columns
        if (fault := _fault(column))
    ]
    if faults:
        kind = f"{type(frame).__name__} (entries of dtype {array.dtype})"
        raise DtypeError(
            name,
            expected="numbers, none of them missing",
            got=f"{kind}: {listing(faults)}",
            remedy="leave these columns out, or convert them by astype(float) and drop or fill "
            "what is missing",
        )
    arrays = [column.to_numpy(getattr(column.dtype, "numpy_dtype", None)) for column in columns]
    return arrays[0] if frame.ndim == 1 else np.stack(arrays, axis=1)


def _fault(column) -> str:
    """What makes a column no numbers; empty if nothing does."""
    if getattr(column.dtype, "kind", "O") not in "biufc":
        return f"of dtype {column.dtype}"
    missing = int(column.isna().sum())
    return f"missing {missing}" if missing else ""


def columns_of(value) -> list | None:
    """The names of a table's columns, of pandas, polars or pyarrow; None of anything else."""
    names = getattr(value, "column_names", None)
    names = getattr(value, "columns", None) if names is None else names
    return None if names is None else [*names]


def require_same_columns(name: str, tables: Sequence) -> None:
    """Tables whose columns have the same names in the same order, since only places count."""
    every = ((i, columns_of(table)) for i, table in enumerate(tables))
    named = [(i, columns) for i, columns in every if columns is not None]
    for i, columns in named[1:]:
        first, wanted = named[0]
        if columns == wanted:
            continue
        remedy = "give all tables the same columns, or pass arrays if the names mean nothing"
        if len(columns) == len(wanted) and all(column in wanted for column in columns):
            order = f"list({name}[{first}].columns)"
            remedy = f"put them in one order: {name} = [each[{order}] for each in {name}]"
        raise ShapeError(
            f"{name}[{i}]",
            expected=f"the columns of {name}[{first}], {listing(wanted)}",
            got=listing(columns),
            remedy=remedy,
        )


def listing(names: Iterable) -> str:
    """A few names, and how many more there are."""
    words = [str(each)[:40] for each in names]
    more = f" and {len(words) - FEW} more" if len(words) > FEW else ""
    return ", ".join(words[:FEW]) + more
