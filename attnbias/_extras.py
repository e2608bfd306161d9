"""Optional packages, and what others register, imported when they are needed."""

from __future__ import annotations

import functools
import importlib
import warnings
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
def registered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name, in all packages that are installed."""
    from importlib.metadata import entry_points  # a third of what the command takes to say help

    return {each.name: each for each in sorted(entry_points(group=group))}


def load_registered(group: str, name: str) -> Any:
    """What an entry point names.

    Raises
    ------
    MissingExtraError, RegistrationError
    """
    try:
        return registered(group)[name].load()
    except AttnBiasError:  # it says itself what is missing
        raise
    except Exception as error:  # a module of others, which may fail in any way
        raise RegistrationError(
            name,
            expected=f"what {registered(group)[name].value} gives, registered as {group}",
            got=f"{type(error).__name__}: {error}",
            remedy="install the package that registers it anew, or remove it",
        ) from error
