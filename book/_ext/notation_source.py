"""The symbols and terms of `notation.toml`, held against the chapters and found in formulas."""

import re
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from formulas import CELL, Form, formulas, symbols_of, tokens
from generated import SourceError, refuse
from reference_statements import PAPER, page_of, read_chapter
from statement_graph import BLOCK, LABEL

from tools.chapters import notebook_sources

SOURCE = Path(__file__).with_name("notation.toml")
HOME = "book/notation"  # the page that lists them
GROUPS = ("data", "scores", "svm", "constants", "training", "joint")
HEADING = re.compile(r"^\(([\w-]+)\)=\n#+ +(.+)$", re.MULTILINE)
CITED = re.compile(r"\{(?:prf:ref|ref|eq)\}`(?:[^`<]*<)?([\w-]+)>?`|\]\(#([\w-]+)\)")
DISPLAYED = re.compile(
    r"(?:^\((eq-[\w-]+)\)=\n)?^\$\$\n(.*?)^\$\$(?: \((eq-[\w-]+)\))?$", re.MULTILINE | re.DOTALL
)


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
    also: tuple[str, ...] = ()  # what others call it, for the search
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
        two entries have the same name or claim the same formula on one page, or a chapter and a
        box that it cites do not agree on a letter.
    """
    given = tomllib.loads(source.read_text(encoding="utf8"))
    symbols = tuple(to_entry(raw, source) for raw in given["symbol"])
    terms = tuple(to_entry(raw, source) for raw in given["term"])
    chapters = {page_of(path): path.read_text(encoding="utf8") for path in notebook_sources()}
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
        **disagreements(symbols, chapters, given["dummies"]),
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


def read_blocks(page: str, text: str) -> dict[str, tuple[str, str]]:
    """The page and the text of each labelled box and equation."""
    text = CELL.sub("", text)
    found = {above or behind: f"$${tex}$$" for above, tex, behind in DISPLAYED.findall(text)}
    for block in BLOCK.finditer(text):
        if label := LABEL.search(block[3]):
            found[label[1]] = block[3]
    return {label: (page, body) for label, body in found.items() if label}


def disagreements(
    symbols: tuple[Entry, ...], chapters: dict[str, str], dummies: list[str]
) -> dict[str, list[str]]:
    """By rule, the letters on which a chapter and the boxes and equations that it cites disagree.

    Where no entry holds, a letter has a meaning of that chapter's own.

    Parameters
    ----------
    symbols : tuple
        The entries.
    chapters : dict
        The source of each chapter, by its page.
    dummies : list
        Letters that need no entry.
    """
    forms = {tokens(form) for entry in symbols for form in entry.tex}
    blocks = {k: v for page in chapters for k, v in read_blocks(page, chapters[page]).items()}
    means = {
        page: {tokens(form): e.id for e in symbols if e.holds_on(page) for form in e.tex}
        for page in chapters
    }
    two, none = [], []
    for page, text in chapters.items():
        own = letters_of(text, forms)
        for label in {one or other for one, other in CITED.findall(CELL.sub("", text))}:
            home, body = blocks.get(label, (page, ""))
            for form in own & letters_of(body, forms) if home != page else ():
                here, there = means[page].get(form), means[home].get(form)
                found = f"{page}: {' '.join(form)} of {label}"
                if here != there:
                    two.append(found)
                elif not here and len(form) == 1 and form[0] not in dummies:
                    none.append(found)
    return {
        "one meaning of a symbol in a chapter and in the boxes that it cites": two,
        "an entry for each letter that a chapter shares with a box that it cites": none,
    }


def letters_of(text: str, forms: set[Form]) -> set[Form]:
    """The symbols and letters of all formulas of a text."""
    return {form for tex in formulas(text) for form in symbols_of(tex, forms)}


def to_html(text: str) -> str:
    """Plain text with formulas in dollars, as the pages have them."""
    math = r'<span class="math notranslate nohighlight">\(\1\)</span>'
    return re.sub(r"\$([^$]+)\$", math, escape(text, quote=False))


def symbols_in(tex: str, forms: dict[tuple[str, ...], str]) -> list[str]:
    """The entries whose symbols stand in a formula, in its order; indices are not searched.

    Parameters
    ----------
    tex : str
        The formula.
    forms : dict
        The id of an entry, by the tokens of each of its forms.
    """
    return list(dict.fromkeys(forms[form] for form in symbols_of(tex, forms) if form in forms))
