"""The file of slides in a browser: turned by keys, clicks and swipes, printed, and alone."""

import pytest

from tools.files import SITE

DECK = SITE / "slides.html"
SHOWN = """[...document.querySelectorAll(".slide")].flatMap(
  (slide, k) => slide.checkVisibility() ? [k + 1] : [])"""
PICTURES = """[...document.querySelectorAll(".slide")].map(
  (slide) => slide.querySelector(".squares") ? 1 : slide.querySelector("img").naturalWidth)"""
# What sticks out of each slide, in pixels, while it is shown; and how small its letters are.
OUT = """[...document.querySelectorAll(".slide")].map((slide, k) => {
  dispatchEvent(new KeyboardEvent("keydown", { key: k ? "ArrowRight" : "Home" }));
  const box = slide.getBoundingClientRect();
  const ends = [...slide.querySelectorAll(":scope > *, .told *")].map(
    (each) => each.getBoundingClientRect());
  return Math.max(...ends.flatMap((each) => [each.bottom - box.bottom, each.right - box.right]));
})"""
pytestmark = pytest.mark.site


def opened(browser, width=1280, height=720):
    browser.open(DECK, width=width, height=height)


def test_it_is_one_light_file_that_asks_for_nothing(browser):
    assert DECK.stat().st_size < 1_000_000
    asked = []
    browser.tab.on("request", lambda request: asked.append(request.url))
    opened(browser)
    browser.press("End")
    browser.wait_for("[...document.images].every((each) => each.complete)")
    assert [url for url in asked if not url.startswith("data:")] == [DECK.resolve().as_uri()]
    assert len(browser.evaluate(PICTURES)) == 12 and min(browser.evaluate(PICTURES)) > 0
    assert r"\(" not in browser.evaluate("document.querySelector('main').textContent")
    browser.evaluate(
        "new Promise((done) => { const image = new Image(); image.onerror = done;"
        "image.src = 'missing.png'; })"
    )
    assert asked[-1].endswith("missing.png")  # a request would be noticed


def test_keys_clicks_and_swipes_turn_it(browser):
    opened(browser)
    assert browser.evaluate(SHOWN) == [1]
    for key, slide in [("ArrowRight", 2), ("Space", 3), ("PageUp", 2), ("ArrowLeft", 1)]:
        browser.press(key)
        assert browser.evaluate(SHOWN) == [slide], key
    browser.press("ArrowLeft")
    assert browser.evaluate(SHOWN) == [1]
    browser.press("End")
    browser.press("ArrowRight")
    assert browser.evaluate(SHOWN) == [12]
    assert browser.evaluate("[document.querySelector('output').textContent, location.hash]") == [
        "12 / 12",
        "#s12",
    ]
    browser.press("Home")
    browser.tab.mouse.click(1200, 40)
    assert browser.evaluate(SHOWN) == [2]
    browser.tab.mouse.click(20, 400)
    assert browser.evaluate(SHOWN) == [1]
    browser.fingers(True)
    for kind, x in (("touchStart", 900), ("touchMove", 600), ("touchEnd", None)):
        points = [] if x is None else [{"x": x, "y": 300}]
        browser.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    browser.fingers(False)
    assert browser.evaluate(SHOWN) == [2]


def test_what_to_say_and_the_night_have_keys(browser):
    opened(browser)
    said, ground = "document.querySelector('.shown .said')", "getComputedStyle(document.body).color"
    day = browser.evaluate(ground)
    assert not browser.evaluate(f"{said}.checkVisibility()")
    browser.press("n")
    assert browser.evaluate(f"{said}.open && {said}.checkVisibility()")
    browser.press("d")
    assert browser.evaluate(ground) != day
    browser.press("d")
    browser.press("n")
    assert browser.evaluate(ground) == day and not browser.evaluate(f"{said}.checkVisibility()")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1024, 768), (844, 390)])
def test_nothing_sticks_out_of_a_slide(browser, width, height):
    opened(browser, width, height)
    assert max(browser.evaluate(OUT)) <= 0
    browser.style(".told { font-size: 2.4em }")
    assert max(browser.evaluate(OUT)) > 0


def test_upright_and_without_scripts_all_stand_below_each_other(browser):
    opened(browser, 390, 844)
    assert browser.evaluate(SHOWN) == [*range(1, 13)]
    assert browser.evaluate("document.scrollingElement.scrollWidth") == 390
    browser.scripts(False)
    opened(browser)
    assert browser.evaluate(SHOWN) == [*range(1, 13)]
    browser.scripts(True)
    opened(browser)
    assert browser.evaluate(SHOWN) == [1]
