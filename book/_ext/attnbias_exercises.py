"""Exercises that answer, and each chapter's notebook without its solutions.

A box whose label `book/exercises.toml` has ends with fields for the answer, which `exercises.js`
checks, with a hint and with the line to run in the notebook. Under the heading Exercises stands a
link to a copy of the notebook in which no cell of a solution is left.
"""

import json
import re
from html import escape

import nbformat
from attnbias_book import copies, notebook_beside
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_exercise.nodes import is_exercise_node

from book.exercises import ANSWERS, Exercise, heading, read_answers

SOLUTION = re.compile(r"^(`{3,})\{solution\}.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
START = re.compile(r"^`{3,}\{solution-start\}", re.MULTILINE)
END = re.compile(r"^`{3,}\{solution-end\}\n`{3,}\n?", re.MULTILINE)
EDGE = re.compile(r"(?=^`{3,}\{solution-(?:start|end)\})", re.MULTILINE)
LABEL = re.compile(r"^:label: (ex-[\w-]+)$", re.MULTILINE)
LEFT_OUT = "-exercises.ipynb"


def without_solutions(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy in which a cell for the reader's answer stands where the solutions were."""
    kept, inside, answers = [], False, read_answers()
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            kept += [] if inside else [cell]
            continue
        told = []  # what of the cell stands outside solutions
        for part in EDGE.split(cell.source):
            if START.match(part):
                inside = True
            elif END.match(part):
                inside, part = False, END.sub("", part)
            told += [] if inside else [SOLUTION.sub("", part)]
        if text := "".join(told).strip():
            kept.append({**cell, "source": text})
            asked = [label for label in LABEL.findall(text) if label in answers]
            lines = [f'exercise("{label}").check(...)  # {answers[label].asks}' for label in asked]
            kept += [nbformat.v4.new_code_cell("\n".join(lines))] if lines else []
    kept = [{**cell, "id": f"cell-{k:03}"} for k, cell in enumerate(kept)]  # random ones otherwise
    return nbformat.from_dict({**notebook, "cells": kept})


def form(kept: Exercise) -> str:
    """The fields for an answer, hidden where no script shows them."""
    words = ("True", "False") if isinstance(kept.value, bool) else kept.among
    if words:
        options = "".join(f"<option>{escape(word)}</option>" for word in ("", *words))
        fields = f"<label>Your answer <select>{options}</select></label>"
    else:
        names = ("first", "second", "third", "fourth")[: len(kept.marks)]
        names = [f"{name} number" for name in names] if len(names) > 1 else ["Your answer"]
        field = '<label>{} <input autocomplete="off" size="8"></label>'
        fields = "".join(field.format(name.capitalize()) for name in names)
    kind = "word" if words else "whole" if isinstance(kept.value, int) else "number"
    given = {"kind": kind, "width": kept.width, "within": kept.within, "marks": kept.marks}
    told = f"data-label=\"{kept.label}\" data-given='{json.dumps(given)}'"
    button = '<button class="btn btn-sm btn-outline-secondary">Check</button>'
    return f'<form class="answer" {told} hidden>{fields}{button}<output></output></form>'


def hint(kept: Exercise) -> list[nodes.Node]:
    """The section to look at again, behind a word that opens it."""
    look = nodes.paragraph("", "Look again at ")
    words = nodes.inline("", heading(kept.section), classes=["std", "std-ref"])
    target = {"refdomain": "std", "reftype": "ref", "reftarget": kept.section}
    look += addnodes.pending_xref("", words, refexplicit=False, refwarn=True, **target)
    look += nodes.Text(".")
    edges = ('<details class="hint"><summary>Hint</summary>', "</details>")
    before, behind = (nodes.raw("", edge, format="html") for edge in edges)
    return [before, look, behind]


def say_how_to_answer(app: Sphinx, doctree: nodes.document) -> None:
    """Put fields, a hint and the line to run into each box that can check; link the notebook."""
    answers, boxes = read_answers(), list(doctree.findall(is_exercise_node))
    for box in boxes:
        kept = answers.get(box.get("label", ""))
        if kept is not None:
            box += [nodes.raw("", form(kept), format="html"), *hint(kept)]
            line = nodes.paragraph(classes=["checked-by"])
            line += nodes.Text("In the notebook: ")
            line += nodes.literal(text=f'exercise("{kept.label}").check(...)')
            line += nodes.Text(f", {kept.asks}.")
            box += line
    if boxes:
        app.env.note_dependency(str(ANSWERS))
    if boxes and notebook_beside(app, app.env.docname):
        up = "../" * app.env.docname.count("/")
        target = f"{up}_sources/{app.env.docname}{LEFT_OUT}"
        link = f'<a href="{target}" download>This chapter\'s notebook without the solutions</a>'
        words = f'<p class="checked-by">{link}</p>'
        section = boxes[0].parent
        section.insert(1, nodes.raw("", words, format="html"))


def copy_without(app: Sphinx, error: Exception | None) -> None:
    """Write the notebooks without solutions."""
    for source, target in copies(app, error, LEFT_OUT):
        nbformat.write(without_solutions(nbformat.read(source, as_version=4)), target)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", say_how_to_answer)
    app.connect("build-finished", copy_without)
    app.add_js_file("exercises.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
