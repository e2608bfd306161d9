"""Exercises that answer, and each chapter's notebook without its solutions.

A box whose label `book/exercises.toml` has ends with the line to run in the notebook. Under the
heading Exercises stands a link to a copy of the notebook in which no cell of a solution is left.
"""

import re

import nbformat
from attnbias_book import copies, notebook_beside
from docutils import nodes
from sphinx.application import Sphinx
from sphinx_exercise.nodes import is_exercise_node

from book.exercises import ANSWERS, read_answers

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


def say_how_to_answer(app: Sphinx, doctree: nodes.document) -> None:
    """The line to run, at the end of each box that can check an answer, and the link."""
    answers, boxes = read_answers(), list(doctree.findall(is_exercise_node))
    for box in boxes:
        kept = answers.get(box.get("label", ""))
        if kept is not None:
            line = nodes.paragraph(classes=["checked-by"])
            line += nodes.Text("To check your answer in the notebook: ")
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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
