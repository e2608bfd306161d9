"""The book's two files a chapter agree, and no notebook passes without having been run."""

import ast
import builtins
import json
import re
import shutil
import textwrap
from pathlib import Path

import nbformat
import pytest

from tools import first_cell
from tools.chapters import ROOT, is_notebook, notebook_sources, toc_files
from tools.sync_notebooks import code_cells, copy_text, differences, execute, read_stored

SOURCES = notebook_sources()
IDS = [source.stem for source in SOURCES]
LONGEST_CELL, LONGEST_SHOWN = 30, 25
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
PARTS = ("paper", "yours", "beyond", "appendix")
NEXT = "## The next experiment"
ENDING = "## What is known now"
OLDER = {"exponents"}  # written before that ending was agreed
BEYOND = [s for s in SOURCES if s.parent.name in PARTS[2:] and s.stem not in OLDER]
EXERCISE = re.compile(r"^`{3,}\{exercise\}[^\n]*\n:label: (\S+)", re.M)
DROPDOWN = re.compile(
    r"^`{3,}\{solution(?:-start)?\} (\S+)\n(?::label: \S+\n)?:class: dropdown", re.M
)
SOLUTION = re.compile(r"^`{3,}\{(?:solution-start\} (\S+)|(solution-end)\})", re.M)


def committed(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def own_cells(source):
    """The chapter's code cells, without the first one, which brings the library."""
    return code_cells(read_stored(source.with_suffix(".ipynb"))[1])


def test_the_table_of_contents_names_every_chapter_and_each_is_a_notebook():
    names = toc_files()
    assert len(names) == len(set(names))
    assert [name for name in names if not (ROOT / f"{name}.md").exists()] == []
    chapters = sorted(path for part in PARTS for path in (ROOT / "book" / part).glob("*.md"))
    assert sorted(ROOT / f"{name}.md" for name in names if name.split("/")[1] in PARTS) == chapters
    assert [path.name for path in chapters if not is_notebook(path)] == []
    assert sorted(SOURCES) == chapters
    assert {path.stem for path in (ROOT / "book").glob("*/*.ipynb")} == set(IDS)


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_cells_equal_the_source(source):
    assert differences(source) == []
    assert "@title Install attnbias" not in source.read_text(encoding="utf8")


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_every_code_cell_fits_a_screen_and_was_executed_in_order_without_an_error(source):
    cells = own_cells(source)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)) != []
    outputs = [output for cell in cells for output in cell.outputs]
    assert [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"] == []
    assert [cell.id for cell in cells if len(cell.source.splitlines()) > LONGEST_CELL] == []
    shown = [cell for cell in cells if not FOLDED & set(cell.metadata.get("tags", ()))]
    long = [cell.id for cell in shown if len(cell.source.splitlines()) > LONGEST_SHOWN]
    assert long == []


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_the_notebook_says_nothing_of_the_machine_that_ran_it(source):
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert notebook["cells"][0]["metadata"] == first_cell.METADATA
    assert all(set(cell["metadata"]) <= {"tags"} for cell in notebook["cells"][1:])


@pytest.fixture
def copy(tmp_path):
    """The source of the first chapter in a folder of its own, without a notebook."""
    return Path(shutil.copy(SOURCES[0], tmp_path))


def test_a_changed_cell_is_noticed(copy):
    source = SOURCES[0]
    assert differences(copy) == [f"{source.stem}.ipynb is missing"]
    notebook = committed(source)
    code_cells(notebook.cells)[1].source += "\n# edited"
    nbformat.write(notebook, copy.with_suffix(".ipynb"))
    (difference,) = differences(copy)
    assert difference.endswith(f"differs from {source.name}")


def test_a_missing_or_edited_first_cell_is_noticed_and_put_back(copy):
    source = SOURCES[0]
    whole, target = source.with_suffix(".ipynb").read_bytes(), copy.with_suffix(".ipynb")
    for spoil in (lambda cells: cells.pop(0), lambda cells: cells[0].update(source="pass")):
        notebook = committed(source)
        spoil(notebook.cells)
        nbformat.write(notebook, target)
        (difference,) = differences(copy)
        assert "tools/first_cell.py" in difference and "--text" in difference
        assert copy_text(copy) is None
        assert differences(copy) == []
    assert copy_text(copy) is None
    assert len(committed(copy).cells) == len(nbformat.reads(whole.decode(), as_version=4).cells)


FIGURE = """---
jupytext:
  formats: ipynb,md:myst
kernelspec:
  display_name: Python 3 (ipykernel)
  language: python
  name: python3
---

```{code-cell} ipython3
from attnbias import plots
import matplotlib.pyplot as plt

plots.style()
```

```{code-cell} ipython3
plt.plot([1, 2]);
```
"""


@pytest.mark.slow
def test_a_figure_is_recorded_as_a_small_picture_with_the_same_bytes(tmp_path):
    source, recorded = tmp_path / "a.md", []
    source.write_text(FIGURE, encoding="utf8")
    for _ in range(2):
        execute(source)
        recorded.append(source.with_suffix(".ipynb").read_bytes())
    assert recorded[0] == recorded[1] and len(recorded[0]) < 20_000
    (picture,) = own_cells(source)[1].outputs
    assert set(picture.data) == {"image/png", "text/plain"}
    assert [cell.execution_count for cell in own_cells(source)] == [1, 2]


def test_new_prose_is_taken_over_and_new_code_is_not(copy):
    source = SOURCES[0]
    text = source.read_text(encoding="utf8")
    copy.write_text(text.replace("# ", "# Of ", 1), encoding="utf8")
    assert copy_text(copy) == f"{source.stem}.ipynb: code differs from {source.name}; execute it"
    nbformat.write(committed(source), copy.with_suffix(".ipynb"))
    assert differences(copy) != []
    assert copy_text(copy) is None
    assert differences(copy) == []
    assert own_cells(copy) == own_cells(source)
    copy.write_text(text.replace("plots.style()", "plots.style() "), encoding="utf8")
    assert "execute it" in copy_text(copy)


def next_experiment(text: str) -> str:
    """The code of the last section: an executed cell, a fenced or an indented block."""
    if "```" in text:
        block = text.split("```")[1]
        return "\n".join(line for line in block.splitlines()[1:] if not line.startswith(":"))
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line]
    return textwrap.dedent("\n".join(lines))


