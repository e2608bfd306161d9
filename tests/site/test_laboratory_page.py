"""The laboratory's page, driven by keys, mouse and finger in a real browser without a network.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json
import re

import numpy as np
import pytest
from test_laboratory import SAME

from scripts.draw_laboratory import DRAWN, MARKUP
from tools.files import SITE

PAGE = SITE / "book/laboratory.html"
PHONE, DESK = 390, 1200  # pixels wide
LOCKED = {"clash": "looks locked", "score-trap": "has locked", "lock-challenge": "has locked"}
PRESETS = [
    *("first-picture", "plain-float64", "clash", "score-trap"),
    *("lock-challenge", "degenerate", "figure-8", "both"),
]
DONE = "document.getElementById('laboratory').dataset.state === 'done'"
pytestmark = pytest.mark.site


class Lab:
    """The page that is open, by the names of its parts."""

    def __init__(self, browser, address="", width=DESK):
        assert PAGE.is_file(), f"{PAGE} is missing: run `make book`"
        self.browser = browser
        browser.open(PAGE, width=width)
        if address:
            self.go(address)
        browser.wait_for(DONE)

    def go(self, address):
        """Change the address, and let the page hear of it."""
        self.browser.evaluate(
            f"""new Promise(done => {{
              addEventListener("hashchange", () => setTimeout(done, 0), {{once: true}});
              location.hash = {json.dumps(address)};
            }})"""
        )

    def wait(self):
        """Until the run has ended, and its address is kept."""
        self.browser.wait_for(DONE)
        self.browser.evaluate("new Promise(done => setTimeout(done, 500))")

    def ask(self, name, what="textContent"):
        return self.browser.evaluate(f"document.querySelector('[data-lab=\"{name}\"]').{what}")

    def choose(self, name, value):
        if name == "rule":
            self.browser.tab.check(f"[name=lab-rule][value={value}]")
        else:
            self.browser.tab.select_option(f"[data-lab={name}]", value)
        self.wait()

    def end(self):
        """Show the last step."""
        self.browser.evaluate("document.getElementById('lab-time').focus()")
        self.browser.press("End")
        self.wait()

    @property
    def last(self):
        """The last record of the engine on the page's set-up, and the set-up."""
        return self.browser.evaluate(
            """(() => {
              const kept = location.hash || "#first-picture", setup = Laboratory.fromHash(kept);
              const run = Laboratory.train(Laboratory.runnable(setup), [setup.steps]);
              return {setup, record: run.records[0], python: Laboratory.asPython(setup)};
            })()"""
        )

    def middle(self, token):
        """Where a token is on the screen."""
        box = (
            f"document.querySelector('g.drag[data-name=\"{token}\"] .hit').getBoundingClientRect()"
        )
        self.browser.evaluate(
            "document.querySelector('[data-lab=plane]').scrollIntoView("
            "{block: 'center', behavior: 'instant'})"
        )
        return self.browser.evaluate(f"(r => [r.left + r.width / 2, r.top + r.height / 2])({box})")

    @property
    def scale(self):
        """Pixels a unit of the plane."""
        return self.ask("plane", "getBoundingClientRect().width") * 64 / 360


def executed(lines):
    """The trace that the shown lines make."""
    names = {}
    exec(lines.replace("print(trace)", ""), names)
    return names["trace"]


def check_against_train(lab):
    """The page's number, and its engine's last W, beside what the shown lines give."""
    lab.end()
    found = lab.last
    assert found["python"] == lab.ask("python")
    trace, record = executed(found["python"]), found["record"]
    assert abs(trace.W.numpy().ravel() - record["W"]).max() < SAME * trace.W_norm[-1]
    assert record["error"] == pytest.approx(trace.W_alignment_error[-1], rel=SAME)
    said = re.search(r"cosine ([\d.]+)(?: · 10<sup>(−\d+)</sup>)?", lab.ask("readout", "innerHTML"))
    power = int((said[2] or "0").replace("−", "-"))
    assert float(said[1]) * 10**power == pytest.approx(record["error"], rel=0.051)  # two digits
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_opens_by_its_name_and_its_lines_reproduce_it(browser, name):
    lab = Lab(browser, name)
    assert lab.ask("preset", "value") == name
    assert browser.evaluate(f"document.getElementById('{name}') !== null")  # links are checked
    check_against_train(lab)
    said = lab.ask("said")
    assert [word in said for word in ("locked", "its optimal one")] == [
        name in LOCKED,
        name not in ("score-trap", "lock-challenge"),
    ]
    assert LOCKED.get(name, "") in said
    assert ("touch without support" in said) == (name == "degenerate")


