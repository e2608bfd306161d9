"""Badges that say where a statement comes from, and the page with the paper's words behind them.

* ``{prov}`c` `` is a badge: a letter on the page, its meaning in a tooltip and in a text for screen
  readers; ``b`` and ``d`` likewise.
* ``{prov}`a:KEY` `` stands on the entry KEY of `provenance.toml`: the tooltip quotes the paper's
  words, and the badge is a link to them. ``{prov}`legend-a` `` is the letter alone, for legends.
* ``{words}`` is the table of the entries, with links back to where each is used.

A badge a without an entry, an entry without words, or one that nobody uses stops the build.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from docutils import nodes
from generated import Generated, SourceError, read_first
from provenance_source import (
    BOOK,
    HOME,
    KEY,
    SOURCE,
    Words,
    claim_keys,
    read_badge,
    read_words,
    used_on,
    validate,
)
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

PROVENANCE = {
    "a": "fixed by the paper's text, up to absolute constants",
    "b": "recalled from the literature, probable form, not a quotation",
    "c": "derived and proved here",
    "d": "a choice made here where the text leaves freedom",
}
STATE = "attnbias_provenance"


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
        out = ["| entry | place in the paper | its words | stands behind |", "|---|---|---|---|"]
        for entry in sorted(state.entries.values(), key=lambda entry: entry.in_order):
            users = [anchor_of(page) for page in state.pages.get(entry.key, [])]
            users += [] if KEY.fullmatch(entry.key) else ["printed checks"]
            users += ["{ref}`chap-ledger`"] if entry.key in state.claims else []
            words = re.sub(r"([\\|*_$<\[{`])", r"\\\1", entry.words)
            name = f"[`{entry.key}`]{{#{entry.id}}}"
            out.append(
                f"| {name} | {entry.place} | “{words}” | {', '.join(dict.fromkeys(users))} |"
            )
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("prov", ProvenanceRole())
    app.add_directive("words", WordsTable)
    app.add_node(ProvenanceNode, html=(visit_html, None))
    read_first(app, STATE, Provenance)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
