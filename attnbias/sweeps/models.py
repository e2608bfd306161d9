"""The data sets that a grid names: models of data, a function or a file of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._validate import require_type, short
from ..data import Dataset, load_binary_mnist, make_dm, make_example1, make_separation_pair
from ..errors import DtypeError, RangeError
from .axes import cells, key_of, told_apart, writable
from .code import CODE, bound, imported, name_of, same_function

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
    function : callable or None
        None where it is code that was not to be imported.
    cells : dict
        The arguments as the table holds them.
    """

    model: str
    arguments: tuple[tuple[str, object], ...]
    function: Callable[..., Dataset] | None
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


def points_of(blocks, allowed: tuple[str, ...], imports: bool) -> list[Point]:
    """A data set of each block, whose values are no lists any more.

    Raises
    ------
    RangeError, DtypeError, MissingFileError, FileFormatError
    """
    found = []
    for block in blocks:
        given = dict(block) if isinstance(block, dict) else {"model": block}
        name, function = resolve_model(given.pop("model", ""), allowed, imports)
        arguments = given if function is None else bound("model", name, function, (), given)
        found.append((name, function, arguments))
    # a file is known by its name, whatever reads it
    keys = [name if name.endswith(".npz") else same_function(made) for name, made, _ in found]
    names = told_apart(zip([name for name, *_ in found], keys, strict=True))
    with writable("data"):
        shown = cells([given for *_, given in found])
    return [
        Point(name, tuple(given.items()), made, each)
        for name, each, (_, made, given) in zip(names, shown, found, strict=True)
    ]


def resolve_model(model, allowed: tuple[str, ...] = (), imports: bool = True):
    """A model's name and its function, which is left out for code without `imports`.

    Raises
    ------
    RangeError, DtypeError, MissingFileError, FileFormatError
    """
    if callable(model):
        known = (key for key, made in MODELS.items() if made is model)
        return next(known, None) or name_of(model), model
    if isinstance(model, str) and model in MODELS:
        return model, MODELS[model]
    if isinstance(model, str) and model.endswith(".npz"):
        Dataset.load(model)  # refuses what is no file of tokens
        return model, functools.partial(Dataset.load, model)
    if isinstance(model, str) and CODE.fullmatch(model):
        return model, imported("data.model", model, allowed, imports)
    raise (RangeError if isinstance(model, str) else DtypeError)(
        "data.model",
        expected="one of " + ", ".join(MODELS) + ", a function that makes a Dataset, the "
        "'module:function' of one, or a file that ends in .npz",
        got=short(model),
        remedy="name one of these, or pass your own function",
    )
