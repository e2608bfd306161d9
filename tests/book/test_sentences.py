"""Sentences that promise something: bounds, counts, times, and what the book says of itself."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from book.rounding import round_down, round_up
from tests.book.test_book import IDS, SOURCES
from tests.book.test_length import looked_at, words
from tools.chapters import ROOT, toc_parts
from tools.sync_notebooks import code_cells, read_stored

SMALL = 10  # of fewer the reader gets the count
SPEED = 200  # words a minute, as the page of routes says
LOOK = 2  # minutes for a displayed formula or a picture
UP = r"at most|no more than|less than|within|up to|never exceeds"
DOWN = r"at least|no less than|or more than"
GLUED = r"(?:a factor of |about )?\{glue:text\}`([\w-]+)"
BOUND = re.compile(rf"\b(?:(?P<up>{UP}|differs? [^.]* by more than)|(?P<down>{DOWN})) {GLUED}")
PRINTED = re.compile(rf"\b(?:{UP}|{DOWN}) (?:10\^)?$")
SHARE = re.compile(
    r"(?:percent|per cent|%) of (?:the |all |our )?(?:(\w+) )?(?:seeds|draws|data sets|optimizers)"
)
ABSOLUTE = re.compile(
    r"\b(?:all|every|each)\b[^.\n]*\b(?:figure|number)s?\b[^.\n]*\bon the page\b"
    r"|\bnumbers?\b[^.\n]*\b(?:is|are) (?:not|never) typed",
    re.IGNORECASE,
)
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "book").glob("*.md"))
EXERCISE = re.compile(r"^(`{3,})\{exercise\}.*?^\1 *$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(
    r'^```\{include\} (\S+)\n:start-after: "(.*)"\n:end-before: "(.*)"\n```$', re.MULTILINE
)
HOURS = {"Fifteen minutes": 1 / 4, "Two hours": 2, "Five hours": 5, "Ten hours": 10}


def code_of(source: Path) -> list[str]:
    return [cell.source for cell in code_cells(read_stored(source.with_suffix(".ipynb"))[1])]


def is_key(node, key: str, filled: bool) -> bool:
    """Whether an expression is this string, or (if filled) an f-string that can become it."""
    if filled and isinstance(node, ast.JoinedStr):
        parts = (re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in node.values)
        return bool(re.fullmatch("".join(parts), key))
    return isinstance(node, ast.Constant) and node.value == key


def glued_by(cells: list[str], key: str, filled: bool = False) -> list[str]:
    """The code of each call, or entry of a dict, that glues a key."""
    found = []
    for cell in cells:
        for node in ast.walk(ast.parse(cell)):
            pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
            found += [ast.get_source_segment(cell, v) for k, v in pairs if is_key(k, key, filled)]
            if isinstance(node, ast.Call) and node.args and is_key(node.args[0], key, filled):
                found.append(ast.get_source_segment(cell, node))
    return found if found or filled else glued_by(cells, key, filled=True)


def wrong_bounds(text: str, cells: list[str]) -> list[str]:
    """Keys after "at most" or "at least" that no code rounds to the safe side."""
    wrong = []
    for match in BOUND.finditer(text):
        helper = "round_up(" if match["up"] else "round_down("
        code = glued_by(cells, match[3])
        plain = [c for c in code if not re.search(r"\bround\(|:\.\d|round_(up|down)\(", c)]
        if not plain and not any(helper in c for c in code):
            wrong.append(match[3])
    return wrong


def printed_bounds(cells: list[str]) -> list[str]:
    """Numbers that a cell rounds to the nearest behind "at most" or "at least"."""
    nodes = (node for cell in cells for node in ast.walk(ast.parse(cell)))
    texts = (node.values for node in nodes if isinstance(node, ast.JoinedStr))
    return [
        ast.unparse(number.value)
        for words, number in (pair for parts in texts for pair in pairwise(parts))
        if isinstance(words, ast.Constant) and PRINTED.search(words.value)
        if number.format_spec and "." in ast.unparse(number.format_spec)
    ]


def small_shares(text: str) -> list[str]:
    """Percentages of seeds and the like, where there is no count of ten or more of them."""
    counted = (match for match in SHARE.finditer(text))
    return [m[0] for m in counted if not (m[1] or "").isdigit() or int(m[1]) < SMALL]


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_bound_is_rounded_to_its_safe_side_and_few_seeds_are_counted(source):
    text = source.read_text(encoding="utf8")
    assert wrong_bounds(text, code_of(source)) == []
    assert printed_bounds(code_of(source)) == []
    assert small_shares(text) == []


def test_a_bound_rounded_to_nearest_and_a_percentage_of_five_are_found():
    text = "by at most {glue:text}`a` and at least {glue:text}`b:.1f`, within {glue:text}`c:d`"
    nearest = ["glue('a', round(x), display=False)", "glue('b', f'{x:.1f}')", "glue('c', len(x))"]
    assert wrong_bounds(text, nearest) == ["a", "b"]
    kept = ["for k, v in {'a': round_up(x)}.items():\n    glue(k, v)", "glue('b', round_down(x))"]
    assert wrong_bounds(text, [*kept, nearest[2]]) == []
    assert wrong_bounds(text, [kept[0].replace("up", "down"), *kept[1:], nearest[2]]) == ["a"]
    assert printed_bounds(["print(f'at most {x:.2f}, at least 10^{y:.1f} or {z:.1f}')"]) == [
        "x",
        "y",
    ]
    assert printed_bounds(["print(f'at most {round_up(x, 2)}, {y:.1f} at most, within {n}')"]) == []
    assert small_shares("in 80 percent of the seeds") == ["percent of the seeds"]
    assert small_shares("in percent of 5 seeds, in percent of 20 seeds") == ["percent of 5 seeds"]


ROUNDED = [(4.2, 0, 5, 4), (1.685, 1, 1.7, 1.6), (0.3, 1, 0.3, 0.3), (-2.5, 0, -2, -3)]


@pytest.mark.parametrize("x, digits, up, down", ROUNDED)
def test_rounding_up_and_down_keeps_what_has_the_digits_already(x, digits, up, down):
    assert (round_up(x, digits), round_down(x, digits)) == (up, down)


def test_no_page_promises_that_every_number_is_computed_there():
    assert ABSOLUTE.search("All figures and measured numbers come from code that is on the page.")
    assert ABSOLUTE.search("* A measured number in a sentence is not typed.")
    for page in PAGES:
        assert not ABSOLUTE.search(page.read_text(encoding="utf8")), page


def parts() -> dict[str, list[str]]:
    """The texts of each part of the book."""
    return {
        name: [(ROOT / f"{file}.md").read_text(encoding="utf8") for file in group]
        for name, group in toc_parts()
    }


def part(found: re.Match) -> str:
    """What a page includes of a file."""
    text = (ROOT / "book" / found[1]).read_text(encoding="utf8")
    return text.partition(found[2])[2].partition(found[3])[0]


def minutes(page: str) -> float:
    """How long a page takes, without its exercises, at the speed that the page of routes states."""
    page = EXERCISE.sub("", INCLUDED.sub(part, page))
    return words(page) / SPEED + LOOK * looked_at(page)


def length(route: str) -> float:
    """The minutes of a route's chapters; of two that are offered, those of the longer one."""
    groups, by_name = parts(), {}
    for page in (page for group in groups.values() for page in group):
        by_name |= dict.fromkeys(re.findall(r"^\((chap-[\w-]+)\)=", page, re.M), minutes(page))
    total = 0.0
    for item in re.findall(r"^\d\. .*$", route, re.M):
        named = [by_name[name] for name in re.findall(r"\{ref\}`(chap-[\w-]+)`", item)]
        whole = [minutes(page) for name in groups if f"*{name}*" in item for page in groups[name]]
        total += sum(whole) + (max(named) if " if you have " in item else sum(named))
    return total


def test_the_routes_take_the_time_that_they_state():
    page = (ROOT / "book/routes.md").read_text(encoding="utf8")
    found = re.findall(r"^## ([\w-]+ \w+)[,:](.*?)(?=^## |\Z)", page, re.M | re.S)
    routes = [(name, route) for name, route in found if name != "A course"]
    assert "two hundred words a minute, and two minutes for each displayed formula" in page
    first = list(parts())[2:7]
    assert (first[0], first[-1]) == ("The phenomenon", "Real networks")
    week = "\n".join(f"1. *{name}*" for name in first)
    assert list(dict.fromkeys(name for name, _ in routes)) == list(HOURS)
    for name, route in routes:
        taken = length(week if name == "Ten hours" else route) / 60
        assert 0.85 * HOURS[name] < taken < 1.05 * HOURS[name], (name, taken)
