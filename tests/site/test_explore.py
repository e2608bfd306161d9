"""The sliders of the built book, moved in a real browser without a network.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json
import re

import pytest
from read_back import data_of

from attnbias import GD, NGD, make_separation_pair, train
from book.widgets import slider_hands, slider_html
from tools.files import SITE

CHAPTERS = SITE / "book/paper"
FIGURES = {
    "slider-one-angles": "one_picture",
    "mnist-slider": "mnist",
    "slider-step-paths": "broken_steps",
    "slider-attention-map-along-the-run": "sparsification",
    "slider-svm-support": "attention_svm",
    "slider-bad-angle": "starts",
    "slider-fig2-window": "figure2",
    "slider-fig3-norms": "figure3",
}
ALONG_A_RUN = {  # and which of their controls goes along it
    "slider-one-angles": 0,
    "mnist-slider": 0,
    "slider-attention-map-along-the-run": 0,
    "slider-fig3-norms": 1,
}
PHONE = 390  # pixels wide
DRAWN = """Array.from(figure.querySelectorAll("[data-set]"),
  each => each.getAttribute(each.dataset.set))"""
pytestmark = pytest.mark.site


class Slider:
    """One figure on the page that is open: its controls by keyboard or finger, and its text."""

    def __init__(self, browser, name):
        self.browser, self.name = browser, name
        page = CHAPTERS / f"{FIGURES[name]}.html"
        assert page.is_file(), f"{page} is missing: run `make book`"
        browser.open(page, width=PHONE)

    def ask(self, expression):
        """A value of the page; `figure` is this figure, `inputs` are its controls."""
        return self.browser.evaluate(self.asked(expression))

    def asked(self, expression):
        return (
            f"(function () {{ const figure = document.getElementById({json.dumps(self.name)});"
            f"const inputs = figure.querySelectorAll('input'); return {expression}; }})()"
        )

    def wait_for(self, expression):
        """Wait until it is true: what a finger moves is drawn a frame later."""
        self.browser.wait_for(self.asked(expression))

    def move(self, *positions):
        """Every control to a position, from its left end, with the arrow keys."""
        for control, position in enumerate(positions):
            self.ask(f"inputs[{control}].focus()")
            self.browser.press("Home")
            self.browser.press("ArrowRight", position)
            assert self.ask(f"inputs[{control}].value") == str(position)
        return self.text

    @property
    def text(self):
        return self.ask("figure.querySelector('output').textContent")

    @property
    def values(self):
        """What each control says, aloud and on the page."""
        said = self.ask("Array.from(inputs, each => each.getAttribute('aria-valuetext'))")
        assert said == self.ask("Array.from(inputs, each => each.nextElementSibling.textContent)")
        return said


def held(table, data, positions):
    """What the figure's data have for these positions of the controls."""
    place = 0
    for control in table["on"]:
        place = place * len(data["controls"][control]) + positions[control]
    return table["values"][place]


@pytest.mark.parametrize("name", FIGURES)
def test_the_arrow_keys_show_what_the_figure_holds(browser, name):
    """What it holds is compared with the library where it is made, and by the notebooks' tests."""
    slider = Slider(browser, name)
    data = data_of(slider.ask("figure.querySelector('script').textContent"))
    seen = set()
    for share in (0, 0.3, 1):
        positions = [round(share * (len(values) - 1)) for values in data["controls"]]
        seen.add(slider.move(*positions))
        assert slider.text == held(data["text"], data, positions)
        chosen = zip(data["controls"], positions, strict=True)
        assert slider.values == [values[position] for values, position in chosen]
        drawn = slider.ask(DRAWN)
        assert drawn == [held(slot, data, positions) for slot in data["slots"]]
    assert len(seen) > 1


@pytest.mark.parametrize(("name", "control"), ALONG_A_RUN.items())
def test_a_run_opens_at_its_beginning_and_stands_at_its_end(browser, name, control):
    slider = Slider(browser, name)
    data = data_of(slider.ask("figure.querySelector('script').textContent"))
    opens = slider.ask("Array.from(inputs, each => Number(each.value))")
    assert opens[control] == 0 and data["start"][control] == len(data["controls"][control]) - 1
    assert slider.text == held(data["text"], data, opens)


