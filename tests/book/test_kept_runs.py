"""The runs that the book shows, and nbval's comparison of them with the committed notebooks."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
from jupyter_cache.base import CacheBundleIn

from tools import kept_runs
from tools.chapters import ROOT, notebook_sources
from tools.sync_notebooks import read_source, write

HEAD = "---\n".join(notebook_sources()[0].read_text(encoding="utf8").split("---\n")[:2])
PATCH = """from pathlib import Path
from tools import kept_runs
kept_runs.BUILD = here = Path(__file__).parent
kept_runs.EXECUTED = [here / "cache"]
kept_runs.notebook_sources = lambda: sorted(here.glob("book/*.md"))
"""


def chapter(path, cells: list[tuple[str, str]]) -> None:
    """A chapter, and the notebook that records what its cells print."""
    blocks = [f"\n```{{code-cell}} ipython3\n{code}\n```\n" for code, _ in cells]
    path.write_text("".join([HEAD, "---\n", *blocks]), encoding="utf8")
    notebook = read_source(path)
    for cell, (_, printed) in zip(notebook.cells, cells, strict=True):
        stream = nbformat.v4.new_output("stream", name="stdout", text=f"{printed}\n")
        cell.update(outputs=[stream], execution_count=1)
    write(notebook, path.with_suffix(".ipynb"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Chapters with a cache of their own, here and for a process that runs pytest."""
    own = {"BUILD": tmp_path, "EXECUTED": [tmp_path / "cache"], "notebook_sources": list}
    for name, value in own.items():
        monkeypatch.setattr(kept_runs, name, value)
    (tmp_path / "conftest.py").write_text(PATCH)
    (tmp_path / "book").mkdir()
    return tmp_path / "book"


def nbval(folder) -> str:
    """The report of nbval on a folder, from the kept runs."""
    plugins = ("-p", "nbval_outputs", "-p", "tests.nbval_kept", "-p", "no:cacheprovider")
    options = ("--nbval", "--nbval-current-env", "--color=no", "-c", os.devnull, "--rootdir")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, str(folder.parent), str(folder)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
    )
    return run.stdout + run.stderr


NEVER_KEPT = [
    ("print(0.505)", "0.501"),
    ("print(5e-3)", "4e-3"),
    ("# compared within 5%: an example\nprint(1.04)", "1.00"),
    ("# compared within 5%: an example\nprint(1.06)", "1.00"),
    ("print(13)", "12"),
    ("import warnings\nwarnings.warn('careful')\nprint('same')", "same"),
    ("print('same')", "same"),
]


@pytest.mark.slow
def test_nbval_compares_kept_runs_and_executes_the_rest(folder):
    once = f"open({str(folder / 'count')!r}, 'a').write('x'); print(0.5)"
    chapter(folder / "good.md", [(once, "0.501")])
    chapter(folder / "moved.md", [("print(0.7)", "0.8")])
    chapter(folder / "fails.md", [("1 / 0", "0.5")])
    chapter(folder / "other.md", NEVER_KEPT)
    (folder / "other.md").unlink()
    report = nbval(folder)
    assert "executing 3 chapters" in report and "6 failed, 4 passed" in report, report
    failed = [("fails", 1), ("moved", 1), *(("other", k) for k in (2, 4, 5, 6))]
    found = re.findall(r"^FAILED .*?(\w+).ipynb::Cell (\d)", report, re.M)
    assert [(name, int(cell)) for name, cell in found] == failed
    for each in ("ZeroDivisionError", "0.8 against 0.7", "4e-3 against 0.005, 20.00% apart"):
        assert each in report
    assert (folder / "count").read_text() == "x"  # executed once
    first, (printed,) = kept_runs.outputs(folder / "moved.ipynb")
    assert (first, printed.text) == ([], "0.7\n")


def test_a_run_of_other_cells_or_of_another_library_is_none(folder, monkeypatch):
    path = folder / "a.ipynb"
    chapter(path.with_suffix(".md"), [("print(0.5)", "0.5")])
    kept_runs.execute()
    assert kept_runs.outputs(path) is None
    cells = kept_runs.read_stored(path)[1]
    run = nbformat.v4.new_notebook(cells=cells, metadata=kept_runs.METADATA)
    bundle = CacheBundleIn(run, str(path))
    kept_runs.get_cache(str(kept_runs.EXECUTED[0])).cache_notebook_bundle(bundle)
    kept_runs.execute()  # drops nothing
    assert kept_runs.outputs(path) == [[], cells[0].outputs]
    chapter(path.with_suffix(".md"), [("print(0.6)", "0.5")])
    assert kept_runs.outputs(path) is None
    chapter(path.with_suffix(".md"), [("print(0.5)", "0.5")])
    assert kept_runs.outputs(path) is not None
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    kept_runs.execute()
    assert kept_runs.outputs(path) is None
