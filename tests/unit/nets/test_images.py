"""MNIST and CIFAR-10 from each of their sources, whole and as samples."""

import dataclasses
import functools
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses
from stored_sets import CIFAR_COUNTS, cifar10_pixels, drawn, hub, idx, write_folder

from attnbias.data import _source
from attnbias.data._mnist import FILES
from attnbias.errors import (
    ChecksumError,
    DtypeError,
    FileFormatError,
    LabelError,
    MissingFileError,
    ShapeError,
)
from attnbias.nets.data import images
from attnbias.nets.data.images import (
    COUNTS,
    DIGITS,
    SPLITS,
    THINGS,
    ImageSet,
    load_cifar10,
    load_mnist,
)
from scripts.fetch_packages import PACKAGES

LOADERS = {"MNIST": load_mnist, "CIFAR-10": load_cifar10}
SAMPLE = {"MNIST": {"train": 1000, "test": 500}, "CIFAR-10": {"train": 400, "test": 200}}
SHAPE = {"MNIST": (28, 28, 1), "CIFAR-10": (32, 32, 3)}


# The samples that come with attnbias.


@pytest.mark.parametrize("name", LOADERS)
def test_samples(name):
    sets = {split: LOADERS[name](split, "bundled") for split in SPLITS}
    for split, found in sets.items():
        m = SAMPLE[name][split]
        assert found.images.shape == (m, *SHAPE[name]) and len(found) == m
        assert found.images.dtype == np.uint8 and found.labels.dtype == np.int64
        assert np.bincount(found.labels).tolist() == [m // 10] * 10
        assert found.classes == (DIGITS if name == "MNIST" else THINGS)
        assert (found.name, found.source) == (f"{name} {split}", "bundled")
    apart = {image.tobytes() for found in sets.values() for image in found.images}
    assert len(apart) == sum(SAMPLE[name].values())  # none twice, none in both splits


def test_samples_are_pictures_not_noise():
    """Neighbouring pixels agree, which a wrong order of axes would spoil."""
    for load in LOADERS.values():
        pixels = load("train", "bundled").images.astype(float)
        shuffled = np.random.default_rng(0).permutation(pixels.reshape(len(pixels), -1), axis=1)
        far = abs(np.diff(shuffled.reshape(pixels.shape), axis=2)).mean()
        for axis in (1, 2):
            assert abs(np.diff(pixels, axis=axis)).mean() < 0.5 * far


@pytest.mark.parametrize("filename", _source.BUNDLED_SHA256)
def test_each_sample_has_its_note_and_its_checksum(filename, tmp_path, monkeypatch):
    blob, note = _source.bundled(filename), _source.FOLDER / f"{filename.split('.')[0]}.md"
    text = note.read_text()
    assert _source.BUNDLED_SHA256[filename] in text and f"{len(blob):,} bytes" in text
    assert "Licence" in text and "scripts.make_samples" in text
    assert any(entry.sha256 in text for entry in PACKAGES.values())
    monkeypatch.setattr(_source, "FOLDER", tmp_path)
    with pytest.raises(MissingFileError, match="(?i)install attnbias again"):
        _source.bundled(filename)
    (tmp_path / filename).write_bytes(blob[:-1] + bytes([blob[-1] ^ 1]))
    with pytest.raises(ChecksumError, match="(?i)install attnbias again"):
        _source.bundled(filename)


def test_the_samples_are_small():
    sizes = {path.name: path.stat().st_size for path in _source.FOLDER.iterdir()}
    assert sizes["digits10.npz"] <= 300_000 and sizes["cifar10.npz"] <= 1_500_000
    assert sizes["minilm_sample.npz"] <= 4_000_000 and sum(sizes.values()) < 6_000_000


# The full sets, where the cache has them.


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [("MNIST", [0.1307], 0.3081), ("CIFAR-10", [0.4914, 0.4822, 0.4465], None)],
)
def test_full_sets(name, mean, deviation):
    *_, folder, _, sample_file = images.PLACES[name]
    if not _source.packages_folder(folder).is_dir():
        pytest.skip(f"{name} was not fetched")
    for split in SPLITS:
        full = LOADERS[name](split, "packages")
        assert tuple(np.bincount(full.labels)) == COUNTS[name, split]
        sample = LOADERS[name](split, "bundled")
        with np.load(io.BytesIO(_source.bundled(sample_file))) as stored:
            index = stored[f"{split}_index"]
        assert (full.images[index] == sample.images).all()
        assert (full.labels[index] == sample.labels).all()
        if split == "train":
            # Four digits are recorded.
            assert np.abs(full.images.mean((0, 1, 2)) / 255 - mean).max() < 5e-5
            if deviation:
                assert abs(full.images.std() / 255 - deviation) < 5e-5


# Stand-ins in the same formats.


def stand_in(monkeypatch, name: str, path: Path, counts: dict) -> Path:
    """`path` becomes the folder of a data set with so many images of each class."""
    for split in SPLITS:
        monkeypatch.setitem(COUNTS, (name, split), counts[split])
    monkeypatch.setenv("ATTNBIAS_CACHE", str(path.parent))
    return path


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    blobs = [idx(array) for count, seed in ((60, 1), (30, 2)) for array in drawn(count, seed)]
    path = write_folder(tmp_path / "mnist", dict(zip(FILES, blobs, strict=True)))
    counts = {"train": (20, 20, 20) + (0,) * 7, "test": (10, 10, 10) + (0,) * 7}
    return stand_in(monkeypatch, "MNIST", path, counts)


