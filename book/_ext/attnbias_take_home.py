"""What to take home from each part of the book, in three lines under the title where it begins.

jupyter-book gives a part no page of its own, so the box stands on its first chapter, put there
while Sphinx reads it. The lines are those of `take_home.toml`; a numbered part of `_toc.yml`
without three, or lines of no such part, stop the build.
"""

import re
import tomllib
from pathlib import Path

import yaml
from generated import read_first, refuse
from sphinx.application import Sphinx

from tools.chapters import TOC

SOURCE = Path(__file__).with_name("take_home.toml")
STATE = "attnbias_take_home"
TITLE = re.compile(r"^# .+\n", re.MULTILINE)
BOX = "\n:::{{admonition}} This part in three lines\n:class: tip\n\n{lines}\n:::\n"


def first_pages(toc: Path = TOC) -> dict[str, str]:
    """The page on which each numbered part begins, by the part's name."""
    parts = yaml.safe_load(toc.read_text(encoding="utf8"))["parts"]
    return {
        part["caption"]: part["chapters"][0]["file"] for part in parts if part.get("numbered", True)
    }


def read_lines(source: Path = SOURCE) -> dict[str, list[str]]:
    """The lines of each part, by the page on which it begins.

    Raises
    ------
    SourceError
        If a part does not have three, or there is no such part.
    """
    given, pages = tomllib.loads(source.read_text(encoding="utf8")), first_pages()
    wrong = {
        "lines for every numbered part": pages.keys() - given.keys(),
        "lines of numbered parts alone": given.keys() - pages.keys(),
        "three lines a part": {part for part, lines in given.items() if len(lines) != 3},
    }
    refuse(source, wrong)
    return {pages[part]: lines for part, lines in given.items()}


def with_box(text: str, lines: list[str]) -> str:
    """A page with its box under the title."""
    box = BOX.format(lines="\n".join(f"* {line}" for line in lines))
    return TITLE.sub(lambda title: title[0] + box, text, count=1)


def add_box(app: Sphinx, page: str, source: list[str]) -> None:
    lines = getattr(app, STATE).get(page)
    if lines:
        app.env.note_dependency(str(SOURCE))
        source[0] = with_box(source[0], lines)


def setup(app: Sphinx) -> dict[str, bool]:
    read_first(app, STATE, read_lines)
    app.connect("source-read", add_box)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
