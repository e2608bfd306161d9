"""A data frame with a json header in one Parquet file, atomic to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from .._extras import need
from .._files import FORMAT, as_path, writing
from ..errors import FileFormatError, MissingFileError

if TYPE_CHECKING:
    import pandas

_HEADER = b"attnbias"


def write_table(path, frame: pandas.DataFrame, header: dict) -> Path:
    """Write a frame and a header to `path`, whole or not at all.

    Raises
    ------
    MissingExtraError, MissingFileError, FileAccessError
    """
    pyarrow, parquet = need("pyarrow", "sweeps"), need("pyarrow.parquet", "sweeps")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    own = {_HEADER: json.dumps({"format": FORMAT, **header}).encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **own})
    with writing(path) as stream:
        parquet.write_table(table, stream, compression="zstd")
    return as_path(path)


def read_table(path, keys: tuple[str, ...]) -> tuple[pandas.DataFrame, dict]:
    """A frame and its header, which must have these keys.

    Raises
    ------
    MissingExtraError, MissingFileError, FileFormatError
    """
    table = _opened(as_path(path), "read_table")
    header = json.loads((table.schema.metadata or {}).get(_HEADER, b"{}"))
    if not set(keys) <= header.keys():
        raise unreadable(path, "a Parquet file without the header of one")
    found = header.pop("format", 1)  # the first tables did not say it
    if found != FORMAT:
        raise FileFormatError(
            str(path), expected=f"format {FORMAT}", got=f"format {found}",
            remedy="read it with the version of attnbias that wrote it, or make it again",
        )  # fmt: skip
    return table.to_pandas(), header


def read_columns(path) -> list[str]:
    """Names of the columns, without reading the rows."""
    return list(_opened(as_path(path), "read_schema").names)


def _opened(path: Path, how: str):
    pyarrow, parquet = need("pyarrow", "sweeps"), need("pyarrow.parquet", "sweeps")
    try:
        return getattr(parquet, how)(path)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(
            str(path), expected="a file", got="none there", remedy="check the path"
        ) from None
    except (OSError, pyarrow.ArrowException, ValueError) as error:
        raise unreadable(path, f"{type(error).__name__}: {error}"[:200]) from None


def unreadable(path, got: str, expected="a Parquet file of this library") -> FileFormatError:
    return FileFormatError(
        str(path), expected=expected, got=got,
        remedy="delete it and run again: a sweep goes on with the rest",
    )  # fmt: skip
