"""``{statement-map}``: a picture of all statements of the book, and of which rests on which.

Each is a link, so that pointing at it opens its card, and stands right of what it rests on; a line
leads from one to the other. The same stands in a table. `map.js` marks what belongs to one.
"""

import re
from html import escape

from attnbias_checked import SOURCE
from attnbias_checked import STATE as CHECKED
from attnbias_reference import STATE as REFERENCE
from docutils import nodes
from reference_statements import MAPPING, Statement
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_predict import Tag, TextTag
from sphinx_provenance import LETTERS
from statement_graph import all_behind, read_edges, reverse
from statement_layers import columns, rows

from tools.files import ROOT

BREAK = re.compile(r"^\((sec-[\w-]+)\)=\n#{2,3} [^\n]*\bBreak", re.MULTILINE)
WIDE, HIGH = 72, 34  # pixels: a statement
APART, DOWN = 90, 42  # and from one to the next
ARROW = (
    '<marker id="map-arrow" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="6" markerHeight="6" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z"/></marker>'
)


def broken_cases(chapter: str) -> list[str]:
    """The sections of a chapter that take a hypothesis away."""
    return BREAK.findall((ROOT / f"{chapter}.md").read_text(encoding="utf8"))


def line(start: tuple[int, int], end: tuple[int, int]) -> str:
    """The path from the right of one statement to the left of another."""
    (x, y), (to, down) = (start[0] + WIDE, start[1] + HIGH // 2), (end[0] - 5, end[1] + HIGH // 2)
    bend = max(20, abs(to - x) // 2)
    return f"M{x} {y}C{x + bend} {y} {to - bend} {down} {to} {down}"


class StatementMap(SphinxDirective):
    """``{statement-map}``"""

    def run(self) -> list[nodes.Node]:
        for source in (MAPPING, SOURCE):
            self.env.note_dependency(str(source))
        statements = getattr(self.env.app, REFERENCE).statements
        found = read_edges(set(statements))
        uses = {label: found[label] for label in statements}
        lines = ["::::{dropdown} The same as a table", *self.table(statements, uses), "::::"]
        return [self.picture(statements, uses), *self.parse_text_to_nodes("\n".join(lines))]

    def picture(self, statements: dict[str, Statement], uses: dict) -> Tag:
        """The statements at their places; those without a neighbour in lines of their own below."""
        column = columns(uses)
        down = rows(uses, column)
        count, last = max(column.values()) + 1, max(down.values())
        alone = [label for label in statements if label not in column]
        at = {label: (column[label] * APART, round(down[label] * DOWN)) for label in column}
        for k, label in enumerate(alone):
            at[label] = (k % count * APART, round((last + 2 + k // count) * DOWN))
        width = (count - 1) * APART + WIDE
        height = max(y for _, y in at.values()) + HIGH
        lines = "".join(
            f'<path d="{line(at[used], at[label])}" data-from="{used}" data-to="{label}"/>'
            for label in uses
            for used in uses[label]
        )
        size = f'style="width:{width}px;height:{height}px"'
        before = f'<div class="statement-map"><div class="map-frame"><div {size}>'
        before += f'<svg aria-hidden="true" {size}>{ARROW}{lines}</svg>'
        before += f'<p style="top:{round((last + 1.35) * DOWN)}px">Without a line:</p><ul>\n'
        out = Tag(before=before, behind="</ul></div></div></div>\n")
        for label in sorted(at, key=lambda each: (each in alone, at[each])):
            out += self.chip(statements[label], uses[label], *at[label])
        return out

    def chip(self, kept: Statement, uses: tuple[str, ...], left: int, top: int) -> TextTag:
        """A statement: its link, its letter, and signs of what checks it."""
        letter = kept.provenance[:1]
        marks, words = [f"prov-{letter or 'none'}"], [LETTERS[letter]] if letter else []
        if kept.checks:
            marks, words = [*marks, "run"], [*words, "checked by a run"]
        if entry := getattr(self.env.app, CHECKED).entries.get(kept.label):
            marks += ["part" if entry.part else "whole"]
            words += ["in part by Rocq" if entry.part else "checked by Rocq"]
        attributes = {
            "id": f"map-{kept.label}",
            "class": " ".join(marks),
            "style": f"left:{left}px;top:{top}px",
            "title": "; ".join(words),
            "data-letter": letter,
            "data-uses": " ".join(uses),
        }
        told = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
        found, messages = self.state.inline_text(kept.linked(), self.lineno)
        return TextTag("", "", *found, *messages, before=f"<li {told}>", behind="</li>\n")

    def table(self, statements: dict[str, Statement], uses: dict) -> list[str]:
        """What each rests on and carries, and where its chapter takes a hypothesis away."""
        used = reverse(uses)
        out = ["| statement | rests on | carries | broken in |", "|---|---|---|---|"]
        for label, kept in statements.items():
            if uses[label] or used[label]:
                cells = [[label], uses[label], used[label]]
                told = [", ".join(statements[each].linked() for each in cell) for cell in cells]
                falls = len(all_behind(label, used))
                told[2] += f" ({falls} in all)" if falls > len(used[label]) else ""
                broken = (f"{{ref}}`here <{each}>`" for each in broken_cases(kept.chapter))
                out.append("| " + " | ".join([*told, ", ".join(broken)]) + " |")
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    # what it asks, and whose tags it writes
    for name in ("attnbias_checked", "attnbias_reference", "sphinx_predict"):
        app.setup_extension(name)
    app.add_directive("statement-map", StatementMap)
    app.add_css_file("map.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
