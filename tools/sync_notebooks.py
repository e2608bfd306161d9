"""Execute the chapters and write the committed .ipynb beside each .md.

The .md is the source. The .ipynb is its executed twin: Binder opens it and the tests compare with
it. Two runs write the same bytes: cell ids come from the position, and no timing is kept.

    python -m tools.sync_notebooks               every chapter
    python -m tools.sync_notebooks tokens        some chapters
    python -m tools.sync_notebooks --text        new prose for chapters whose code is as it was
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

from attnbias._files import write_text
from tools import first_cell
from tools.chapters import notebook_sources
from tools.files import ROOT

TIMEOUT_S = 120
# A kernel warns at its start that it talks to this process in the clear, which is so by design.
QUIET = ["--IPKernelApp.log_level=ERROR"]
# Run behind each cell: a figure is recorded as a small picture, for Binder and readers of the
# repository; the pages draw their own. So a change of the file is one that can be read.
SMALL_PICTURES = """exec('''
import sys
if "matplotlib.pyplot" in sys.modules:
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    set_matplotlib_formats("png", dpi=50, bbox_inches="tight", metadata={"Software": None})
''', {})"""
METADATA = {
    "jupytext": {"formats": "ipynb,md:myst"},
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read_source(source: Path) -> nbformat.NotebookNode:
    """The notebook that a .md says: cells with ids from their position, nothing executed."""
    parsed = jupytext.read(source)
    notebook = nbformat.v4.new_notebook(metadata=METADATA)
    for index, cell in enumerate(parsed.cells):
        tags = {"tags": list(cell.metadata["tags"])} if cell.metadata.get("tags") else {}
        make = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
        notebook.cells.append(make(cell.source, id=f"cell-{index:03d}", metadata=tags))
    return notebook


def code_cells(cells: list) -> list:
    """The cells that are code."""
    return [cell for cell in cells if cell.cell_type == "code"]


def code_of(cells: list) -> list[str]:
    """The sources of the cells that are code."""
    return [cell.source for cell in code_cells(cells)]


def client_for(notebook: nbformat.NotebookNode, source: Path, **options) -> NotebookClient:
    """What runs a chapter from its own folder, and writes down no time."""
    return NotebookClient(
        notebook,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(source.parent)}},
        extra_arguments=QUIET,
        **options,
    )


def execute(source: Path) -> str:
    """Run a chapter and write its .ipynb; returns the path written."""
    notebook = read_source(source)
    client = client_for(notebook, source, timeout=TIMEOUT_S)

    last = max(k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code")

    def shrink(cell, cell_index, execute_reply) -> None:
        if cell_index < last:  # behind the last one the kernel ends before it could answer
            client.kc.execute(SMALL_PICTURES, silent=True, store_history=False)

    client.on_cell_executed = shrink
    client.execute()
    target = source.with_suffix(".ipynb")
    write(notebook, target)
    return os.path.relpath(target, ROOT)


def read_stored(target: Path) -> tuple[nbformat.NotebookNode | None, list]:
    """The first cell and the chapter's cells of a committed notebook."""
    return first_cell.split(nbformat.read(target, as_version=4).cells)


def write(notebook: nbformat.NotebookNode, target: Path) -> None:
    """Write the first cell and the chapter, the file whole or not at all."""
    before = read_stored(target)[0] if target.exists() else None
    kept = first_cell.address_in(before.source) if before else None
    notebook.cells.insert(0, first_cell.cell(ROOT, kept))
    notebook.metadata = nbformat.from_dict(METADATA)
    write_text(target, nbformat.writes(notebook) + "\n")


def copy_text(source: Path) -> str | None:
    """Bring the .md's prose to the .ipynb without a run; a message where its code differs."""
    target, notebook = source.with_suffix(".ipynb"), read_source(source)
    stored = read_stored(target)[1] if target.exists() else []
    if not stored or code_of(notebook.cells) != code_of(stored):
        return f"{target.name}: code differs from {source.name}; execute it"
    for new, old in zip(code_cells(notebook.cells), code_cells(stored), strict=True):
        new.update(outputs=old.outputs, metadata=old.metadata)
        new.execution_count = old.execution_count
    write(notebook, target)
    return None


def differences(source: Path) -> list[str]:
    """How the committed .ipynb differs from its .md, in words; empty when it does not."""
    target = source.with_suffix(".ipynb")
    if not target.exists():
        return [f"{target.name} is missing"]
    wanted = [(c.cell_type, c.id, c.source) for c in read_source(source).cells]
    install, cells = read_stored(target)
    found = [(c.cell_type, c.id, c.source) for c in cells]
    if not first_cell.is_current(install, ROOT):
        remedy = "`python -m tools.sync_notebooks --text` puts it in"
        return [f"{target.name}: the first cell is not that of tools/first_cell.py; {remedy}"]
    if len(wanted) != len(found):
        return [f"{target.name} has {len(found)} cells, {source.name} has {len(wanted)}"]
    pairs = enumerate(zip(wanted, found, strict=True))
    return [f"{target.name}: cell {i} differs from {source.name}" for i, (w, f) in pairs if w != f]


def choose(names: list[str]) -> list[Path]:
    """The chapters named on the command line, by stem or file name; all when none is named."""
    sources = notebook_sources()
    if not names:
        return sources
    wanted = {Path(name).stem for name in names}
    unknown = wanted - {source.stem for source in sources}
    if unknown:
        sys.exit(f"not an executable chapter in _toc.yml: {', '.join(sorted(unknown))}")
    return [source for source in sources if source.stem in wanted]


def main() -> str:
    """What went wrong, if anything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="file names or stems; all when none is given")
    parser.add_argument("--text", action="store_true", help="take over prose only, run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="chapters at a time")
    arguments = parser.parse_args()
    sources = choose(arguments.chapters)
    problems = list(filter(None, map(copy_text, sources))) if arguments.text else []
    if not arguments.text:
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
            runs = {source: pool.submit(execute, source) for source in sources}
            for source, run in runs.items():
                if error := run.exception():
                    problems.append(f"{source.name}: {error}")
                else:
                    print("wrote", run.result(), flush=True)
    return "\n".join(problems)


if __name__ == "__main__":
    sys.exit(main() or 0)