@pytest.fixture
def cifar10(tmp_path, monkeypatch):
    """Label, then red, green and blue, pixel by pixel: written out, unlike what reads it."""
    path = tmp_path / "cifar10"
    path.mkdir()
    labels = [i % 10 for i in range(20)] + [3, 4]
    for number in range(6):
        name = f"data_batch_{number + 1}" if number < 5 else "test_batch"
        with open(path / f"{name}.bin", "wb") as file:
            for i in range(4 * number, min(4 * number + 4, 22)):
                file.write(bytes([labels[i]]))
                for colour in range(3):
                    file.write(bytes(int(v) for v in cifar10_pixels()[i, :, :, colour].ravel()))
    return stand_in(monkeypatch, "CIFAR-10", path, CIFAR_COUNTS)


@pytest.mark.parametrize("source", ["packages", "path"])
def test_folders(mnist, cifar10, source):
    for split, (count, seed) in {"train": (60, 1), "test": (30, 2)}.items():
        found = load_mnist(split, str(mnist) if source == "path" else source)
        pixels, labels = drawn(count, seed)
        assert (found.images[..., 0] == pixels).all() and (found.labels == labels).all()
        assert found.images.flags.writeable  # torch refuses to share read-only memory quietly
        assert found.source == (str(mnist) if source == "path" else "packages")
    pixels, numbers = cifar10_pixels(), [i % 10 for i in range(20)] + [3, 4]
    for split, rows in (("train", slice(20)), ("test", slice(20, None))):
        found = load_cifar10(split, cifar10 if source == "path" else source)
        assert (found.images == pixels[rows]).all() and found.labels.tolist() == numbers[rows]


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("keep", [0.0, 0.05, 0.5])
def test_truncated_files_are_named(name, keep, request):
    path = request.getfixturevalue(name.lower().replace("-", ""))
    for file in path.iterdir():
        file.write_bytes(file.read_bytes()[: int(keep * file.stat().st_size)])
    for split in SPLITS:
        with pytest.raises(FileFormatError, match=path.name):
            LOADERS[name](split, path)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_and_folders_and_parts_of_a_set_are_named(name, request, monkeypatch):
    path = request.getfixturevalue(name.lower().replace("-", ""))
    monkeypatch.setitem(COUNTS, (name, "test"), (5,) * 10)
    with pytest.raises(FileFormatError, match="50 images, by class"):
        LOADERS[name]("test", "packages")
    missing = "train-images" if name == "MNIST" else "data_batch_1.bin"
    shutil.rmtree(path)
    path.mkdir()
    with pytest.raises(MissingFileError, match=missing):
        LOADERS[name]("train", path)
    path.rmdir()
    with pytest.raises(MissingFileError, match=f"scripts.fetch_packages {path.name}"):
        LOADERS[name]("train", "packages")


def test_cifar10_with_labels_of_no_class(cifar10):
    file = cifar10 / "data_batch_3.bin"
    for label in (10, 255):
        file.write_bytes(bytes([label]) + file.read_bytes()[1:])
        with pytest.raises(FileFormatError, match="other than 0 to 9"):
            load_cifar10("train", cifar10)
    assert len(load_cifar10("test", cifar10)) == 2


# The hub.


def test_hub(monkeypatch):
    pixels, labels = drawn(60, 1)
    photographs = cifar10_pixels()
    hub(monkeypatch, {
        ("ylecun/mnist", "train"): {"image": list(pixels), "label": labels.tolist()},
        ("uoft-cs/cifar10", "test"): {"img": list(photographs[20:]), "label": [3, 4]},
    })  # fmt: skip
    monkeypatch.setitem(COUNTS, ("MNIST", "train"), (20, 20, 20) + (0,) * 7)
    monkeypatch.setitem(COUNTS, ("CIFAR-10", "test"), CIFAR_COUNTS["test"])
    digits, things = load_mnist(), load_cifar10("test")
    assert (digits.images[..., 0] == pixels).all() and (digits.labels == labels).all()
    assert digits.source == "huggingface" and digits.labels.dtype == np.int64
    assert (things.images == photographs[20:]).all() and things.labels.tolist() == [3, 4]


def test_hub_with_other_content(monkeypatch):
    blank = np.zeros((28, 28))
    for images_, labels in (
        (None, [1]), ([blank], None), ([blank, np.zeros((3, 3))], [0, 1]), ([blank], ["one"]),
        ([blank], [11]), ([blank], [1]), ([], []),
    ):  # fmt: skip
        table = {"image": images_, "label": labels}
        table = {key: column for key, column in table.items() if column is not None}
        hub(monkeypatch, {("ylecun/mnist", "test"): table})
        with pytest.raises(FileFormatError, match="mnist|MNIST"):
            load_mnist("test")


def test_malformed_sets():
    good = ImageSet(np.zeros((2, 4, 4, 1), np.uint8), np.array([0, 1]), ("a", "b"))
    assert len(good) == 2
    refuses(functools.partial(dataclasses.replace, good), {}, {
        DtypeError: [{"images": np.zeros((2, 4, 4, 1))}, {"images": [[[[0]]]]}, {"labels": [0, 1]},
                     {"labels": np.array([0, 1], np.uint8)}],
        ShapeError: [{"images": np.zeros((2, 4, 4), np.uint8)}, {"labels": np.array(0)},
                     {"images": np.zeros((3, 4, 4, 1), np.uint8)},
                     {"images": good.images[:0], "labels": good.labels[:0]},
                     {"labels": np.zeros((2, 1), np.int64)}],
        LabelError: [{"labels": np.array([0, 2])}, {"labels": np.array([-1, 0])}],
    }, "expected .*; got ")  # fmt: skip
