"""Functions of one's own in a grid: given as they are, or named "module:function" and allowed."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from .._validate import require_type, short
from ..errors import AttnBiasError, DtypeError, RangeError

CODE = re.compile(r"[\w.]+:[\w.]+")
FOREIGN = (Exception, SystemExit)  # what a function of one's own may end with


def as_modules(allow_code) -> tuple[str, ...]:
    """Names of the modules whose code a grid may name."""
    given = [allow_code] if isinstance(allow_code, str) else allow_code
    listed = isinstance(given, list | tuple | set | frozenset)
    if not listed or not all(isinstance(module, str) for module in given):
        raise DtypeError(
            "allow_code",
            expected="names of modules",
            got=short(allow_code),
            remedy="for example allow_code=['my_data']",
        )
    return tuple(given)


def resolved(
    what: str, given, known: Mapping[str, Callable], allowed: tuple[str, ...], wanted: type
) -> tuple[str, Any]:
    """The name of a function and itself: one that is known, one's own, or an allowed module's.

    The last may also be an object of the class that is wanted.

    Raises
    ------
    RangeError, DtypeError
    """
    if callable(given):
        return next((name for name, each in known.items() if each is given), name_of(given)), given
    if isinstance(given, str) and given in known:
        return given, known[given]
    if isinstance(given, str) and CODE.fullmatch(given):
        return given, _imported(what, given, allowed, wanted)
    raise (RangeError if isinstance(given, str) else DtypeError)(
        what,
        expected=f"one of {', '.join(known)}, a function that makes a {wanted.__name__}, or the "
        "'module:function' of one",
        got=short(given),
        remedy="name one of these, or pass your own function",
    )


def _imported(what: str, name: str, allowed: tuple[str, ...], wanted: type):
    """What such a module has itself imported is not looked into."""
    module, _, path = name.partition(":")
    if module not in allowed:
        raise RangeError(
            what,
            expected="a name without code, since the grid is data",
            got=f"{short(name)}, which would import that module and call what it names",
            remedy="if you trust that code, say so: on the command line by --allow-code "
            f"{module[:60]}, in Python by allow_code",
        )
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
            if not callable(found) and not isinstance(found, wanted):
                raise TypeError(f"{part!r} is no function")
    except FOREIGN as error:  # the module's own errors among them
        remedy = "try the import in Python first"
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            remedy = "put the module beside the grid's file, or its folder into PYTHONPATH"
        raise RangeError(
            what,
            expected="an importable 'module:function'",
            got=f"{short(name)} ({type(error).__name__}: {error})"[:200],
            remedy=remedy,
        ) from error
    return found


def name_of(function) -> str:
    """Its module and name; of an object that can be called, that of its class."""
    if isinstance(function, functools.partial):
        return f"partial {name_of(function.func)}"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def same_function(function):
    """A key that one function has, and no other of its name."""
    # a method is made anew each time that it is looked up
    return function if inspect.ismethod(function) else id(function)


def bound(what: str, name: str, function, positional: tuple, named: dict) -> dict[str, object]:
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
            f"{what} {name}",
            expected=f"arguments of {name}({names})",
            got=f"{', '.join([*map(repr, positional), *map(str, named)]) or 'none'} ({error})",
            remedy=f"give each {what} a block of its own with the axes it has",
        ) from None
    arguments.apply_defaults()
    found: dict[str, object] = {}
    for name, value in arguments.arguments.items():
        sort = signature.parameters[name].kind
        if sort is inspect.Parameter.VAR_KEYWORD:
            found |= value
        elif sort is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
    return found


def call_of(what: str, text: str) -> tuple[str, tuple, dict]:
    """Name and arguments of a call written out, read without being run."""
    name, opened, rest = text.strip().partition("(")
    try:
        call: Any = ast.parse(f"_({rest}" if opened else "_()", mode="eval").body
        if not isinstance(getattr(call, "func", None), ast.Name):
            raise ValueError("no call")
        positional = tuple(map(ast.literal_eval, call.args))
        return name, positional, {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", error)  # of a SyntaxError without its line
        raise RangeError(
            what,
            expected="a name with plain arguments, such as 'NGD(0.1, momentum=0.9)'",
            got=f"{short(text)} ({why})"[:120],
            remedy="give numbers and words alone",
        ) from None


def called(
    what: str, name: str, make, positional: tuple, named: dict, wanted: type
) -> tuple[Any, tuple]:
    """What a function of one's own makes of its arguments, and these by name.

    An object of the class that is wanted makes itself, of none.

    Raises
    ------
    RangeError, DtypeError
        For its own error, and for what is not of the class that is wanted.
    """
    if isinstance(make, wanted):
        bound(what, name, lambda: make, positional, named)
        return make, ()
    arguments = bound(what, name, make, positional, named)
    expected = f"a function that makes a {wanted.__name__}"
    try:
        made = make(**arguments)
    except AttnBiasError:
        raise
    except FOREIGN as error:
        raise RangeError(
            f"{what} {name}",
            expected=expected,
            got=f"{type(error).__name__}: {error}"[:200],
            remedy="try the call in Python first",
        ) from error
    require_type(f"{what} {name}", made, wanted, expected, "return one")
    return made, tuple(arguments.items())
