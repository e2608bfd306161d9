"""Arrays with a json header in one npz file: atomic to write, never unpickled."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ._validate import require_type
from .errors import DtypeError, FileAccessError, FileFormatError, MissingFileError

FORMAT = 1  # raise it when the meaning of a stored array changes
_HEADER = "attnbias_json"


def as_path(path) -> Path:
    """A path from a string or a path."""
    wanted, remedy = "a string or a path", "give the name of a file"
    return Path(require_type("path", path, str | os.PathLike, wanted, remedy))


def target_path(path) -> Path:
    """A path that a file can be written to, as far as can be seen before it is tried."""
    path = as_path(path)
    try:
        if not stat.S_ISDIR(path.parent.stat().st_mode):
            raise NotADirectoryError
        taken = path.is_dir()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(
            str(path), expected="an existing folder", got=f"no folder {str(path.parent)!r}",
            remedy="make the folder first",
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
    if taken:
        raise _unusable(path, "a folder of that name")
    return path


def results_folder(path) -> Path:
    """A folder for results, made if need be and tried before any work."""
    folder = as_path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        wanted = "a folder for the results, or a name to make one under"
        raise _unusable(folder, error, wanted) from None
    return folder


def _unusable(path: Path, problem, expected="the name of a file, and the right to use it"):
    name, got = ascii(str(path))[:80], str(problem)[:200]
    remedy = "give another name, or check the permissions"
    return FileAccessError(name, expected=expected, got=got, remedy=remedy)


@contextlib.contextmanager
def writing(path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file `path` when the block ends, all of them or none.

    They go to a temporary name in the same folder and are on the disk before it is renamed.
    """
    path = target_path(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with _open(temporary, "wb", path) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def plain_json(data):
    """The same data as json holds them; NaN and infinite numbers become None."""
    text = json.dumps(data, default=lambda number: number.item())
    return json.loads(text, parse_constant=lambda _: None)


def write_npz(path, arrays: dict, header: dict) -> Path:
    """Write arrays and header to `path`."""
    text = np.frombuffer(_header_text(header).encode(), dtype=np.uint8)
    with writing(path) as stream:
        np.savez(stream, **arrays, **{_HEADER: text})
    return as_path(path)


def write_text(path, text: str) -> Path:
    """Write a text to `path`."""
    with writing(path) as stream:
        stream.write(text.encode())
    return as_path(path)


def read_text(path) -> str:
    """The text of a file."""
    path = as_path(path)
    with _open(path) as stream:
        try:
            return stream.read().decode()
        except UnicodeDecodeError as error:
            raise FileFormatError(
                str(path), expected="text", got=str(error)[:100], remedy="give another file"
            ) from None


def _header_text(header: dict) -> str:
    try:
        return json.dumps({"format": FORMAT, **header}, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise DtypeError(
            "meta", expected="numbers, strings, lists and dicts, which json can hold",
            got=str(error), remedy="convert or drop the other values before saving",
        ) from None  # fmt: skip


def read_npz(path, kind: str, header_required: bool = True) -> tuple[dict, dict]:
    """The arrays and the header of a file written by `write_npz`."""
    path = as_path(path)
    with _open(path) as stream:
        try:
            _require_arrays(stream)
            with np.load(stream, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            header = json.loads(arrays.pop(_HEADER).tobytes()) if _HEADER in arrays else None
        except Exception as error:  # numpy, zipfile and json raise many kinds on foreign bytes
            raise FileFormatError(
                str(path),
                expected="an npz file of plain arrays",
                got=str(error).rstrip(".") or type(error).__name__,
                remedy="write it again with numpy.savez, or with the save method of what it holds; "
                "half-written and pickled files are not read",
            ) from None
    if header is None and not header_required:
        return arrays, {}
    _check_header(path, header, kind)
    return arrays, header


def _require_arrays(stream: BinaryIO) -> None:
    """Say of a file that is no npz what it is instead."""
    start = stream.read(6)
    stream.seek(0)
    if not start:
        raise ValueError("an empty file")
    if start == b"\x93NUMPY":
        raise ValueError("an npy file, which holds one array without a name")
    if not start.startswith(b"PK"):
        raise ValueError("a file of another kind")
    if not zipfile.is_zipfile(stream):
        raise ValueError("a zip file without its end, so cut short")
    with zipfile.ZipFile(stream) as archive:
        if any(name.endswith("data.pkl") for name in archive.namelist()):
            raise ValueError("a file that torch.save has pickled")
    stream.seek(0)


def _open(path: Path, mode: str = "rb", named: Path | None = None):
    """A stream; errors name the path that was asked for, a temporary one's `named`."""
    try:
        return path.open(mode)
    except (OSError, ValueError) as error:
        if named or not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise _unusable(named or path, error) from None
        raise MissingFileError(
            str(path), expected="a file", got="none there", remedy="check the path"
        ) from None


def _check_header(path: Path, header, kind: str) -> None:
    header = header if isinstance(header, dict) else {}
    found = header.get("kind")
    if found != kind:
        raise FileFormatError(
            str(path),
            expected=f"a {kind} file",
            got=f"a file of kind {found!r}" if found else "a file with no attnbias header",
            remedy=f"give a file that a {kind} was saved to",
        )
    if header.get("format") != FORMAT:
        raise FileFormatError(
            str(path), expected=f"format {FORMAT}", got=f"format {header.get('format')}",
            remedy="read it with the version of attnbias that wrote it, or make it again",
        )  # fmt: skip
