"""The book's two files a chapter agree, and no notebook passes without having been run."""

import json

import nbformat
import pytest

from tools.chapters import ROOT, is_notebook, notebook_sources, toc_files
from tools.sync_notebooks import differences

SOURCES = notebook_sources()
IDS = [source.stem for source in SOURCES]
LONGEST_CELL = 30


def committed(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def code_cells(source):
    return [cell for cell in committed(source).cells if cell.cell_type == "code"]


def test_the_table_of_contents_names_pages_that_exist():
    names = toc_files()
    assert len(names) == len(set(names))
    assert [name for name in names if not (ROOT / f"{name}.md").exists()] == []


def test_every_chapter_on_disk_is_in_the_table_of_contents():
    on_disk = {f"book/chapters/{path.stem}" for path in (ROOT / "book/chapters").glob("*.md")}
    listed = {name for name in toc_files() if name.startswith("book/chapters/")}
    assert on_disk == listed
    assert listed


def test_every_chapter_is_an_executable_notebook():
    chapters = sorted((ROOT / "book/chapters").glob("*.md"))
    assert [path.name for path in chapters if not is_notebook(path)] == []
    assert sorted(SOURCES) == chapters


def test_no_notebook_without_a_source():
    notebooks = {path.stem for path in (ROOT / "book/chapters").glob("*.ipynb")}
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
    assert all(set(cell["metadata"]) <= {"tags"} for cell in notebook["cells"])


def test_a_changed_cell_is_noticed(tmp_path):
    source = SOURCES[0]
    copy = tmp_path / source.name
    copy.write_text(source.read_text(encoding="utf8"), encoding="utf8")
    assert differences(copy) == [f"{source.stem}.ipynb is missing"]
    notebook = committed(source)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.source += "\n# edited"
    nbformat.write(notebook, copy.with_suffix(".ipynb"))
    assert len(differences(copy)) == 1
