"""The IDX format of MNIST: one file, and the four files in an archive or a folder.

Nothing is unpickled, and no archive member is ever written to disk.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path

import numpy as np

from ..errors import FileFormatError

IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
STEMS = {"train": "train", "test": "t10k"}
FILES = tuple(f"{stem}-{kind}" for stem in STEMS.values() for kind in (IMAGES, LABELS))


def parse_idx(what: str, blob: bytes, rank: int) -> np.ndarray:
    """The array of unsigned bytes in an IDX file of the given rank.

    Parameters
    ----------
    what : str
        A name for error messages.
    blob : bytes
        The whole file.
    rank : int
        3 for images, 1 for labels.

    Raises
    ------
    FileFormatError
        For another magic number, or a length that its own header contradicts.
    """
    start = 4 + 4 * rank
    right = len(blob) >= start and blob[:4] == bytes([0, 0, 8, rank])
    shape = [int(size) for size in np.frombuffer(blob[4:start], ">u4")] if right else []
    if not right or len(blob) != start + int(np.prod(shape, dtype=object)):
        header = f" and shape {tuple(shape)} in its header" if right else ""
        raise FileFormatError(
            what,
            expected=f"a complete IDX file of unsigned bytes with rank {rank}",
            got=f"{len(blob)} bytes, starting with {blob[:4].hex() or 'nothing'}{header}",
            remedy="get the file again; a download may have stopped early",
        )
    return np.frombuffer(blob, np.uint8, offset=start).reshape(shape)


def archive_files(path: Path, blob: bytes) -> dict[str, bytes]:
    """Those of the four MNIST files that a gzipped tar archive holds, read in place.

    Raises
    ------
    FileFormatError
    """
    try:
        # Unzipped as a whole, so that a cut-off end or a wrong CRC is noticed.
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob)), mode="r:") as archive:
            return {
                member.name.rpartition("/")[2]: archive.extractfile(member).read()
                for member in archive
                if _wanted(member)
            }
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise _damaged(path, "a gzipped tar archive", error) from None


def _wanted(member: tarfile.TarInfo) -> bool:
    """Regular files under their exact names: links and other paths are never followed."""
    return member.isfile() and member.name in {f"package/data/{name}" for name in FILES}


def folder_files(folder: Path) -> dict[str, bytes]:
    """Those of the four MNIST files in a folder, plain or gzipped, '-idx' or '.idx'.

    Raises
    ------
    FileFormatError
    """
    found = {}
    for name in FILES:
        for variant in (name, name.replace("-idx", ".idx")):
            plain, gzipped = folder / variant, folder / f"{variant}.gz"
            if plain.is_file():
                found[name] = plain.read_bytes()
            elif gzipped.is_file():
                found[name] = _gunzip(gzipped)
    return found


def _gunzip(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, "a gzipped IDX file", error) from None


def _damaged(path: Path, expected: str, error: Exception) -> FileFormatError:
    return FileFormatError(
        str(path),
        expected=expected,
        got=f"{type(error).__name__}: {error}",
        remedy="get the file again; a download may have stopped early",
    )
