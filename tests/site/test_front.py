"""The first page, opened on a desk and on a phone."""

import pytest

from tools.files import SITE

PAGE = SITE / "book/intro.html"
BOTTOMS = """[...document.querySelectorAll(".doors .sd-card")].map(
  (door) => Math.round(door.getBoundingClientRect().bottom))"""
SCREEN = {1200: 800, 390: 844}  # pixels wide and high
pytestmark = pytest.mark.site


def test_on_a_desk_one_screen_has_the_picture_and_the_four_doors(browser):
    browser.open(PAGE, width=1200, height=SCREEN[1200])
    bottoms = browser.evaluate(BOTTOMS)
    assert len(bottoms) == 4 and max(bottoms) <= SCREEN[1200]
    browser.style(".doors { margin-top: 100vh; }")
    assert max(browser.evaluate(BOTTOMS)) > SCREEN[1200]


def test_on_a_phone_the_first_screen_says_what_it_is_and_the_second_has_the_picture(browser):
    browser.open(PAGE, width=390, height=SCREEN[390])
    first = browser.evaluate("document.querySelector('main p').getBoundingClientRect().bottom")
    picture = browser.evaluate("document.querySelector('main img').getBoundingClientRect().bottom")
    assert first <= SCREEN[390] and picture <= 2 * SCREEN[390]


def test_the_entry_is_copied_by_a_button(online):
    online.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    online.open(PAGE, width=1200)
    online.tab.hover(".highlight-bibtex")
    online.tab.click(".highlight-bibtex .copybtn")
    online.wait_for("navigator.clipboard.readText().then((text) => text.startsWith('@article'))")
    text = online.evaluate("navigator.clipboard.readText()")
    assert "2402.05738" in text and text.rstrip().endswith("}")
