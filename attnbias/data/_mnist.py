"""Where real 0 and 1 digits come from: the bundled subset, the hub, or a folder of IDX files.

Every reader returns {"train": Digits, "test": Digits}, in the order of the source. Nothing is
unpickled.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._records import unpacked_limit
from ..errors import FileFormatError, MissingFileError
from ._source import as_source, bundled_arrays, damaged, hub_images, require_sha256, translated

HUB, SAMPLE = ("ylecun/mnist", "image"), "mnist01.npz"
# sha256 of the sorted images of digit 0, then of digit 1: the same for every complete
# copy of MNIST, whatever its container and its order.
CONTENT_SHA256 = {
    "train": "1ed5cb47063bdf5014e86cc1636617b8666bd4625a561ee3be99b177264c641e",
    "test": "b19389a3c3f5c7ef8e9e143df74057c5a8509a1ae2663dea9bff6bb1406e28a8",
}
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
STEMS = {"train": "train", "test": "t10k"}
FILES = tuple(f"{stem}-{kind}" for stem in STEMS.values() for kind in (IMAGES, LABELS))
SIDE = 28
AGAIN = "get the file again; a download may have stopped early"


class Digits(NamedTuple):
    """Images (m, 28, 28) uint8, labels (m,) in {0, 1}, index (m,) in the original file."""

    images: np.ndarray
    labels: np.ndarray
    index: np.ndarray  # type: ignore[assignment]  # a tuple has a method of that name


def read_digits(source="bundled", *, verify: bool = True) -> dict[str, Digits]:
    """All 0 and 1 digits of a source, by split; arguments as in `load_binary_mnist`.

    Raises
    ------
    MissingFileError, MissingExtraError, FileFormatError, ChecksumError, RangeError, DtypeError
    """
    place = as_source(source, "mnist")
    if place == "bundled":
        return _read_bundled()
    splits = {}
    for split in STEMS:
        found = hub_images(*HUB, split) if isinstance(place, str) else read_folder(place, split)
        splits[split] = _zeros_and_ones(f"{place}: {split} split", *found)
    if verify:
        for name, digits in splits.items():
            require_sha256(
                f"{place}: {len(digits.labels)} digits of the {name} split",
                content_sha256(digits),
                CONTENT_SHA256[name],
                "get the files again; verify=False reads other digits in this format",
            )
    return splits


def content_sha256(digits: Digits) -> str:
    """Checksum of the images of one split; it does not depend on their order."""
    rows = np.ascontiguousarray(digits.images).reshape(len(digits.images), -1)
    fixed = rows.view(f"S{rows.shape[1]}").ravel()
    zeros, ones = (np.sort(fixed[digits.labels == label]).tobytes() for label in (0, 1))
    return hashlib.sha256(zeros + ones).hexdigest()


def _read_bundled() -> dict[str, Digits]:
    stored = bundled_arrays(SAMPLE)
    arrays, test = [stored[key] for key in Digits._fields], stored["split"].astype(bool)
    return {
        "train": Digits(*(array[~test] for array in arrays)),
        "test": Digits(*(array[test] for array in arrays)),
    }


def read_folder(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of all ten digits in the IDX files of a folder.

    Raises
    ------
    MissingFileError, FileFormatError
    """
    images = read_idx(folder, f"{STEMS[split]}-{IMAGES}", 3)
    return images.copy(), read_idx(folder, f"{STEMS[split]}-{LABELS}", 1).astype(np.int64)


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
        wanted = "images of both digits, 0 and 1, none of them blank"
        got = f"{counts[0]} of 0, {counts[1]} of 1, {blank} of them blank"
        raise damaged(what, wanted, got, "check that these are MNIST digits")
    return digits


def read_idx(folder: Path, name: str, rank: int) -> np.ndarray:
    """The array in one of the MNIST files of a folder, plain or gzipped, '-idx' or '.idx'.

    Raises
    ------
    MissingFileError, FileFormatError
    """
    variants = [
        folder / f"{stem}{suffix}"
        for stem in (name, name.replace("-idx", ".idx"))
        for suffix in ("", ".gz")
    ]
    path = next((path for path in variants if path.is_file()), None)
    if path is None:
        raise MissingFileError(
            str(folder),
            expected="the four MNIST files " + ", ".join(FILES),
            got=f"no {name}",
            remedy="get the full set again, or use source='bundled'",
        )
    with translated(path, "an IDX file, plain or gzipped", AGAIN):
        size = path.stat().st_size
        limit = unpacked_limit(size)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            blob = stream.read(limit + 1)
        if len(blob) > limit:
            raise damaged(path, f"at most {limit} bytes when unpacked", f"more, from {size}", AGAIN)
        return parse_idx(str(path), blob, rank)


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
        wanted = f"a complete IDX file of unsigned bytes with rank {rank}"
        got = f"{len(blob)} bytes, starting with {blob[:4].hex() or 'nothing'}{header}"
        raise damaged(what, wanted, got, AGAIN)
    return np.frombuffer(blob, np.uint8, offset=start).reshape(shape)
