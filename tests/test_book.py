"""The book's two files a chapter agree, and no notebook passes without having been run."""

import ast
import builtins
import json
import re
import textwrap

import nbformat
import pytest
from jupyter_cache import get_cache

from tools import build_book, first_cell
from tools.chapters import ROOT, is_notebook, notebook_sources, toc_files
from tools.sync_notebooks import copy_text, differences, execute

SOURCES = notebook_sources()
IDS = [source.stem for source in SOURCES]
LONGEST_CELL = 30
PARTS = ("paper", "yours", "beyond", "appendix")
NEXT = "## The next experiment"
ENDING = "## What is known now"
OLDER = {"exponents", "sweeps", "speed"}  # written before that ending was agreed
BEYOND = [
    source
    for source in SOURCES
    if source.parent.name in ("beyond", "appendix") and source.stem not in OLDER
]
EXERCISE = re.compile(r"^`{3,}\{exercise\}[^\n]*\n:label: (\S+)", re.M)
DROPDOWN = re.compile(
    r"^`{3,}\{solution(?:-start)?\} (\S+)\n(?::label: \S+\n)?:class: dropdown", re.M
)
SOLUTION = re.compile(r"^`{3,}\{(?:solution-start\} (\S+)|(solution-end)\})", re.M)


def committed(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def code_cells(source):
    return own_code(committed(source))


def own_code(notebook):
    """The chapter's code cells, without the first one, which brings the library."""
    return [cell for cell in first_cell.split(notebook.cells)[1] if cell.cell_type == "code"]


def test_the_table_of_contents_names_pages_that_exist():
    names = toc_files()
    assert len(names) == len(set(names))
    assert [name for name in names if not (ROOT / f"{name}.md").exists()] == []


def test_every_chapter_on_disk_is_in_the_table_of_contents():
    on_disk = {path for part in PARTS for path in (ROOT / "book" / part).glob("*.md")}
    listed = {ROOT / f"{name}.md" for name in toc_files() if name.split("/")[1] in PARTS}
    assert on_disk == listed
    assert listed


def test_every_chapter_is_an_executable_notebook():
    chapters = sorted(path for part in PARTS for path in (ROOT / "book" / part).glob("*.md"))
    assert [path.name for path in chapters if not is_notebook(path)] == []
    assert sorted(SOURCES) == chapters


def test_no_notebook_without_a_source():
    notebooks = {path.stem for path in (ROOT / "book").glob("*/*.ipynb")}
    assert notebooks == set(IDS)


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_cells_equal_the_source(source):
    assert differences(source) == []


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_every_code_cell_was_executed_in_order(source):
    counts = [cell.execution_count for cell in code_cells(source)]
    assert counts
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_no_output_is_an_error_or_on_stderr(source):
    outputs = [output for cell in code_cells(source) for output in cell.outputs]
    bad = [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert bad == []


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_no_code_cell_is_longer_than_a_screen(source):
    lengths = {cell.id: len(cell.source.splitlines()) for cell in code_cells(source)}
    assert {cell: lines for cell, lines in lengths.items() if lines > LONGEST_CELL} == {}


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_the_notebook_says_nothing_of_the_machine_that_ran_it(source):
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert notebook["cells"][0]["metadata"] == first_cell.METADATA
    assert all(set(cell["metadata"]) <= {"tags"} for cell in notebook["cells"][1:])


def test_a_changed_cell_is_noticed(tmp_path):
    source = SOURCES[0]
    copy = tmp_path / source.name
    copy.write_text(source.read_text(encoding="utf8"), encoding="utf8")
    assert differences(copy) == [f"{source.stem}.ipynb is missing"]
    notebook = committed(source)
    own_code(notebook)[0].source += "\n# edited"
    nbformat.write(notebook, copy.with_suffix(".ipynb"))
    (difference,) = differences(copy)
    assert difference.endswith(f"differs from {source.name}")


def test_a_missing_or_edited_first_cell_is_noticed_and_put_back(tmp_path):
    source = SOURCES[0]
    copy = tmp_path / source.name
    copy.write_text(source.read_text(encoding="utf8"), encoding="utf8")
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
    (picture,) = code_cells(source)[1].outputs
    assert set(picture.data) == {"image/png", "text/plain"}
    assert [cell.execution_count for cell in code_cells(source)] == [1, 2]


@pytest.mark.slow
def test_chapters_are_executed_into_the_cache_and_one_that_fails_is_left(tmp_path, monkeypatch):
    sources = [tmp_path / name for name in ("a.md", "b.md")]
    head = FIGURE.partition("```")[0]
    for source, code in zip(sources, ("print(1)", "1 / 0"), strict=True):
        source.write_text(f"{head}```{{code-cell}} ipython3\n{code}\n```\n", encoding="utf8")
    monkeypatch.setattr(build_book, "EXECUTED", [tmp_path / "cache"])
    monkeypatch.setattr(build_book, "notebook_sources", lambda: sources)
    build_book.execute()
    left = get_cache(str(tmp_path / "cache")).list_unexecuted()
    assert [record.uri for record in left] == [str(sources[1])]


def test_no_page_shows_the_first_cell():
    assert [s.name for s in SOURCES if "@title Install attnbias" in s.read_text()] == []


def test_new_prose_is_taken_over_and_new_code_is_not(tmp_path):
    source = SOURCES[0]
    text = source.read_text(encoding="utf8")
    copy = tmp_path / source.name
    copy.write_text(text.replace("# ", "# Of ", 1), encoding="utf8")
    assert copy_text(copy) == f"{source.stem}.ipynb: code differs from {source.name}; execute it"
    nbformat.write(committed(source), copy.with_suffix(".ipynb"))
    assert differences(copy) != []
    assert copy_text(copy) is None
    assert differences(copy) == []
    assert code_cells(copy) == code_cells(source)
    copy.write_text(text.replace("plots.style()", "plots.style() "), encoding="utf8")
    assert "execute it" in copy_text(copy)


def next_experiment(source) -> str:
    """The code of the last section: an executed cell, a fenced or an indented block."""
    text = source.read_text(encoding="utf8").split(NEXT)[1]
    if "```" in text:
        block = text.split("```")[1]
        return "\n".join(line for line in block.splitlines()[1:] if not line.startswith(":"))
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line]
    return textwrap.dedent("\n".join(lines))


@pytest.mark.parametrize("source", BEYOND, ids=[source.stem for source in BEYOND])
def test_a_chapter_beyond_the_paper_ends_with_what_is_known_and_what_to_try(source):
    headings = [line for line in source.read_text().splitlines() if line.startswith("## ")]
    assert headings[-2:] == [ENDING, NEXT]
    code = next_experiment(source)
    assert 0 < len([line for line in code.splitlines() if line.strip()]) <= 15
    tree = ast.parse(code)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {}
    exec(compile(ast.Module(imports, []), source.name, "exec"), names)  # each name exists
    if "{code-cell}" not in source.read_text().split(NEXT)[1]:
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in found if isinstance(node.ctx, ast.Store)}
        bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        known = bound | set(names) | set(dir(builtins))
        assert {node.id for node in found} - known == set()  # it runs on its own


