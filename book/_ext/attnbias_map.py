"""``{statement-map}``: all statements of the book, chapter by chapter, and which rests on which.

Each is a link, so that pointing at it opens its card; what it rests on, what rests on it and what
would fall with it stand in a table, and `map.js` marks them where they stand.
"""

from __future__ import annotations

import re
from html import escape

from attnbias_checked import SOURCE
from attnbias_checked import STATE as CHECKED
from attnbias_predict import Tag, TextTag
from attnbias_provenance import PROVENANCE
from attnbias_reference import STATE as REFERENCE
from docutils import nodes
from reference_statements import MAPPING, Statement
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from statement_graph import all_behind, read_edges, reverse

from tools.files import ROOT

BREAK = re.compile(r"^\((sec-[\w-]+)\)=\n#{2,3} [^\n]*\bBreak", re.MULTILINE)
MARKS = {"run": "checked by a run", "rocq": "checked by Rocq", "rocq-part": "in part by Rocq"}


def broken_cases(chapter: str) -> list[str]:
    """The sections of a chapter that take a hypothesis away."""
    return BREAK.findall((ROOT / f"{chapter}.md").read_text(encoding="utf8"))


class StatementMap(SphinxDirective):
    """``{statement-map}``"""

    def run(self) -> list[nodes.Node]:
        for source in (MAPPING, SOURCE):
            self.env.note_dependency(str(source))
        statements = getattr(self.env.app, REFERENCE).statements
        uses = read_edges(set(statements))
        used = reverse(uses)
        out = Tag(before='<div class="statement-map">\n', behind="</div>\n")
        rows: dict[str, list[Statement]] = {}
        for kept in statements.values():
            rows.setdefault(kept.chapter, []).append(kept)
        for chapter, row in rows.items():
            out += self.row(chapter, row, uses)
        table = ["| statement | rests on | carries |", "|---|---|---|"]
        for label in statements:
            if uses[label] or used[label]:
                cells = [[label], uses[label], used[label]]
                told = [", ".join(statements[each].linked() for each in cell) for cell in cells]
                falls = len(all_behind(label, used))
                told[2] += f" ({falls} in all)" if falls > len(used[label]) else ""
                table.append("| " + " | ".join(told) + " |")
        lines = ["::::{dropdown} The same as a table", *table, "::::"]
        return [out, *self.parse_text_to_nodes("\n".join(lines))]

    def row(self, chapter: str, row: list[Statement], uses: dict) -> Tag:
        """One chapter: its name, its statements, and where it takes a hypothesis away."""
        out = Tag(before='<div class="map-row">', behind="</div>\n")
        head = f"{{ref}}`{row[0].anchor}`"
        for k, label in enumerate(broken_cases(chapter)):
            head += (", " if k else ", broken ") + f"{{ref}}`here <{label}>`"
        out += nodes.paragraph("", "", *self.inline(head))
        chips = Tag(before="<ul>", behind="</ul>")
        checked = getattr(self.env.app, CHECKED).entries
        for kept in row:
            marks = [f"prov-{kept.provenance[:1]}" if kept.provenance else "prov-none"]
            marks += ["run"] if kept.checks else []
            if entry := checked.get(kept.label):
                marks += ["rocq-part" if entry.part else "rocq"]
            words = [PROVENANCE[kept.provenance[0]]] if kept.provenance else []
            words += [MARKS[mark] for mark in marks if mark in MARKS]
            attributes = {
                "id": f"map-{kept.label}", "class": " ".join(marks), "title": "; ".join(words),
                "data-letter": kept.provenance[:1], "data-uses": " ".join(uses[kept.label]),
            }  # fmt: skip
            told = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
            tags = {"before": f"<li {told}>", "behind": "</li>\n"}
            chips += TextTag("", "", *self.inline(kept.linked()), **tags)
        out += chips
        return out

    def inline(self, text: str) -> list[nodes.Node]:
        found, messages = self.state.inline_text(text, self.lineno)
        return [*found, *messages]


def setup(app: Sphinx) -> dict[str, bool]:
    # what it asks, and whose tags it writes
    for name in ("attnbias_checked", "attnbias_predict", "attnbias_reference"):
        app.setup_extension(name)
    app.add_directive("statement-map", StatementMap)
    app.add_css_file("map.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
