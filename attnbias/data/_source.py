"""Where real data come from: the hub, a folder of files, or the samples in this package."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._extras import need
from .._validate import require_type, short
from ..errors import (
    ChecksumError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)

CONTENT_ERRORS = (
    zlib.error,
    csv.Error,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
)
FOLDER = Path(__file__).parent / "files"
BUNDLED_SHA256 = {
    "mnist01.npz": "e511b22de0f1f21b8429cc6a64f67c7a12df52f87107bf6144e2dc8e7a58e907",
    "digits10.npz": "e6d152c4d5601dac0ae3b66faddd916b661b8eeb82642c270f98386941ff7309",
    "cifar10.npz": "8f769cea2340a54cac0e3ad4ef60ac36c7c0f42ddc92088914896fef1148c7a0",
    "snli.json.gz": "fa0d5ee7ffa77be1779aee88646f70bc3ad8ad0017a1e85f5c719ace5b848ebe",
    "toxic.json.gz": "2aa5f7004e73bd2044c39e6f1b62b4ed180e7bec9d15fd0e7cbb0dc909778661",
    "bert_vocab.txt.gz": "fb360f1f62090f71339e89de3808ffde021892470f5724aeb369be6ecfb4c6d7",
    "minilm_sample.npz": "6322b07482854dbe4ca2287c5255e8531b68f2439dea8491a090c1c2e2436da4",
}


def as_source(source, name: str, sample: str = "bundled") -> str | Path:
    """ "huggingface", "bundled", or the existing folder of a data set.

    Parameters
    ----------
    source : {"huggingface", "bundled"} or path
        A folder with the files of the data set, or one that has such a folder by its name.
    name : str
        Of the data set.
    sample : str
        The word for what comes with attnbias.

    Raises
    ------
    DtypeError, RangeError, MissingFileError
    """
    remedy = f"pass 'huggingface', {sample!r}, or the path of a folder"
    require_type("source", source, str | os.PathLike, "a word or a path", remedy)
    if source in ("huggingface", sample):
        return source
    folder = Path(source)
    for place in (folder / name, folder):
        if os.path.isdir(place):  # takes any string; the method of a path raises on a long one
            return place
    if isinstance(source, str) and folder.name == source and not folder.suffix:
        raise RangeError(  # a bare word is taken for a misspelt choice
            "source",
            expected=f"one of 'huggingface', {sample!r}, or an existing folder",
            got=short(source),
            remedy="pick one of these, or check the path",
        )
    raise MissingFileError(
        str(source),
        expected="a folder",
        got="a file" if os.path.exists(folder) else "nothing at that path",
        remedy=f"check the path, or use source={sample!r}",
    )


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
    found = hashlib.sha256(blob).hexdigest()
    require_sha256(str(path), found, BUNDLED_SHA256[filename], "install attnbias again")
    return blob


def bundled_arrays(filename: str) -> dict[str, np.ndarray]:
    """The arrays in such a file.

    Raises
    ------
    MissingFileError, ChecksumError
    """
    with np.load(io.BytesIO(bundled(filename)), allow_pickle=False) as stored:
        return dict(stored)


def require_sha256(what: str, found: str, wanted: str, remedy: str) -> None:
    """Refuse a content other than the recorded one.

    Raises
    ------
    ChecksumError
    """
    if found != wanted:
        raise ChecksumError(
            what, expected=f"sha256 {wanted[:16]}...", got=f"{found[:16]}...", remedy=remedy
        )


# The commits of the hub that were there in November 2026, since what stands on a branch may change.
REVISIONS = {
    "ylecun/mnist": "77f3279092a1c1579b2250db8eafed0ad422088c",
    "uoft-cs/cifar10": "0b2714987fa478483af9968de7c934580d0bb9a2",
    "nyu-mll/multi_nli": "da70db2af9d09693783c3320c4249840212ee221",
    "google/civil_comments": "f2970eb3a55777454c94069077cc8d9b5866312d",
}


def huggingface(repository: str, split: str):
    """One split of a data set on the hub, at its recorded commit, through the package datasets.

    Raises
    ------
    MissingExtraError, MissingFileError
    """
    datasets = need("datasets", "nets")
    try:
        return datasets.load_dataset(repository, split=split, revision=REVISIONS[repository])
    except Exception as error:  # the library raises many kinds; all mean that no data came
        raise MissingFileError(
            repository,
            expected=f"the {split} split",
            got=f"{type(error).__name__}: {error}",
            remedy="check the network, or use source='bundled' or a folder of your own",
        ) from error


def hub_images(repository: str, column: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 and labels int64 of a data set on the hub.

    Raises
    ------
    MissingExtraError, MissingFileError, FileFormatError
    """
    table = huggingface(repository, split)
    need("PIL")  # with which the package datasets decodes them
    with translated(repository, f"images in {column!r} and integers in 'label'"):
        images = np.stack([np.asarray(picture, np.uint8) for picture in table[column]])
        return images, np.asarray(table["label"], np.int64)


def damaged(
    what, expected: str, got: str, remedy="delete the file and get it again"
) -> FileFormatError:
    """For a file or a table whose content is not what it should be."""
    return FileFormatError(str(what), expected=expected, got=got, remedy=remedy)


@contextlib.contextmanager
def translated(what, expected: str, *remedy: str) -> Iterator[None]:
    """Whatever goes wrong with the content of a file or a table, by its name."""
    try:
        yield
    except (FileFormatError, MissingExtraError, MissingFileError):
        raise
    except FileNotFoundError as error:
        raise MissingFileError(
            str(error.filename),
            expected=expected,
            got="no such file",
            remedy="get the whole folder again",
        ) from None
    except CONTENT_ERRORS as error:
        raise damaged(what, expected, f"{type(error).__name__}: {error}"[:200], *remedy) from None
