"""The chapters, read from _toc.yml: the only list of them in the repository."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
TOC = ROOT / "_toc.yml"


def _pages(node) -> list[str]:
    """The files that a part of the table of contents names, in reading order."""
    if isinstance(node, list):
        return [page for item in node for page in _pages(item)]
    own = [node[key] for key in ("root", "file") if key in node]
    return own + [
        page for key in ("parts", "chapters", "sections") for page in _pages(node.get(key, []))
    ]


def toc_files(toc: Path = TOC) -> list[str]:
    """Every page in the table of contents, in reading order, without a suffix."""
    return _pages(yaml.safe_load(toc.read_text(encoding="utf8")))


def toc_parts(toc: Path = TOC) -> list[tuple[str, list[str]]]:
    """Captions of the book's parts with their pages; the root is a part without a caption."""
    contents = yaml.safe_load(toc.read_text(encoding="utf8"))
    parts = [(part.get("caption", ""), part["chapters"]) for part in contents.get("parts", [])]
    if "chapters" in contents:
        parts.append(("", contents["chapters"]))
    named = [(caption, _pages(pages)) for caption, pages in parts]
    return [("", [contents["root"]]), *named]


def is_notebook(source: Path) -> bool:
    """Whether a Markdown page is an executable notebook: its header names jupytext."""
    parts = source.read_text(encoding="utf8").split("---\n", 2)
    if len(parts) < 3 or parts[0]:
        return False
    return "jupytext" in (yaml.safe_load(parts[1]) or {})


def notebook_sources(root: Path = ROOT) -> list[Path]:
    """The .md sources of the executable chapters that exist, in reading order."""
    pages = (root / f"{name}.md" for name in toc_files(root / "_toc.yml"))
    return [page for page in pages if page.exists() and is_notebook(page)]
