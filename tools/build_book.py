"""Build the book into _build/html; any warning fails the build.

Pages show the runs of tools/kept_runs.py, and are written anew when those are. A failed build
forgets what it has read, so that the next one warns again instead of passing.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as installed
from pathlib import Path

from tools.browser import has_browser
from tools.figures_by_page import follow_pages
from tools.files import ROOT, digest
from tools.finish_pages import finish_pages
from tools.first_cell import version
from tools.kept_runs import BUILD, drop, drop_if_moved, execute, library
from tools.laboratory import draw_presets
from tools.make_slides import make_slides
from tools.origin import github_address, launch_ref
from tools.set_formulas import set_formulas

READ = [BUILD / ".doctrees", BUILD / "html"]


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Say what a stage of the build took."""
    begun = time.monotonic()
    yield
    print(f"{stage}: {time.monotonic() - begun:.0f} s", flush=True)


def require_version_1() -> None:
    """Jupyter Book 2 has the name, and neither Sphinx nor our settings: say so before any work."""
    found = installed("jupyter-book")
    if not found.startswith("1."):
        sys.exit(
            f"Jupyter Book {found} is installed, and this book is built by version 1: "
            f"{sys.executable} -m pip install 'jupyter-book<2' brings it back."
        )


def main() -> int:
    require_version_1()
    settings = digest("_config.yml", "_toc.yml", "book/_ext/**/*", "book/_static/**/*")
    settings += f" {github_address(ROOT)} {launch_ref(ROOT, version(ROOT))}"  # launch buttons
    settings += f" {has_browser()}"
    drop_if_moved(BUILD / ".library", library(), READ, "the library has changed")
    drop_if_moved(BUILD / ".settings", settings, READ, "the book's settings have changed")
    with timed("runs of the chapters"):
        execute()
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [str(jupyter_book), "build", ".", "-W", "-n", "--keep-going"]
    with timed("pages"):
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status:
        drop(READ)
        return status
    with timed("pictures, formulas and scripts of the pages"):
        follow_pages()
        set_formulas()
        finish_pages()
        make_slides(home=os.environ.get("BOOK_ADDRESS", ""))
        if has_browser():
            draw_presets(os.environ.get("BOOK_ADDRESS", ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
