"""Every [a] has the paper's words, every entry is used, and the build refuses the rest."""

import ast
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import attnbias_provenance
import pytest
from attnbias_provenance import KEY, SourceError, Words, claim_keys, read_badge, read_words
from docutils import nodes
from sphinx.errors import ExtensionError

from attnbias.diagnosis.guarantees import GUARANTEES
from attnbias.experiments.claims.networks import FIGURES
from tools.chapters import notebook_sources
from tools.files import ROOT

BOOK = ROOT / "book"
MAKERS = ("Check", "Statement", "along", "not_applicable", "at_most", "at_least", "check_lead")
GIVEN = '[lemma-3]\nplace = "Section 1"\nwords = "must be non-decreasing"\n'


def printed_sources(library: Path = ROOT / "attnbias") -> set[str]:
    """The sources of the library's checks that print [a].

    Raises
    ------
    SourceError
        If a source is neither a string, nor a name of its module for one or for several.
    """
    found: set[str] = set()
    for path in sorted(library.rglob("*.py")):
        module = ".".join(path.relative_to(library.parent).with_suffix("").parts)
        if '"a"' not in (text := path.read_text(encoding="utf8")):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and (source := _source_of_a(call)) is not None:
                found |= _strings(source, module)
    return found


def _source_of_a(call: ast.Call) -> ast.expr | None:
    """The source that a check is made with; None where its provenance is not a."""
    if ast.unparse(call.func).rpartition(".")[2] not in MAKERS:
        return None
    given: list[ast.expr] = []
    for arg in call.args:
        spread = isinstance(arg, ast.Starred) and isinstance(arg.value, ast.Tuple)
        given += arg.value.elts if spread else [arg]
    letters = [getattr(arg, "value", None) for arg in given]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if getattr(named.get("provenance"), "value", None) == "a" and "source" in named:
        return named["source"]
    if "a" not in letters:
        return None
    place = letters.index("a") - 1
    # a Statement has its source in front of the sense, a Check behind it
    return given[place - 1] if letters[place] in ("<=", ">=") else given[place]


def _strings(source: ast.expr, module: str) -> set[str]:
    if isinstance(source, ast.Constant):
        return {source.value}
    subscript = isinstance(source, ast.Subscript)
    name = source.value if subscript else source
    if isinstance(name, ast.Name):
        value = getattr(importlib.import_module(module), name.id, None)
        if isinstance(value, str):
            return {value}
        if isinstance(value, dict) and subscript:
            return set(value.values())
        if value is None and name.id == "source":  # the caller's: that of a figure's claims
            return _figure_texts()
    raise SourceError(
        f"{module}, line {source.lineno}: expected the source of a check that prints [a] as a "
        f"string or a name of the module; got {ast.unparse(source)}"
    )


def _figure_texts() -> set[str]:
    """Where the paper speaks of the figures with trained networks."""
    return {text for text, _ in FIGURES.values()}


@pytest.fixture(scope="module")
def entries():
    return read_words()


@pytest.fixture(scope="module")
def pages():
    return attnbias_provenance.used_on()


def test_every_a_has_its_words_and_every_entry_is_used(entries, pages):
    attnbias_provenance.validate(entries, pages, claim_keys())
    promised = {each.source for each in GUARANTEES if each.provenance == "a"}
    printed = printed_sources() | promised
    assert {"Assumption 2", "Section 3.2, text on Fig. 2", "Condition 1"} <= printed
    assert {key for key in entries if not KEY.fullmatch(key)} <= printed <= set(entries)


def test_every_badge_of_the_book_is_one_that_the_role_takes(entries):
    texts = [path.read_text(encoding="utf8") for path in BOOK.rglob("*.md")]
    found = [badge for text in texts for badge in attnbias_provenance.BADGE.findall(text)]
    assert len(found) > 100
    for text in found:
        letter, key = read_badge(text, entries)
        assert letter in "abcd" and bool(key) == text.startswith("a:")


def test_an_entry_names_a_place_and_quotes_a_few_words(entries):
    for entry in entries.values():
        assert entry.place.startswith(("Abstract", "Section", "Appendix")), entry.key
        assert 2 <= len(entry.words.split()) <= 35, entry.key
        assert not entry.words.startswith("...") and not entry.words.endswith("..."), entry.key
        assert "\n" not in entry.words and "\n" not in entry.place, entry.key


def test_what_a_chapter_prints_as_a_has_its_words(entries):
    pages = [path.read_text(encoding="utf8") for path in notebook_sources()]
    pages = [text for text in pages if re.search(r'"a"(,\n *reason|\))', text)]
    sources = {name for text in pages for name in re.findall(r'^text = "([^"]+)"', text, re.M)}
    assert sources and sources <= set(entries)


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
        with pytest.raises(SourceError, match="expected"):
            print(read_words(source), what)
    assert issubclass(SourceError, ExtensionError)  # it stops the build


