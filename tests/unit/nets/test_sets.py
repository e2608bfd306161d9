"""The labelled images and texts: the samples that come with attnbias, and the full sets."""

import dataclasses
import functools
import gzip

import numpy as np
import pytest
from refusals import refuses

from attnbias.data import _source
from attnbias.errors import ChecksumError, DtypeError, LabelError, MissingFileError, ShapeError
from attnbias.nets.data import images, text
from attnbias.nets.data.images import ImageSet, load_cifar10, load_mnist
from attnbias.nets.data.text import NLI, TOXIC, TextSet, load_nli, load_toxic

IMAGES = {"MNIST": load_mnist, "CIFAR-10": load_cifar10}
TEXTS = {"snli": load_nli, "toxic": load_toxic}
SIZES = {"MNIST": {"train": 1000, "test": 500}, "CIFAR-10": {"train": 400, "test": 200}}
SHAPE = {"MNIST": (28, 28, 1), "CIFAR-10": (32, 32, 3)}
TEXT_SIZES = {"train": 1200, "validation": 300, "test": 500}


def keys(texts: TextSet) -> list:
    return list(zip(texts.first, texts.second or texts.first, strict=True))


@pytest.mark.parametrize("name", IMAGES)
def test_samples_of_images(name):
    sets = {split: IMAGES[name](split, "bundled") for split in images.SPLITS}
    for split, found in sets.items():
        m = SIZES[name][split]
        assert found.images.shape == (m, *SHAPE[name]) and len(found) == m
        assert found.images.dtype == np.uint8 and found.labels.dtype == np.int64
        assert np.bincount(found.labels).tolist() == [m // 10] * 10
        assert found.classes == (images.DIGITS if name == "MNIST" else images.THINGS)
        assert (found.name, found.source) == (f"{name} {split}", "bundled")
    apart = {image.tobytes() for found in sets.values() for image in found.images}
    assert len(apart) == sum(SIZES[name].values())  # none twice, none in both splits


@pytest.mark.parametrize("name", TEXTS)
def test_samples_of_texts(name):
    sets = {split: TEXTS[name](split, "bundled") for split in text.SPLITS}
    for split, texts in sets.items():
        assert len(texts) == TEXT_SIZES[split] == len(texts.first) == len(set(keys(texts)))
        assert texts.classes == (NLI if name == "snli" else TOXIC)
        assert texts.labels.dtype == np.int64 and (texts.second is None) == (name == "toxic")
        assert all(each.strip() for each in texts.first + (texts.second or ()))
        assert texts.name.endswith(split) and texts.source == "bundled"
        shares = np.bincount(texts.labels) / len(texts)
        want = [1 / 3] * 3 if name == "snli" else [0.8, 0.2]  # those of the full sets to a row
        assert np.abs(shares - want).max() < 0.01
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not set(sets[one].first) & set(sets[other].first)


def test_samples_are_pictures_not_noise():
    """Neighbouring pixels agree, which a wrong order of axes would spoil."""
    for load in IMAGES.values():
        pixels = load("train", "bundled").images.astype(float)
        shuffled = np.random.default_rng(0).permutation(pixels.reshape(len(pixels), -1), axis=1)
        far = abs(np.diff(shuffled.reshape(pixels.shape), axis=2)).mean()
        for axis in (1, 2):
            assert abs(np.diff(pixels, axis=axis)).mean() < 0.5 * far


@pytest.mark.parametrize("filename", _source.BUNDLED_SHA256)
def test_each_sample_has_its_note_and_its_checksum(filename, tmp_path, monkeypatch):
    blob, note = _source.bundled(filename), _source.FOLDER / f"{filename.split('.')[0]}.md"
    words = note.read_text()
    assert _source.BUNDLED_SHA256[filename] in words and f"{len(blob):,} bytes" in words
    assert "Licence" in words
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


def test_the_vocabulary_is_berts_and_the_hash_is_fixed():
    """The split of a text must never change: results would no longer compare."""
    words = gzip.decompress(_source.bundled("bert_vocab.txt.gz")).decode().splitlines()
    assert len(words) == len(set(words)) == 30522
    assert [words[i] for i in (0, 100, 101)] == ["[PAD]", "[UNK]", "[CLS]"]
    assert [text._tenth(word) for word in ("", "a", "attention", "é")] == [2, 0, 5, 1]


def test_malformed_images():
    good = ImageSet(np.zeros((2, 4, 4, 1), np.uint8), np.array([0, 1]), ("a", "b"))
    assert len(good) == 2
    refuses(
        functools.partial(dataclasses.replace, good),
        {},
        {
            DtypeError: [
                {"images": np.zeros((2, 4, 4, 1))},
                {"images": [[[[0]]]]},
                {"labels": [0, 1]},
                {"labels": np.array([0, 1], np.uint8)},
            ],
            ShapeError: [
                {"images": np.zeros((2, 4, 4), np.uint8)},
                {"labels": np.array(0)},
                {"images": np.zeros((3, 4, 4, 1), np.uint8)},
                {"images": good.images[:0], "labels": good.labels[:0]},
                {"labels": np.zeros((2, 1), np.int64)},
            ],
            LabelError: [{"labels": np.array([0, 2])}, {"labels": np.array([-1, 0])}],
        },
        "expected .*; got ",
    )


def test_malformed_texts():
    good = TextSet(("a", "b"), ("x", "y"), np.array([0, 1]), NLI)
    assert len(good) == 2 and len(dataclasses.replace(good, second=None)) == 2
    refuses(
        functools.partial(dataclasses.replace, good),
        {},
        {
            DtypeError: [
                {"first": ["a", "b"]},
                {"first": "ab"},
                {"first": ("a", 2)},
                {"first": None},
                {"second": ["x", "y"]},
                {"labels": [0, 1]},
                {"labels": np.array([0.0, 1.0])},
            ],
            ShapeError: [
                {"second": ("x",)},
                {"first": ("a",)},
                {"labels": np.array([[0, 1]])},
                {"first": (), "second": None, "labels": np.zeros(0, np.int64)},
            ],
            LabelError: [{"labels": np.array([0, 3])}, {"labels": np.array([-1, 0])}],
        },
        "expected .*; got ",
    )
