"""Every [a] has the paper's words, every entry is used, and the build refuses the rest."""

import ast
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError

from book.ledger import SECTIONS
from tools.chapters import ROOT, notebook_sources

sys.path.insert(0, str(ROOT / "book/_ext"))

import attnbias_provenance  # noqa: E402
import provenance_source  # noqa: E402
from provenance_source import (  # noqa: E402
    KEY,
    SOURCE,
    ProvenanceError,
    Words,
    badges,
    claim_keys,
    read_badge,
    read_words,
    used_on,
    validate,
)

MAKERS = ("Check", "Statement", "Guarantee", "along", "not_applicable", "at_most",
          "at_least", "check_lead")  # fmt: skip
GIVEN = '[lemma-3]\nplace = "Section 1"\nwords = "must be non-decreasing"\n'


def printed_sources(library: Path = ROOT / "attnbias") -> dict[str, set[str]]:
    """The sources of the library's checks that print [a], and the modules that make them.

    Raises
    ------
    ProvenanceError
        If a source is neither a string, nor a name of its module for one or for several.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(library.rglob("*.py")):
        module = ".".join(path.relative_to(library.parent).with_suffix("").parts)
        if '"a"' not in (text := path.read_text(encoding="utf8")):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and (source := _source_of_a(call)) is not None:
                for name in _strings(source, module):
                    found.setdefault(name, set()).add(module)
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
    raise ProvenanceError(
        f"{module}, line {source.lineno}: expected the source of a check that prints [a] as a "
        f"string or a name of the module; got {ast.unparse(source)}"
    )


def _figure_texts() -> set[str]:
    """Where the paper speaks of the figures with trained networks."""
    from attnbias.experiments import fig1, fig4, fig6, fig7

    return {figure.TEXT for figure in (fig1, fig4, fig6, fig7)}


@pytest.fixture(scope="module")
def entries():
    return read_words()


@pytest.fixture(scope="module")
def pages():
    return used_on()


def test_every_a_has_its_words_and_every_entry_is_used(entries, pages):
    validate(entries, pages, claim_keys())
    printed = printed_sources()
    assert set(printed) <= set(entries)
    assert {key for key in entries if not KEY.fullmatch(key)} <= set(printed)


def test_every_badge_of_the_book_is_one_that_the_role_takes(entries):
    found = [
        (path.name, text)
        for path in sorted((ROOT / "book").rglob("*.md"))
        for text in badges(path.read_text(encoding="utf8"))
    ]
    assert len(found) > 100
    for _, text in found:
        letter, key = read_badge(text, entries)
        assert letter in "abcd" and bool(key) == text.startswith("a:")


def test_an_entry_names_a_place_and_quotes_a_few_words(entries):
    for entry in entries.values():
        assert entry.place.startswith(("Abstract", "Section", "Appendix")), entry.key
        assert 2 <= len(entry.words.split()) <= 35, entry.key
        assert not entry.words.startswith("...") and not entry.words.endswith("..."), entry.key
        assert "\n" not in entry.words and "\n" not in entry.place, entry.key


def test_an_entry_is_named_by_a_badge_a_claim_or_a_printed_source(entries):
    printed = printed_sources()
    assert {"Assumption 2", "Section 3.2, text on Fig. 2", "Condition 1"} <= set(printed)
    other = {*printed, *claim_keys()}
    assert not [key for key in entries if not KEY.fullmatch(key) and key not in other]


def test_what_a_chapter_prints_as_a_has_its_words(entries):
    pages = [path.read_text(encoding="utf8") for path in notebook_sources()]
    pages = [text for text in pages if re.search(r'"a"(,\n *reason|\))', text)]
    sources = {name for text in pages for name in re.findall(r'^text = "([^"]+)"', text, re.M)}
    assert sources and sources <= set(entries)


def test_the_claims_are_those_of_the_papers_sections():
    known = {claim.key: claim.provenance for claims in SECTIONS.values() for claim in claims}
    assert claim_keys() and {known[key] for key in claim_keys()} == {"a"}


@pytest.mark.parametrize(
    "given",
    [
        GIVEN.replace("must be non-decreasing", " "),
        GIVEN.replace('"Section 1"', '""'),
        GIVEN.replace("words", "word"),
        GIVEN + "page = 3\n",
        GIVEN.replace('"must be non-decreasing"', "3"),
        "lemma-3 = 'must be non-decreasing'\n",
        GIVEN + GIVEN,
        GIVEN + GIVEN.replace("[lemma-3]", '["Lemma 3"]') + GIVEN.replace("[l", '["Lemma  3"]#'),
    ],
    ids=[
        "empty-words",
        "empty-place",
        "no-words",
        "more",
        "a-number",
        "no-table",
        "twice",
        "one-anchor",
    ],
)
def test_a_broken_entry_is_refused(given, tmp_path):
    source = tmp_path / "provenance.toml"
    source.write_text(GIVEN, encoding="utf8")
    assert read_words(source) == {
        "lemma-3": Words("lemma-3", "Section 1", "must be non-decreasing")
    }
    source.write_text(given, encoding="utf8")
    with pytest.raises(ProvenanceError, match="expected"):
        read_words(source)


@pytest.mark.parametrize("text", ["a", "a:", "a:lemma-33", "a:Lemma-3", "a:lemma-3 ", "b:x", "e"])
def test_a_broken_badge_is_refused(text):
    known = {"lemma-3": Words("lemma-3", "Section 1", "must be non-decreasing")}
    assert read_badge("a:lemma-3", known) == ("a", "lemma-3")
    assert [read_badge(each, known) for each in ("b", "c", "d", "legend-a")] == [
        ("b", ""), ("c", ""), ("d", ""), ("a", ""),
    ]  # fmt: skip
    with pytest.raises(ProvenanceError, match="expected"):
        read_badge(text, known)


def test_the_build_refuses_what_does_not_match():
    known = {"lemma-3": Words("lemma-3", "Section 1", "must be non-decreasing")}
    validate(known, {"lemma-3": ["book/x"]}, [])
    validate(known, {}, ["lemma-3"])
    validate({"Lemma 3": Words("Lemma 3", "Section 1", "is printed")}, {}, [])
    for pages in ({}, {"lemma-3": [], "lemma-4": []}):  # nobody uses it; no entry
        with pytest.raises(ProvenanceError, match="expected"):
            validate(known, pages, [])
    with pytest.raises(ProvenanceError, match="each claim"):
        validate(known, {"lemma-3": []}, ["lemma4"])


def test_a_page_with_a_plain_a_is_refused(tmp_path):
    (tmp_path / "_ext").mkdir()
    symbols = '[[symbol]]\nprovenance = "a:xi"\n[[symbol]]\nprovenance = "c"\n'
    (tmp_path / "_ext/notation.toml").write_text(symbols, encoding="utf8")
    page = tmp_path / "page.md"
    page.write_text("{prov}`a:one` {prov}`c` {prov}`a:one` {prov}`legend-a`", encoding="utf8")
    assert used_on(tmp_path) == {"one": ["book/page"], "xi": ["book/notation"]}
    page.write_text("so {prov}`a`", encoding="utf8")
    with pytest.raises(ProvenanceError, match="a alone"):
        used_on(tmp_path)


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
        with pytest.raises(ProvenanceError, match="expected the source"):
            printed_sources(package)
    else:
        assert set(printed_sources(package)) == found


def test_a_build_with_a_broken_file_stops(tmp_path, monkeypatch):
    def broken():
        raise ProvenanceError("provenance.toml: expected words")

    monkeypatch.setattr(attnbias_provenance, "read_words", broken)
    with pytest.raises(ExtensionError, match=r"provenance\.toml"):
        attnbias_provenance.read_source(SimpleNamespace())


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


def test_every_letter_has_its_meaning_and_its_colour():
    css = (ROOT / "book/_static/attnbias.css").read_text(encoding="utf8")
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
    assert (ROOT / f"{provenance_source.HOME}.md").read_text(encoding="utf8").count(
        "```{words}"
    ) == 1


def test_the_file_keeps_its_sections():
    text = SOURCE.read_text(encoding="utf8")
    assert text.count("\n# ---- ") == 5