# What the words say of a change: the set-up, the change, the last slope, and who is lost.
RIGHT, FAST = [False] * 3, (-2.05, -1.95)
FAR = {"W0": [[0, 0], [12, 12]]}
GAP_30 = {"X": [[[1, 0], [-1, 1], [0.5, -0.2]]], "u": [1, 1.74]}
PROMISES = {
    "GD creeps": ("first-picture", {"rule": "GD"}, (-0.6, 0), RIGHT),
    "1/t^2": ("first-picture", {}, FAST, RIGHT),
    "so does momentum": ("first-picture", {"momentum": 0.9}, FAST, RIGHT),
    "so does Polyak": ("first-picture", {"rule": "Polyak"}, FAST, RIGHT),
    "lost for good": ("clash", {}, (-0.1, 0.1), [True, False]),
    "with GD": ("clash", {"rule": "GD"}, (-0.5, 0.1), [True, False]),
    "with momentum": ("clash", {"momentum": 0.9}, (-0.1, 0.1), [True, False]),
    "with Polyak": ("clash", {"rule": "Polyak"}, (-99, 99), [True, False]),
    "halve u": ("clash", {"u": [0, 1]}, FAST, [False, False]),
    "below 0.95": ("score-trap", {"u": [1, 1.18]}, FAST, [False]),
    "a gap of 8% locks": ("lock-challenge", {}, (-0.5, 0.5), [True]),
    "a gap of 30% locks": ("lock-challenge", GAP_30, (-0.5, 0.5), [True]),
    "short of -2": ("degenerate", {}, (-1.95, -1.5), [False]),
    "left": ("degenerate", {"X": [[[1, 0], [0, 0], [-0.05, -1]]]}, (-2.01, -1.99), [False]),
    "right": ("degenerate", {"X": [[[1, 0], [0, 0], [0.05, -1]]]}, (-2.01, -1.99), [False]),
    "finds its way": ("figure-8", {}, (-0.5, 0), [False, False]),
    "GD is not back": ("figure-8", FAR, (-0.5, 0), [True, False]),
    "NGD is": ("figure-8", FAR | {"rule": "NGD", "steps": 12}, (-9, 0), [False, False]),
}


@pytest.mark.parametrize("words", PROMISES)
def test_what_the_menu_promises_is_so(browser, words):
    name, change, slopes, lost = PROMISES[words]
    Lab(browser, name)
    slope, wrong = browser.evaluate(
        f"""(() => {{
          const setup = {{...Laboratory.PRESETS[{name!r}].setup, ...{json.dumps(change)}}};
          const {{records}} = Laboratory.train(setup, Laboratory.grid(setup.steps, 100));
          const ends = Laboratory.endings(setup, Laboratory.prepare(setup), records);
          const last = records[records.length - 1].step;
          return [Laboratory.slope(records, last), ends.map(end => !end.optimal)];
        }})()"""
    )
    assert slopes[0] < slope < slopes[1] and wrong == lost


def test_gd_needs_more_than_a_hundred_thousand_steps_for_what_ngd_has_at_a_hundred(browser):
    Lab(browser)
    setup = "Laboratory.PRESETS['first-picture'].setup"
    ngd, gd = (
        browser.evaluate(
            f"Laboratory.train({{...{setup}, rule: '{rule}'}}, [{step}]).records[0].error"
        )
        for rule, step in (("NGD", 100), ("GD", 100_000))
    )
    assert gd > ngd