@pytest.mark.parametrize("source", BEYOND, ids=[source.stem for source in BEYOND])
def test_a_chapter_beyond_the_paper_ends_with_what_is_known_and_what_to_try(source):
    text = source.read_text(encoding="utf8")
    assert re.findall("^## .*", text, re.M)[-2:] == [ENDING, NEXT]
    code = next_experiment(text.split(NEXT)[1])
    assert 0 < len([line for line in code.splitlines() if line.strip()]) <= 15
    tree = ast.parse(code)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {}
    exec(compile(ast.Module(imports, []), source.name, "exec"), names)  # each name exists
    if "{code-cell}" not in text.split(NEXT)[1]:
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in found if isinstance(node.ctx, ast.Store)}
        bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        known = bound | set(names) | set(dir(builtins))
        assert {node.id for node in found} - known == set()  # it runs on its own


def executed_solutions(notebook) -> list[str]:
    """Labels of the exercises whose solution holds a cell that was run and asserts something."""
    found, label = [], None
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for begun, ended in SOLUTION.findall(cell.source):
                label = None if ended else begun
        elif label and cell.execution_count and "assert" in cell.source:
            found.append(label)
    return list(dict.fromkeys(found))


def unsolved(text: str) -> set[str]:
    """Labels of the exercises of a chapter's source without a solution that opens on a click."""
    return set(EXERCISE.findall(text)) - set(DROPDOWN.findall(text))


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_chapter_has_two_exercises_with_solutions_that_are_run(source):
    text = source.read_text(encoding="utf8")
    assert len(EXERCISE.findall(text)) >= 2 and unsolved(text) == set()
    solved = executed_solutions(committed(source))
    assert len(solved) >= 2 and set(solved) <= set(EXERCISE.findall(text))


def test_a_solution_that_is_missing_closed_for_good_or_not_run_is_noticed():
    source = SOURCES[0]
    text, notebook = source.read_text(encoding="utf8"), committed(source)
    solved = executed_solutions(notebook)
    assert unsolved(text.replace("{solution-start}", "{note}", 1)) == {solved[0]}
    assert unsolved(text.replace(":class: dropdown\n```\n\nFrom", "```\n\nFrom", 1)) == {solved[0]}
    silent = committed(source)
    for cell in silent.cells:
        cell.source = cell.source.replace("assert", "print")
    for cell in code_cells(notebook.cells):
        cell.execution_count = None
    assert executed_solutions(notebook) == executed_solutions(silent) == []
