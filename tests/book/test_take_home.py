"""Each numbered part begins with three short lines to take home, and each line leads on."""

import re

import attnbias_take_home as extension
import pytest
from generated import SourceError

from tools.files import ROOT

LINES = extension.read_lines()
SOURCE = extension.SOURCE.read_text(encoding="utf8")
LINK = re.compile(r"\{(?:prf:)?ref\}`(?:[^`<]*<)?([^`>]+)>?`")
LABEL = re.compile(r"^\(([\w-]+)\)=|^:label: ([\w-]+)", re.MULTILINE)


def labels() -> set[str]:
    pages = ROOT.glob("book/**/*.md")
    return {
        label for page in pages for pair in LABEL.findall(page.read_text("utf8")) for label in pair
    }


def faults(lines: dict[str, list[str]], known: set[str]) -> list[str]:
    """Lines that are too long, or lead nowhere."""
    found = []
    for line in (line for three in lines.values() for line in three):
        targets = set(LINK.findall(line))
        if len(plain(line).split()) > 30 or not targets or not targets <= known:
            found.append(line)
    return found


def plain(line: str) -> str:
    """The words of a line: links by what one reads of them, no verdicts."""
    line = re.sub(r"\s*\{(?:verdict|tally)\}`[^`]*`", "", line)
    return re.sub(r"\{(?:prf:)?ref\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", line)


def test_every_line_is_short_and_leads_to_a_place_of_the_book():
    assert len(LINES) == 5 and faults(LINES, labels()) == []


@pytest.mark.parametrize(
    "broken", ["a " * 31 + "{ref}`chap-one-picture`", "No link.", "{ref}`this <no-such-place>`"]
)
def test_a_line_that_is_long_or_leads_nowhere_is_found(broken):
    (page, three), *_ = LINES.items()
    assert faults({**LINES, page: [*three[:2], broken]}, labels()) == [broken]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"Yours" = [', '"Theirs" = [', "every numbered part"),
        ("[  #", '["four",  #', "three lines a part"),
        ('"Yours" = [', '"Reference" = []\n"Yours" = [', "numbered parts alone"),
    ],
)
def test_a_part_without_three_lines_and_lines_without_a_part_stop_the_build(
    tmp_path, old, new, said
):
    path = tmp_path / "take_home.toml"
    assert SOURCE.count(old) == 1
    path.write_text(SOURCE.replace(old, new), encoding="utf8")
    with pytest.raises(SourceError, match=said):
        extension.read_lines(path)


def test_the_box_stands_under_the_title_of_the_page_and_nowhere_else():
    page = "---\na: b\n---\n\n(chap-a)=\n# A title\n\nText.\n\n```python\n# no title\n```\n"
    better = extension.with_box(page, ["one", "two", "three"])
    title, box, rest = (
        better.split("\n\n", 2)[1],
        *better.split("# A title\n\n")[1].split(":::\n\n", 1),
    )
    assert title.startswith("(chap-a)=") and box.startswith(":::{admonition}")
    assert box.count("\n* ") == 3 and rest == page.split("# A title\n\n")[1]
    assert better.count("This part in three lines") == 1