def chapters_without_a_quiz(sources):
    return {source.stem for source in sources if "```{predict} " not in source.read_text()}


def test_every_chapter_asks_for_a_prediction(tmp_path):
    assert chapters_without_a_quiz(SOURCES) == set()
    silent = tmp_path / "silent.md"
    silent.write_text("# A chapter that asks nothing\n", encoding="utf8")
    assert chapters_without_a_quiz([*SOURCES, silent]) == {"silent"}


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
    assert len(EXERCISE.findall(text)) >= 2
    assert unsolved(text) == set()
    solved = executed_solutions(committed(source))
    assert len(solved) >= 2 and set(solved) <= set(EXERCISE.findall(text))


def test_a_solution_that_is_missing_closed_for_good_or_not_run_is_noticed():
    source = SOURCES[0]
    text, notebook = source.read_text(encoding="utf8"), committed(source)
    solved = executed_solutions(notebook)
    assert unsolved(text.replace("{solution-start}", "{note}", 1)) == {solved[0]}
    assert unsolved(text.replace(":class: dropdown\n```\n\nFrom", "```\n\nFrom", 1)) == {solved[0]}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
    assert executed_solutions(notebook) == []
    notebook = committed(source)
    for cell in notebook.cells:
        cell.source = cell.source.replace("assert", "print")
    assert executed_solutions(notebook) == []
