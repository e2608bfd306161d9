"""The badges stand alone: from a wheel, with nothing of the book that they come from."""

import re
from types import SimpleNamespace

import pytest
import sphinx_provenance as provenance
from alone import build_alone
from sphinx.errors import ExtensionError
from sphinx_provenance import ProvenanceError, Words, read_badge, read_words

GIVEN = '[lemma-3]\nplace = "Section 1"\nwords = "must be non-decreasing"\n'
KNOWN = {"lemma-3": Words("lemma-3", "Section 1", "must be non-decreasing")}
BROKEN = {
    "empty words": GIVEN.replace("must be non-decreasing", " "),
    "empty place": GIVEN.replace('"Section 1"', '""'),
    "no words": GIVEN.replace("words", "word"),
    "more": GIVEN + "page = 3\n",
    "a number": GIVEN.replace('"must be non-decreasing"', "3"),
    "no table": "lemma-3 = 'must be non-decreasing'\n",
    "twice": GIVEN + GIVEN,
    "one anchor": GIVEN.replace("lemma-3", '"Lemma 3"') + GIVEN.replace("lemma-3", '"Lemma  3"'),
}


def test_a_broken_entry_is_refused(tmp_path):
    source = tmp_path / "provenance.toml"
    source.write_text(GIVEN, encoding="utf8")
    assert read_words(source) == KNOWN
    for what, given in BROKEN.items():
        source.write_text(given, encoding="utf8")
        with pytest.raises(ProvenanceError, match="expected"):
            print(read_words(source), what)
    assert issubclass(ProvenanceError, ExtensionError)  # it stops the build


CONFIG = SimpleNamespace(
    provenance_letters=provenance.LETTERS, provenance_quoted="a", provenance_file="words.toml"
)


def test_a_broken_badge_is_refused():
    assert read_badge("a:lemma-3", KNOWN, CONFIG) == ("a", "lemma-3")
    letters = [read_badge(each, KNOWN, CONFIG)[0] for each in ("b", "c", "d", "legend-a")]
    assert letters == ["b", "c", "d", "a"]
    for text in ("a", "a:", "a:lemma-33", "a:Lemma-3", "a:lemma-3 ", "b:x", "e", "legend-b"):
        with pytest.raises(ProvenanceError, match="expected"):
            read_badge(text, KNOWN, CONFIG)


CONF = """extensions = ["myst_parser", "sphinx_provenance"]
provenance_file = "words.toml"
provenance_elsewhere = {"told": ["a talk"], "lost": ["index"]}
"""
INDEX = """# Book

It is so {prov}`a:lemma-3`, proved {prov}`c`.

```{toctree}
guide
words
```
"""
GUIDE = """(sec-guide)=
# Guide

The same {prov}`a:lemma-3`.

A wrong one {prov}`a:lemma-4`.
"""
TOML = (
    GIVEN
    + """
[told]
place = "Abstract"
words = 'a "bad" word'
[unused]
place = "Appendix A"
words = "nobody says"
"""
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a book as HTML and as text, and the warnings."""
    home = tmp_path_factory.mktemp("book")
    words = "# Words\n\n```{words}\n```\n"
    pages = {"conf.py": CONF, "index.md": INDEX, "guide.md": GUIDE, "words.md": words}
    pages["words.toml"] = TOML
    return home, build_alone(provenance.__file__, home, pages, "html", "text")


def test_a_badge_links_to_the_words_and_quotes_them(built):
    page = (built[0] / "html/index.html").read_text(encoding="utf8")
    said = "fixed by the paper&#x27;s text: Section 1: “must be non-decreasing”"
    link = f'<a class="prov prov-a" title="{said}" href="words.html#prov-lemma-3">'
    assert link in page and f'<span class="visually-hidden">provenance a: {said}</span>' in page
    assert '<abbr class="prov prov-c" title="derived and proved here" tabindex="0">' in page
    css = (built[0] / "html/_static/provenance.css").read_text(encoding="utf8")
    assert "_static/provenance.css" in page
    for letter in provenance.LETTERS:
        assert css.count(f".prov-{letter} ") == 2, letter  # by day and by night
    assert "It is so [a], proved [c]." in (built[0] / "text/index.txt").read_text(encoding="utf8")


def test_the_table_has_a_row_for_each_entry_and_names_its_users(built):
    page = (built[0] / "html/words.html").read_text(encoding="utf8")
    rows = page[page.index("<tbody>") :].split("<tr")[1:]
    ids = [re.search('<span id="prov-([^"]+)"', row)[1] for row in rows]
    assert ids == ["told", "lemma-3", "unused"]  # as in the paper
    told, lemma, unused = (row.split("<td>")[3] for row in rows)
    assert told.startswith("<p>a talk</p>") and unused.startswith("<p></p>")
    assert re.findall('href="([^"]+)"', lemma) == ["guide.html#sec-guide", "index.html"]
    assert "“a &quot;bad&quot; word”" in rows[0] or "“a “bad” word”" in rows[0]


def test_what_is_wrong_is_named_with_its_place_and_a_remedy(built):
    (badge,) = [line for line in built[1].splitlines() if "guide.md:" in line]
    assert re.search(r"guide\.md:6: .*KEY an entry of words\.toml; got 'a:lemma-4'\. Add", badge)
    unused, lost = [line for line in built[1].splitlines() if "words.toml: " in line][:2]  # as HTML
    assert unused.endswith("list them in provenance_elsewhere; see ['unused']")
    assert lost.endswith("each key of provenance_elsewhere; add it; see ['lost']")
