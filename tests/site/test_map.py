"""The map of statements in the built book: by mouse, by keyboard, on a phone and without scripts.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest
from reference_statements import read_statements
from statement_graph import all_behind, read_edges, reverse

from tools.files import SITE

PAGE = SITE / "book/statements.html"
LABEL = "assumption-2"
USES = read_edges(set(read_statements()))
USED = reverse(USES)
pytestmark = pytest.mark.site


@pytest.fixture(params=[390, 1200])
def page(browser, request):
    assert PAGE.is_file(), f"{PAGE} is missing: run `make book`"
    browser.fingers(False)
    browser.open(PAGE, width=request.param)
    return browser


def marked(page, kind):
    ids = f"[...document.querySelectorAll('.map-row li.{kind}')].map(each => each.id.slice(4))"
    return set(page.evaluate(ids))


def check_marks(page, label):
    assert marked(page, "here") == {label}
    assert marked(page, "uses") == set(USES[label]) and marked(page, "used") == set(USED[label])
    assert marked(page, "falls") == all_behind(label, USED)
    lines = page.evaluate("document.querySelectorAll('.statement-map svg path').length")
    assert lines == len(USES[label]) + len(USED[label])
    said = page.evaluate("document.querySelector('.statement-map output').textContent")
    assert f"{len(all_behind(label, USED))} of the others would fall with it" in said


def test_all_statements_stand_there_and_fit(page):
    ids = "[...document.querySelectorAll('.map-row li')].map(each => each.id.slice(4))"
    assert sorted(page.evaluate(ids)) == sorted(USES)
    rights = (
        "[...document.querySelectorAll('.map-row li')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(page.evaluate(rights)) <= page.evaluate("innerWidth")


def test_the_mouse_marks_what_a_statement_rests_on_and_what_falls_with_it(page):
    chip = f"document.getElementById('map-{LABEL}')"
    page.evaluate(f"{chip}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = f"(b => [b.left + b.width / 2, b.top + b.height / 2])({chip}.getBoundingClientRect())"
    page.point(*page.evaluate(box))
    page.wait_for("document.querySelector('.map-row li.here') !== null")
    check_marks(page, LABEL)


def test_the_keyboard_does_too_and_escape_ends_it(page):
    label = next(label for label in USES if USES[label] and USED[label])
    page.evaluate(f"document.querySelector('#map-{label} a').focus()")
    check_marks(page, label)
    page.press("Escape")
    assert marked(page, "here") == marked(page, "falls") == set()


def test_without_scripts_a_table_says_it(browser):
    browser.scripts(False)
    try:
        browser.open(PAGE, width=1200)
        rows = browser.evaluate("document.querySelectorAll('details table tbody tr').length")
        assert rows == sum(1 for label in USES if USES[label] or USED[label])
    finally:
        browser.scripts(True)
