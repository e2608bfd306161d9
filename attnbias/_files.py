"""Files: written whole or not at all, read with an error that names them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import platform
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ._validate import require_type
from .errors import AttnBiasError, FileAccessError, FileFormatError, MissingFileError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}  # a file system without them
_DAY = 86400.0
_count = itertools.count()


def as_path(path) -> Path:
    """A path from a string or a path, of a name that a file can have."""
    wanted, remedy = "a string or a path", "give the name of a file"
    path = Path(require_type("path", path, str | os.PathLike, wanted, remedy))
    try:
        path.exists()
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
    return path


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
            str(path),
            expected="an existing folder",
            got=f"no folder {str(path.parent)!r}",
            remedy="make the folder first",
        ) from None
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
            str(path),
            expected="a place for a new result",
            got="one that is there",
            remedy="name another folder, or move the old result away",
        )
    return path


@contextlib.contextmanager
def new_result(folder, name: str) -> Iterator[Path | None]:
    """Where a new result goes, which no other process makes until the block ends.

    None, if no folder is given. Nothing is written, not even to try it, where one is there.
    """
    if folder is None:
        yield None
        return
    target = new_path(as_path(folder) / name)
    with owned(results_folder(folder) / name):
        yield new_path(target)


def _unusable(path: Path, problem, expected="the name of a file, and the right to use it"):
    name, got = ascii(str(path))[:80], str(problem)[:200]
    remedy = "give another name, or check the permissions and the space left"
    return FileAccessError(name, expected=expected, got=got, remedy=remedy)


def _kind(path: Path) -> str:
    return "a folder" if path.is_dir() else "no plain file, but a device, a socket or a fifo,"


@contextlib.contextmanager
def writing(path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file `path` when the block ends, all of them or none.

    They go to a temporary file in the same folder, and are on the disk before it is renamed. A
    file that is replaced keeps its permissions, which the temporary one has from the start; a link
    stays a link, and what a killed process left of the same file is cleared away.
    """
    asked = target_path(path)
    path = Path(os.path.realpath(asked))
    temporary = None
    try:
        _clear_left(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        temporary, stream = _temporary(path, 0o666 if mode is None else mode | stat.S_IWUSR)
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if mode is not None:
                temporary.chmod(mode)
            if fcntl is not None:
                os.replace(temporary, path)  # while the lock on it is held
        if fcntl is None:
            os.replace(temporary, path)  # once it is closed, as Windows asks
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, AttnBiasError):
            raise _unusable(asked, error) from None
        raise


def _stem(path: Path) -> str:
    """Short, whatever the name's length, and of this machine: some locks are known here alone."""
    name = f"{platform.node()}\0{path.name}".encode(errors="surrogatepass")
    return f".attnbias-{hashlib.sha256(name).hexdigest()[:12]}"


def _temporary(path: Path, mode: int) -> tuple[Path, BinaryIO]:
    """A new file beside `path`, locked for as long as it is open: so it is known to be in use."""
    while True:
        place = path.with_name(f"{_stem(path)}.{os.getpid()}.{next(_count)}.part")
        try:
            stream = open(os.open(place, _NEW, mode), "wb")  # noqa: SIM115
        except FileExistsError:  # of a process with this number in another container
            continue
        _lock(stream, wait=True)
        if os.fstat(stream.fileno()).st_nlink:  # not cleared away before it was locked
            return place, stream
        stream.close()


def _lock(stream: BinaryIO, wait: bool) -> bool | None:
    """Whether an open file, which nobody else had locked, is now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return None if error.errno in _NO_LOCKS else False
    return True


def _clear_left(path: Path) -> None:
    """Remove what processes that are no more had begun to write to `path`: nobody locks it."""
    pattern = re.compile(re.escape(_stem(path)) + r"\.[0-9]+\.[0-9]+\.part")
    for left in path.parent.glob(f"{_stem(path)}.*.part"):
        with contextlib.suppress(OSError):
            if not pattern.fullmatch(left.name) or not stat.S_ISREG(left.lstat().st_mode):
                continue  # none of ours
            with left.open("r+b") as stream:
                free = _lock(stream, wait=False)
                if free or (free is None and time.time() - left.stat().st_mtime > _DAY):
                    left.unlink()


@contextlib.contextmanager
def locked(path: Path, place: str = "") -> Iterator[None]:
    """Keep other processes that ask for this lock out until the block ends; then its file goes.

    The system frees the lock of a process that dies, so a file that is left keeps nobody out.
    """
    import filelock

    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise _busy(place or str(path.parent)) from None
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", None) not in {None, errno.EROFS, *_NO_LOCKS}:
            raise _unusable(path, error) from None
        # a file system without locks, as before there were any; or one that nobody can write to
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # before it is free, lest another's file goes
            path.unlink()
        lock.release()


def _busy(place: str) -> FileAccessError:
    return FileAccessError(
        place,
        expected="a place that no other process works at",
        got="one that another process works at",
        remedy="wait until it is done, and the same call goes on from there; or give another",
    )


@contextlib.contextmanager
def owned(path: Path | None, unfinished: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Keep other processes from a file that the block writes, if `unfinished` says that it will.

    `unfinished` may read the file. What is finished is only read: it needs no lock, nor a disk that
    can be written. None for a path stands for no file.
    """
    before, goes_on = _version(path), unfinished()
    if path is None:
        yield
        return
    name = hashlib.sha256(path.name.encode(errors="surrogatepass")).hexdigest()[:12]
    lock = path.with_name(f".attnbias-{name}.lock")
    if not goes_on:
        with contextlib.suppress(AttnBiasError):
            if lock.exists():  # of a process that was killed when it was done
                with locked(lock):
                    pass
        yield
        return
    with locked(lock, str(path)):
        if _version(path) != before:  # since it was read
            raise _busy(str(path))
        yield


def _version(path: Path | None) -> tuple[int, int, int] | None:
    """What tells one content of a file from the next; None where there is no file."""
    if path is not None:
        with contextlib.suppress(OSError):
            found = path.stat()
            return found.st_ino, found.st_mtime_ns, found.st_size
    return None


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
