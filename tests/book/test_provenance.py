"""Every [a] has the paper's words, every entry is used, and the build refuses the rest."""

import ast
import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import attnbias_provenance
import pytest
from attnbias_provenance import SOURCE, claim_keys
from generated import SourceError
from sphinx_provenance import BADGE, KEY, LETTERS, read_words

from attnbias.diagnosis.guarantees import GUARANTEES
from attnbias.experiments.claims.networks import FIGURES
from tools.chapters import notebook_sources
from tools.files import ROOT

BOOK = ROOT / "book"
MAKERS = ("Check", "Statement", "along", "not_applicable", "at_most", "at_least", "check_lead")


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
    return read_words(SOURCE)


def badges():
    """What stands in the badges of the book's pages and of its symbols."""
    pages = [path for path in BOOK.rglob("*.md") if "_ext" not in path.parts]
    texts = [path.read_text(encoding="utf8") for path in pages]
    symbols = tomllib.loads((BOOK / "_ext/notation.toml").read_text(encoding="utf8"))["symbol"]
    return [badge for text in texts for badge in BADGE.findall(text)] + [
        symbol["provenance"] for symbol in symbols
    ]


def test_every_a_has_its_words_and_every_entry_is_used(entries):
    named = {key for key in entries if KEY.fullmatch(key)}
    used = {badge[2:] for badge in badges() if badge.startswith("a:")}
    assert named == used | set(claim_keys())
    promised = {each.source for each in GUARANTEES if each.provenance == "a"}
    printed = printed_sources() | promised
    assert {"Assumption 2", "Section 3.2, text on Fig. 2", "Condition 1"} <= printed
    assert set(entries) - named <= printed <= set(entries)


def test_every_badge_of_the_book_is_one_that_the_role_takes(entries):
    assert len(badges()) > 100
    for text in badges():
        letter, _, key = text.removeprefix("legend-").partition(":")
        assert letter in LETTERS and (key in entries) == text.startswith("a:")


def test_what_is_used_without_a_badge_is_told_to_the_build(entries):
    config = SimpleNamespace()
    attnbias_provenance.name_uses(None, config)
    uses = config.provenance_elsewhere
    assert set(uses) <= set(entries) and uses["Lemma 1"] == ["printed checks"]
    assert {key for key, users in uses.items() if users == ["book/ledger"]} == set(claim_keys())


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
