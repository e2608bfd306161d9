"""Which boxes carry "checked by Rocq", and the page with the statements that Rocq has checked.

* A box whose label stands in `checked.toml` ends with the badge, a link to its statement on the
  page; ``{rocq}`label` `` is the badge in running text, for an equation.
* ``{checked} LABEL`` is the statement of one box, closed, for the page of its proof.
* ``{checked} statements`` lists, chapter by chapter, the boxes with their text in Spec.v;
  ``{checked} definitions`` has what Spec.v says before them; ``{checked} axioms`` has what they
  rest on.

The build stops unless the labels, the statements of Spec.v and the theorems of Closed.v are the
same list.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from generated import Generated, SourceError, boxes, read_first, refuse
from reference_statements import Statement, read_statements
from rocq_source import Spec
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

SOURCE = Path(__file__).with_name("checked.toml")
HOME = "book/checked"  # the page of the statements
STATE = "attnbias_checked"
SAID = "A machine has checked a proof of this, for sequences of one length"


@dataclass(frozen=True)
class Entry:
    """What of a box is stated, if not all of it, and how to read the one in the other."""

    part: str = ""
    note: str = ""


class Checked:
    """The table and the statements, read once a build.

    Raises
    ------
    SourceError
        If an entry has another form or no box, or a box no statement or no proof.
    """

    def __init__(self, source: Path = SOURCE, spec: Spec | None = None) -> None:
        given = tomllib.loads(source.read_text(encoding="utf8"))
        self.axioms: dict[str, str] = given.pop("axioms", {})
        self.spec = spec or Spec()
        try:
            self.entries = {label: Entry(**fields) for label, fields in given.items()}
        except TypeError as error:
            wanted = "expected perhaps `part` and `note` of each label"
            raise SourceError(f"{source.name}: {wanted}; got {error}") from error
        stated = read_statements()
        labels = {name_of(label) for label in self.entries}
        names = set(self.spec.statements)
        wrong = {
            "labels of boxes or equations of the chapters": set(self.entries) - set(stated),
            "definitions of type Prop, and no others, among the statements of Spec.v": (
                self.spec.misplaced()
            ),
            "a statement of Spec.v for each label": labels - names,
            "a label for each statement of Spec.v": names - labels,
            "`Theorem x : Box.x` in Closed.v, and its assumptions printed, for each statement": (
                names - self.spec.proved()
            ),
            "a statement of Spec.v for each theorem of it in Closed.v": self.spec.proved() - names,
        }
        refuse(source, wrong)
        # in the order of the chapters
        self.boxes = {label: box for label, box in stated.items() if label in self.entries}


def name_of(label: str) -> str:
    """The name that a box has in Spec.v."""
    return label.replace("-", "_")


def badge(label: str, entry: Entry) -> CheckedNode:
    said = SAID + (f"; in part: {entry.part}." if entry.part else ".")
    return CheckedNode(label=label, said=said, part=entry.part)


class CheckedNode(nodes.inline):
    """The badge in the document tree."""


def visit_html(translator, node: CheckedNode) -> None:
    builder = translator.builder
    home = builder.get_relative_uri(builder.current_docname, HOME)
    said, where = escape(node["said"]), f"{home}#rocq-{node['label']}"
    translator.body.append(f'<a class="rocq" href="{where}" title="{said}">checked by Rocq</a>')
    translator.body.append(escape(f": {node['part']}") if node["part"] else "")
    raise nodes.SkipNode


class CheckedRole(SphinxRole):
    """``{rocq}`eq-paper-14` ``: the badge of an equation, in running text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        entry = getattr(self.env.app, STATE).entries.get(self.text)
        if entry is None:
            said = f"expected a label of {SOURCE.name}; got {self.text!r}"
            return [], [self.inliner.reporter.error(said, line=self.lineno)]
        self.env.note_dependency(str(SOURCE))
        return [badge(self.text, entry)], []


def mark_boxes(app: Sphinx, doctree: nodes.document) -> None:
    """Append the badge to each box that the table knows."""
    entries = getattr(app, STATE).entries
    for label, content in boxes(doctree):
        if entry := entries.get(label):
            app.env.note_dependency(str(SOURCE))
            content += nodes.paragraph("", "", badge(label, entry), classes=["checked-by"])


def fenced(language: str, text: str) -> list[str]:
    """A block of text whose long lines are wrapped."""
    return [f"```{{code-block}} {language}", ":class: wrapped", "", text, "```", ""]


class CheckedTable(Generated):
    """``{checked}`` with a label, or with statements, definitions or axioms."""

    required_arguments = 1
    kept, source = STATE, SOURCE

    def lines(self, state: Checked) -> list[str]:
        for path in (state.spec.path, state.spec.closed):
            self.env.note_dependency(str(path))
        asked = self.arguments[0]
        if asked in state.boxes:  # beside a proof; on paper it stands once, among the statements
            return self.closed(asked, state.spec, [":class-container: on-screen"])
        return getattr(self, asked)(state)

    def statements(self, state: Checked) -> list[str]:
        out, chapter = [], ""
        for label, box in state.boxes.items():
            if box.chapter != chapter:
                chapter = box.chapter
                out += [f":::{{rubric}} {{ref}}`{box.anchor}`", ":::", ""]
            out += self.entry(box, state.entries[label], state.spec)
        return out

    def entry(self, box: Statement, entry: Entry, spec: Spec) -> list[str]:
        title = "" if box.kind == "equation" else f" ({box.title})"
        name = box.linked("Equation ") + title
        extent = f"In part: {entry.part}" if entry.part else "All of it"
        out = [f"[{name}]{{#rocq-{box.label}}}. {extent}.", entry.note, ""]
        return [*out, *self.closed(box.label, spec)]

    def closed(self, label: str, spec: Spec, options: Sequence[str] = ()) -> list[str]:
        text = fenced("coq", spec.statements[name_of(label)])
        return ["::::{dropdown} The statement in Rocq", *options, "", *text, "::::", ""]

    def definitions(self, state: Checked) -> list[str]:
        out = []
        for title, text in state.spec.chapters:
            out += [f"::::{{dropdown}} {title}", "", *fenced("coq", text), "::::", ""]
        return out

    def axioms(self, state: Checked) -> list[str]:
        rows = [f"| `{name}` | {said} |" for name, said in state.axioms.items()]
        return ["| axiom | in words |", "|---|---|", *rows]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("rocq", CheckedRole())
    app.add_directive("checked", CheckedTable)
    app.add_node(CheckedNode, html=(visit_html, None))
    read_first(app, STATE, Checked)
    app.connect("doctree-read", mark_boxes, priority=400)  # above the line of the library's checks
    return {"parallel_read_safe": True, "parallel_write_safe": True}
