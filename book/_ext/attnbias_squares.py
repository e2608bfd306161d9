"""``{squares}``: a square for each claim of the ledger, by its parts; each leads to a row.

``{squares} paper`` shows the claims of the paper alone, ``{squares} ours`` those of this book.
Colour and mark are the verdict's, so that no colour has to be told apart. The Tab key stops once a
part (``squares.js``); without scripts it stops at each square, and a link leads past them all.
``{mark}`KEY` `` is the square beside the row of a claim, which carries the row's anchor.
"""

import json
from collections import Counter
from html import escape

from attnbias_verdicts import LEDGER
from docutils import nodes
from docutils.parsers.rst import directives
from generated import read_first, refuse
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from book.claims.claim import ONLY_WHEN

STATE = "attnbias_squares"
HOME = "book/ledger"
LOOKS = {  # of each kind of verdict: a class and a mark; the tick of "holds" is drawn
    "holds": ("holds", ""),
    "holds sharper": ("sharper", "+"),
    ONLY_WHEN: ("partly", "½"),
    "true by construction": ("constructed", "="),
    "vacuous here": ("vacuous", "0"),
    "undecided": ("undecided", "?"),
    "contradicted": ("contradicted", "×"),
}
SKIP = "Skip the squares, or go from one to the next by the arrow keys"
SAID = "Each square is a claim, by the parts of the ledger, and leads to its row:"


def read_sections() -> dict[str, list[dict]]:
    """The claims of the ledger by its parts.

    Raises
    ------
    SourceError
        If a verdict has no look.
    """
    sections = json.loads(LEDGER.read_text(encoding="utf8"))["sections"]
    verdicts = {kind(entry) for rows in sections.values() for entry in rows}
    refuse(LEDGER, {f"verdicts among {sorted(LOOKS)}": verdicts - set(LOOKS)})
    return sections


def kind(entry: dict) -> str:
    """A verdict without its restriction."""
    return ONLY_WHEN if entry["verdict"].startswith(ONLY_WHEN) else entry["verdict"]


def chosen(sections: dict[str, list[dict]], side: str) -> dict[str, list[dict]]:
    """The parts of the paper, those of this book, or all where `side` is empty."""
    whose = {"paper": {False}, "ours": {True}}.get(side, {False, True})
    found = {
        part: [entry for entry in rows if (entry["source"] == "ours") in whose]
        for part, rows in sections.items()
    }
    return {part: rows for part, rows in found.items() if rows}


def square(entry: dict, ledger: str) -> str:
    """The link from one square to the row of its claim."""
    look, mark = LOOKS[kind(entry)]
    said = escape(f"{entry['key']} ({entry['source']}): {entry['verdict']}")
    return (
        f'<li><a class="square {look}" href="{ledger}#claim-{entry["key"]}" title="{said}" '
        f'aria-label="{said}"><span aria-hidden="true">{mark}</span></a></li>'
    )


def picture(sections: dict[str, list[dict]], ledger: str) -> str:
    """The squares under a legend with counts; `ledger` is the address of the rows."""
    counts = Counter(kind(entry) for rows in sections.values() for entry in rows)
    legend = "".join(
        f'<li><span class="square {look}" aria-hidden="true">{mark}</span> {name} {counts[name]}'
        "</li>"
        for name, (look, mark) in LOOKS.items()
        if counts[name]
    )
    parts = "".join(
        f"<div><p>{escape(part)} <small>({len(rows)})</small></p>"
        f'<ul aria-label="{escape(part)}">{"".join(square(entry, ledger) for entry in rows)}</ul>'
        "</div>\n"
        for part, rows in sections.items()
    )
    skip = f'<a class="visually-hidden-focusable" href="#after-squares">{SKIP}</a>'
    return (
        f'<div class="squares">{skip}<p>{SAID}</p><ul class="looks">{legend}</ul>\n{parts}'
        '<span id="after-squares" tabindex="-1"></span></div>\n'
    )


def side_of(argument: str) -> str:
    return directives.choice(argument, ("paper", "ours"))


class Squares(SphinxDirective):
    """``{squares}``, with ``paper`` or ``ours`` behind it for a part of them."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(LEDGER))
        side = side_of(self.arguments[0]) if self.arguments else ""
        ledger = self.env.app.builder.get_relative_uri(self.env.docname, HOME)
        shown = chosen(getattr(self.env.app, STATE), side)
        return [nodes.raw("", picture(shown, ledger), format="html")]


def beside(entry: dict) -> str:
    """The square of a row, with the anchor to which the others lead."""
    look, mark = LOOKS[kind(entry)]
    inner = f'<span class="square {look}" aria-hidden="true">{mark}</span>'
    return f'<span id="claim-{entry["key"]}">{inner}</span>'


class Mark(SphinxRole):
    """``{mark}`KEY` ``"""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        sections = getattr(self.env.app, STATE)
        for entry in (each for rows in sections.values() for each in rows):
            if entry["key"] == self.text:
                return [nodes.raw("", beside(entry), format="html")], []
        said = f"expected the key of a claim of {LEDGER.name}; got {self.text!r}"
        return [], [self.inliner.reporter.error(said, line=self.lineno)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("squares", Squares)
    app.add_role("mark", Mark())
    app.add_css_file("squares.css")
    read_first(app, STATE, read_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
