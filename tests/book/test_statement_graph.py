"""Which statement rests on which: read from a small text by hand, and from the book."""

import pytest
from generated import SourceError
from reference_statements import read_statements
from statement_graph import all_behind, edges, read_edges, reverse

TEXT = """
```{prf:lemma} One
:label: one

Holds as

$$
x
$$ (eq-inside)
```

```{prf:theorem} Two
:label: two

By {prf:ref}`the first <one>`.
```

::::{dropdown} Proof
```{prf:proof}
With {eq}`eq-inside`, {prf:ref}`two` itself and {prf:ref}`unknown`.
```
::::

````{prf:corollary} Three
:label: three

See [the theorem](#eq-of-two).
````

```{prf:remark}
{prf:ref}`one` in a box without a label counts for none.
```
% one rests on far
"""
KNOWN = {"one", "two", "three", "far"}


def test_the_edges_of_a_small_text():
    text = TEXT.replace("By {prf", "$$\nx\n$$ (eq-of-two)\n\nBy {prf")
    found = edges([text], KNOWN)
    assert found == {"one": ("far",), "two": ("one",), "three": ("two",), "far": ()}
    assert reverse(found) == {"one": ("two",), "two": ("three",), "three": (), "far": ("one",)}
    assert all_behind("far", reverse(found)) == {"one", "two", "three"}
    assert all_behind("three", reverse(found)) == set()


def test_a_proof_elsewhere_names_its_box_and_a_box_rests_on_what_it_defines_w_mm():
    text = TEXT.replace("```{prf:proof}", "% proof of three\n\n```{prf:proof}")
    moved = edges([text.replace("Holds as", "Holds of $W_{mm}$ as")], KNOWN | {"w-svm"})
    assert moved["two"] == ("one",) and moved["one"] == ("w-svm", "far")
    assert moved["three"] == ("one", "two") and moved["w-svm"] == ()
    with pytest.raises(SourceError, match="nobody"):
        edges([text.replace("proof of three", "proof of nobody")], KNOWN)


def test_in_the_setting_of_another_box_is_not_on_it():
    text = TEXT.replace("See [the theorem](#eq-of-two).", "In the setting of {prf:ref}`two`, all.")
    assert edges([text], KNOWN)["three"] == edges([text], KNOWN)["two"] == ("one",)


def test_two_that_rest_on_each_other_end():
    assert all_behind("a", {"a": ("b",), "b": ("a",)}) == {"b"}


def test_a_comment_on_a_statement_that_is_not_there_is_refused():
    with pytest.raises(SourceError, match="farther"):
        edges([TEXT.replace("rests on far", "rests on farther")], KNOWN)


def test_the_book_has_edges_between_its_own_statements():
    known = set(read_statements())
    found = read_edges(known)
    assert set(found) == known and sum(map(len, found.values())) > 100
    assert "assumption-2" in all_behind("theorem-1", found)
    assert "theorem-1" in all_behind("assumption-2", reverse(found))
