"""In which section of which chapter a claim's run is."""

import functools
import re
from pathlib import Path

BOOK = Path(__file__).parents[1]
# A label that stands before a paragraph has no title to link by.
_PIECES = re.compile(
    r"^\((?P<label>(?:sec|chap)-[\w-]+)\)=\n+(?=##)|^```\{code-cell\}(?P<code>.*?)^```", re.M | re.S
)


@functools.cache
def cells() -> dict[str, list[tuple[str, str]]]:
    """By the label of a chapter: its code cells, each with the label of its section, if any."""
    found = {}
    for page in sorted(BOOK.glob("*/*.md")):
        text, label, inside = page.read_text(encoding="utf8"), "", []
        for piece in _PIECES.finditer(text):
            label = piece["label"] or label
            if piece["code"]:
                inside.append((label, piece["code"]))
        for chapter in re.findall(r"^\((chap-.+)\)=", text, re.M):
            found[chapter] = inside
    return found


def section_of(chapter: str, calls: str) -> str:
    """Label of the section whose cell has that code; the chapter's where there is none.

    Examples
    --------
    >>> section_of("chap-none", "train("), section_of("chap-none", "")
    ('chap-none', 'chap-none')
    """
    labels = [label for label, code in cells().get(chapter, ()) if calls and calls in code]
    return next(filter(None, labels), chapter)
