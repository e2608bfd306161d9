"""Where the statements stand in their picture: small graphs by hand, and the book's."""

from reference_statements import read_statements
from statement_graph import read_edges
from statement_layers import columns, rows

USES = {"a": (), "b": ("a",), "c": ("a", "b"), "late": (), "d": ("c", "late"), "alone": ()}


def test_each_stands_right_of_what_it_rests_on_and_close_to_what_it_carries():
    assert columns(USES) == {"a": 0, "b": 1, "c": 2, "late": 2, "d": 3}


def test_of_two_that_rest_on_each_other_the_first_stands_on_the_right():
    assert columns({"a": ("b",), "b": ("a",)}) == {"a": 1, "b": 0}


def test_in_a_column_all_stand_apart_and_beside_their_neighbours():
    uses = {"p": (), "q": (), "r": (), "of_r": ("r",), "of_p": ("p",), "of_q": ("q",)}
    down = rows(uses, columns(uses))
    assert sorted(down[label] for label in "pqr") == [0, 1, 2]
    assert all(down[f"of_{label}"] == down[label] for label in "pqr")
    assert rows({}, {}) == {}


def test_the_books_picture_has_every_line_from_left_to_right_but_one():
    uses = read_edges(set(read_statements()))
    column = columns({label: uses[label] for label in read_statements()})
    down = rows(uses, column)
    back = [(one, two) for one in uses for two in uses[one] if column[two] >= column[one]]
    assert back == [("lemma-12", "lemma-11")]  # each is used in the other's proof
    places = sorted((column[label], down[label]) for label in column)
    for one, two in zip(places, places[1:], strict=False):
        assert one[0] < two[0] or two[1] - one[1] > 1 - 1e-9
    assert max(down.values()) < len(down) / 3