def test_the_loss_of_ngd_falls_exponentially_where_both_are_trained(browser):
    Lab(browser, "both")
    setup = "Laboratory.PRESETS.both.setup"
    found = browser.evaluate(f"Laboratory.train({setup}, [1000, 10000]).records")
    assert found[1]["logLoss"] / found[0]["logLoss"] == pytest.approx(10, rel=0.02)


@pytest.mark.parametrize("rule", ["GD", "momentum", "Polyak"])
def test_each_rule_is_run_as_the_lines_say(browser, rule):
    lab = Lab(browser)
    lab.choose("rule", rule)
    found = check_against_train(lab)
    assert found["setup"]["rule"] == {"momentum": "NGD"}.get(rule, rule)
    assert (found["setup"]["momentum"] > 0) == (rule == "momentum")


def test_both_are_trained_with_one_norm(browser):
    lab = Lab(browser, "both")
    lab.choose("rule", "shared")
    assert 'normalise="shared"' in check_against_train(lab)["python"]


def test_the_arrow_keys_move_a_token_and_the_link_keeps_it(browser):
    lab = Lab(browser)
    browser.evaluate("document.querySelector('g.drag[data-name=\"1.0\"]').focus()")
    browser.press("ArrowUp", 2)
    browser.press("Shift+ArrowLeft")
    lab.wait()
    assert lab.last["setup"]["X"][1][0] == [-0.21, -1.5]
    assert (
        browser.evaluate("document.activeElement.getAttribute('aria-valuetext')") == "-0.21, -1.50"
    )
    assert lab.ask("preset", "value") == ""
    check_against_train(lab)
    kept, lines = browser.evaluate("location.hash"), lab.ask("python")
    assert Lab(browser, kept).ask("python") == lines


def test_a_mouse_drags_a_token(browser):
    lab = Lab(browser)
    x, y = lab.middle("0.1")
    start = lab.last["setup"]["X"][0][1]
    browser.tab.mouse.move(x, y)
    browser.tab.mouse.down()
    browser.tab.mouse.move(x + lab.scale / 2, y, steps=4)
    browser.tab.mouse.up()
    lab.wait()
    moved = np.subtract(lab.last["setup"]["X"][0][1], start)
    assert moved == pytest.approx([0.5, 0], abs=0.021)  # a pixel, and hundredths
    check_against_train(lab)


def test_the_numbers_change_the_set_up(browser):
    lab = Lab(browser, "clash")
    browser.evaluate("document.querySelectorAll('#laboratory details').forEach(d => d.open = true)")
    for key, value in (("u.1", "1"), ("W0.0.1", "0.5")):
        browser.tab.fill(f"[data-key='{key}']", value)
        browser.press("Tab")
    browser.tab.select_option("[data-key='y.1']", "1")
    lab.wait()
    assert [lab.last["setup"][key] for key in ("u", "y")] == [[0, 1], [1, 1]]
    assert "W0=[[0.0, 0.5], [0.0, 0.0]]" in lab.ask("python")
    assert "share its largest score" in lab.ask("said") or check_against_train(lab)
    lab.choose("count", "3")
    lab.choose("length", "4")
    assert np.shape(lab.last["setup"]["X"]) == (3, 4, 2)
    check_against_train(lab)


def test_a_score_that_is_typed_stays_until_u_moves(browser):
    lab = Lab(browser, "score-trap")
    browser.evaluate("document.querySelectorAll('#laboratory details').forEach(d => d.open = true)")
    for token, score in ((1, "0.5"), (2, "0.5")):
        browser.tab.fill(f"[data-key='scores.0.{token}']", score)
        browser.press("Tab")
    lab.wait()
    assert lab.last["setup"]["scores"] == [[1, 0.5, 0.5]]  # Assumption 2, and no lock
    assert "key=X" in check_against_train(lab)["python"]
    assert "its optimal one" in lab.ask("said")
    kept, lines = browser.evaluate("location.hash"), lab.ask("python")
    assert Lab(browser, kept).ask("python") == lines
    browser.evaluate("document.querySelector('g.drag[data-name=u]').focus()")
    browser.press("ArrowDown")
    lab.wait()
    assert lab.last["setup"]["scores"] is None and "key=X" not in lab.ask("python")


