"""The data sets that a grid names: models of data, a function or a file of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .._validate import require_type, short
from ..data import Dataset, load_binary_mnist, make_dm, make_example1, make_separation_pair
from .axes import cells, key_of, told_apart, writable
from .code import bound, resolved, same_function

#: The data sets that a grid may call by a short name, and the functions that make them.
MODELS: dict[str, Callable[..., Dataset]] = {
    "example1": make_example1,
    "dm": make_dm,
    "separation_pair": make_separation_pair,
    "mnist": load_binary_mnist,
}


@dataclass(frozen=True, eq=False)
class Point:
    """One data set of a sweep: a model and its arguments.

    Attributes
    ----------
    model : str
        A name of `MODELS`, "module:function", or the name of an npz file of tokens; numbered
        where several functions of a grid have one name.
    arguments : tuple of (str, value)
        All of the model's, defaults among them.
    function : callable
    cells : dict
        The arguments as the table holds them.
    """

    model: str
    arguments: tuple[tuple[str, object], ...]
    function: Callable[..., Dataset]
    cells: Mapping[str, object]

    def make(self) -> Dataset:
        """The data set.

        Raises
        ------
        DtypeError
            When the model gives something else; and the errors of the model.
        """
        data, wanted = self.function(**dict(self.arguments)), "a function that returns a Dataset"
        remedy = "wrap your tokens: Dataset(X, y, u)"
        return require_type(f"data model {self.model}", data, Dataset, wanted, remedy)

    @property
    def seed(self) -> int:
        """That of the data; 0 where the model has none."""
        seed = dict(self.arguments).get("seed", 0)
        return seed if isinstance(seed, int) else 0

    @property
    def key(self) -> str:
        """One for all ways to write its numbers."""
        return key_of((self.model, self.arguments))

    @property
    def family(self) -> str:
        """What points share that differ in nothing but their seed."""
        return key_of((self.model, *((k, v) for k, v in self.arguments if k != "seed")))

    def __str__(self) -> str:
        return f"{self.model}({', '.join(f'{k}={short(v)}' for k, v in self.arguments)})"


def points_of(blocks: Iterable, allowed: tuple[str, ...]) -> list[Point]:
    """A data set of each block, whose values are no lists any more.

    Raises
    ------
    RangeError, DtypeError, MissingFileError, FileFormatError
    """
    found = []
    for block in blocks:
        given = dict(block) if isinstance(block, dict) else {"model": block}
        name, function = _model(given.pop("model", ""), allowed)
        found.append((name, function, bound("model", name, function, (), given)))
    # a file is known by its name, whatever reads it
    keys = [(name, name if name.endswith(".npz") else same_function(f)) for name, f, _ in found]
    with writable("data"):
        shown = cells([given for *_, given in found])
    return [
        Point(name, tuple(given.items()), function, each)
        for name, each, (_, function, given) in zip(told_apart(keys), shown, found, strict=True)
    ]


def _model(given, allowed: tuple[str, ...]) -> tuple[str, Callable[..., Dataset]]:
    """A model's name and its function; an npz file of tokens is one as well."""
    if isinstance(given, str) and given.endswith(".npz"):
        Dataset.load(given)  # refuses what is no file of tokens
        return given, functools.partial(Dataset.load, given)
    return resolved("data.model", given, MODELS, allowed, Dataset)
