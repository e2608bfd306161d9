"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
import warnings

from .errors import MissingExtraError


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
