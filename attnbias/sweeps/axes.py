"""Blocks of lists, multiplied out: a list in a block is an axis, a list of blocks their union."""

from __future__ import annotations

import contextlib
import itertools
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import numpy as np
import torch

from ..errors import DtypeError, RangeError

MOST_RUNS = 10**6
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object, in place of words of its own
_RANGE = re.compile(r"-?\d{1,18}:-?\d{1,18}(:-?[1-9]\d{0,17})?")  # first:end or first:end:stride


@contextlib.contextmanager
def writable(name: str) -> Iterator[None]:
    """Refuse values that can't be written out, by which runs are told apart."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DtypeError(
            name,
            expected="values that can be written out",
            got=str(error)[:100],
            remedy="give numbers, words, and lists of them",
        ) from None


def axes_of(name: str, blocks) -> list[dict]:
    """The axes of one block or of a list of them; what is no block, such as a rule, is one axis."""
    listed = blocks if isinstance(blocks, list | tuple) else [blocks]
    return [
        {key: _axis(f"{name}.{key}", value) for key, value in block.items()}
        if isinstance(block, Mapping)
        else {None: [block]}
        for block in _filled(name, listed)
    ]


def combinations(blocks: list[dict]) -> Iterator:
    for axes in blocks:
        for values in itertools.product(*axes.values()):
            yield values[0] if None in axes else dict(zip(axes, values, strict=True))


def _filled(name: str, values):
    if isinstance(values, range) and values and abs(values[-1] - values[0]) > 10**18:
        raise RangeError(
            name,
            expected=f"at most {MOST_RUNS} values",
            got="a longer range",
            remedy="take a shorter range",
        )
    if not values:
        raise RangeError(
            name,
            expected="at least one value or block",
            got="an empty list",
            remedy="fill it, or leave it out for the default",
        )
    return values


def _axis(name: str, value) -> list | range:
    """The values of one key of a block: a list's entries, or the value alone."""
    if isinstance(value, str) and _RANGE.fullmatch(value):
        value = range(*(int(part) for part in value.split(":")))
    value = value if isinstance(value, range) else plain_list(value)
    if not isinstance(value, list | range):
        return [value]
    if name == "rule.decay" and all(isinstance(part, int | float) for part in value):
        return [tuple(value)]  # one pair (p, q), not an axis
    return _filled(name, value)


def plain_list(value):
    """A list from a list, a tuple or an array; anything else as it is."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, list | tuple) else value


def distinct(name: str, items) -> tuple:
    """The items, none of them twice by its `key`."""
    items = tuple(items)
    with writable(name):
        ((mark, count),) = Counter(item.key for item in items).most_common(1)
    if count > 1:
        raise RangeError(
            name,
            expected="every run once",
            got=f"one twice: {mark[:60]}",
            remedy="take a value out of an axis, or a block out of the union",
        )
    return items


def plain(value):
    """A value with its numbers as Python's own, whole ones as integers: they have one text each."""
    if isinstance(value, np.generic | np.ndarray | torch.Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, numbers.Rational | Decimal) and not isinstance(value, int):
        value = float(value) if float(value) == value else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def key_of(value) -> str:
    """A text that values have in common which differ in how their numbers are written alone."""
    return repr(plain(value))


def cells(rows: Sequence[Mapping]) -> list[dict]:
    """Arguments as columns hold them: numbers and words, anything else written out.

    None and NaN are as well: a cell that is empty is that of a row without this argument. Values
    that are written alike, None and "None" among them, are numbered.
    """
    found: list[dict] = [{} for _ in rows]
    for name in dict.fromkeys(name for row in rows for name in row):
        having = [k for k, row in enumerate(rows) if name in row]
        values = [_scalar(rows[k][name]) for k in having]
        keys = [(v, True) if isinstance(v, str) else (key_of(v), False) for v in values]
        words = told_apart((_ADDRESS.sub("", key[0]), key) for key in keys)
        for k, value, word in zip(having, values, words, strict=True):
            number = isinstance(value, int | float) and value == value
            found[k][name] = value if number else word
    return found


def _scalar(value):
    return value.item() if getattr(value, "ndim", None) == 0 else value  # of numpy and torch


def told_apart(named: Iterable[tuple[str, object]]) -> list[str]:
    """The names of several things with a key each, numbered where things of one name differ."""
    keys: dict[str, dict] = {}
    found = []
    for name, key in named:
        number = keys.setdefault(name, {}).setdefault(key, len(keys[name]) + 1)
        found.append(name if number == 1 else f"{name} #{number}")
    return found
