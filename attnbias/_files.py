"""Files: written whole or not at all, read with an error that names them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import psutil

from ._validate import require_type
from .errors import AttnBiasError, FileAccessError, FileFormatError, MissingFileError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_count = itertools.count()


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
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError(f"{_kind(path)} of that name")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(
            str(path), expected="an existing folder", got=f"no folder {str(path.parent)!r}",
            remedy="make the folder first",
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
    return path


def results_folder(path) -> Path:
    """A folder for results, made if need be and tried before any work."""
    folder = as_path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder, prefix=".attnbias-", suffix=".part").close()
    except (OSError, ValueError) as error:
        wanted = "a folder for the results, or a name to make one under"
        raise _unusable(folder, error, wanted) from None
    return folder


def new_path(path: Path) -> Path:
    """A path that nothing lies at: what took hours, and what a page rests on, stays."""
    if path.exists():
        raise FileAccessError(
            str(path), expected="a place for a new result", got="one that is there",
            remedy="name another folder, or move the old result away",
        )  # fmt: skip
    return path


def _unusable(path: Path, problem, expected="the name of a file, and the right to use it"):
    name, got = ascii(str(path))[:80], str(problem)[:200]
    remedy = "give another name, or check the permissions and the space left"
    return FileAccessError(name, expected=expected, got=got, remedy=remedy)


def _kind(path: Path) -> str:
    return "a folder" if path.is_dir() else "no plain file, but a device, a socket or a fifo,"


@contextlib.contextmanager
def writing(path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file `path` when the block ends, all of them or none.

    They go to a temporary file in the same folder, made anew under a name of this process, and are
    on the disk before it is renamed. A file that is replaced keeps its permissions, a link stays a
    link, and what a killed process left of the same file is cleared away.
    """
    asked = target_path(path)
    path = Path(os.path.realpath(asked))
    temporary = path.with_name(f"{_stem(path)}.{os.getpid()}.{next(_count)}.part")
    try:
        _clear_left(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        with open(os.open(temporary, _NEW, 0o666), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, AttnBiasError):
            raise _unusable(asked, error) from None
        raise


def _stem(path: Path) -> str:
    """Short, whatever the length of the name, and of this machine: pids mean something here."""
    name = f"{platform.node()}\0{path.name}".encode(errors="surrogatepass")
    return f".attnbias-{hashlib.sha256(name).hexdigest()[:12]}"


def _clear_left(path: Path) -> None:
    """Remove what processes of this machine that are no more had begun to write to `path`."""
    for left in path.parent.glob(f"{_stem(path)}.*.part"):
        if not psutil.pid_exists(int(left.name.split(".")[2])):
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes that ask for this lock out until the block ends; then its file goes.

    The system frees the lock of a process that dies, so a file that is left keeps nobody out.
    """
    import filelock

    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise FileAccessError(
            str(path.parent), expected="a folder that no other process works in",
            got="one that another process works in",
            remedy="wait until it is done, and the same call goes on from there; or give another",
        ) from None  # fmt: skip
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", None) not in (None, errno.ENOLCK, errno.EOPNOTSUPP):
            raise _unusable(path, error) from None
        # a file system without locks: as before there were any
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # before it is free, lest another's file goes
            path.unlink()
        lock.release()


def write_text(path, text: str) -> Path:
    """Write a text to `path`."""
    with writing(path) as stream:
        stream.write(text.encode())
    return as_path(path)


def read_text(path) -> str:
    """The text of a file."""
    path = as_path(path)
    with reading(path) as stream:
        try:
            return stream.read().decode()
        except UnicodeDecodeError as error:
            raise FileFormatError(
                str(path), expected="text", got=str(error)[:100], remedy="give another file"
            ) from None


def reading(path: Path) -> BinaryIO:
    """A stream of the bytes of a plain file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{_kind(path)} of that name")
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(
            str(path), expected="a file", got="none there", remedy="check the path"
        ) from None
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