@pytest.mark.parametrize("name", FIGURES)
def test_fits_a_phone_follows_a_finger_and_prints_what_stands_without_scripts(browser, name):
    slider = Slider(browser, name)
    data = data_of(slider.ask("figure.querySelector('script').textContent"))
    browser.scripts(False)
    try:
        stands = Slider(browser, name).text
    finally:
        browser.scripts(True)
    assert stands == held(data["text"], data, data["start"])
    slider = Slider(browser, name)
    for part in ("svg", "input", "output"):
        right = f"figure.querySelector('{part}').getBoundingClientRect().right"
        assert 0 < slider.ask(right) <= PHONE
    labels = slider.ask("Array.from(inputs, i => i.labels[0].firstElementChild.textContent)")
    assert all(labels) and len(set(labels)) == len(labels)

    slider.ask("inputs[0].scrollIntoView({block: 'center', behavior: 'instant'})")
    left, top, right, bottom = slider.ask(
        "(r => [r.left, r.top, r.right, r.bottom])(inputs[0].getBoundingClientRect())"
    )
    before = slider.move(0)
    assert bottom - top >= 24  # tall enough to be hit
    browser.touch(right - 8, (top + bottom) / 2)  # the middle of a thumb at the end
    slider.wait_for("inputs[0].value === inputs[0].max")
    assert slider.text != before

    moved = slider.move(1)
    browser.paper()
    slider.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert slider.text == stands
    assert slider.ask(DRAWN) == [held(slot, data, data["start"]) for slot in data["slots"]]
    assert slider.ask("getComputedStyle(figure.querySelector('.control')).display") == "none"
    slider.ask("window.dispatchEvent(new Event('afterprint'))")
    assert slider.text == moved


def test_lines_take_the_colours_of_the_page(browser):
    line = "getComputedStyle(figure.querySelector('polyline')).stroke"
    slider = Slider(browser, "slider-step-paths")
    for theme, colour in (("light", "rgb(0, 114, 178)"), ("dark", "rgb(86, 180, 233)")):
        slider.ask(f"document.documentElement.dataset.theme = '{theme}'")
        assert slider.ask(line) == colour


@pytest.mark.parametrize("name", FIGURES)
def test_without_scripts_a_picture_stands(browser, name):
    browser.scripts(False)
    try:
        slider = Slider(browser, name)
        assert slider.ask("figure.querySelector('.control').hidden")
        shown = "figure.querySelector(':scope > svg, .frame:not([hidden]) svg')"
        assert slider.ask(f"{shown}.getBoundingClientRect().height") > 100
        assert slider.text
    finally:
        browser.scripts(True)


def test_a_dead_slider_would_be_noticed(browser, tmp_path):
    markup = slider_html(["<p>0</p>", "<p>1</p>"], "along", name="slider-dead")
    page, said = tmp_path / "page.html", "document.querySelector('output').textContent"
    for text, alive in ((markup, True), (re.sub("(?s)<script>.*</script>", "", markup), False)):
        page.write_text(f"<!doctype html><meta charset=utf8>{text}", encoding="utf8")
        browser.open(page)
        browser.evaluate("document.querySelector('.control').hidden = false")
        browser.evaluate("document.querySelector('input').focus()")
        before = browser.evaluate(said)
        browser.press("ArrowRight")
        assert (browser.evaluate(said) != before) == alive


def test_a_clock_plays_once_stops_and_plays_again_and_rests_where_motion_is_not_welcome(
    browser, tmp_path
):
    data, rules = make_separation_pair(), {"GD": GD(1.0), "NGD": NGD(1.0)}
    runs = {name: train(data, rule, 100, record=[0, 1, 10, 100]) for name, rule in rules.items()}
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf8>{slider_hands(runs, label='x')}")
    button, value = "document.querySelector('button')", "document.querySelector('input').value"

    def state():
        return browser.evaluate(f"[{value}, {button}.textContent, {button}.hidden]")

    browser.open(page)
    browser.wait_for(f"{value} === '3'")
    assert state() == ["3", "Play", False]
    browser.evaluate(f"{button}.click()")
    assert state() == ["0", "Pause", False]
    browser.wait_for(f"{value} === '1'")
    browser.evaluate(f"{button}.click()")
    stopped = state()
    assert stopped[1] == "Play"
    browser.evaluate("new Promise(done => setTimeout(done, 400))")
    assert state() == stopped
    browser.evaluate(f"{button}.click()")
    browser.evaluate("document.querySelector('input').focus()")
    browser.press("Home")
    assert state() == ["0", "Play", False]  # a reader's hand stops it
    browser.tab.emulate_media(reduced_motion="reduce")
    try:
        browser.open(page)
        browser.evaluate("new Promise(done => setTimeout(done, 400))")
        assert state() == ["3", "Play", False]
    finally:
        browser.tab.emulate_media(reduced_motion="no-preference")


def test_a_table_is_filtered_by_a_word_and_sorted_by_a_column(browser):
    browser.open(SITE / "book/appendix/optimizer_atlas.html", width=1200)
    rows = "[...document.querySelectorAll('.sortable tbody tr')]"
    names = f"{rows}.filter(row => !row.hidden).map(row => row.cells[0].textContent)"
    every = browser.evaluate(names)
    browser.evaluate("document.querySelector('.sortable input').focus()")
    browser.tab.keyboard.type("muon")
    found = browser.evaluate(names)
    assert 1 < len(found) < len(every) and all("muon" in name.lower() for name in found)
    at = "[...document.querySelectorAll('.sortable th button')].find(b => b.textContent === 'max')"
    value = "row => +row.cells[2].dataset.value"
    for order in (1, -1):
        browser.evaluate(f"{at}.focus()")
        browser.press("Enter")
        values = browser.evaluate(f"{rows}.map({value})")
        assert values == sorted(values, reverse=order < 0) and len(values) == len(every)
