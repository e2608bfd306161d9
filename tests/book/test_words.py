"""Sentences with their attention: pieces become words, shares are shown, ink stays legible."""

import re

import numpy as np
import pytest
from refusals import refuses

from attnbias.errors import NonFiniteError, RangeError, ShapeError
from book.texts import load_bundled_head, new_words, whole_words
from book.widgets import Sentence, attended_words
from book.widgets.words import DAY, FULL, NIGHT, TOLD

FIRST, SECOND = ["a", "man", "is", "up", "."], ["a", "man", "is", "in", "italy", "."]
PAIR = ["[CLS]", *FIRST, "[SEP]", *SECOND, "[SEP]"]
LEGIBLE = 4.5  # WCAG AA


def linear(colour: str) -> np.ndarray:
    """The three parts of a colour in light, as sRGB has it."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def mixed(word: str, page: str, share: float) -> str:
    """What color-mix in srgb makes of a word's ground on a page."""
    a, b = (np.array([int(each[k : k + 2], 16) for k in (1, 3, 5)]) for each in (word, page))
    return "#" + "".join(f"{round(part):02x}" for part in share * a + (1 - share) * b)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def least(word: str, ink: str, page: str) -> float:
    return min(contrast(ink, mixed(word, page, share)) for share in np.linspace(0, 1, 101))


def test_contrast_has_its_known_ends():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@pytest.mark.parametrize(
    ("look", "page"), [(DAY, "#ffffff"), (NIGHT, "#121212"), (NIGHT, "#14181e")]
)
def test_ink_is_legible_on_the_ground_of_every_weight(look, page):
    assert least(*look, page) > LEGIBLE


def test_the_darker_blue_of_other_figures_would_not_do():
    assert least("#0072b2", DAY[1], "#ffffff") < LEGIBLE
    assert least("#0072b2", NIGHT[1], "#121212") < LEGIBLE


def test_pieces_become_words_and_keep_their_sum():
    head = load_bundled_head()
    for pieces, weights in zip(head.tokens, head.attention, strict=True):
        words, shares = whole_words(pieces, weights)
        assert "".join(words) == "".join(piece.removeprefix("##") for piece in pieces)
        assert shares.sum() == pytest.approx(float(weights.sum()), abs=1e-6)
        assert not any(word.startswith("##") for word in words)
    assert sum(piece.startswith("##") for row in head.tokens for piece in row) > 3


def test_a_text_may_begin_inside_a_word():
    words, shares = whole_words(["##s", "##x", "a"], [0.5, 0.25, 0.25])
    assert words == ["##sx", "a"] and shares.tolist() == [0.75, 0.25]


def test_new_words_are_those_of_the_second_sentence_alone():
    assert [PAIR[k] for k in new_words(PAIR).nonzero()[0]] == ["in", "italy"]
    assert not new_words(["[CLS]", "a", "b", ".", "[SEP]", "b", ",", "a", "[SEP]"]).any()


def shown(markup: str) -> list[tuple[str, float, str]]:
    """Word, share of the colour and percentage of each word."""
    found = re.findall(r'--share:([\d.]+)"><b[^>]*>(.*?)</b>(?: <small>(\d+)%)?', markup)
    return [(word, float(share), told) for share, word, told in found]


def test_words_have_colours_and_numbers_by_their_weights():
    weights = [TOLD - 0.01, FULL / 2, FULL, TOLD]
    markup = attended_words({"x": [Sentence("n", ["<a>", "b", "c", "d"], weights, query=1)]})
    words, shares, told = zip(*shown(markup), strict=True)
    assert words == ("&lt;a&gt;", "b", "c", "d") and told == ("", "25", "50", "5")
    assert shares == pytest.approx([weight / FULL for weight in weights])
    assert markup.count('class="query"') == 1 and '<b class="query">b</b>' in markup


def test_beyond_the_full_colour_the_number_goes_on():
    assert shown(attended_words({"x": [Sentence("n", ["a"], [0.97])]})) == [("a", 1.0, "97")]


def test_weights_that_are_no_attention_are_refused():
    def show(words, weights, query):
        attended_words({"x": [Sentence("n", words, weights, query)]})

    right = {"words": ["a", "b"], "weights": [0.5, 0.5], "query": 0}
    show(**right)
    cases = {
        ShapeError: [{"weights": [1.0]}],
        RangeError: [{"weights": [1.5, -0.5]}, {"query": 2}, {"query": -1}],
        NonFiniteError: [{"weights": [0.5, np.nan]}],
    }
    refuses(show, right, cases)


def test_what_is_no_pair_and_no_sentence_is_refused():
    refuses(new_words, {"words": PAIR}, {RangeError: [{"words": ["[CLS]", "one"]}]})
    right = {"pieces": ["a", "b"], "weights": [0.5, 0.5]}
    refuses(whole_words, right, {ShapeError: [{"weights": [1.0]}]})
    refuses(attended_words, {}, {RangeError: [{"groups": {}}]})
