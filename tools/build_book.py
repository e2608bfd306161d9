"""Build the book into _build/html; any warning fails the build.

Pages show the runs of tools/kept_runs.py, and are written anew when those are. A failed build
forgets what it has read, so that the next one warns again instead of passing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.figures_by_page import follow_pages
from tools.files import ROOT, digest
from tools.finish_pages import finish_pages
from tools.first_cell import version
from tools.kept_runs import BUILD, drop, drop_if_moved, execute, library
from tools.origin import github_address, launch_ref
from tools.set_formulas import set_formulas

READ = [BUILD / ".doctrees", BUILD / "html"]


def main() -> int:
    settings = digest(
        "_config.yml", "_toc.yml", "book/_ext/*", "book/_static/*", "book/_static/*/*"
    )
    settings += f" {github_address(ROOT)} {launch_ref(ROOT, version(ROOT))}"  # launch buttons
    drop_if_moved(BUILD / ".library", library(), READ, "the library has changed")
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
