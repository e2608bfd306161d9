"""The chapters, read from _toc.yml: the only list of them in the repository."""

from pathlib import Path

import yaml

from tools.files import ROOT

TOC = ROOT / "_toc.yml"


def _pages(nodes: list[dict]) -> list[str]:
    """The files that entries of the table of contents name, in reading order."""
    return [page for node in nodes for page in (node["file"], *_pages(node.get("sections", [])))]


def toc_rows(toc: Path = TOC) -> list[tuple[str, list[list[str]]]]:
    """Captions of the book's parts with their pages, each in a row with the sections below it.

    The root is a part without a caption.
    """
    contents = yaml.safe_load(toc.read_text(encoding="utf8"))
    parts = [
        (part["caption"], [_pages([chapter]) for chapter in part["chapters"]])
        for part in contents["parts"]
    ]
    return [("", [[contents["root"]]]), *parts]


def toc_parts(toc: Path = TOC) -> list[tuple[str, list[str]]]:
    """Captions of the book's parts with their pages, in reading order."""
    return [(caption, sum(rows, [])) for caption, rows in toc_rows(toc)]


def toc_files(toc: Path = TOC) -> list[str]:
    """Every page in the table of contents, in reading order, without a suffix."""
    return [page for _, pages in toc_parts(toc) for page in pages]


def is_notebook(source: Path) -> bool:
    """Whether a Markdown page is an executable notebook: its header names jupytext."""
    parts = source.read_text(encoding="utf8").split("---\n", 2)
    if len(parts) < 3 or parts[0]:
        return False
    return "jupytext" in (yaml.safe_load(parts[1]) or {})


def notebook_sources() -> list[Path]:
    """The .md sources of the executable chapters that exist, in reading order."""
    pages = (ROOT / f"{name}.md" for name in toc_files())
    return [page for page in pages if page.exists() and is_notebook(page)]
