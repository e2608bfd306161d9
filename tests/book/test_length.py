"""No chapter is longer than one sitting."""

import re

import pytest

from tests.book.test_book import IDS, SOURCES

LINES = 15  # of a cell that is shown: a longer one is folded
WORDS = 2_800  # of prose, captions, tables and bets; not of code, formulas, dropdowns or solutions
FENCE = re.compile(r"^(`{3,}|:{3,})(.*)$")
APART = ("{code", "{dropdown}", "python", "{bibliography}")


def told(text: str) -> list[str]:
    """The lines that a reader reads on the way: no front matter, code or closed box.

    A formula in a line is one word, a displayed one is none.
    """
    text = re.sub(r"\A---\n.*?\n---\n|\$\$.*?\$\$|^%.*?$", "", text, flags=re.S | re.M)
    text = re.sub(r"^`{3,}\{solution-start\}.*?\{solution-end\}", "", text, flags=re.S | re.M)
    text = re.sub(r"\$[^$\n]+\$", "x", text)
    lines: list[str] = []
    inside: list[tuple[str, str]] = []
    for line in text.splitlines():
        if fence := FENCE.match(line):
            marks, name = fence.groups()
            if name:
                inside.append((marks, name))
            elif inside and inside[-1][0] == marks:
                inside.pop()
        elif not line.startswith(":") and not any(name.startswith(APART) for _, name in inside):
            lines.append(line)
    return lines


def looked_at(text: str) -> int:
    """The displayed formulas and pictures on the way, with those that move and squares."""
    text = re.sub(r"^`{3,}\{solution-start\}.*?\{solution-end\}", "", text, flags=re.S | re.M)
    text = re.sub(r"^(:{3,}|`{4,})\{dropdown\}.*?^\1 *$", "", text, flags=re.S | re.M)
    pictures = re.findall(
        r"^(?:`{3,}|:{3,})\{(?:(?:glue:)?figure|squares)\}|\bslider_\w+\(", text, re.M
    )
    return len(re.findall(r"^\$\$(?!.*\$\$)", text, re.M)) // 2 + len(pictures)


def words(text: str) -> int:
    return sum(bool(re.search(r"\w", word)) for line in told(text) for word in line.split())


def test_words_in_closed_boxes_do_not_count_and_those_of_a_theorem_do():
    closed = "::::{dropdown} Proof\nfour words of proof\n```{code-cell} python\nx = 1\n```\n::::\n"
    solved = "```{solution-start} ex\n```\nfour words of solution\n```{solution-end}\n```\n"
    shown = "```{prf:theorem} Name\n:label: here\n\nfor all $a > b$\n$$\na + b\n$$\n```\n"
    assert words("---\na: b\n---\n" + closed + solved) == 0
    assert words(shown + "and - two\n% no comment\n") == 5


def test_formulas_and_pictures_count_where_they_are_seen():
    shown = "$$\nx\n$$ (eq-a)\n\n```{glue:figure} a\n```\n"
    closed = "::::{dropdown} Proof\n$$\ny\n$$\n::::\n"
    assert looked_at(shown + closed) == 2 and looked_at(closed) == 0
    moving = "```{code-cell} python\nfrom book.widgets import slider_a\nslider_a(1)\n```\n"
    assert looked_at(moving + "```{squares} paper\n```\n") == 2


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_chapter_is_read_in_one_sitting(source):
    assert words(source.read_text(encoding="utf8")) <= WORDS


def shown_too_long(text: str) -> list[str]:
    """First lines of the cells that show more code than a reader takes in; solutions are closed."""
    text = re.sub(r"^`{3,}\{solution-start\}.*?\{solution-end\}", "", text, flags=re.S | re.M)
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, re.S | re.M)
    open_cells = [c for c in cells if not re.search(r"^:tags:.*\b(?:hide|remove)-", c, re.M)]
    codes = [re.sub(r"^:.*$", "", cell, flags=re.M).strip() for cell in open_cells]
    return [code.splitlines()[0] for code in codes if len(code.splitlines()) > LINES]


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_no_cell_shows_more_than_a_few_lines(source):
    assert shown_too_long(source.read_text(encoding="utf8")) == []


def test_a_long_cell_is_noticed_unless_it_is_folded():
    cell = "```{{code-cell}} ipython3\n{}a = 1\n" + 15 * "b = 2\n" + "```\n"
    assert shown_too_long(cell.format("")) == ["a = 1"]
    assert shown_too_long(cell.format(":tags: [hide-input]\n\n")) == []
