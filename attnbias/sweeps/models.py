"""Where the data sets of a sweep come from: named models, a function of one's own, or a file."""

from __future__ import annotations

import functools
import hashlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .._validate import require_type, short
from ..data import Dataset, load_binary_mnist, make_dm, make_example1, make_separation_pair
from ..errors import DtypeError, MissingFileError, RangeError

#: The data sets that a grid may call by a short name, and the functions that make them.
MODELS: dict[str, Callable[..., Dataset]] = {
    "example1": make_example1,
    "dm": make_dm,
    "separation_pair": make_separation_pair,
    "mnist": load_binary_mnist,
}


@dataclass(frozen=True)
class Point:
    """One data set of a sweep: a model and its arguments.

    Attributes
    ----------
    model : str
        A name of `MODELS`, "module:function", or the name of an npz file of tokens.
    arguments : tuple of (str, value)
        All of the model's, defaults among them.
    function : callable
    """

    model: str
    arguments: tuple[tuple[str, object], ...]
    function: Callable[..., Dataset]

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
    def family(self) -> tuple:
        """What points share that differ in nothing but their seed."""
        return (self.model, *((k, v) for k, v in self.arguments if k != "seed"))


def resolve_model(model) -> tuple[str, Callable[..., Dataset]]:
    """A model's name, by which a results folder knows it, and its function.

    Raises
    ------
    RangeError, DtypeError, MissingFileError
    """
    if callable(model):
        name = f"{getattr(model, '__module__', '?')}:{getattr(model, '__qualname__', '?')}"
        return {made: key for key, made in MODELS.items()}.get(model, name), model
    if isinstance(model, str) and model in MODELS:
        return model, MODELS[model]
    if isinstance(model, str) and model.endswith(".npz"):
        return _file_model(model)
    if isinstance(model, str) and ":" in model:
        return model, _imported(model)
    raise (RangeError if isinstance(model, str) else DtypeError)(
        "data.model",
        expected="one of " + ", ".join(MODELS) + ", 'module:function', a function that makes a "
        "Dataset, or a file that ends in .npz",
        got=short(model),
        remedy="name one of these, or pass your own function",
    )


def _file_model(path: str) -> tuple[str, Callable[..., Dataset]]:
    """A file of tokens, known by its content."""
    if not Path(path).is_file():
        raise MissingFileError(
            path, expected="a file of tokens", got="none there", remedy="check data.model"
        )
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return f"{path} (sha256 {digest[:16]})", functools.partial(Dataset.load, path)


def _imported(name: str) -> Callable[..., Dataset]:
    try:
        found = pkgutil.resolve_name(name)
        if not callable(found):
            raise ValueError("no function")
    except (ImportError, AttributeError, ValueError) as error:
        raise RangeError(
            "data.model", expected="an importable 'module:function'", got=f"{name}: {error}",
            remedy="check the name, and that Python finds the module",
        ) from None  # fmt: skip
    return found


def arguments_of(name: str, function, given: dict) -> tuple[tuple[str, object], ...]:
    """All arguments of a model, defaults filled in, those it does not have refused."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(**given)
    except (TypeError, ValueError) as error:
        names = [] if isinstance(error, ValueError) else list(signature.parameters)
        raise RangeError(
            f"data ({name})", expected="arguments of the model: " + (", ".join(names) or "none"),
            got=f"{', '.join(given) or 'none'} ({error})", remedy="correct the block of the grid",
        ) from None  # fmt: skip
    if not isinstance(function, functools.partial):
        bound.apply_defaults()
    return tuple(bound.arguments.items())
