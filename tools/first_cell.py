"""The first cell of every notebook: it makes the library importable where it is not, and goes to
the chapters' folder where the notebook is run from another, such as the repository's root.

The pages are built from the .md, which has no such cell; `tools/sync_notebooks.py` puts it into the
.ipynb. It knows the version's tag and the origin's address, never a commit, so that it stays as it
is from commit to commit. A version without a tag in the origin is one in the making: its library
is the branch's. So raise the version right after a release is tagged.
"""

import re
import tomllib
from pathlib import Path

import nbformat

from tools.origin import BRANCH, github_address

ID = "install"
METADATA = {"jupyter": {"source_hidden": True}}
ORIGIN_LINE = re.compile(r'^ORIGIN = (?:"(https://github\.com/[\w.-]+/[\w.-]+)"|None)$', re.M)
TEMPLATE = """\
# @title Install attnbias where it is missing { display-mode: "form" }
import importlib.util, os, subprocess, sys
from pathlib import Path

ORIGIN = @ORIGIN@
TAG = "@TAG@"
CLONE = Path(f"attnbias-{TAG}").absolute()

if None in map(importlib.util.find_spec, ("attnbias", "book")):
    above = [CLONE, Path.cwd(), *Path.cwd().parents]
    root = next((p for p in above if (p / "attnbias" / "__init__.py").is_file()), None)
    if root is None and ORIGIN is None:
        raise ModuleNotFoundError(
            "This notebook needs attnbias, which is not installed, and the notebook does not know "
            "where it came from. Get the repository that it belongs to, run `make env` in it, and "
            "open the notebook there with `make lab`."
        )
    if root is None:
        clone = ["git", "clone", "--quiet", "--depth", "1", "--branch"]
        if subprocess.run([*clone, TAG, ORIGIN, str(CLONE)], stderr=subprocess.DEVNULL).returncode:
            subprocess.run([*clone, "@BRANCH@", ORIGIN, str(CLONE)], check=True)  # not yet tagged
        root = CLONE
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "-e", f"{root}[chapters]"]
    subprocess.run(pip, check=True)
    sys.path.insert(0, str(root))
for top in (CLONE, Path.cwd(), *Path.cwd().parents):
    if not Path("../results").is_dir() and (top / "book" / "paper").is_dir():
        os.chdir(top / "book" / "paper")  # chapters read the recorded runs from ../results"""


def version(root: Path) -> str:
    """The library's version, from pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]["version"]


def source(version: str, address: str | None) -> str:
    """The cell's code for a version and the origin's address, if there is one."""
    origin = f'"{address}"' if address else "None"
    filled = TEMPLATE.replace("@ORIGIN@", origin).replace("@TAG@", f"v{version}")
    return filled.replace("@BRANCH@", BRANCH)


def address_in(code: str) -> str | None:
    """The origin's address that a first cell carries."""
    match = ORIGIN_LINE.search(code)
    return match.group(1) if match else None


def cell(root: Path, kept: str | None = None) -> nbformat.NotebookNode:
    """The cell as a notebook stores it: never executed, because here it would do nothing.

    A clone without an origin keeps the address that the notebook has.
    """
    code = source(version(root), github_address(root) or kept)
    return nbformat.v4.new_code_cell(code, id=ID, metadata=METADATA)


def split(cells: list) -> tuple[nbformat.NotebookNode | None, list]:
    """The first cell, None where it is missing, and the chapter's own cells."""
    return (cells[0], cells[1:]) if cells and cells[0].id == ID else (None, cells)


def is_current(found: nbformat.NotebookNode | None, root: Path) -> bool:
    """Whether it is this version's cell, unexecuted, whatever clone it was written in."""
    if found is None or found.outputs or found.execution_count is not None:
        return False
    return found.source == source(version(root), address_in(found.source))
