"""The titles that the search knows: boxes by their numbers, words of the glossary."""

from types import SimpleNamespace

import pytest
from attnbias_search import name_places, with_numbers
from notation_source import Place

TITLES = [("Momentum", None), (" (Rate)", "rate"), ("Solution to Exercise 1.1", "sol")]
NUMBERS = {"rate": "Theorem 1", "bare": "Remark 1.2"}
NAMED = [("Momentum", None), ("Theorem 1 (Rate)", "rate"), ("Remark 1.2", "bare")]


@pytest.mark.parametrize("titles", [TITLES, NAMED])  # a later build reads what an earlier wrote
def test_boxes_get_their_numbers_once_and_solutions_go(titles):
    assert with_numbers(titles, NUMBERS) == NAMED


def test_the_index_of_a_build_is_completed():
    index = SimpleNamespace(_all_titles={"page": list(TITLES), "notation": []})
    numbers = {"page": {"theorem": {"rate": (1,)}, "figure": {"fig": (1, 3)}}}
    objects = [("margin", "margin", "term", "notation", "term-margin", -1)]
    objects += [("page", "page", "doc", "page", "", -1)]
    domain = SimpleNamespace(get_objects=lambda: objects)
    env = SimpleNamespace(toc_fignumbers=numbers, get_domain={"std": domain}.get)
    entry = SimpleNamespace(place="rate", also=("speed",))
    notation = SimpleNamespace(terms=[entry], places={"rate": Place("page", "rate", "Rate")})
    app = SimpleNamespace(
        builder=SimpleNamespace(indexer=index), env=env, attnbias_notation=notation
    )
    for _ in range(2):
        assert name_places(app) == []
    assert index._all_titles == {
        "page": [*NAMED[:2], ("speed", "rate")],
        "notation": [("margin", "term-margin")],
    }
    assert name_places(SimpleNamespace(builder=object())) == []  # of no book in HTML
