"""Labelled images for the networks: MNIST and CIFAR-10, whole or as a small real sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._validate import PathLike, require_choice
from ...data import _mnist
from ...data._source import as_source, bundled_arrays, damaged, hub_images, translated
from ._arrays import require_array, require_labels

__all__ = ["ImageSet", "load_cifar10", "load_mnist"]

SPLITS = ("train", "test")
DIGITS = tuple("0123456789")
THINGS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
# Images of each class in the full sets; for MNIST these tell a whole copy from a part.
COUNTS = {
    ("MNIST", "train"): (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    ("MNIST", "test"): (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    ("CIFAR-10", "train"): (5000,) * 10,
    ("CIFAR-10", "test"): (1000,) * 10,
}


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with labels.

    Parameters
    ----------
    images : ndarray of uint8, shape (m, H, W, C)
        C is 1 for grey and 3 for red, green, blue.
    labels : ndarray of int64, shape (m,)
        Positions in `classes`.
    classes : tuple of str
        Names of the classes.
    name : str
        Of the data set and the split.
    source : str
        Where the images came from.

    Raises
    ------
    DtypeError, ShapeError, LabelError

    Examples
    --------
    >>> grey = np.zeros((2, 28, 28, 1), dtype=np.uint8)
    >>> images = ImageSet(grey, np.array([0, 1]), ("zero", "one"))
    >>> len(images), images.classes
    (2, ('zero', 'one'))
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    name: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        require_array("images", self.images, np.uint8, (None,) * 4, "(m, H, W, C)")
        require_labels(self.labels, self.classes, len(self.images))

    def __len__(self) -> int:
        return len(self.labels)


def load_mnist(split: str = "train", source: PathLike = "huggingface") -> ImageSet:
    """Handwritten digits, 28 x 28, grey.

    Parameters
    ----------
    split : {"train", "test"}
        60,000 and 10,000 images; 1,000 and 500 when bundled.
    source : {"huggingface", "bundled"} or path
        "huggingface" asks the hub through the package datasets, "bundled" is a sample that comes
        with attnbias, and a path names a folder with the four IDX files of MNIST, or one that has
        them in a folder mnist.

    Returns
    -------
    ImageSet

    Raises
    ------
    RangeError, DtypeError
        For a malformed argument.
    MissingFileError, MissingExtraError
        If the source can't be reached; the message names the remedy.
    ChecksumError, FileFormatError
        For a damaged or a foreign file.

    Notes
    -----
    Source: Yann LeCun and Corinna Cortes, CC BY-SA 3.0.

    Examples
    --------
    >>> digits = load_mnist("test", source="bundled")
    >>> digits.images.shape, digits.classes[digits.labels[0]]
    ((500, 28, 28, 1), '7')
    """
    return _load("MNIST", split, source)


def load_cifar10(split: str = "train", source: PathLike = "huggingface") -> ImageSet:
    """Photographs of ten kinds of things, 32 x 32, in colour.

    Parameters
    ----------
    split : {"train", "test"}
        50,000 and 10,000 images; 400 and 200 when bundled.
    source : {"huggingface", "bundled"} or path
        As in `load_mnist`; a folder, or its folder cifar10, holds the binary version of CIFAR-10,
        data_batch_1.bin to data_batch_5.bin and test_batch.bin.

    Returns
    -------
    ImageSet

    Raises
    ------
    RangeError, DtypeError, MissingFileError, MissingExtraError, ChecksumError, FileFormatError
        As in `load_mnist`.

    Notes
    -----
    Source: Alex Krizhevsky, "Learning multiple layers of features from tiny images", 2009.

    Examples
    --------
    >>> things = load_cifar10("test", source="bundled")
    >>> things.images.shape, things.classes[things.labels[0]]
    ((200, 32, 32, 3), 'cat')
    """
    return _load("CIFAR-10", split, source)


def _load(name: str, split, source) -> ImageSet:
    classes, repository, column, folder, read, sample = PLACES[name]
    split, place = require_choice("split", split, SPLITS), as_source(source, folder)
    if place == "bundled":
        images, labels = _read_sample(sample, split)
    else:
        on_hub = place == "huggingface"
        images, labels = hub_images(repository, column, split) if on_hub else read(place, split)
        _require_whole(f"{name} from {place}", split, labels, COUNTS[name, split])
    images = images.reshape(*images.shape[:3], -1)  # grey ones come without an axis of colours
    return ImageSet(images, labels, classes, f"{name} {split}", str(source))


def _require_whole(what: str, split: str, labels: np.ndarray, counts: tuple[int, ...]) -> None:
    outside = labels.ndim != 1 or not labels.size or labels.min() < 0 or labels.max() > 9
    found = None if outside else tuple(np.bincount(labels, minlength=10).tolist())
    if found != counts:
        raise damaged(
            f"{what}: {split} split",
            f"{sum(counts)} images, by class {counts}",
            "labels other than 0 to 9" if outside else f"{len(labels)}, by class {found}",
        )


def _read_cifar10(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each image one byte for the label, then 32 x 32 pixels of red, of green and of blue."""
    batches = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    with translated(folder, "the binary version of CIFAR-10"):
        blobs = [(folder / f"{name}.bin").read_bytes() for name in batches]
        rows = np.frombuffer(b"".join(blobs), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
        images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(images), rows[:, 0].astype(np.int64)


def _read_sample(filename: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    stored = bundled_arrays(filename)
    # Kept as differences between neighbours in a row, which compress better.
    images = np.cumsum(stored[f"{split}_images"], axis=2, dtype=np.uint8)
    return images, stored[f"{split}_labels"].astype(np.int64)


# Of each set the classes, where the hub and a folder have it, and the sample of attnbias.
PLACES: dict = {
    "MNIST": (DIGITS, *_mnist.HUB, "mnist", _mnist.read_folder, "digits10.npz"),
    "CIFAR-10": (THINGS, "uoft-cs/cifar10", "img", "cifar10", _read_cifar10, "cifar10.npz"),
}
