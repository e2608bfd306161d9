"""The first page, opened on a desk and on a phone, and the race on it."""

import time

import pytest

from tools.files import SITE

PAGE = SITE / "book/intro.html"
LABORATORY = "document.getElementById('laboratory')"
FIGURE = "document.querySelector('.opening figure')"
TRAINED = "document.querySelector('.race')?.dataset.state === 'done'"
BUTTON, STEP = ".race button", "document.querySelector('.race .step').textContent"
WORD = f"document.querySelector('{BUTTON}').textContent"
PLACES = """Object.fromEntries([...document.querySelectorAll("[data-racer]:not([hidden])")].map(
  (each) => [each.dataset.racer, each.querySelector(".place").innerHTML]))"""
SHOWN = """[".opening figure img", ".race"].map(
  (name) => document.querySelector(name)?.checkVisibility({visibilityProperty: true}) ?? false)"""
LETTERS = """(() => {
  const svg = document.querySelector(".race > svg");
  const scale = svg.getBoundingClientRect().width / 360;
  const sizes = (where, name) => [...where.querySelectorAll(name)].map(
    (each) => parseFloat(getComputedStyle(each).fontSize));
  return Math.min(...sizes(svg, "text, tspan").map((size) => size * scale),
    ...sizes(svg.parentElement, "b, sub, sup, .who, .place, .step, button"));
})()"""
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
    assert first <= SCREEN[390]
    assert browser.evaluate(f"{FIGURE}.getBoundingClientRect().bottom") <= 2 * SCREEN[390]
    assert browser.evaluate("document.scrollingElement.scrollWidth") == 390


def test_before_it_is_in_view_the_race_stands_at_its_start_without_a_gap(browser):
    browser.open(PAGE, width=390, height=SCREEN[390] // 2)
    browser.wait_for(TRAINED)
    assert browser.evaluate(SHOWN) == [False, True]
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    assert browser.evaluate(f"[{STEP}, {WORD}]") == ["Step 0", "Play"]
    gap = f"""{FIGURE}.getBoundingClientRect().bottom
      - document.querySelector({BUTTON!r}).getBoundingClientRect().bottom"""
    assert browser.evaluate(gap) < 24
    browser.evaluate(f"{FIGURE}.scrollIntoView()")
    browser.wait_for(f"{WORD} === 'Pause'")


def test_the_entry_is_copied_by_a_button(online):
    online.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    online.open(PAGE, width=1200)
    online.tab.hover(".highlight-bibtex")
    online.tab.click(".highlight-bibtex .copybtn")
    online.wait_for("navigator.clipboard.readText().then((text) => text.startsWith('@article'))")
    text = online.evaluate("navigator.clipboard.readText()")
    assert "2402.05738" in text and text.rstrip().endswith("}")


# --- the race ------------------------------------------------------------------------------------


def opened(browser, width=1200):
    browser.open(PAGE, width=width, height=SCREEN[width])
    browser.evaluate(f"{FIGURE}.scrollIntoView()")
    browser.wait_for(f"document.querySelector('{BUTTON}') && {WORD} === 'Pause'")


def test_it_plays_once_in_view_and_ends_at_the_laboratorys_numbers(browser):
    opened(browser)
    begun = time.monotonic()
    assert browser.evaluate(WORD) == "Pause" and browser.evaluate(SHOWN) == [False, True]
    early = browser.evaluate(PLACES)
    browser.wait_for(f"{WORD} === 'Play'")
    assert 3 < time.monotonic() - begun < 12
    assert browser.evaluate(STEP) == "Step 10,000"
    found = browser.evaluate(PLACES)
    assert found != early and set(found) == {"GD", "NGD", "momentum", "Polyak"}
    browser.tab.click(".opening a[href*='laboratory.html']")
    browser.wait_for(f"{LABORATORY}?.dataset.state === 'done'")
    assert browser.evaluate("location.hash") == "#first-picture&at=10000"
    assert browser.evaluate(PLACES) == found


def test_keys_and_fingers_play_and_pause_it(browser):
    opened(browser)
    browser.evaluate(f"document.querySelector('{BUTTON}').focus()")
    browser.press("Space")
    paused = browser.evaluate(STEP)
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    assert browser.evaluate(STEP) == paused != "Step 10,000"
    browser.press("Enter")
    browser.wait_for(f"{STEP} !== '{paused}'")
    browser.wait_for(f"{WORD} === 'Play'")
    box = browser.tab.locator(BUTTON).bounding_box()
    browser.touch(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    browser.fingers(False)
    browser.wait_for(f"{WORD} === 'Pause' && {STEP} !== 'Step 10,000'")


@pytest.mark.parametrize("width", SCREEN)
def test_its_letters_can_be_read(browser, width):
    opened(browser, width)
    assert browser.evaluate(LETTERS) >= 12
    browser.style(".opening .race { max-width: 15rem !important; }")
    assert browser.evaluate(LETTERS) < 12


def test_the_still_picture_stands_on_paper_without_scripts_and_for_less_motion(browser):
    opened(browser)
    browser.paper()
    assert browser.evaluate(SHOWN) == [True, False]
    browser.scripts(False)
    browser.open(PAGE, width=1200)
    assert browser.evaluate(SHOWN) == [True, False]
    browser.scripts(True)
    browser.tab.emulate_media(reduced_motion="reduce")
    browser.open(PAGE, width=1200)
    browser.evaluate("new Promise(done => setTimeout(done, 1000))")
    assert browser.evaluate(SHOWN) == [True, False]
    browser.tab.emulate_media(reduced_motion="no-preference")
    opened(browser)
    assert browser.evaluate(SHOWN) == [False, True]