def test_a_broken_badge_is_refused():
    assert read_badge("a:lemma-3", KNOWN) == ("a", "lemma-3")
    letters = [read_badge(each, KNOWN)[0] for each in ("b", "c", "d", "legend-a")]
    assert letters == ["b", "c", "d", "a"]
    for text in ("a", "a:", "a:lemma-33", "a:Lemma-3", "a:lemma-3 ", "b:x", "e"):
        with pytest.raises(SourceError, match="expected"):
            read_badge(text, KNOWN)


def test_the_build_refuses_what_does_not_match():
    attnbias_provenance.validate(KNOWN, {"lemma-3": ["book/x"]}, [])
    attnbias_provenance.validate(KNOWN, {}, ["lemma-3"])
    attnbias_provenance.validate({"Lemma 3": Words("Lemma 3", "Section 1", "is printed")}, {}, [])
    for pages in ({}, {"lemma-3": [], "lemma-4": []}):  # nobody uses it; no entry
        with pytest.raises(SourceError, match="expected"):
            attnbias_provenance.validate(KNOWN, pages, [])
    with pytest.raises(SourceError, match="each claim"):
        attnbias_provenance.validate(KNOWN, {"lemma-3": []}, ["lemma4"])


def test_a_page_with_a_plain_a_is_refused(tmp_path):
    (tmp_path / "_ext").mkdir()
    symbols = '[[symbol]]\nprovenance = "a:xi"\n[[symbol]]\nprovenance = "c"\n'
    (tmp_path / "_ext/notation.toml").write_text(symbols, encoding="utf8")
    page = tmp_path / "page.md"
    page.write_text("{prov}`a:one` {prov}`c` {prov}`a:one` {prov}`legend-a`", encoding="utf8")
    assert attnbias_provenance.used_on(tmp_path) == {"one": ["book/page"], "xi": ["book/notation"]}
    page.write_text("so {prov}`a`", encoding="utf8")
    with pytest.raises(SourceError, match="a alone"):
        attnbias_provenance.used_on(tmp_path)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('Check("s", 1.0, 2.0, "<=", "Lemma 9", "a")', {"Lemma 9"}),
        ('Check("s", *(1.0, 2.0, "<=", TEXT, "a"))', {"Appendix E"}),
        ('Check("s", 1.0, 2.0, source=TEXT, provenance="a")', {"Appendix E"}),
        ('Statement("s", "Lemma 9", ">=", "a")', {"Lemma 9"}),
        ('Check("s", 1.0, 2.0, source=MANY[1], provenance="a")', {"one", "two"}),
        ('Check("s", 1.0, 2.0, source="Lemma 9", provenance="c")', set()),
        ('print("a")', set()),
        ('Check("s", 1.0, 2.0, source=TEXT + "", provenance="a")', None),
    ],
)
def test_the_source_of_a_printed_a_is_found(call, found, tmp_path, monkeypatch):
    package = tmp_path / "madeup"
    package.mkdir()
    text = f'TEXT = "Appendix E"\nMANY = {{1: "one", 2: "two"}}\nOTHER = "a"\ndef f(): {call}\n'
    (package / "one.py").write_text(text, encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("madeup", "madeup.one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if found is None:
        with pytest.raises(SourceError, match="expected the source"):
            printed_sources(package)
    else:
        assert printed_sources(package) == found


def shown(letter, said, target=""):
    builder = SimpleNamespace(
        current_docname="book/paper/x", get_relative_uri=lambda here, there: "../provenance.html"
    )
    translator = SimpleNamespace(body=[], builder=builder)
    node = attnbias_provenance.ProvenanceNode(letter=letter, said=said, target=target)
    with pytest.raises(nodes.SkipNode):
        attnbias_provenance.visit_html(translator, node)
    return "".join(translator.body)


def test_a_badge_links_to_the_words_and_quotes_them():
    entry = Words("lemma-3", "Section 1", 'a "bad" word')
    markup = shown("a", attnbias_provenance.quoted(entry), entry.id)
    assert markup.startswith('<a class="prov prov-a" title="Section 1: “a &quot;bad&quot; word”" ')
    assert 'href="../provenance.html#prov-lemma-3"' in markup
    assert shown("c", "proved").startswith('<abbr class="prov prov-c" title="proved" tabindex="0">')
    css = (BOOK / "_static/attnbias.css").read_text(encoding="utf8")
    assert sorted(attnbias_provenance.PROVENANCE) == ["a", "b", "c", "d"]
    for letter in attnbias_provenance.PROVENANCE:
        assert css.count(f".prov-{letter} ") == 2, letter


def test_the_page_has_a_line_for_each_entry(entries, pages):
    state = SimpleNamespace(entries=entries, pages=pages, claims=claim_keys())
    lines = attnbias_provenance.WordsTable.lines(None, state)[2:]
    assert len(lines) == len(entries)
    for entry in entries.values():
        (line,) = [line for line in lines if f"{{#{entry.id}}}" in line]
        assert entry.place in line and not line.endswith("|  |"), entry.key
    page = (ROOT / f"{attnbias_provenance.HOME}.md").read_text(encoding="utf8")
    assert page.count("```{words}") == 1
