"""What the blocks of a grid name: models of data, a function or a file of one's own, and rules."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .._validate import require_choice, require_type, short
from ..data import Dataset, load_binary_mnist, make_dm, make_example1, make_separation_pair
from ..errors import DtypeError, RangeError
from ..rules import GD, NGD, Polyak, Rule

#: The data sets that a grid may call by a short name, and the functions that make them.
MODELS: dict[str, Callable[..., Dataset]] = {
    "example1": make_example1,
    "dm": make_dm,
    "separation_pair": make_separation_pair,
    "mnist": load_binary_mnist,
}
_CODE = re.compile(r"[\w.]+:[\w.]+")
RULES = {"GD": GD, "NGD": NGD, "Polyak": Polyak}


@dataclass(frozen=True)
class Point:
    """One data set of a sweep: a model and its arguments.

    Attributes
    ----------
    model : str
        A name of `MODELS`, "module:function", or the name of an npz file of tokens.
    arguments : tuple of (str, value)
        All of the model's, defaults among them.
    function : callable or None
        None where it is code that was not to be imported.
    """

    model: str
    arguments: tuple[tuple[str, object], ...]
    function: Callable[..., Dataset] | None

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


def as_modules(allow_code) -> tuple[str, ...]:
    """Names of the modules whose code a grid may name."""
    given = [allow_code] if isinstance(allow_code, str) else allow_code
    listed = isinstance(given, list | tuple | set | frozenset)
    if not listed or not all(isinstance(module, str) for module in given):
        raise DtypeError("allow_code", expected="names of modules", got=short(allow_code),
                         remedy="for example allow_code=['my_data']")  # fmt: skip
    return tuple(given)


def resolve_model(model, allowed: tuple[str, ...] = (), imports: bool = True):
    """A model's name, by which a results folder knows it, and its function.

    A "module:function" is code, which is run for a module of `allowed` alone; without `imports`
    its function is left out.

    Raises
    ------
    RangeError, DtypeError, MissingFileError, FileFormatError
    """
    if callable(model):
        name = f"{getattr(model, '__module__', '?')}:{getattr(model, '__qualname__', '?')}"
        return next((key for key, made in MODELS.items() if made is model), name), model
    if isinstance(model, str) and model in MODELS:
        return model, MODELS[model]
    if isinstance(model, str) and model.endswith(".npz"):
        Dataset.load(model)  # refuses what is no file of tokens; a file is known by its content
        digest = hashlib.sha256(Path(model).read_bytes()).hexdigest()
        return f"{model} (sha256 {digest[:16]})", functools.partial(Dataset.load, model)
    if isinstance(model, str) and _CODE.fullmatch(model):
        return model, _code(model, allowed) if imports else _allowed(model, allowed)
    raise (RangeError if isinstance(model, str) else DtypeError)(
        "data.model",
        expected="one of " + ", ".join(MODELS) + ", a function that makes a Dataset, the "
        "'module:function' of one, or a file that ends in .npz",
        got=short(model),
        remedy="name one of these, or pass your own function",
    )


def _allowed(model: str, allowed: tuple[str, ...]) -> None:
    module = model.partition(":")[0]
    if module not in allowed:
        raise RangeError(
            "data.model", expected="a model without code, since the grid is data",
            got=f"{short(model)}, which would import that module and call what it names",
            remedy="if you trust that code, say so: on the command line by --allow-code "
            f"{module[:60]}, in Python by allow_code",
        )  # fmt: skip


def _code(model: str, allowed: tuple[str, ...]) -> Callable[..., Dataset]:
    """The function "module:function" of an allowed module, not of one that it has imported."""
    _allowed(model, allowed)
    module, _, path = model.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
            if not callable(found):
                raise TypeError(f"{part!r} is no function")
    except Exception as error:  # the module's own errors among them
        raise RangeError(
            "data.model", expected="an importable 'module:function'",
            got=f"{short(model)} ({type(error).__name__}: {error})"[:200],
            remedy="try the import in Python first",
        ) from error  # fmt: skip
    return found


def bound(kind: str, name: str, function, positional: tuple, named: dict) -> dict[str, object]:
    """All arguments of a call by name, defaults filled in; those that do not fit are refused.

    Raises
    ------
    RangeError
    """
    try:
        names = "..."  # of a function that does not tell them
        signature = inspect.signature(function)
        names = ", ".join(signature.parameters)
        arguments = signature.bind(*positional, **named)
    except (TypeError, ValueError) as error:
        raise RangeError(
            f"{kind} {name}", expected=f"arguments of {name}({names})",
            got=f"{', '.join([*map(repr, positional), *map(str, named)]) or 'none'} ({error})",
            remedy=f"give each {kind} a block of its own with the axes it has",
        ) from None  # fmt: skip
    arguments.apply_defaults()
    return arguments.arguments


def as_rule(value) -> Rule:
    """A rule.

    Parameters
    ----------
    value : Rule, str or mapping
        NGD(0.1), "NGD(0.1)", or {"name": "NGD", "step_size": 0.1}.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError
    """
    if isinstance(value, Rule):
        return value
    if isinstance(value, str):
        name, positional, named = _parse(value)
    elif isinstance(value, Mapping) and "name" in value:
        name, positional, named = value["name"], (), {k: v for k, v in value.items() if k != "name"}
    else:
        raise DtypeError(
            "rule", expected="a rule, its name with arguments, or a block with a name",
            got=short(value),
            remedy="for example 'NGD(0.1)' or {'name': 'NGD', 'step_size': [0.1, 0.5]}",
        )  # fmt: skip
    make = RULES[require_choice("rule", name, tuple(RULES))]
    return make(**bound("rule", name, make, positional, named))


def _parse(text: str) -> tuple[str, tuple, dict]:
    """Name and arguments of a call written out, read without being run."""
    try:
        call = ast.parse(text.strip() if "(" in text else f"{text.strip()}()", mode="eval").body
        if not isinstance(getattr(call, "func", None), ast.Name):
            raise ValueError("no call")
        positional = tuple(map(ast.literal_eval, call.args))
        return call.func.id, positional, {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise RangeError(
            "rule", expected="a rule such as 'NGD(0.1, momentum=0.9)'",
            got=f"{short(text)} ({error})"[:120],
            remedy="name one of " + ", ".join(RULES) + " with plain numbers",
        ) from None  # fmt: skip
