"""Which boxes carry "checked by Rocq", and the page with the statements that Rocq has checked.

* A box whose label stands in `checked.toml` ends with the badge, a link to its statement on the
  page; ``{rocq}`label` `` is the badge in running text, for an equation.
* ``{checked} statements`` lists, chapter by chapter, the boxes with the text of their theorems as
  `proofs/` has it; ``{checked} files`` the files, with what stands for what and the definitions
  that these theorems use; ``{checked} axioms`` what they may rest on.

A label that no chapter has, and a theorem that no file has, stop the build.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from generated import Generated, SourceError, boxes, read_first, refuse
from reference_statements import Statement, read_statements
from rocq_source import AROUND, Proofs, Sentence
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

SOURCE = Path(__file__).with_name("checked.toml")
HOME = "book/checked"  # the page of the statements
STATE = "attnbias_checked"
SAID = "A machine has checked a proof of this, for sequences of one length"


@dataclass(frozen=True)
class Entry:
    """A box, and the theorems that say it or a part of it."""

    proved: list[str]
    part: str = ""
    note: str = ""


class Checked:
    """The table and the proofs, read once a build.

    Raises
    ------
    SourceError
        If an entry has another form, or names a label or a theorem that is not there.
    """

    def __init__(self, source: Path = SOURCE, proofs: Proofs | None = None) -> None:
        given = tomllib.loads(source.read_text(encoding="utf8"))
        self.axioms: dict[str, str] = given.pop("axioms", {})
        self.proofs = proofs or Proofs()
        try:
            self.entries = {label: Entry(**fields) for label, fields in given.items()}
        except TypeError as error:
            wanted = "expected `proved`, and perhaps `part` and `note`, of each label"
            raise SourceError(f"{source.name}: {wanted}; got {error}") from error
        stated = read_statements()
        wrong = {
            "labels of boxes or equations of the chapters": set(self.entries) - set(stated),
            "a theorem for each label": {k for k, each in self.entries.items() if not each.proved},
        }
        refuse(source, wrong)
        # in the order of the chapters
        self.boxes = {label: box for label, box in stated.items() if label in self.entries}
        self.names = list(dict.fromkeys(n for each in self.entries.values() for n in each.proved))
        self.used = self.proofs.used(self.names)


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


def code(sentences: list[Sentence]) -> list[str]:
    """Sentences as blocks of code: what the section assumes once, above all that assume it."""
    blocks: dict[tuple[Sentence, ...], list[Sentence]] = {}
    for each in sentences:
        assumed = tuple(line for line in each.around if line.kind in AROUND)
        blocks.setdefault(assumed, []).append(each)
    out = []
    for block in blocks.values():
        used = {line for each in block for line in each.shown_with()}
        lines = dict.fromkeys(line for each in block for line in each.around)
        above = [line.text for line in lines if line in used]
        texts = [each.text for each in block]
        out += fenced("coq", "\n\n".join(["\n".join(above), *texts] if above else texts))
    return out


class CheckedTable(Generated):
    """``{checked} statements``, ``{checked} files`` and ``{checked} axioms``."""

    required_arguments = 1
    kept, source = STATE, SOURCE

    def lines(self, state: Checked) -> list[str]:
        for file in state.proofs.files.values():
            self.env.note_dependency(str(file.path))
        return getattr(self, self.arguments[0])(state)

    def statements(self, state: Checked) -> list[str]:
        out, chapter = [], ""
        for label, box in state.boxes.items():
            if box.chapter != chapter:
                chapter = box.chapter
                out += [f":::{{rubric}} {{ref}}`{box.anchor}`", ":::", ""]
            out += self.entry(box, state.entries[label], state.proofs)
        return out

    def entry(self, box: Statement, entry: Entry, proofs: Proofs) -> list[str]:
        title = "" if box.kind == "equation" else f" ({box.title})"
        name = box.linked("Equation ") + title
        extent = f"In part: {entry.part}" if entry.part else "All of it"
        out = [f"[{name}]{{#rocq-{box.label}}}. {extent}.", entry.note, ""]
        stems = list(dict.fromkeys(full.partition(".")[0] for full in entry.proved))
        out += ["::::{dropdown} The statement in Rocq", ""]
        for stem in stems:
            of_file = [full for full in entry.proved if full.partition(".")[0] == stem]
            out += [f"From [`{stem}.v`](#rocq-file-{stem.lower()}):", ""]
            out += code([proofs.stated(full) for full in of_file])
        return [*out, "::::", ""]

    def files(self, state: Checked) -> list[str]:
        stems = {full.partition(".")[0] for full in state.names} | set(state.used)
        out = []
        for stem, file in state.proofs.files.items():
            if stem in stems:
                title, _, head = file.head.partition("\n")
                out += [f"[`{stem}.v`]{{#rocq-file-{stem.lower()}}}: {title}.", ""]
                out += ["::::{dropdown} What stands for what, and the definitions", ""]
                out += fenced("text", head.strip()) + code(state.used.get(stem, []))
                out += ["::::", ""]
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
