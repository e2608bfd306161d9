"""Execute the chapters side by side into jupyter-book's cache, which alone takes one at a time.

A chapter whose cells are in the cache is left alone. One that fails is left to jupyter-book,
which executes it again and reports it as it always does.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import read_myst_markdown_notebook

from tools.chapters import notebook_sources
from tools.sync_notebooks import QUIET

WORKERS = 2  # a chapter's peak is under 2 GB


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook as jupyter-book reads it, which is what the cache is keyed by."""
    return read_myst_markdown_notebook(source.read_text(encoding="utf8"), add_source_map=True)


def run(source: Path, timeout: int):
    """Execute a chapter in its own folder; returns (source, notebook, seconds or None)."""
    notebook = read(source)
    folder = str(source.parent)
    done = single_nb_execution(
        notebook, cwd=folder, allow_errors=False, timeout=timeout, meta_override=True,
        extra_arguments=QUIET,
    )  # fmt: skip
    return source, notebook, None if done.err else done.time


def fill(cache_folder: Path, timeout: int) -> None:
    """Put every chapter that is not there yet into the cache."""
    cache = get_cache(str(cache_folder))
    left = [source for source in notebook_sources() if not held(cache, source)]
    if left:
        print(f"executing {len(left)} chapters, {WORKERS} at a time", flush=True)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(run, source, timeout) for source in left]
        for count, job in enumerate(as_completed(jobs), 1):
            source, notebook, seconds = job.result()
            if seconds is None:
                print(f"{count} of {len(left)}: {source.name} failed; see below", flush=True)
                continue
            cache.cache_notebook_bundle(
                CacheBundleIn(notebook, str(source), data={"execution_seconds": seconds}),
                check_validity=False,
                overwrite=True,
            )
            print(f"{count} of {len(left)}: {source.name} in {seconds:.0f} s", flush=True)


def held(cache, source: Path) -> bool:
    """Whether the cache has these cells."""
    try:
        cache.match_cache_notebook(read(source))
    except KeyError:
        return False
    return True
