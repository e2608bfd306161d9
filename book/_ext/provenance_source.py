"""The paper's words behind every badge a: `provenance.toml`, held against who stands on them."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("provenance.toml")
BOOK = Path(__file__).parent.parent
LIBRARY = BOOK.parent / "attnbias"
HOME = "book/provenance"  # the page that lists the entries
LEGEND = "legend-a"  # the letter alone, where a legend explains it
BADGE = re.compile(r"\{prov\}`([^`\n]*)`")
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAKERS = ("Check", "Statement", "Guarantee", "along", "not_applicable", "check_lead")
PARTS = ("Abstract", "Section", "Appendix")


class ProvenanceError(Exception):
    """A badge a without an entry, an entry that nobody uses, or one without words."""


@dataclass(frozen=True)
class Words:
    """A few words of the paper that carry what stands on them, and where they are."""

    key: str
    place: str
    words: str

    @property
    def id(self) -> str:
        """The anchor of its entry on the page."""
        kind = "check-" if " " in self.key else ""  # "Lemma 1", a source, beside lemma-1
        return f"prov-{kind}" + re.sub(r"\W+", "-", self.key.lower())

    @property
    def in_order(self) -> tuple:
        """Sorts by place: abstract, sections, appendices."""
        part = next((k for k, word in enumerate(PARTS) if self.place.startswith(word)), len(PARTS))
        return (
            part,
            [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", self.place)],
            self.key,
        )


def read_words(source: Path = SOURCE) -> dict[str, Words]:
    """The entries by key.

    Raises
    ------
    ProvenanceError
        If an entry lacks its place or its words, has anything else, or stands there twice.
    """
    try:
        given = tomllib.loads(source.read_text(encoding="utf8"))
    except tomllib.TOMLDecodeError as error:  # such as a key that stands there twice
        raise ProvenanceError(f"{source.name}: expected one entry a key; got {error}") from error
    for key, fields in given.items():
        fine = isinstance(fields, dict) and set(fields) == {"place", "words"}
        if not fine or not all(isinstance(text, str) and text.strip() for text in fields.values()):
            raise ProvenanceError(
                f"{source.name}: expected [{key}] to have a place and words, neither empty, and "
                f"nothing else; got {fields}. Name the place in the paper and quote its words."
            )
    entries = {key: Words(key, **fields) for key, fields in given.items()}
    ids = [entry.id for entry in entries.values()]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise ProvenanceError(f"{source.name}: expected one entry a name; see {twice}")
    return entries


def read_badge(text: str, entries: dict[str, Words]) -> tuple[str, str]:
    """Letter and key of what stands in a badge; the key is empty but for a:KEY.

    Raises
    ------
    ProvenanceError
        If it is no letter, an a without a key, or a key without an entry.
    """
    if text in ("b", "c", "d") or text == LEGEND:
        return text[-1], ""
    letter, _, key = text.partition(":")
    if letter == "a" and KEY.fullmatch(key) and key in entries:
        return letter, key
    if letter == "a":
        raise ProvenanceError(
            f"expected a:KEY, KEY an entry of {SOURCE.name}; got {text!r}. Add the entry, with the "
            "paper's words, or choose the letter that is true."
        )
    raise ProvenanceError(f"unknown provenance {text!r}; expected a:KEY, b, c, d or {LEGEND}")


def badges(text: str) -> list[str]:
    """What stands in the badges of a page's source."""
    return BADGE.findall(text)


def printed_sources(library: Path = LIBRARY) -> dict[str, set[str]]:
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


def claim_keys() -> list[str]:
    """The keys of the ledger's claims on the paper whose provenance is a."""
    sys.path.insert(0, str(BOOK.parent))  # the ledger is the book's, and in no package
    from book.ledger import SECTIONS

    return [
        claim.key for claims in SECTIONS.values() for claim in claims if claim.provenance == "a"
    ]


def used_on(book: Path = BOOK) -> dict[str, list[str]]:
    """The pages on which each key has a badge, those of the symbols included.

    Raises
    ------
    ProvenanceError
        If a badge is an a without a key.
    """
    pages: dict[str, list[str]] = {}
    for path in sorted(book.rglob("*.md")):
        page = f"book/{path.relative_to(book).with_suffix('').as_posix()}"
        for text in badges(path.read_text(encoding="utf8")):
            if text == "a":
                raise ProvenanceError(f"{page}: expected a:KEY in the badge; got a alone")
            if text.startswith("a:"):
                pages.setdefault(text[2:], []).append(page)
    symbols = tomllib.loads((book / "_ext/notation.toml").read_text(encoding="utf8"))["symbol"]
    for symbol in symbols:
        letter, _, key = symbol["provenance"].partition(":")
        if letter == "a":
            pages.setdefault(key, []).append("book/notation")
    return {key: list(dict.fromkeys(found)) for key, found in pages.items()}


def validate(
    entries: dict[str, Words], pages: dict[str, list[str]], printed: dict, claims: list[str]
) -> None:
    """Refuse a use without an entry, and an entry without a use.

    Raises
    ------
    ProvenanceError
    """
    used = {*pages, *printed, *claims}
    for what, wrong in (
        ("an entry for each badge a:KEY", set(pages) - set(entries)),
        ("an entry for the source of each check that prints [a]", set(printed) - set(entries)),
        ("an entry for the key of each claim with provenance a", set(claims) - set(entries)),
        ("entries that something uses", set(entries) - used),
    ):
        if wrong:
            raise ProvenanceError(f"{SOURCE.name}: expected {what}; see {sorted(wrong)}")
