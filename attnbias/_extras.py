"""Optional packages, and what others register, imported when they are needed."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import AttnBiasError, MissingExtraError, RegistrationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def need(module: str, extra: str = "nets"):
    """The module of an optional package.

    Parameters
    ----------
    module : str
        Name to import.
    extra : str
        The extra of this package that brings it.

    Raises
    ------
    MissingExtraError
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in a notebook without widgets tqdm.auto warns, once
            importlib.import_module("tqdm.auto")
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            module,
            expected=f"the package {module.split('.')[0]}",
            got=str(error),
            remedy=f"run pip install 'attnbias[{extra}]'",
        ) from None


@functools.cache
def registered(group: str) -> dict[str, list[EntryPoint]]:
    """What is registered in a group by all packages that are installed, by name."""
    from importlib.metadata import entry_points  # a third of what the command takes to say help

    found: dict[str, list[EntryPoint]] = {}
    for each in sorted(entry_points(group=group)):
        same = found.setdefault(each.name, [])
        if each not in same:
            same.append(each)
    return found


def load_registered(group: str, name: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
    """What the entry point of a name gives.

    Raises
    ------
    MissingExtraError
    RegistrationError
        If it cannot be imported, is not what is wanted, or several packages register the name.
    """
    entries = registered(group)[name]
    value = " and ".join(entry.value for entry in entries)
    expected = f"{wanted} in {value}, registered as {group}"
    remedy = "install the package that registers it anew, or remove it"
    if len(entries) > 1:
        expected, got = f"one package that registers {name} as {group}", f"several: {value}"
        raise RegistrationError(name, expected=expected, got=got, remedy="remove all but one")
    try:
        found = entries[0].load()
    except AttnBiasError:  # it says itself what is missing
        raise
    except (Exception, SystemExit) as error:  # a module of others, which may fail in any way
        got = f"{type(error).__name__}: {error}"
        raise RegistrationError(name, expected=expected, got=got, remedy=remedy) from error
    if not fits(found):
        got = f"one of type {type(found).__name__}"
        raise RegistrationError(name, expected=expected, got=got, remedy=remedy)
    return found
