"""The samples that come with attnbias, beside the full sets that `scripts` makes them from."""

import functools
import io

import numpy as np
import pytest
from stored_sets import drawn

from attnbias.data import _mnist, _source
from attnbias.data._mnist import Digits
from attnbias.nets.data import images, text
from attnbias.nets.data.images import COUNTS, load_cifar10, load_mnist
from attnbias.nets.data.text import TextSet, load_nli, load_toxic
from attnbias.nets.text import load_encoder, load_tokenizer
from scripts.fetch_packages import PACKAGES, folder_of
from scripts.make_samples import zeros_and_ones

IMAGES = {"MNIST": load_mnist, "CIFAR-10": load_cifar10}
TEXTS = {"snli": load_nli, "toxic": load_toxic}


def keys(texts: TextSet) -> list:
    return list(zip(texts.first, texts.second or texts.first, strict=True))


def fetched(folder: str):
    """The folder of a full set, if it is here."""
    if not folder_of(folder).is_dir():
        pytest.skip(f"{folder} was not fetched")
    return folder_of(folder)


@pytest.mark.parametrize("filename", _source.BUNDLED_SHA256)
def test_the_notes_say_what_the_samples_were_made_of(filename):
    words = (_source.FOLDER / filename).with_suffix("").with_suffix(".md").read_text()
    assert "scripts.make_" in words
    assert any(entry.sha256 in words for entry in PACKAGES.values())


def test_subset_is_deterministic_and_keeps_pixels():
    splits = {}
    for name, (count, seed) in {"train": (60, 1), "test": (30, 2)}.items():
        pixels, labels = drawn(count, seed)
        index = np.flatnonzero(labels < 2)
        splits[name] = Digits(pixels[index], labels[index], index)
    blob = zeros_and_ones(splits, per_class=8)
    assert blob == zeros_and_ones(splits, per_class=8)
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        assert np.bincount(2 * stored["split"] + stored["labels"]).tolist() == [8, 8, 8, 8]
        for number, (count, seed) in enumerate(((60, 1), (30, 2))):
            images, labels = drawn(count, seed)
            chosen = stored["split"] == number
            assert (stored["images"][chosen] == images[stored["index"][chosen]]).all()
            assert (stored["labels"][chosen] == labels[stored["index"][chosen]]).all()
    with pytest.raises(SystemExit, match="only 10 rows in a class"):
        zeros_and_ones(splits, per_class=11)


def test_bundled_file_against_the_full_set():
    full = _mnist.read_digits(fetched("mnist"))
    counts = {name: np.bincount(digits.labels).tolist() for name, digits in full.items()}
    assert counts == {"train": [5923, 6742], "test": [980, 1135]}
    assert zeros_and_ones(full) == _source.bundled(_mnist.SAMPLE)


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [("MNIST", [0.1307], 0.3081), ("CIFAR-10", [0.4914, 0.4822, 0.4465], None)],
)
def test_full_sets_of_images(name, mean, deviation):
    *_, folder, _, sample_file = images.PLACES[name]
    full_set = fetched(folder)
    for split in images.SPLITS:
        full = IMAGES[name](split, full_set)
        assert tuple(np.bincount(full.labels)) == COUNTS[name, split]
        sample = IMAGES[name](split, "bundled")
        index = _source.bundled_arrays(sample_file)[f"{split}_index"]
        assert (full.images[index] == sample.images).all()
        assert (full.labels[index] == sample.labels).all()
        if split == "train":
            # Four digits are recorded.
            assert np.abs(full.images.mean((0, 1, 2)) / 255 - mean).max() < 5e-5
            if deviation:
                assert abs(full.images.std() / 255 - deviation) < 5e-5


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("snli", {"train": 90100, "validation": 9790, "test": 9824}),
        ("toxic", {"train": 147161, "validation": 18501, "test": 18532}),
    ],
)
def test_full_sets_of_texts(name, counts, monkeypatch):
    full_set = fetched(name)
    for reader in ("_snli_rows", "_toxic_rows"):  # once for all splits
        monkeypatch.setattr(text, reader, functools.cache(getattr(text, reader)))
    sets = {split: TEXTS[name](split, full_set) for split in text.SPLITS}
    assert {split: len(texts) for split, texts in sets.items()} == counts
    for split, texts in sets.items():
        labels = dict(zip(keys(texts), texts.labels.tolist(), strict=False))
        sample = TEXTS[name](split, "bundled")
        assert set(keys(sample)) <= set(labels)
        if name == "toxic":
            assert [labels[key] for key in keys(sample)] == sample.labels.tolist()
            assert abs(texts.labels.mean() - 0.2) < 0.005
    first = {split: set(texts.first) for split, texts in sets.items()}
    assert not first["train"] & first["validation"]
    shared = len(first["test"] & (first["train"] | first["validation"]))
    assert shared == (name == "snli")  # one premise, as the docstring says
    assert name == "snli" or sum(map(len, first.values())) == sum(counts.values())  # none twice


def test_the_real_package():
    encoder, tokenizer = load_encoder(fetched("minilm")), load_tokenizer(fetched("minilm"))
    assert sum(weight.numel() for weight in encoder.parameters()) == 22_713_216
    hard = ["A man sleeps.", "A man on a bench.", "naïve CAFÉ \t 北京 déjà-vu ...", "", "x" * 300]
    theirs, ours = (each(hard, hard[::-1]) for each in (tokenizer, load_tokenizer("tiny")))
    assert theirs["input_ids"] == ours["input_ids"]
