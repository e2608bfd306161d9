"""A pytest plugin for `-p`: nbval compares the runs that the book shows, in place of new ones.

A chapter without a kept run is executed, so that one that fails is reported as nbval does. The
first cell, which brings the library, is no part of the runs: the other profile executes it.
"""

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from tools import first_cell, kept_runs


def setup(notebook, start=IPyNbFile.setup) -> None:
    """Start a kernel for a chapter that has no kept run."""
    notebook.kept = kept_runs.outputs(notebook.path)
    if notebook.kept is None:
        start(notebook)


def runtest(cell, execute=IPyNbCell.runtest) -> None:
    """Compare the kept run of a cell, or execute it."""
    if cell.parent.kept is None:
        execute(cell)
    elif not cell.compare_outputs(cell.parent.kept[cell.cell_num], cell.cell.outputs):
        cell.raise_cell_error("Cell outputs differ", "\n".join(cell.comparison_traceback))


IPyNbFile.setup, IPyNbCell.runtest = setup, runtest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Make the runs that are missing, before the workers begin."""
    if not hasattr(session.config, "workerinput"):
        capture = session.config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled():
            kept_runs.execute()


def pytest_collection_modifyitems(items: list) -> None:
    items[:] = [item for item in items if item.cell.id != first_cell.ID]
