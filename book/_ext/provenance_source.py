"""The paper's words behind every badge a: `provenance.toml`, held against who stands on them."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sphinx.errors import ExtensionError

SOURCE = Path(__file__).with_name("provenance.toml")
BOOK = Path(__file__).parent.parent
HOME = "book/provenance"  # the page that lists the entries
LEGEND = "legend-a"  # the letter alone, where a legend explains it
BADGE = re.compile(r"\{prov\}`([^`\n]*)`")
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PARTS = ("Abstract", "Section", "Appendix")


class ProvenanceError(ExtensionError):
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


def validate(entries: dict[str, Words], pages: dict[str, list[str]], claims: list[str]) -> None:
    """Refuse a use without an entry, and an entry without a use; tests walk what checks print.

    Raises
    ------
    ProvenanceError
    """
    named = {key for key in entries if KEY.fullmatch(key)}
    for what, wrong in (
        ("an entry for each badge a:KEY", set(pages) - set(entries)),
        ("an entry for the key of each claim with provenance a", set(claims) - set(entries)),
        ("entries that something uses", named - {*pages, *claims}),
    ):
        if wrong:
            raise ProvenanceError(f"{SOURCE.name}: expected {what}; see {sorted(wrong)}")
