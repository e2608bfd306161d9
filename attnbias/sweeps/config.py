"""A grid written down in a TOML file."""

from __future__ import annotations

import tomllib

from .._files import read_text
from ..errors import FileFormatError


def read_config(path) -> dict:
    """The grid of a TOML file, with the keys of `attnbias.sweep`.

    Parameters
    ----------
    path : path
        Such as::

            steps = 10_000
            record = 100

            [data]
            model = "example1"
            d = [50, 200]
            seed = "0:100"

            [[rule]]
            name = "NGD"
            step_size = [0.1, 0.5]

            [[rule]]
            name = "GD"
            step_size = 1.0

    Returns
    -------
    dict

    Raises
    ------
    MissingFileError, FileAccessError, FileFormatError

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print('steps = 100', file=file, flush=True)
    ...     read_config(file.name)
    {'steps': 100}
    """
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(
            str(path), expected="a TOML file", got=str(error), remedy="mend that line"
        ) from None
