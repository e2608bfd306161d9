"""A solution opens where a reader touches its title, in a real browser without a network."""

import time

import pytest
from browser import Page, or_skip

from tools.browser import find_browser
from tools.chapters import ROOT

CHAPTER = ROOT / "_build" / "html" / "book" / "paper" / "one_picture.html"
TITLE = "document.querySelector('.solution > .admonition-title')"
CLOSED = f"{TITLE}.parentElement.classList.contains('toggle-hidden')"
pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def browser():
    or_skip(find_browser)
    with Page() as browser:
        yield browser


def opens_when_touched(browser) -> bool:
    """Whether a finger on the words of the first solution's title opens it."""
    browser.wait_for(f"{TITLE} && {CLOSED}")
    browser.evaluate(f"{TITLE}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = f"{TITLE}.querySelector('a').getClientRects()[0]"
    browser.wait_for(f"{box}.top > 0 && {box}.bottom < innerHeight")
    browser.touch(browser.evaluate(f"{box}.left + 20"), browser.evaluate(f"{box}.top + 5"))
    end = time.monotonic() + 2
    while (closed := browser.evaluate(CLOSED)) and time.monotonic() < end:
        time.sleep(0.05)
    return not closed


def test_a_touch_on_the_title_opens_the_solution(browser):
    browser.open(CHAPTER)
    assert opens_when_touched(browser)


def test_a_title_that_is_a_link_is_found_out(browser):
    browser.open(CHAPTER)
    style = ".bd-article div.solution.dropdown > .admonition-title a {pointer-events: auto}"
    browser.evaluate(f"document.head.append(Object.assign(document.createElement('style'), "
                     f"{{textContent: {style!r}}})), 0")  # fmt: skip
    assert not opens_when_touched(browser)
