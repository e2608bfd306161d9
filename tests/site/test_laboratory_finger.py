"""Fingers in the laboratory: a token follows the one that took it, and all others scroll.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import numpy as np
import pytest
from browser import DRAWN
from test_laboratory_page import PHONE, PRESETS, Lab

from tools.files import SITE

MOVES = 12
WAY = np.array([-42.0, 70.0])  # pixels: sideways and downwards
BESIDE = np.array([-15.0, 12.0])  # in the disc of u, outside of a token that stands on it
HEARD = """window.heard = {pointercancel: 0, pointermove: 0};
for (const kind in heard) addEventListener(kind, () => { heard[kind] += 1; }, true);"""
SCROLLED = "Math.round(document.scrollingElement.scrollTop)"
pytestmark = pytest.mark.site


class Finger:
    """Touches on the open page, one list of points an event."""

    def __init__(self, browser):
        self.browser = browser
        browser.fingers(True)
        browser.evaluate(HEARD)

    def send(self, kind, *points):
        """One event: the fingers that are down, or one of two that is lifted, the second."""
        first = 1 if kind == "touchEnd" else 0
        named = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points, first)]
        self.browser.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": named})

    def draw(self, start, way):
        """Down, many small moves, and up: where it ends, what was heard, how far it scrolled."""
        self.browser.evaluate(DRAWN)  # a frame knows where the tokens are now
        before = self.browser.evaluate(SCROLLED)
        self.send("touchStart", start)
        for k in range(1, MOVES + 1):
            self.send("touchMove", start + way * k / MOVES)
        self.send("touchEnd")
        self.browser.evaluate("new Promise(done => setTimeout(done, 100))")
        heard = self.browser.evaluate(
            "const each = {...heard}; for (const kind in heard) heard[kind] = 0; each"
        )
        return heard, self.browser.evaluate(SCROLLED) - before


def taken_at(browser, at):
    """The name of what a finger takes there, or None."""
    x, y = at
    return browser.evaluate(
        f"document.elementFromPoint({x}, {y}).closest('g.drag')?.dataset.name ?? null"
    )


def place(browser, name):
    """Where a token stands, as it is read out."""
    words = f"document.querySelector('g.drag[data-name=\"{name}\"]').getAttribute('aria-valuetext')"
    return np.array([float(each) for each in browser.evaluate(words).split(",")])


def under(lab, at):
    """The same in the plane for a place on the screen, which no token leaves."""
    box = "document.querySelector('[data-lab=plane]').getBoundingClientRect()"
    left, top = lab.browser.evaluate(f"[{box}.left, {box}.top]")
    size = 360 / 64 / 2 * lab.scale
    return np.clip((np.array(at) - [left, top] - size) * [1, -1] / lab.scale, -2.6, 2.6)


@pytest.mark.parametrize("preset", PRESETS)
def test_everything_that_is_dragged_follows_a_finger(browser, preset):
    lab = Lab(browser, preset, width=PHONE)
    finger, seen = Finger(browser), set()
    names = browser.evaluate("[...document.querySelectorAll('g.drag')].map(g => g.dataset.name)")
    for name in names:
        start = lab.middle(name) + BESIDE * (name == "u")
        for way in (WAY, -WAY):
            held = taken_at(browser, start)
            heard, scrolled = finger.draw(start, way)
            seen.add(held)
            assert heard["pointercancel"] == scrolled == 0
            assert heard["pointermove"] >= MOVES - 2  # a browser may join two
            # a pixel, and hundredths
            assert place(browser, held) == pytest.approx(under(lab, start + way), abs=0.025)
            start = lab.middle(held)
    assert "u" in seen and len(seen) > len(names) / 2  # some stand on one another
    browser.fingers(False)


def empty_place(lab):
    """A place of the plane far from all that can be taken: its corner."""
    lab.middle("u")
    box = "document.querySelector('[data-lab=plane]').getBoundingClientRect()"
    corner = np.array(lab.browser.evaluate(f"[{box}.right - 30, {box}.bottom - 30]"))
    assert taken_at(lab.browser, corner) is None
    return corner


def test_a_finger_beside_the_tokens_scrolls_the_page(browser):
    lab = Lab(browser, width=PHONE)
    lines, start = lab.ask("python"), empty_place(lab)
    heard, scrolled = Finger(browser).draw(start, np.array([0.0, -90.0]))
    assert heard["pointercancel"] == 1 and scrolled > 40
    assert lab.ask("python") == lines
    browser.fingers(False)


def test_a_swipe_beside_the_tokens_leads_to_the_next_picture_and_the_buttons_to_all(browser):
    lab = Lab(browser, width=PHONE)
    pressed = "document.querySelector('[data-tab][aria-pressed=true]').dataset.tab"
    shown = "[...document.querySelectorAll('.lab figure')].filter(f => { const r ="
    shown += " f.getBoundingClientRect(); return r.left > -5 && r.right < innerWidth + 5; })"
    shown += ".map(f => f.dataset.picture).join()"
    lines, start = lab.ask("python"), empty_place(lab)
    _, scrolled = Finger(browser).draw(start, np.array([-250.0, 0.0]))
    browser.wait_for(f"{pressed} === 'compass' && {shown} === 'compass'")
    assert scrolled == 0 and lab.ask("python") == lines
    for name in ("attention", "error", "plane"):
        browser.tab.click(f"[data-tab={name}]")
        browser.wait_for(f"{pressed} === '{name}' && {shown} === '{name}'")
    browser.fingers(False)


def test_a_second_finger_moves_nothing_that_the_first_holds(browser):
    lab = Lab(browser, width=PHONE)
    finger, beside, first = Finger(browser), empty_place(lab), np.array(lab.middle("0.1"))
    finger.send("touchStart", first)
    finger.send("touchStart", first, beside)
    for k in range(1, MOVES + 1):
        finger.send("touchMove", first + [2 * k, 0], beside - [0, 5 * k])
    finger.send("touchEnd", beside - [0, 5 * MOVES])  # the second alone; the first goes on
    finger.send("touchMove", first + [3 * MOVES, 0])
    finger.send("touchEnd")
    end = under(lab, first + [3 * MOVES, 0])
    assert place(browser, "0.1") == pytest.approx(end, abs=0.025)
    assert browser.evaluate("heard.pointercancel") == 0
    assert browser.evaluate("document.querySelectorAll('.held').length") == 0
    browser.fingers(False)


def test_two_fingers_drag_two_tokens(browser):
    lab = Lab(browser, width=PHONE)
    finger, starts = Finger(browser), [np.array(lab.middle(name)) for name in ("0.1", "1.0")]
    finger.send("touchStart", starts[0])
    finger.send("touchStart", *starts)
    for k in range(1, MOVES + 1):
        finger.send("touchMove", starts[0] + [2 * k, k], starts[1] - [k, 2 * k])
    finger.send("touchEnd")
    for name, end in zip(("0.1", "1.0"), (starts[0] + [24, 12], starts[1] - [12, 24]), strict=True):
        assert place(browser, name) == pytest.approx(under(lab, end), abs=0.025)
    browser.fingers(False)


SLIDERS = {
    "book/laboratory": "[data-lab=time]",
    "book/paper/one_picture": ".bd-article figure input[type=range]",
}


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_follows_a_finger(browser, name):
    browser.open(SITE / f"{name}.html", width=PHONE)
    slider = f"document.querySelector('{SLIDERS[name]}')"
    browser.wait_for(f"{slider}.offsetWidth > 0")
    browser.evaluate(f"{slider}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    left, width, y = browser.evaluate(
        f"(r => [r.left, r.width, r.top + r.height / 2])({slider}.getBoundingClientRect())"
    )
    most = browser.evaluate(f"Number({slider}.max)")
    start = np.array([left + width * 0.1, y])
    _, scrolled = Finger(browser).draw(start, np.array([width * 0.5, 6.0]))
    share = browser.evaluate(f"Number({slider}.value)") / most
    assert share == pytest.approx(0.6, abs=0.06 + 0.5 / most) and scrolled == 0
    browser.fingers(False)


def test_escape_puts_a_held_token_back(browser):
    lab = Lab(browser)
    x, y = lab.middle("0.1")
    before = lab.ask("python")
    browser.tab.mouse.move(x, y)
    browser.tab.mouse.down()
    browser.tab.mouse.move(x + 40, y, steps=4)
    assert lab.ask("python") != before
    browser.press("Escape")
    assert lab.ask("python") == before
    browser.tab.mouse.move(x + 80, y)
    browser.tab.mouse.up()
    lab.wait()
    assert lab.ask("python") == before
