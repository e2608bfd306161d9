"""The squares of claims, by keys and fingers.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest

from tools.files import SITE

PAGES = [SITE / "book/ten_minutes.html", SITE / "book/ledger.html"]
STOPS = "document.querySelectorAll('a.square:not([tabindex=\"-1\"])').length"
SQUARES = "document.querySelectorAll('a.square').length"
PARTS = "document.querySelectorAll('.squares ul:not(.looks)').length"
FOCUS = "(document.activeElement.getAttribute('href') ?? document.activeElement.id)"
IN_PART = "[...document.activeElement.closest('ul').querySelectorAll('a')]"
SIZES = """Math.min(...[...document.querySelectorAll("a.square")].flatMap(each => {
  const {width, height} = each.getBoundingClientRect();
  return [width, height];
}))"""
pytestmark = pytest.mark.site


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_part_is_one_stop_of_the_tab_key(browser, page):
    browser.open(page, width=1200)
    parts = browser.evaluate(PARTS)
    assert browser.evaluate(STOPS) == parts > 5
    browser.evaluate("document.querySelector('.squares > a').focus()")
    browser.press("Tab", parts)
    last = browser.evaluate(f"{IN_PART}.map(each => each.getAttribute('href'))")
    assert browser.evaluate(FOCUS) == last[0]
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.matches('a.square')") is False


def test_arrows_go_from_square_to_square_and_the_part_keeps_its_place(browser):
    browser.open(PAGES[0], width=1200)
    browser.evaluate("document.querySelector('a.square').focus()")
    squares = browser.evaluate(f"{IN_PART}.map(each => each.getAttribute('href'))")
    assert len(squares) > 2
    ways = [("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1), ("Home", 0), ("ArrowUp", 0)]
    for key, place in [*ways, ("End", -1), ("ArrowRight", -1)]:
        browser.press(key)
        assert browser.evaluate(FOCUS) == squares[place], key
    browser.press("Tab")
    assert browser.evaluate(FOCUS) not in squares
    browser.press("Shift+Tab")
    assert browser.evaluate(FOCUS) == squares[-1]
    browser.press("Enter")
    browser.wait_for(f"location.href.endsWith('ledger.html{squares[-1].partition('html')[2]}')")


def test_without_scripts_a_link_leads_past_the_squares(browser):
    browser.scripts(False)
    try:
        browser.open(PAGES[1], width=1200)
        assert browser.evaluate(STOPS) == browser.evaluate(SQUARES) > 100
        browser.evaluate("document.querySelector('.squares > a').focus()")
        assert browser.evaluate("document.activeElement.getBoundingClientRect().height") >= 24
        browser.press("Enter")
        browser.wait_for(f"{FOCUS} === 'after-squares'")
        browser.press("Tab")
        assert not browser.evaluate("document.activeElement.matches('.squares *')")
    finally:
        browser.scripts(True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_finger_can_hit_each_square(browser, page):
    browser.open(page)
    assert browser.evaluate(SIZES) >= 24
    browser.style(".squares ul { zoom: 0.5 }")
    assert browser.evaluate(SIZES) < 24
