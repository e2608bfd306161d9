"""A rule from a block of a grid, from its name with arguments, or as it is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

from .._validate import require_choice, short
from ..errors import DtypeError, RangeError
from ..rules import GD, NGD, Polyak, Rule

RULES = {"GD": GD, "NGD": NGD, "Polyak": Polyak}


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
    signature = inspect.signature(make)
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise RangeError(
            f"rule {name}", expected=f"arguments of {name}({', '.join(signature.parameters)})",
            got=f"{', '.join([*map(repr, positional), *map(str, named)]) or 'none'} ({error})",
            remedy="give each rule a block of its own with the axes it has",
        ) from None  # fmt: skip
    return make(*positional, **named)


def _parse(text: str) -> tuple[str, tuple, dict]:
    """Name and arguments of a call written out, read without being run."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            call = ast.Call(call, [], [])
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("no call")
        positional = tuple(ast.literal_eval(part) for part in call.args)
        return call.func.id, positional, {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise RangeError(
            "rule", expected="a rule such as 'NGD(0.1, momentum=0.9)'",
            got=f"{short(text)} ({error})"[:120],
            remedy="name one of " + ", ".join(RULES) + " with plain numbers",
        ) from None  # fmt: skip
