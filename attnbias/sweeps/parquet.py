"""A data frame with a sealed json header in one Parquet file, atomic to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .._extras import need
from .._files import as_path, reading, writing
from .._records import require_seal, seal
from ..errors import FileFormatError

if TYPE_CHECKING:
    import pandas

_HEADER = b"attnbias"
KIND = "table"


def write_table(path, frame: pandas.DataFrame, header: dict) -> Path:
    """Write a frame and a header to `path`, whole or not at all.

    Raises
    ------
    MissingExtraError, MissingFileError, FileAccessError
    """
    pyarrow, parquet = need("pyarrow", "sweeps"), need("pyarrow.parquet", "sweeps")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    own = json.dumps(seal({"kind": KIND, **header}, _parts(table.to_pandas()))).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _HEADER: own})
    with writing(path) as stream:
        parquet.write_table(table, stream, compression="zstd", write_page_checksum=True)
    return as_path(path)


def _parts(frame: pandas.DataFrame) -> Iterator[bytes]:
    """What the seal is taken of: names, types and values, column by column."""
    for name, column in frame.items():
        values = column.to_numpy()
        yield f"{name} {column.dtype}".encode()
        yield repr(values.tolist()).encode() if values.dtype == object else values.tobytes()


def read_table(path, keys: tuple[str, ...]) -> tuple[pandas.DataFrame, dict]:
    """A frame and its header, which must have these keys.

    Raises
    ------
    MissingExtraError, MissingFileError, FileFormatError
    """
    parquet = need("pyarrow.parquet", "sweeps")
    path = as_path(path)
    with reading(path) as stream:
        try:
            table = parquet.read_table(stream, page_checksum_verification=True)
            frame = table.to_pandas()
            header = json.loads((table.schema.metadata or {}).get(_HEADER, b"{}"))
        except Exception as error:  # a flipped bit makes pyarrow and pandas raise many kinds
            raise unreadable(path, f"{type(error).__name__}: {error}"[:200]) from None
    if not set(keys) <= header.keys():
        raise unreadable(path, "a Parquet file without the header of one")
    header = require_seal(path, {"kind": KIND, "format": 1} | header, KIND, _parts(frame))
    return frame, header


def unreadable(path, got: str, expected="a Parquet file of this library") -> FileFormatError:
    return FileFormatError(
        str(path),
        expected=expected,
        got=got,
        remedy="delete it and run again: a sweep goes on with the rest",
    )
