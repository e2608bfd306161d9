"""The extract of MiniLM: what is in it."""

import numpy as np
import pytest
import torch

from attnbias.data._source import bundled_arrays
from attnbias.nets.data.minilm import CLS, FILE, load_minilm_sample
from attnbias.nets.data.text import load_nli, load_toxic


@pytest.fixture(scope="module")
def sample():
    return load_minilm_sample()


def joined(pieces) -> str:
    """A text from its word pieces, spaces apart from those inside words left out."""
    return "".join(piece.removeprefix("##") for piece in pieces)


def test_the_texts_are_those_of_the_bundled_samples(sample):
    pairs, train = load_nli("validation", "bundled"), load_nli("train", "bundled")
    comments = load_toxic("validation", "bundled")
    decided = np.flatnonzero(train.labels != 1)
    wanted = {
        "premises": (pairs.first[:200], pairs.labels[:200]),
        "hypotheses": (pairs.second[:200], pairs.labels[:200]),
        "training hypotheses": ([train.second[i] for i in decided], train.labels[decided]),
        "comments": (comments.first[:150], comments.labels[:150]),
    }
    assert set(wanted) == set(sample.texts)
    for name, (texts, labels) in wanted.items():
        found = sample.texts[name]
        assert np.array_equal(found.labels, labels) and len(found) == len(texts)
        if name != "comments":  # plain English: lower case and no spaces is all that is lost
            spelt = [joined(sample.words[t] for t in row) for row in found.rows]
            assert spelt == ["".join(text.lower().split()) for text in texts]


def test_related_words_are_near_and_others_are_not(sample):
    """Real embeddings: a random or a shuffled table would fail."""
    unit = torch.nn.functional.normalize(sample.vectors, dim=1)

    def cosine(a, b):
        return float(unit[sample.words.index(a)] @ unit[sample.words.index(b)])

    for near in (("man", "men"), ("dog", "dogs"), ("is", "are"), ("woman", "women")):
        assert cosine(*near) > 0.5
    for far in (("man", "outdoors"), ("dog", "paper"), ("guitar", "sleeping")):
        assert abs(cosine(*far)) < 0.25
    assert sample.words[sample.cls] == "[CLS]" and bundled_arrays(FILE)["pieces"][sample.cls] == CLS
