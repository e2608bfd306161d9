"""A solution opens where a reader touches its title, in a real browser without a network."""

import time

import pytest

from tools.files import SITE

CHAPTER = SITE / "book/paper/one_picture.html"
TITLE = "document.querySelector('.solution > .admonition-title')"
CLOSED = f"{TITLE}.parentElement.classList.contains('toggle-hidden')"
pytestmark = pytest.mark.site


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


LINK = ".bd-article div.solution.dropdown > .admonition-title a {pointer-events: auto}"


@pytest.mark.parametrize(("style", "opens"), [("", True), (LINK, False)])
def test_a_touch_on_the_title_opens_the_solution_unless_it_is_a_link(browser, style, opens):
    browser.open(CHAPTER)
    browser.style(style)
    assert opens_when_touched(browser) == opens
