"""One file over HTTP into a partial file that a later call can resume."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from tqdm import tqdm

from ..errors import AttnBiasError, ChecksumError, FileAccessError, MissingFileError

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS, PAUSE = 3, 0.5  # attempts in a row that bring nothing new; seconds between them
ABSENT = ("HTTP status 404", "HTTP status 410")
BLOCK = 1 << 18
# Time-outs are OSErrors; an address that makes no sense is a ValueError.
NETWORK = (OSError, http.client.HTTPException, ValueError)


def download(urls: Iterable[str], part: Path, size: int, *, progress: bool, by_hand: str) -> None:
    """Fill `part` to `size` bytes from the first address that has the file.

    Parameters
    ----------
    urls : iterable of str
        Addresses to try in turn; the next is asked for only when one has no such file.
    part : Path
        The partial file; what it already holds is not asked for again.
    size : int
        Bytes of the complete file. More are never written.
    progress : bool
        Show a progress bar.
    by_hand : str
        What to do without a registry, for messages.

    Raises
    ------
    MissingFileError, FileAccessError
        In both cases `part` keeps what has come.
    """
    for url in urls:
        if _resume(url, part, size, progress, by_hand):
            return
    raise _no_file(part, "no registry that lists it", by_hand)


def _resume(url: str, part: Path, size: int, progress: bool, by_hand: str) -> bool:
    """False if the server knows no such file."""
    name, failures = part.name.removesuffix(".part"), 0
    if _held(part) > size:  # of another file
        part.unlink()
    most = _held(part)
    with tqdm(total=size, desc=name, unit="B", unit_scale=True, disable=not progress) as bar:
        while _held(part) < size:
            problem = _try(url, part, size, bar)
            if problem in ABSENT:
                return False
            failures = failures + 1 if _held(part) <= most else 0
            most = max(most, _held(part))
            if failures >= ATTEMPTS:
                raise _no_file(part, problem, by_hand)
            time.sleep(PAUSE * failures)
    return True


def _try(url: str, part: Path, size: int, bar: tqdm) -> str:
    """One request for what is missing; what ended it, in words."""
    try:
        _append(url, part, size, bar)
    except AttnBiasError:
        raise
    except urllib.error.HTTPError as error:
        if error.code == 416:  # more is held than the server has: begin anew
            part.unlink(missing_ok=True)
        return f"HTTP status {error.code}"
    except NETWORK as error:
        return f"{type(error).__name__}: {error}"
    return "a connection that ended early"


def _append(url: str, part: Path, size: int, bar: tqdm) -> None:
    held = _held(part)
    request = _request(url)
    if held:
        request.add_header("Range", f"bytes={held}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        span = response.headers.get("Content-Range", "")
        resumed = response.status == 206 and span.startswith(f"bytes {held}-")
        held = held if resumed else 0  # a server without ranges sends the file from its start
        _require_size(part, held, response.length, size)
        with writing(part):
            file = open(part, "ab" if resumed else "wb")  # noqa: SIM115
        with file:
            bar.n = held
            bar.refresh()
            while held < size and (block := response.read1(min(BLOCK, size - held))):
                with writing(part):
                    file.write(block)
                    file.flush()  # what has come stays, even if the process is killed now
                held += len(block)
                bar.update(len(block))


def _require_size(part: Path, held: int, coming: int | None, size: int) -> None:
    """Refuse another file before it is written, if the server says how long it is."""
    if coming is not None and held + coming != size:
        part.unlink(missing_ok=True)
        raise ChecksumError(
            part.name.removesuffix(".part") + " from the registry",
            expected=f"{size} bytes",
            got=f"{held + coming}; what was there of it was thrown away",
            remedy="fetch it again; if that fails too, the registry has another file",
        )


def read_page(url: str, by_hand: str) -> str | None:
    """A page of text, or None where there is none.

    Raises
    ------
    MissingFileError
    """
    try:
        request = _request(url)
        request.add_header("Accept", "text/html")
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return response.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        problem = f"HTTP status {error.code}"
        if problem in ABSENT:
            return None
    except NETWORK as error:
        problem = f"{type(error).__name__}: {error}"
    raise _no_file(re.sub("//[^/]*@", "//", url), problem, by_hand)


def _request(url: str) -> urllib.request.Request:
    """With "user:password@" in the address told to its host as a header, as pip does."""
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    bare = urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(bare, headers={"User-Agent": "attnbias"})
    if login:  # not sent on to a host that the server redirects to
        token = base64.b64encode(unquote(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _held(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _no_file(what, problem: str, by_hand: str) -> MissingFileError:
    return MissingFileError(
        str(what).removesuffix(".part"),
        expected="a registry that can be reached and has the file",
        got=problem,
        remedy=f"check the network and try again; {by_hand}",
    )


@contextlib.contextmanager
def writing(part: Path) -> Iterator[None]:
    """Trouble with the disk by its own name, apart from trouble with the network."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        raise FileAccessError(
            str(part),
            expected="room for the download" if full else "a file that can be written",
            got=str(error.strerror),
            remedy=("free some space" if full else "check its permissions")
            + ", or name another folder by cache= or in ATTNBIAS_CACHE",
        ) from None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One downloader at a time in a folder; others wait. The system frees it after a kill."""
    try:
        file = open(folder / ".lock", "a+b")  # noqa: SIM115
    except OSError as error:
        raise FileAccessError(
            str(folder),
            expected="a folder for downloads that can be written",
            got=str(error.strerror),
            remedy="name another one by cache= or in ATTNBIAS_CACHE",
        ) from None
    with file:
        # Some network disks have no locks; the checksum still keeps a mixed file out.
        with contextlib.suppress(OSError):
            _lock(file)
        yield


def _lock(file) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
