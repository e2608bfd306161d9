"""The page on earlier work: every work is cited, and every neighbour says what was read of it."""

import re

import pytest

from tools.files import ROOT

BOOK = ROOT / "book"
PAGE = BOOK / "literature.md"
HEADING = "## Neighbours of 2024 to 2026"
READ = {"abstract", "abstract, notes", "notes only"}
CITED = re.compile(r"\{cite(?::[a-z]+)?\}`([^`]+)`")


def cited(text: str) -> list[str]:
    """The keys of all citations of a text."""
    return [key.strip() for keys in CITED.findall(text) for key in keys.split(",")]


def entries() -> set[str]:
    """The keys of the bibliography."""
    return set(re.findall(r"^@\w+\{([^,]+),", (BOOK / "references.bib").read_text("utf8"), re.M))


def unread(page: str) -> list[str]:
    """Rows of the neighbours that do not name one work, a place of the book and what was read."""
    rows = [row for row in page.partition(HEADING)[2].splitlines() if row.startswith("|")][2:]
    assert rows, f"no row below {HEADING!r}"
    bad = []
    for row in rows:
        work, shown, place, read = (cell.strip() for cell in row.strip("|").split("|"))
        complete = len(cited(work)) == 1 and shown and "{ref}" in place and read in READ
        bad += [] if complete else [row]
    return bad


def test_every_entry_of_the_bibliography_is_cited_in_the_book():
    pages = BOOK.rglob("*.md")
    found = {key for page in pages for key in cited(page.read_text(encoding="utf8"))}
    assert found == entries()


def test_every_neighbour_says_what_was_read():
    assert unread(PAGE.read_text(encoding="utf8")) == []


@pytest.mark.parametrize(
    "old, new", [("| abstract |", "| |"), ("| notes only |", "| all |"), ("{ref}`chap-blocks`", "")]
)
def test_a_row_that_hides_what_was_read_is_found(old, new):
    page = PAGE.read_text(encoding="utf8")
    assert old in page
    assert len(unread(page.replace(old, new))) == page.count(old)


@pytest.mark.parametrize("marked", ["{cite:t}`a2024b`", "{cite}`a2024b, c`", "{cite:p}`c,a2024b`"])
def test_citations_are_seen_in_every_form(marked):
    assert "a2024b" in cited(f"as {marked} say")
