"""The quiz of the built book, answered in a real browser by mouse and by keyboard.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import ast

import nbformat
import pytest
from read_back import recorded

from tools.chapters import notebook_sources
from tools.files import ROOT, SITE

CHAPTER = "one_picture"
NUMBER = "one_gd_factor"
PAGE = SITE / f"book/paper/{CHAPTER}.html"
SCORE = SITE / "book/routes.html"
QUIZZES = [
    line
    for source in notebook_sources()
    for line in source.read_text(encoding="utf8").splitlines()
    if line.startswith("```{predict}")
]
PHONE, DESK = 390, 1200  # pixels wide
pytestmark = pytest.mark.site


@pytest.fixture(params=[PHONE, DESK])
def page(browser, request):
    assert PAGE.is_file(), f"{PAGE} is missing: run `make book`"
    browser.open(PAGE, width=request.param)
    browser.evaluate("localStorage.clear()")  # what another test has chosen
    browser.open(PAGE, width=request.param)
    return browser


def ask(page, expression):
    """A value of the page; `box` is its first quiz, `boxes` are all, `labels` its choices."""
    return page.evaluate(
        "(() => { const boxes = Array.from(document.querySelectorAll('fieldset.predict'));"
        "const box = boxes[0], labels = Array.from(box.querySelectorAll('label'));"
        f"return {expression}; }})()"
    )


def visible(page):
    return ask(page, "box.querySelector('.answer').getBoundingClientRect().height > 0")


def middle(page, place):
    """Where to hit a choice, which is brought into view."""
    page.evaluate("globalThis.MathJax?.startup?.promise.then(() => true)")  # formulas move things
    ask(page, f"labels[{place}].scrollIntoView({{block: 'center', behavior: 'instant'}})")
    at = f"(r => [r.left + r.width / 2, r.top + r.height / 2])(labels[{place}]"
    return ask(page, at + ".getBoundingClientRect())")


def recorded_number():
    """What the committed notebook holds."""
    notebook = nbformat.read(ROOT / "book/paper" / f"{CHAPTER}.ipynb", as_version=4)
    return float(ast.literal_eval(recorded(notebook)[NUMBER][1]))


def check_answer(page, chosen):
    """The answer is there, with the run's number, and the page says who chose what."""
    assert visible(page)
    said = ask(page, "box.querySelector('.answer strong').textContent")
    assert float(said) == recorded_number()
    assert ask(page, "box.querySelector(':checked').value") == str(chosen)
    right = ask(page, "labels.map(l => l.className)")
    assert right.count("right") == 1
    wanted = {right.index("right"): '"the run"'} | {chosen: '"you"'}
    if right[chosen]:
        wanted = {chosen: '"you and the run"'}
    marks = ask(page, "labels.map(l => getComputedStyle(l, '::after').content)")
    assert {k: mark for k, mark in enumerate(marks) if mark != "none"} == wanted


def test_a_mouse_chooses_and_the_number_appears(page):
    assert not visible(page)
    for place in (0, 1):
        page.tab.mouse.click(*middle(page, place))
        check_answer(page, place)


def test_keys_choose(page):
    ask(page, "labels[0].firstElementChild.focus()")
    assert not visible(page)  # to arrive is not to choose
    page.press(" ")
    check_answer(page, 0)
    page.press("ArrowDown", 2)
    check_answer(page, 2)
    assert ask(page, "getComputedStyle(labels[2]).outlineStyle") == "solid"


def test_a_bet_is_remembered_counted_and_forgotten(page):
    right = ask(page, "labels.findIndex(l => l.className === 'right')")
    page.tab.mouse.click(*middle(page, right))
    page.open(PAGE, width=PHONE)
    check_answer(page, right)
    assert ask(page, "boxes.slice(1).filter(b => b.querySelector(':checked')).length") == 0
    page.open(SCORE, width=PHONE)
    cells = (
        "[...document.querySelectorAll('table.bets tbody tr')].map(r => r.lastChild.textContent)"
    )
    assert page.evaluate(cells).count("1 of 1 made") == 1
    counts = page.evaluate(cells.replace("lastChild", "children[1]"))
    assert sum(map(int, counts)) == len(QUIZZES)
    page.evaluate("document.querySelector('table.bets + button').click()")
    assert set(page.evaluate(cells)) == {"none made yet"}
    page.open(PAGE, width=PHONE)
    assert not visible(page)


def test_the_box_fits_and_is_named(page):
    edges = ask(page, "boxes.map(b => b.getBoundingClientRect().right)")
    assert max(edges) <= page.evaluate("innerWidth")
    assert ask(page, "box.querySelector('legend').textContent").startswith("Your prediction ")
    assert min(ask(page, "labels.map(l => l.offsetHeight)")) >= 24  # tall enough to be hit


def test_without_scripts_it_works_and_on_paper_the_answer_ends_the_box(browser):
    browser.scripts(False)
    try:
        browser.open(PAGE, width=PHONE)
        assert not visible(browser)
        browser.tab.mouse.click(*middle(browser, 0))
        check_answer(browser, 0)
        browser.open(PAGE, width=DESK)
        browser.paper()
        assert visible(browser)
        assert ask(browser, "box.querySelector(':checked')") is None
    finally:
        browser.scripts(True)


def test_a_style_sheet_that_shows_the_answer_too_early_would_be_noticed(page):
    page.evaluate("[...document.styleSheets].forEach(sheet => { sheet.disabled = true })")
    assert visible(page)
