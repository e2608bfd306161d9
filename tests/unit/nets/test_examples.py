"""Mini-batches of images and texts: exact moments, the tokenizer's own padding, bad input."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.nets.data.examples import ImageExamples, TextExamples
from attnbias.nets.data.images import ImageSet
from attnbias.nets.data.text import TextSet

pytest.importorskip("transformers")
from attnbias.nets.text import load_tokenizer  # noqa: E402

FIRST = ("A man sleeps.", "", "Two dogs run over the green field", "naïve CAFÉ", "no")
SECOND = ("He is awake!", "b", "one", "a much longer sentence than the first of the two", "no")


def image_set(m=20, channels=3, seed=0):
    draw = np.random.default_rng(seed)
    pixels = draw.integers(0, 256, (m, 4, 5, channels), dtype=np.uint8)
    return ImageSet(pixels, draw.integers(0, 3, m), ("a", "b", "c"))


def text_set(pairs=True):
    labels = np.arange(5, dtype=np.int64) % 2
    return TextSet(FIRST, SECOND if pairs else None, labels, ("x", "y"))


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("tiny")


@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_normalised_by_their_own_moments(channels):
    images = image_set(channels=channels)
    examples = ImageExamples(images)
    plain = images.images / 255.0
    mean, std = plain.mean((0, 1, 2)), plain.std((0, 1, 2))
    for c in range(channels):
        exact = [Fraction(int(pixel), 255) for pixel in images.images[..., c].flat]
        assert examples.mean[c].item() == float(statistics.mean(exact))
        assert examples.std[c].item() == math.sqrt(statistics.pvariance(exact))
    inputs, labels = examples.batch(np.arange(20))
    expected = ((plain - mean) / std).transpose(0, 3, 1, 2)
    assert inputs["images"].dtype == torch.float32
    np.testing.assert_allclose(inputs["images"], expected, atol=1e-6)  # float32 of size 3
    np.testing.assert_array_equal(labels, images.labels)


def test_the_test_set_takes_the_training_sets_moments():
    train, test = ImageExamples(image_set()), image_set(6, seed=1)
    given_moments = ImageExamples(test, mean=train.mean, std=train.std)
    assert torch.equal(given_moments.mean, train.mean)
    found = given_moments.batch([2])[0]["images"]
    assert not torch.equal(found, ImageExamples(test).batch([2])[0]["images"])


def test_rows_come_in_the_order_asked_for_and_twice_the_same():
    examples = ImageExamples(image_set())
    rows = np.array([7, 0, 7, 19])
    inputs, labels = examples.batch(rows)
    assert torch.equal(inputs["images"][0], inputs["images"][2])
    assert torch.equal(inputs["images"], examples.batch(list(rows))[0]["images"])
    assert torch.equal(labels, torch.tensor(image_set().labels[rows]))
    inputs["images"].zero_()  # a batch is the caller's own
    assert bool(examples.batch(rows)[0]["images"].any())


def test_bad_moments_equal_pixels_and_foreign_sets_are_refused(tokenizer):
    refuses(
        ImageExamples,
        {"images": image_set()},
        {
            RangeError: [{"std": [1.0, 1.0, 0.0]}, {"std": [1.0, 1.0, -1.0]}],
            ShapeError: [{"mean": [0.5]}],
            DtypeError: [{"mean": [1, 1, 1]}],
            NonFiniteError: [{"mean": [0.5, 0.5, np.nan]}],
        },
    )
    grey = ImageSet(np.full((3, 2, 2, 1), 7, np.uint8), np.zeros(3, np.int64), ("a",))
    with pytest.raises(RangeError, match="std"):
        ImageExamples(grey)
    with pytest.raises(DtypeError, match="ImageSet"):
        ImageExamples(grey.images)
    with pytest.raises(DtypeError, match="TextSet"):
        TextExamples(FIRST, tokenizer)
    with pytest.raises(DtypeError, match="tokenizer"):
        TextExamples(text_set(), "tiny")


def test_bad_rows_are_refused(tokenizer):
    for examples in (ImageExamples(image_set(5)), TextExamples(text_set(), tokenizer)):
        for rows in (np.empty(0, np.int64), [5], [-1]):
            with pytest.raises(RangeError, match="indices"):
                examples.batch(rows)
        for rows in ([], [0.5], [True, False], [[0, 1]]):
            with pytest.raises(DtypeError, match="indices"):
                examples.batch(rows)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("max_length", [6, 9, 64])
def test_texts_are_cut_and_padded_as_the_tokenizer_itself_does(tokenizer, pairs, max_length):
    examples = TextExamples(text_set(pairs), tokenizer, max_length)
    rows = [3, 0, 1, 2]
    first = [FIRST[i] for i in rows]
    second = [SECOND[i] for i in rows] if pairs else None
    expected = tokenizer(
        first, second, truncation="longest_first", max_length=max_length, padding=True
    )
    inputs, labels = examples.batch(rows)
    assert set(inputs) == set(expected)
    for name, found in inputs.items():
        assert found.dtype == torch.long and found.tolist() == expected[name], name
    assert labels.tolist() == [1, 0, 1, 0]


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_a_row_is_the_same_in_any_batch(tokenizer, rows):
    examples = TextExamples(text_set(), tokenizer, 12)
    inputs, _ = examples.batch(rows)
    assert inputs["input_ids"].shape == (len(rows), max(examples.lengths[rows]))
    for place, row in enumerate(rows):
        alone = examples.batch([row])[0]
        length = int(examples.lengths[row])
        for name, tensor in inputs.items():
            assert tensor[place, :length].tolist() == alone[name][0].tolist()
            assert not tensor[place, length:].any()  # [PAD] is number 0


def test_chunks_change_nothing(tokenizer, monkeypatch):
    whole = TextExamples(text_set(), tokenizer)
    monkeypatch.setattr(TextExamples, "CHUNK", 2)
    parts = TextExamples(text_set(), tokenizer)
    np.testing.assert_array_equal(whole.ids, parts.ids)
    np.testing.assert_array_equal(whole.starts, parts.starts)


def test_max_length_has_room_for_both_texts_and_cut_rows_are_counted(tokenizer):
    for low, pairs in ((3, False), (5, True)):
        TextExamples(text_set(pairs), tokenizer, low)
        for wrong in (low - 1, 513):  # 512 positions
            with pytest.raises(RangeError, match="max_length"):
                TextExamples(text_set(pairs), tokenizer, wrong)
    assert TextExamples(text_set(False), tokenizer, 6).at_limit == 2
    assert TextExamples(text_set(False), tokenizer, 64).at_limit == 0


def test_the_bar_goes_to_the_error_stream(tokenizer, capfd):
    TextExamples(text_set(), tokenizer, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "word pieces" in err
    TextExamples(text_set(), tokenizer)
    assert capfd.readouterr() == ("", "")
