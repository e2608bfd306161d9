"""What the theme's pages lack for readers with a keyboard or a screen reader, mended after a build.

Sphinx has no event behind the template, so the written pages are read once more. Each mend is a
pattern and what stands for it; a page that is mended already stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

MENDS = (
    # The arrow that opens a part of the contents had no name.
    (r"<summary>(?=<span class=\"toctree-toggle\")", '<summary aria-label="Show the pages below">'),
    # The side bar was in no landmark.
    (
        r'<div class="bd-sidebar-primary bd-sidebar',
        '<div role="complementary" aria-label="Contents of the book" '
        'class="bd-sidebar-primary bd-sidebar',
    ),
    # The colours were chosen by a script at the end of the page: a white flash at night.
    (
        r'localStorage\.getItem\("theme"\) \|\| "";',
        'localStorage.getItem("theme") || '
        '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");',
    ),
    # An empty corner of a table heads nothing.
    (r'<th(?: class="head")?>(?:<p></p>)?</th>', "<td></td>"),
    # A label hid the words that one sees.
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    (r'(?<=search-button-field search-button__button") title="Search" aria-label="Search"', ""),
    # Boxes share these ids, and nothing links to them.
    (r' id="(?:proof|(?:proof|exercise|solution)-content)"', ""),
    # The works of the bibliography are items of its list.
    (r'role="doc-biblioentry"', 'role="listitem"'),
)
PATTERNS = [(re.compile(pattern), text) for pattern, text in MENDS]
# The search page has the field of every page's pop-up a second time, with the same id.
SECOND_FIELD = re.compile(r'(id="search-input".*?)id="search-input"', re.DOTALL)


def mended(page: str) -> str:
    """The text of a page with every mend."""
    for pattern, text in PATTERNS:
        page = pattern.sub(lambda _, text=text: text, page)
    return SECOND_FIELD.sub(r'\1id="search-input-page"', page)


def mend_pages(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        if "_static" in path.parts:
            continue
        page = path.read_text(encoding="utf8")
        better = mended(page)
        if better != page:
            path.write_text(better, encoding="utf8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", mend_pages, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
