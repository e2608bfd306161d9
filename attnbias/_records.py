"""Records: json, alone or with arrays or a table beside it, sealed by a checksum, never unpickled.

And where a result comes from, which its record says: command, commit, versions, device, date.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import platform
import re
import shlex
import struct
import subprocess
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import torch

from . import __version__
from ._extras import need
from ._files import as_path, read_text, reading, write_text, writing
from .errors import ChecksumError, DtypeError, FileFormatError

if TYPE_CHECKING:
    import pandas

FORMAT = 2  # 1 had no checksum; raise it when the meaning of something stored changes
_HEADER, _SEAL = "attnbias_json", "sha256"
TABLE, _TABLE_HEADER = "table", b"attnbias"  # of a Parquet file
_SEALED = "attnbias_sealed"  # an empty array that says that a header belongs to the others
# A file of ours is not compressed; one of a user's may be, within reason.
_LEAST_LIMIT, _LARGEST_RATIO = 2**26, 20
_END = struct.Struct("<4s4H2LH")  # a zip file's end: its fifth field counts the members
_PACKAGES = ("numpy", "torch", "numba", "accelerate", "transformers", "tokenizers")
_SECRET = re.compile(  # names of options; --tokens and --tokenizer are none
    r"token(?!s|i[sz])|secret|passw|passphrase|pwd|credential|bearer|auth(?!or)"
    r"|(api|access|private|secret)[-_]?key|(^|[-_])(key|pat)$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"([^=:\s]+)(\s*[=:]\s*)(.+)", re.DOTALL)
_SHAPES = re.compile(  # what is a secret wherever it stands
    r"(?<=://)[^/@\s]+(?=@)|\b(hf|gh[a-z]|github_pat|glpat|sk|xox[a-z])[-_][\w-]{16,}"
)
_ROOTED = re.compile(r"(?:(?<==)|^)(?:/|[A-Za-z]:\\)(?:[^/\\]*[/\\])*(?=[^/\\])")


def seal(header: dict, content: Iterable[bytes] = ()) -> dict:
    """The header with its format and the checksum of itself and of the content."""
    plain = as_stored({**header, "format": FORMAT})
    return plain | {_SEAL: _digest(plain, content)}


def other_settings(found, settings: dict) -> list[str]:
    """Names of the settings, as they are stored, that a file has otherwise."""
    found = found if isinstance(found, dict) else {}
    names = sorted(found.keys() | settings.keys())
    return [name for name in names if found.get(name) != settings.get(name)]


def as_stored(record: dict) -> dict:
    """A record as it is when it comes back from a file, so that the two can be compared."""
    try:
        return json.loads(json.dumps(record))
    except (TypeError, ValueError, RecursionError) as error:
        raise DtypeError(
            "meta",
            expected="numbers, strings, lists and dicts, which json can hold",
            got=str(error),
            remedy="convert or drop the other values before saving",
        ) from None


def require_seal(path, header, kind: str, content: Iterable[bytes] = ()) -> dict:
    """The header of a file of that kind, without its seal, if nothing has changed since `seal`.

    Raises
    ------
    FileFormatError, ChecksumError
    """
    found = header.get("kind") if isinstance(header, dict) else None
    if found != kind:
        raise FileFormatError(
            str(path),
            expected=f"a {kind} file",
            got=f"a file of kind {found!r}" if found else "a file with no attnbias header",
            remedy=f"give a file that a {kind} was saved to",
        )
    if header.get("format") not in (1, FORMAT):
        raise FileFormatError(
            str(path),
            expected=f"format {FORMAT}",
            got=f"format {header.get('format')}",
            remedy="read it with the version of attnbias that wrote it, or make it again",
        )
    plain = {key: value for key, value in header.items() if key != _SEAL}
    if header["format"] == 1 and _SEAL not in header:
        warnings.warn(
            f"{path}: written before files had a checksum, and read unchecked; "
            "save it again to have one",
            stacklevel=3,
        )
    elif header.get(_SEAL) != _digest(plain, content):
        raise ChecksumError(
            str(path),
            expected="the content that its checksum was taken of",
            got="another",
            remedy="the file is damaged, or was edited: take another copy, or make it again",
        )
    return plain


def _digest(header: dict, content: Iterable[bytes]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for part in content:
        digest.update(part)
    return digest.hexdigest()


def plain_json(data):
    """The same data as json holds them; NaN and infinite numbers become None."""
    text = json.dumps(data, default=lambda number: number.item())
    return json.loads(text, parse_constant=lambda _: None)


def write_json(path, kind: str, record: dict) -> Path:
    """Write a record to `path`."""
    return write_text(path, json.dumps(seal({"kind": kind, **record})) + "\n")


def read_json(path, kind: str) -> dict:
    """The record of a file written by `write_json`.

    Raises
    ------
    MissingFileError, FileAccessError, FileFormatError
    """
    try:
        record = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            str(path),
            expected=f"a {kind} in json",
            got=str(error)[:100],
            remedy="the file is damaged or another's: give another, or make it again",
        ) from None
    return require_seal(path, record, kind)


def write_npz(path, arrays: dict, header: dict) -> Path:
    """Write arrays and header to `path`."""
    held: dict[str, Any] = {key: np.asarray(array) for key, array in arrays.items()}
    held[_SEALED] = np.zeros(0)
    text = json.dumps(seal(header, _parts(held)), sort_keys=True)
    held[_HEADER] = np.frombuffer(text.encode(), dtype=np.uint8)
    with writing(path) as stream:
        np.savez(stream, **held)
    return as_path(path)


def _parts(arrays: dict) -> Iterable[bytes]:
    for key, array in sorted(arrays.items()):
        yield f"{key} {array.dtype.str} {array.shape}".encode()
        yield array.tobytes()


def read_npz(path, kind: str, header_required: bool = True) -> tuple[dict, dict]:
    """The arrays and the header of a file written by `write_npz`."""
    path = as_path(path)
    with reading(path) as stream:
        try:
            _require_arrays(stream)
            with np.load(stream, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            for key, array in arrays.items():
                if not isinstance(array, np.ndarray):  # numpy gives the bytes of what is no npy
                    raise ValueError(f"a member that holds no array, {key!r}"[:100])
            header = json.loads(arrays.pop(_HEADER).tobytes()) if _HEADER in arrays else None
        except Exception as error:  # numpy, zipfile and json raise many kinds on foreign bytes
            raise FileFormatError(
                str(path),
                expected="an npz file of plain arrays",
                got=str(error).rstrip(".") or type(error).__name__,
                remedy="write it again with numpy.savez, or with the save method of what it holds; "
                "half-written and pickled files are not read",
            ) from None
    if header is None and not header_required and _SEALED not in arrays:
        return arrays, {}
    header = require_seal(path, header, kind, _parts(arrays))
    arrays.pop(_SEALED, None)
    return arrays, header


def unpacked_limit(size: int) -> int:
    """The most bytes that a file of that size may unpack to."""
    return max(_LEAST_LIMIT, _LARGEST_RATIO * size)


def _require_arrays(stream: BinaryIO) -> None:
    """Say of a file that is no npz what it is instead."""
    start = stream.read(6)
    if not start:
        raise ValueError("an empty file")
    if start == b"\x93NUMPY":
        raise ValueError("an npy file, which holds one array without a name")
    if not start.startswith(b"PK"):
        raise ValueError("a file of another kind")
    if not zipfile.is_zipfile(stream):
        raise ValueError("a zip file without its end, so cut short")
    size = stream.seek(0, 2)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        stream.seek(archive.start_dir)
        directory = stream.read()
    if any(member.filename.endswith("data.pkl") for member in members):
        raise ValueError("a file that torch.save has pickled")
    names = Counter(member.filename.removesuffix(".npy") for member in members)
    for name, count in names.items():
        if count > 1:
            raise ValueError(f"{count} members of one name, {name!r}"[:100])
    # zipfile believes the directory's lengths, so that a flipped bit can hide the members behind
    end = directory.rfind(b"PK\5\6")
    if _END.unpack_from(directory, end)[4] not in (len(members), 0xFFFF):
        raise ValueError("a zip file whose directory does not list all that it holds")
    unpacked = sum(member.file_size for member in members)
    if unpacked > unpacked_limit(size):
        raise ValueError(
            f"{size} bytes that unpack to {unpacked}, over {_LARGEST_RATIO} times "
            "as many; write them uncompressed"
        )
    stream.seek(0)


def provenance(device="cpu") -> dict:
    """A json-safe record of what produced a result."""
    used = {name: sys.modules[name].__version__ for name in _PACKAGES if sys.modules.get(name)}
    device = torch.device(device)
    machine = f"{device.type} ({platform.machine()})"
    return {
        "command": _command(sys.argv),
        "commit": _commit(),
        "versions": {"attnbias": __version__, "python": platform.python_version(), **used},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else machine,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _command(words: list[str]) -> str:
    """The command line; what may be a secret, by its option or by its look, is ***.

    Of a path that starts at the root its last part is kept: the folders above are one machine's.
    """
    kept, hidden = [], False
    for word in words[1:]:
        named = _ASSIGNED.fullmatch(word)
        if hidden and not word.startswith("--"):
            word = "***"
        elif named and _SECRET.search(named[1]):
            word = named[1] + named[2] + "***"
        kept.append(_ROOTED.sub("", _SHAPES.sub("***", word)))
        hidden = word.startswith("-") and not named and bool(_SECRET.search(word))
    program = [Path(name).name for name in words[:1]]
    if program == ["__main__.py"]:  # python -m attnbias
        program = ["attnbias"]
    return shlex.join(program + kept)


@functools.cache
def _commit() -> str | None:
    """The commit of the checkout this package is imported from, None outside one."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def write_table(path, frame: pandas.DataFrame, header: dict) -> Path:
    """Write a frame and a header to `path`, whole or not at all.

    Raises
    ------
    MissingExtraError, MissingFileError, FileAccessError
    """
    pyarrow, parquet = need("pyarrow", "sweeps"), need("pyarrow.parquet", "sweeps")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    own = json.dumps(seal({"kind": TABLE, **header}, _columns(table.to_pandas()))).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _TABLE_HEADER: own})
    with writing(path) as stream:
        parquet.write_table(table, stream, compression="zstd", write_page_checksum=True)
    return as_path(path)


def _columns(frame: pandas.DataFrame) -> Iterator[bytes]:
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
            header = json.loads((table.schema.metadata or {}).get(_TABLE_HEADER, b"{}"))
        except Exception as error:  # a flipped bit makes pyarrow and pandas raise many kinds
            raise _unreadable(path, f"{type(error).__name__}: {error}"[:200]) from None
    if not set(keys) <= header.keys():
        raise _unreadable(path, "a Parquet file without the header of one")
    header = require_seal(path, {"kind": TABLE, "format": 1} | header, TABLE, _columns(frame))
    return frame, header


def _unreadable(path, got: str) -> FileFormatError:
    return FileFormatError(
        str(path),
        expected="a Parquet file of this library",
        got=got,
        remedy="delete it and run again: a sweep goes on with the rest",
    )
