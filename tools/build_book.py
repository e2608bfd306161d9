"""Build the book into _build/html; any warning fails the build.

jupyter-book keys its cache of executed chapters on the cells alone, so an edit of the library would
leave old outputs on the page: the cache is dropped when the library or a pinned version changes.
A failed build forgets what it has read, so that the next one warns again instead of passing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

from tools import warm_kernels
from tools.chapters import notebook_sources
from tools.figures_by_page import follow_pages
from tools.files import ROOT, digest
from tools.finish_pages import finish_pages
from tools.first_cell import version
from tools.origin import github_address, launch_ref
from tools.set_formulas import set_formulas

BUILD = ROOT / "_build"
EXECUTED = [BUILD / ".jupyter_cache", BUILD / "jupyter_execute"]
READ = [BUILD / ".doctrees", BUILD / "html"]


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


def execute() -> None:
    """Execute side by side the chapters that the cache lacks; jupyter-book takes one at a time.

    It executes one that failed here again, and reports it as it always does.
    """
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    cache, sources = get_cache(str(EXECUTED[0])), [str(path) for path in notebook_sources()]
    for source in sources:
        cache.add_nb_to_project(source, read_data={"name": "myst_nb_md", "type": "plugin"})
    left = [record.uri for record in cache.list_unexecuted(filter_uris=sources)]
    if left:
        print(f"executing {len(left)} chapters", flush=True)
        # each kernel warns at its start that it talks to this process in the clear, by design
        profile = BUILD / "ipython" / "profile_default"
        profile.mkdir(parents=True, exist_ok=True)
        (profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
        os.environ["IPYTHONDIR"] = str(profile.parent)
        warm_kernels.install()  # each process of the runner starts a parent of its own
        runner = load_executor("local-parallel", cache)
        runner.run_and_cache(filter_uris=left, timeout=config["execute"]["timeout"])


def main() -> int:
    drawn = ("book/plots/*", "book/studies/*", "book/widgets/*", "benchmarks/plots.py")
    library = digest("attnbias/**/*", *drawn, "requirements/*.txt", "book/results/**/*")
    settings = digest("_config.yml", "_toc.yml", "book/_ext/*", "book/_static/*")
    settings += f" {github_address(ROOT)} {launch_ref(ROOT, version(ROOT))}"  # launch buttons
    drop_if_moved(BUILD / ".library", library, EXECUTED + READ, "the library has changed")
    drop_if_moved(BUILD / ".settings", settings, READ, "the book's settings have changed")
    execute()
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [str(jupyter_book), "build", ".", "-W", "-n", "--keep-going"]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status:
        drop(READ)
        return status
    follow_pages()
    set_formulas()
    finish_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main())