def test_polyak_may_have_a_cap(browser):
    lab = Lab(browser)
    lab.choose("rule", "Polyak")
    browser.tab.fill("[data-lab=step]", "50")
    browser.press("Tab")
    lab.wait()
    assert "Polyak(max_step=50)" in check_against_train(lab)["python"]


def test_tied_scores_are_said_and_an_anchor_changes_nothing(browser):
    lab = Lab(browser, "clash")
    lines = lab.ask("python")
    lab.go("chap-laboratory")
    assert lab.ask("python") == lines
    assert "share its largest score" in Lab(browser, TIED).ask("said")
    assert lab.ask("play", "disabled") and lab.ask("time", "disabled")  # there is no run
    lab.go("clash")
    lab.wait()
    assert not lab.ask("play", "disabled")


TIED = "X=1,0,1,0&y=1&u=1,0&W0=0,0,0,0&rule=GD&step=1&steps=100"


def test_the_step_shows_how_it_was(browser):
    lab = Lab(browser)
    browser.evaluate("document.getElementById('lab-time').focus()")
    browser.press("Home")
    assert lab.ask("readout").startswith("Step 0: 1 − cosine not defined")
    assert lab.ask("compass", "querySelectorAll('.marker').length") == 4
    browser.press("ArrowRight", 3)
    assert re.match(r"Step \d: 1 − cosine 0\.\d+, slope", lab.ask("readout"))


def test_it_fits_a_phone_takes_the_pages_colours_and_can_be_hit(browser):
    lab = Lab(browser, width=PHONE)
    browser.evaluate("document.querySelectorAll('#laboratory details').forEach(d => d.open = true)")
    assert browser.evaluate("document.scrollingElement.scrollWidth") == PHONE
    for part in ("plane", "time", "rule"):
        assert 0 < lab.ask(part, "getBoundingClientRect().right") <= PHONE
    assert lab.ask("tokens", "querySelector('.hit').getBoundingClientRect().width") >= 24
    stroke = "querySelector('.token.s0'); getComputedStyle(each).stroke"
    for theme, colour in (("light", "rgb(148, 96, 10)"), ("dark", "rgb(230, 169, 58)")):
        browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        assert browser.evaluate(f"const each = document.{stroke}") == colour


def test_the_picture_without_scripts_is_that_of_the_first_set_up(browser):
    """But for digits, which another browser may round otherwise."""
    Lab(browser)
    drawn = browser.evaluate(DRAWN) + "\n"
    plain = [re.sub(r"-?[\d.]+", "0", text) for text in (drawn, MARKUP.read_text("utf8"))]
    assert plain[0] == plain[1], "run python -m scripts.draw_laboratory"
    Lab(browser, "clash")
    assert re.sub(r"-?[\d.]+", "0", browser.evaluate(DRAWN) + "\n") != plain[1]


def test_without_scripts_its_picture_stands(browser):
    browser.scripts(False)
    try:
        browser.open(PAGE, width=PHONE)
        height = "getBoundingClientRect().height"
        for part in ("plane", "compass", "attention", "error"):
            drawn = f"document.querySelector('[data-lab={part}]')"
            assert browser.evaluate(f"{drawn}.querySelectorAll('path').length") > 2
            assert browser.evaluate(f"{drawn}.{height}") > 100
        shown = f"document.querySelector('#laboratory .lab-bar').{height}"
        assert browser.evaluate(shown) == 0
        assert "its optimal one" in browser.evaluate(
            "document.querySelector('[data-lab=said]').textContent"
        )
    finally:
        browser.scripts(True)


SHIFTED = """new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(each => { sum += each.value; }))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 500);
})"""


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_moves_while_it_loads(browser, width):
    Lab(browser, width=width)
    assert browser.evaluate(SHIFTED) < 0.005  # letters that come; the sum of shares of the window
    browser.style("#laboratory { margin-top: 9rem }")
    assert browser.evaluate(SHIFTED) > 0.05
