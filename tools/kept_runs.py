"""The chapters' runs under the machine's own arithmetic: the book shows them, a test compares them.

jupyter-book keeps them in a cache that goes by the cells alone, so an edit of the library would
leave old outputs: here it is dropped when what chapters use, a pinned version or the arithmetic
that is asked for has changed.
"""

import os
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from tools import warm_kernels
from tools.chapters import notebook_sources
from tools.files import ROOT, digest
from tools.shake import FACTORS
from tools.sync_notebooks import (
    METADATA,
    TIMEOUT_S,
    client_for,
    code_cells,
    read_source,
    read_stored,
)

BUILD = ROOT / "_build"
LONGEST = 12  # chapters that a build names with their time
EXECUTED = [BUILD / ".jupyter_cache", BUILD / "jupyter_execute"]
USED = (
    *("attnbias/**/*", "benchmarks/**/*", "requirements/*.txt", "book/*.py", "book/claims/**/*"),
    *("book/plots/**/*", "book/results/**/*", "book/studies/**/*", "book/widgets/**/*"),
)


def drop(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def drop_if_moved(stamp: Path, now: str, folders: list[Path], reason: str) -> None:
    """Remove `folders` unless the stamp says they were made from the same inputs."""
    before = stamp.read_text(encoding="utf8") if stamp.exists() else None
    if before == now:
        return
    if before is not None:
        print(f"{reason}: starting afresh", flush=True)
    drop(folders)
    BUILD.mkdir(exist_ok=True)
    stamp.write_text(now, encoding="utf8")


def library() -> str:
    """What a run depends on beside its cells."""
    return " ".join([digest(*USED), *(os.environ.get(name, "") for name in FACTORS)])


def kept(cells: list) -> list | None:
    """The executed code cells of the kept run of a chapter's cells, if there is one."""
    cache = get_cache(str(EXECUTED[0]))
    try:
        record = cache.match_cache_notebook(new_notebook(cells=cells, metadata=METADATA))
    except KeyError:
        return None
    return code_cells(cache.get_cache_bundle(record.pk).nb.cells)


def execute_one(source: Path) -> tuple[float, NotebookNode | None]:
    """The seconds that a chapter took, and its run; None of one that fails."""
    begun = time.monotonic()
    try:
        run = client_for(read_source(source), source, timeout=TIMEOUT_S).execute()
    except (CellControlSignal, DeadKernelError):
        run = None
    return time.monotonic() - begun, run


def one_thread() -> None:
    """As many kernels as there are cores run side by side: more threads wait for each other."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warm_kernels.install()


def execute() -> None:
    """Execute side by side the chapters without a kept run; jupyter-book takes one at a time.

    One that fails is left out: jupyter-book and nbval execute it again, and report it as they do.
    The book's last chapters take longest, so they begin.
    """
    drop_if_moved(BUILD / ".executed", library(), EXECUTED, "the library has changed")
    left = [each for each in reversed(notebook_sources()) if kept(read_source(each).cells) is None]
    if left:
        print(f"executing {len(left)} chapters", flush=True)
        cache = get_cache(str(EXECUTED[0]))
        took = {}
        with ProcessPoolExecutor(initializer=one_thread) as pool:
            for source, (seconds, run) in zip(left, pool.map(execute_one, left), strict=True):
                took[source.stem] = seconds
                if run is not None:
                    bundle = CacheBundleIn(run, str(source))
                    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        longest = sorted(took, key=took.get, reverse=True)[:LONGEST]
        print("the longest:", ", ".join(f"{name} {took[name]:.0f} s" for name in longest))


def outputs(path: Path) -> list[list] | None:
    """What each code cell of a committed notebook printed when the book ran it, if a run is kept.

    The first cell, which brings the library, is no part of the runs.
    """
    first, cells = read_stored(path)
    run = kept(cells)
    return None if run is None else [[]] * (first is not None) + [cell.outputs for cell in run]
