"""The symbols and terms of `notation.toml`, held against the chapters and found in formulas."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from generated import SourceError, refuse
from reference_statements import PAPER, page_of, read_chapter

from tools.chapters import notebook_sources

SOURCE = Path(__file__).with_name("notation.toml")
HOME = "book/notation"  # the page that lists them
GROUPS = ("data", "scores", "svm", "constants", "training", "joint")
HEADING = re.compile(r"^\(([\w-]+)\)=\n#+ +(.+)$", re.MULTILINE)
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S", re.DOTALL)
NAMES = r"\mathrm \text \operatorname \mathcal \mathbb \mathbf \tag \begin \end"
ACCENTS = r"\bar \hat \tilde \dot \ddot \overline"
SKIPPED = {*NAMES.split(), *ACCENTS.split(), "_"}  # what follows them is not searched


@dataclass(frozen=True)
class Place:
    """Where the book defines something: page, anchor, and what a link to it says."""

    page: str
    anchor: str
    title: str


@dataclass(frozen=True)
class Entry:
    """A symbol, or a term of the glossary."""

    id: str
    means: str
    place: str
    tex: tuple[str, ...] = ()
    group: str = ""
    provenance: str = ""
    code: str = ""
    name: str = ""
    forms: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()

    def holds_on(self, page: str) -> bool:
        """Whether the symbol has this meaning on a page, which may be a chapter."""
        chapter = page.rpartition("/")[2]
        return chapter not in self.never and (self.only is None or chapter in self.only)


@dataclass(frozen=True)
class Notation:
    symbols: tuple[Entry, ...]
    terms: tuple[Entry, ...]
    places: dict[str, Place]


def read_places() -> dict[str, Place]:
    """What a place may name: labelled headings, boxes, and equations of the paper."""
    places = {"chap-notation": Place(HOME, "chap-notation", "Notation")}
    for path in notebook_sources():
        page = page_of(path)
        for label, title in HEADING.findall(path.read_text(encoding="utf8")):
            places[label] = Place(page, label, title)
        for kept in read_chapter(path):
            title = kept.title or kept.label
            if kept.kind == "equation":
                title = f"Equation ({title})"
            elif PAPER.fullmatch(kept.label):
                title = kept.label.replace("-", " ").capitalize()
            places[kept.label] = Place(page, kept.label, title)
    return places


def to_entry(raw: dict, path: Path) -> Entry:
    try:
        lists = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
        named = {"id": "term-" + re.sub(r"\W+", "-", raw["name"])} if "name" in raw else {}
        named |= {"id": f"sym-{raw['id']}".lower()} if "id" in raw else {}
        return Entry(**{**raw, **lists, **named})
    except (TypeError, KeyError) as error:
        wanted = f"{path.name}: expected the fields that its head names"
        raise SourceError(f"{wanted}; got {raw}. {error}") from error


def read_notation(source: Path = SOURCE) -> Notation:
    """The symbols and the terms, with the places that define them.

    Raises
    ------
    SourceError
        If a symbol of Table 1 has no entry, an entry names a place that the chapters do not have,
        or two entries have the same name or claim the same formula on one page.
    """
    given = tomllib.loads(source.read_text(encoding="utf8"))
    symbols = tuple(to_entry(raw, source) for raw in given["symbol"])
    terms = tuple(to_entry(raw, source) for raw in given["term"])
    places = read_places()
    forms = {tokens(form) for entry in symbols for form in entry.tex}
    ids = [entry.id.lower() for entry in (*symbols, *terms)]
    lacking = [symbol for symbol in given["table1"] if tokens(symbol) not in forms]
    wrong = {
        "an entry for each symbol of Table 1": lacking,
        "places of the book": {e.place for e in (*symbols, *terms)} - set(places),
        "one entry a name, capital letters or not": [i for i in ids if ids.count(i) > 1],
        f"groups out of {GROUPS}": [e.id for e in symbols if e.group not in GROUPS],
        "one meaning of a symbol on a page": clashes(symbols),
    }
    refuse(source, wrong)
    return Notation(symbols, terms, places)


def clashes(symbols: tuple[Entry, ...]) -> list[str]:
    """Symbols with two meanings in one chapter."""
    found = []
    for page in map(page_of, notebook_sources()):
        forms = [tokens(form) for e in symbols if e.holds_on(page) for form in e.tex]
        twice = sorted({form for form in forms if forms.count(form) > 1})
        found += [f"{page}: {''.join(form)}" for form in twice]
    return found


def to_html(text: str) -> str:
    """Plain text with formulas in dollars, as the pages have them."""
    math = r'<span class="math notranslate nohighlight">\(\1\)</span>'
    return re.sub(r"\$([^$]+)\$", math, escape(text, quote=False))


def tokens(tex: str) -> tuple[str, ...]:
    """The symbols of a formula one by one; a pair of braces round a single one does not count."""
    out: list[str] = []
    for token in TOKEN.findall(tex):
        out.append(token)
        if token == "}" and len(out) > 2 and out[-3] == "{" and out[-2] not in "{}":
            out[-3:] = [out[-2]]
    return tuple(out)


def end_of_group(found: tuple[str, ...], start: int) -> int:
    """The place behind the group, or the single token, that begins at `start`."""
    depth = 0
    for place in range(start, len(found)):
        depth += {"{": 1, "}": -1}.get(found[place], 0)
        if depth <= 0:
            return place + 1
    return len(found)


def stands(found: tuple[str, ...], place: int, form: tuple[str, ...]) -> bool:
    """Whether a form begins at a place, and is not followed by an index or a prime."""
    end = place + len(form)
    return found[place:end] == form and not set(found[end : end + 1]) & {"_", "'"}


def symbols_in(tex: str, forms: dict[tuple[str, ...], str]) -> list[str]:
    """The entries whose symbols stand in a formula, in its order; indices are not searched.

    Parameters
    ----------
    tex : str
        The formula.
    forms : dict
        The id of an entry, by the tokens of each of its forms.
    """
    found, out, place = tokens(tex), [], 0
    longest = sorted(forms, key=len, reverse=True)
    while place < len(found):
        form = next((form for form in longest if stands(found, place, form)), None)
        if form:
            out.append(forms[form])
            place += len(form)
        elif found[place] in SKIPPED:
            place = end_of_group(found, place + 1)
        else:
            place += 1
    return list(dict.fromkeys(out))
