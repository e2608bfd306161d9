"""The paper's words behind every badge a: `provenance.toml`, held against who stands on them."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from generated import SourceError, refuse

SOURCE = Path(__file__).with_name("provenance.toml")
BOOK = Path(__file__).parent.parent
HOME = "book/provenance"  # the page that lists the entries
LEGEND = "legend-a"  # the letter alone, where a legend explains it
BADGE = re.compile(r"\{prov\}`([^`\n]*)`")
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PARTS = ("Abstract", "Section", "Appendix")


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
    SourceError
        If an entry lacks its place or its words, has anything else, or stands there twice.
    """
    try:
        given = tomllib.loads(source.read_text(encoding="utf8"))
        entries = {key: Words(key, **fields) for key, fields in given.items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:  # such as a key that stands there twice
        wanted = "expected one entry a key, with a place and words, and nothing else"
        raise SourceError(f"{source.name}: {wanted}; got {error}") from error
    ids = [entry.id for entry in entries.values()]
    texts = [(key, text) for key, each in entries.items() for text in (each.place, each.words)]
    empty = {key for key, text in texts if not isinstance(text, str) or not text.strip()}
    wrong = {
        "a place in the paper and its words, neither empty": empty,
        "one entry a name": {one for one in ids if ids.count(one) > 1},
    }
    refuse(source, wrong)
    return entries


def read_badge(text: str, entries: dict[str, Words]) -> tuple[str, str]:
    """Letter and key of what stands in a badge; the key is empty but for a:KEY.

    Raises
    ------
    SourceError
        If it is no letter, an a without a key, or a key without an entry.
    """
    if text in ("b", "c", "d") or text == LEGEND:
        return text[-1], ""
    letter, _, key = text.partition(":")
    if letter == "a" and KEY.fullmatch(key) and key in entries:
        return letter, key
    if letter == "a":
        raise SourceError(
            f"expected a:KEY, KEY an entry of {SOURCE.name}; got {text!r}. Add the entry, with the "
            "paper's words, or choose the letter that is true."
        )
    raise SourceError(f"unknown provenance {text!r}; expected a:KEY, b, c, d or {LEGEND}")


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
    SourceError
        If a badge is an a without a key.
    """
    pages: dict[str, list[str]] = {}
    for path in sorted(book.rglob("*.md")):
        page = f"book/{path.relative_to(book).with_suffix('').as_posix()}"
        for text in BADGE.findall(path.read_text(encoding="utf8")):
            if text == "a":
                raise SourceError(f"{page}: expected a:KEY in the badge; got a alone")
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
    SourceError
    """
    named = {key for key in entries if KEY.fullmatch(key)}
    wrong = {
        "an entry for each badge a:KEY": set(pages) - set(entries),
        "an entry for the key of each claim with provenance a": set(claims) - set(entries),
        "entries that something uses": named - {*pages, *claims},
    }
    refuse(SOURCE, wrong)
