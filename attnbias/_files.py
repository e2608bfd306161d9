"""Arrays with a json header in one npz file: atomic to write, never unpickled."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from .errors import FileFormatError, MissingFileError

FORMAT = 1  # raise it when the meaning of a stored array changes
_HEADER = "attnbias_json"
# what numpy and json raise on damaged and foreign files; TypeError: a plain .npy array
_UNREADABLE = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    KeyError,
    AttributeError,
    zipfile.BadZipFile,
)


def write_npz(path, arrays: dict, header: dict) -> Path:
    """Write arrays and header to `path`, through a temporary name in the same folder."""
    path = Path(path)
    if path.parent and not path.parent.is_dir():
        raise MissingFileError(
            str(path),
            expected="an existing folder",
            got=f"no folder {str(path.parent)!r}",
            remedy="make the folder first",
        )
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **arrays, **{_HEADER: np.frombuffer(text.encode(), dtype=np.uint8)})
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def read_npz(path, kind: str, header_required: bool = True) -> tuple[dict, dict]:
    """The arrays and the header of a file written by `write_npz`."""
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(
            str(path), expected="a file", got="none there", remedy="check the path"
        )
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        header = json.loads(arrays.pop(_HEADER).tobytes()) if _HEADER in arrays else None
    except _UNREADABLE as error:
        raise FileFormatError(
            str(path),
            expected="an npz file of plain arrays",
            got=f"{type(error).__name__}: {error}",
            remedy="write it again; half-written and pickled files are not read",
        ) from None
    if header is None and not header_required:
        return arrays, {}
    _check_header(path, header, kind)
    return arrays, header


def _check_header(path: Path, header, kind: str) -> None:
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise FileFormatError(
            str(path),
            expected=f"a {kind} file",
            got=f"a file of kind {found!r}" if found else "a file with no attnbias header",
            remedy=f"give a file that {kind}.save wrote",
        )
    if header.get("format") != FORMAT:
        raise FileFormatError(
            str(path),
            expected=f"format {FORMAT}",
            got=f"format {header.get('format')}",
            remedy="read it with the version of attnbias that wrote it, or make it again",
        )
