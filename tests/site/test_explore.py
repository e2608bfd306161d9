"""The sliders of the built book, moved in a real browser without a network.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json
import re

import numpy as np
import pytest
from browser import Page, or_skip

from attnbias import (
    GD,
    NGD,
    Dataset,
    InfeasibleError,
    fit_rate,
    make_bad_start,
    solve_w_svm,
    train,
)
from attnbias.experiments import attention_snapshots, fig2, fig3
from book.widgets import row_plane, slider_html
from tools.browser import find_browser
from tools.chapters import ROOT

CHAPTERS = ROOT / "_build" / "html" / "book" / "paper"
FIGURES = {
    "slider-step-paths": "step_sizes",
    "slider-attention-map-along-the-run": "sparsification",
    "slider-svm-support": "attention_svm",
    "slider-bad-angle": "bad_start",
    "slider-fig2-window": "figure2",
    "slider-fig3-norms": "figure3",
}
PHONE = 390  # pixels wide
HEAVIEST_PAGE, HEAVIEST_FIGURE = 1_000_000, 100_000
NUMBER = re.compile(r"(?<![\w.|])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def browser():
    or_skip(find_browser)
    with Page() as browser:
        browser.offline()
        yield browser


class Slider:
    """One figure on the page that is open: its controls by keyboard or finger, and its text."""

    def __init__(self, browser, name):
        self.browser, self.name = browser, name
        page = CHAPTERS / f"{FIGURES[name]}.html"
        assert page.is_file(), f"{page} is missing: run `make book`"
        browser.open(page, width=PHONE)

    def ask(self, expression):
        """A value of the page; `figure` is this figure, `inputs` are its controls."""
        return self.browser.evaluate(
            f"(function () {{ const figure = document.getElementById({json.dumps(self.name)});"
            f"const inputs = figure.querySelectorAll('input'); return {expression}; }})()"
        )

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
        count = self.ask("inputs.length")
        said = [self.ask(f"inputs[{k}].getAttribute('aria-valuetext')") for k in range(count)]
        shown = [self.ask(f"inputs[{k}].nextElementSibling.textContent") for k in range(count)]
        assert said == shown
        return said

    def numbers(self):
        return [float(number) for number in NUMBER.findall(self.text)]


def close(shown, wanted):
    """Whether the numbers shown, of two decimals or two digits, are those wanted."""
    return len(shown) == len(wanted) and all(
        abs(a - b) <= (0.0051 if b >= 0.01 else 0.051 * b)
        for a, b in zip(shown, wanted, strict=True)
    )


def test_paths_follow_rule_and_step_size(browser):
    slider = Slider(browser, "slider-step-paths")
    data, W0 = fig2.instance(seed=0)
    chosen = {(0, 6): GD(3.0), (1, 3): NGD(0.1), (2, 3): NGD(0.1, momentum=0.9)}
    for position, rule in chosen.items():
        slider.move(*position)
        run = train(data, rule, 1000, W0=60 * W0, record=[10, 100, 1000])
        wanted = [x for pair in zip(run.W_alignment_error, run.step, strict=True) for x in pair]
        shown = slider.numbers()
        assert close(shown[2:-1], wanted), slider.text
        assert abs(shown[-1] - run.W_norm[-1]) <= 0.051
    assert slider.values == ["NGD with momentum", "0.1"]


def test_attention_sharpens(browser):
    slider = Slider(browser, "slider-attention-map-along-the-run")
    data, W0 = fig2.instance(seed=0)
    steps = [int(slider.move(k).split(",")[0].split()[1]) for k in range(3)]
    shots = attention_snapshots(data, NGD(0.1), steps, W0=W0)
    for k, attention in enumerate(shots.attention):
        slider.move(k)
        drawn = slider.ask(
            "Array.from(figure.querySelectorAll('rect[data-set]'),"
            " cell => cell.getAttribute('fill-opacity'))"
        )
        assert np.allclose(np.array(drawn, dtype=float), attention.ravel(), atol=0.0051)
    assert steps == sorted(set(steps))


def test_support_tokens_follow_the_token_that_moves(browser):
    slider = Slider(browser, "slider-svm-support")
    seen = set()
    for x, y in ((6, 0), (10, 5), (2, 8), (6, 12)):
        text = slider.move(x, y)
        token = [-1.5 + 0.25 * x, -1.5 + 0.25 * y]
        assert slider.values == [f"{each:g}" for each in token]
        data = Dataset([[[1.0, 0], [0, 1], [-1, -1], token]], [1])
        try:
            solution = solve_w_svm(data, opt=[1])
        except InfeasibleError:
            assert text.startswith("no W attends to token 2")
            seen.add("infeasible")
            continue
        assert f"margin {solution.margin:.2f}" in text
        rings = slider.ask(
            "Array.from(figure.querySelectorAll('path[data-set=d]'))"
            ".filter(path => path.getAttribute('d')).length"
        )
        assert rings == len(solution.support)
        seen.add(text)
    assert "infeasible" in seen
    assert len(seen) >= 3


def test_figure_8_from_an_angle(browser):
    slider = Slider(browser, "slider-bad-angle")
    data, _ = make_bad_start()
    svm = solve_w_svm(data)
    for which, rule in enumerate((GD(1.0), NGD(0.1))):
        for k in (3, 12):
            text = slider.move(which, k)
            run = train(data, rule, 1000, W0=row_plane(svm, 4.0, 15 * k), record=range(1001))
            wrong = np.flatnonzero((run.gaps <= 0).any(axis=1))
            since = wrong[-1] + 1 if len(wrong) else 0
            assert f"from step {since} on" in text
            assert close(slider.numbers()[-1:], run.W_alignment_error[-1:])
            assert slider.values[1] == f"{15 * k}°"


def test_the_window_shows_what_fit_rate_gives(browser):
    slider = Slider(browser, "slider-fig2-window")
    data, W0 = fig2.instance(seed=1)
    long = train(data, NGD(1.0), 10**5, W0=W0, record=200)
    seen = long.step >= 10
    exponents = set()
    for begin, length in ((0, 1), (9, 1), (15, 3), (0, 5)):
        slider.move(begin, length)
        first, last, *shown = slider.numbers()
        fit = fit_rate(long.step[seen], long.W_alignment_error[seen], window=(first, last))
        assert np.allclose(shown, [fit.exponent, *fit.interval], atol=0.0051)
        assert float(slider.values[0]) == first
        exponents.add(shown[0])
    assert len(exponents) == 4


def test_one_norm_or_two(browser):
    slider = Slider(browser, "slider-fig3-norms")
    data, _ = fig3.instance(0)
    norms = set()
    for size, at in ((1, 10), (3, 20)):
        slider.move(size, at)
        eta, step = float(slider.values[0]), int(slider.values[1])
        runs = [
            train(data, NGD(eta, normalise=way), step, train_u=True, record=[step])
            for way in ("separate", "shared")
        ]
        wanted = [run.W_norm[0] for run in runs] + [run.W_alignment_error[0] for run in runs]
        assert close(slider.numbers(), [step, *wanted[:2], 1, *wanted[2:]]), slider.text
        norms.add(wanted[0])
    assert len(norms) == 2


@pytest.mark.parametrize("name", FIGURES)
def test_fits_a_phone_follows_a_finger_and_prints_its_first_picture(browser, name):
    slider = Slider(browser, name)
    first = slider.text, slider.ask("figure.querySelector('svg').outerHTML")
    for part in ("svg", "input", "output"):
        right = f"figure.querySelector('{part}').getBoundingClientRect().right"
        assert 0 < slider.ask(right) <= PHONE
    labels = slider.ask("Array.from(inputs, i => i.labels[0].firstElementChild.textContent)")
    assert all(labels)
    assert len(set(labels)) == len(labels)

    slider.ask("inputs[0].scrollIntoView({block: 'center', behavior: 'instant'})")
    left, top, right, bottom = slider.ask(
        "(r => [r.left, r.top, r.right, r.bottom])(inputs[0].getBoundingClientRect())"
    )
    before = slider.move(0)
    assert bottom - top >= 24  # tall enough to be hit
    browser.touch(right - 10, (top + bottom) / 2)
    assert slider.ask("inputs[0].value === inputs[0].max")
    assert slider.text != before

    moved = slider.move(1)
    assert moved != first[0]
    browser.paper()
    slider.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert (slider.text, slider.ask("figure.querySelector('svg').outerHTML")) == first
    assert slider.ask("getComputedStyle(figure.querySelector('.control')).display") == "none"
    slider.ask("window.dispatchEvent(new Event('afterprint'))")
    assert slider.text == moved


def test_lines_take_the_colours_of_the_page(browser):
    line = "getComputedStyle(figure.querySelector('polyline')).stroke"
    slider = Slider(browser, "slider-step-paths")
    light = slider.ask(line)
    slider.ask("document.documentElement.dataset.theme = 'dark'")
    dark = slider.ask(line)
    assert light == "rgb(0, 114, 178)"
    assert dark == "rgb(86, 180, 233)"


@pytest.mark.parametrize("name", FIGURES)
def test_without_scripts_a_picture_stands(browser, name):
    browser.scripts(False)
    try:
        slider = Slider(browser, name)
        assert slider.ask("figure.querySelector('.control').hidden")
        assert slider.ask("figure.querySelector('svg').getBoundingClientRect().height") > 100
        assert NUMBER.search(slider.text)
    finally:
        browser.scripts(True)


@pytest.mark.parametrize("name", FIGURES)
def test_page_and_figure_are_light(name):
    page = (CHAPTERS / f"{FIGURES[name]}.html").read_text(encoding="utf8")
    start = page.index(f'id="{name}"')
    assert len(page.encode()) < HEAVIEST_PAGE
    assert page.index("</figure>", start) - start < HEAVIEST_FIGURE


def test_a_dead_slider_would_be_noticed(browser, tmp_path):
    markup = slider_html(["<p>0</p>", "<p>1</p>"], "along", name="slider-dead")
    for text, alive in ((markup, True), (re.sub("(?s)<script>.*</script>", "", markup), False)):
        page = tmp_path / "page.html"
        page.write_text(f"<!doctype html><meta charset=utf8>{text}", encoding="utf8")
        browser.open(page)
        browser.evaluate("document.querySelector('.control').hidden = false")
        browser.evaluate("document.querySelector('input').focus()")
        before = browser.evaluate("document.querySelector('output').textContent")
        browser.press("ArrowLeft")
        assert (browser.evaluate("document.querySelector('output').textContent") != before) == alive
