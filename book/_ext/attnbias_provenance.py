"""Badges that say where a statement comes from, and the page with the paper's words behind them.

* ``{prov}`c` `` is a badge: a letter on the page, its meaning in a tooltip and in a text for screen
  readers; ``b`` and ``d`` likewise.
* ``{prov}`a:KEY` `` stands on the entry KEY of `provenance.toml`: the tooltip quotes the paper's
  words, and the badge is a link to them. ``{prov}`legend-a` `` is the letter alone, for legends.
* ``{words}`` is the table of the entries, with links back to where each is used.

A badge a without an entry, an entry without words, or one that nobody uses stops the build.
"""

import re
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from generated import Generated, SourceError, read_first, refuse
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from book.claims import SECTIONS

SOURCE = Path(__file__).with_name("provenance.toml")
BOOK = Path(__file__).parent.parent
HOME = "book/provenance"  # the page that lists the entries
LEGEND = "legend-a"  # the letter alone, where a legend explains it
BADGE = re.compile(r"\{prov\}`([^`\n]*)`")
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PARTS = ("Abstract", "Section", "Appendix")
PROVENANCE = {
    "a": "fixed by the paper's text, up to absolute constants",
    "b": "recalled from the literature, probable form, not a quotation",
    "c": "derived and proved here",
    "d": "a choice made here where the text leaves freedom",
}
STATE = "attnbias_provenance"


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


class Provenance:
    """What the role and the directive need to know, read once a build."""

    def __init__(self) -> None:
        self.entries = read_words()
        self.pages, self.claims = used_on(), claim_keys()
        validate(self.entries, self.pages, self.claims)


class ProvenanceRole(SphinxRole):
    """``{prov}`c` ``: a badge that says where a statement comes from."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        entries = getattr(self.env.app, STATE).entries
        self.env.note_dependency(str(SOURCE))
        try:
            letter, key = read_badge(self.text.strip(), entries)
        except SourceError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        entry = entries.get(key)
        said = f"fixed by the paper's text: {quoted(entry)}" if entry else PROVENANCE[letter]
        return [ProvenanceNode(letter=letter, said=said, target=entry.id if entry else "")], []


class ProvenanceNode(nodes.inline):
    """The badge in the document tree."""


def quoted(entry: Words) -> str:
    """The place and the words of an entry."""
    return f"{entry.place}: “{entry.words}”"


def visit_html(translator, node: ProvenanceNode) -> None:
    letter, said = node["letter"], escape(node["said"])
    inside = (
        f'<span aria-hidden="true">{letter}</span>'
        f'<span class="visually-hidden">provenance {letter}: {said}</span>'
    )
    shown = f'class="prov prov-{letter}" title="{said}"'
    if node["target"]:
        builder = translator.builder
        home = builder.get_relative_uri(builder.current_docname, HOME)
        translator.body.append(f'<a {shown} href="{home}#{node["target"]}">{inside}</a>')
    else:
        translator.body.append(f'<abbr {shown} tabindex="0">{inside}</abbr>')
    raise nodes.SkipNode


def anchor_of(page: str) -> str:
    """A link to a page of the book, in MyST, by the anchor of its title where it has one."""
    text = Path(BOOK.parent, f"{page}.md").read_text(encoding="utf8")
    label = re.match(r"(?:---\n.*?\n---\n)?\s*\(([\w-]+)\)=\n# ", text, re.DOTALL)
    return f"{{ref}}`{label.group(1)}`" if label else f"{{doc}}`/{page}`"


class WordsTable(Generated):
    """``{words}``: the entries in the order of the paper, and where each is used."""

    kept, source = STATE, SOURCE

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # a page elsewhere may have gained or lost a badge
        return super().run()

    def lines(self, state: Provenance) -> list[str]:
        out = ["| place in the paper (entry) | its words | used by |", "|---|---|---|"]
        for entry in sorted(state.entries.values(), key=lambda entry: entry.in_order):
            users = [anchor_of(page) for page in state.pages.get(entry.key, [])]
            users += [] if KEY.fullmatch(entry.key) else ["printed checks"]
            users += ["{ref}`chap-ledger`"] if entry.key in state.claims else []
            words = re.sub(r"([\\|*_$<\[{`])", r"\\\1", entry.words)
            name = f"[`{entry.key}`]{{#{entry.id}}}"
            out.append(
                f"| {entry.place} ({name}) | “{words}” | {', '.join(dict.fromkeys(users))} |"
            )
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("prov", ProvenanceRole())
    app.add_directive("words", WordsTable)
    app.add_node(ProvenanceNode, html=(visit_html, None))
    read_first(app, STATE, Provenance)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
