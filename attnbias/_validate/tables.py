"""A data frame with a token in each row as sequences of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np
import torch

from ..errors import DtypeError, LabelError, RangeError
from . import as_float_tensor, require_finite, short
from .frames import is_frame, listing
from .labels import labels_of
from .sequences import too_short


def sequences_of(frame, by, features, label) -> tuple[list[torch.Tensor], torch.Tensor]:
    """(T_i, d) tokens and a label for each value of `by`, in order of appearance."""
    by, features = _columns(frame, by, features, label)
    X = as_float_tensor("frame[features]", frame[features])
    require_finite("frame[features]", X, features)
    keys = [*zip(*(_values(frame, column) for column in by), strict=True)]
    labels: dict = {}
    for key, value in zip(keys, _values(frame, label), strict=True):
        if labels.setdefault(key, value) != value:
            raise LabelError(
                f"frame[{label!r}]",
                expected=f"one label in all rows of {_named(by, key)}",
                got=f"{short(labels[key])} and {short(value)}",
                remedy="a sequence has one label: mend these rows, or group by more columns",
            )
    place = {key: i for i, key in enumerate(labels)}
    rows = np.array([place[key] for key in keys])
    sizes = np.bincount(rows)
    if sizes.min() < 2:
        raise too_short(f"frame, {_named(by, [*labels][int(sizes.argmin())])}")
    y = labels_of(f"frame[{label!r}]", [*labels.values()])
    return [*X[rows.argsort(kind="stable")].split(sizes.tolist())], y


def _columns(frame, by, features, label) -> tuple[list, list]:
    """`by` and `features` as lists of names, all of them and the label columns of the frame."""
    if not is_frame(frame) or frame.ndim != 2 or not len(frame):
        raise DtypeError(
            "frame",
            expected="a pandas DataFrame of at least one row",
            got=short(frame),
            remedy="pass one with a token in each row",
        )
    there = Counter(frame.columns)
    by, features = _names(there, by), _names(there, features)
    wrong = [each for each in (*by, *features, label) if _count(there, each) != 1]
    if wrong or not by or not features:
        raise RangeError(
            "frame",
            expected="by, features and label among its columns, each name once there",
            got=f"{listing(map(short, wrong)) or 'no name'}, of columns {listing(there)}",
            remedy="reset_index() makes columns of an index",
        )
    return by, features


def _names(there: Counter, given) -> list:
    """One name, or those that a list or an index has."""
    if isinstance(given, str) or _count(there, given):
        return [given]
    try:
        return [*given]
    except (TypeError, RuntimeError):  # torch refuses to go through some tensors
        return [given]


def _count(there: Counter, name) -> int:
    try:
        return there[name]
    except TypeError:  # a list or an array
        return 0


def _values(frame, column) -> list:
    """What stands in a column, if it is there in each row and can be looked up."""
    found, missing = frame[column].tolist(), int(frame[column].isna().sum())
    if missing or not all(isinstance(each, Hashable) for each in found):
        raise RangeError(
            f"frame[{column!r}]",
            expected="a number or a word in each row",
            got=f"{missing} missing" if missing else "lists or arrays",
            remedy=f"drop these rows: frame.dropna(subset=[{column!r}])",
        )
    return found


def _named(by: list, key: tuple) -> str:
    return " and ".join(f"{name} = {short(value)}" for name, value in zip(by, key, strict=True))
