"""The laboratory's race, its clock, its ghost, and the plain softmax beside the exact one.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json
import math
import re
import time

import numpy as np
import pytest
import torch
from test_laboratory import SAME, TINY
from test_laboratory_page import DONE, PAGE, PHONE, PRESETS, Lab, executed

from attnbias import solve_w_svm
from attnbias.model import empirical_risk

pytestmark = pytest.mark.site
STEPS, WALL = 1000, -53 * math.log(2)
RACE = """(name, rule, steps) => {
  const L = Laboratory, setup = L.withRule({...L.PRESETS[name].setup, steps, race: true}, rule);
  const problem = L.prepare(setup), times = L.grid(steps, 60);
  const race = new L.Race({...setup, float64: true}, problem, times);
  race.work(Infinity);
  const runs = race.runs.map(({name, records}) => ({name, status: race.run(name).run.status,
    python: L.asPython(name === "naive" ? setup : L.withRule(setup, name)),
    ...Object.fromEntries(["step", "error", "norm"].map(
      key => [key, records.map(each => each[key])]))}));
  const left = L.leaves(race.followed, race.run("naive"));
  return {runs, left, wall: L.wallOf(race.followed, problem) ?? null,
    places: L.places(race, steps).map(({name}) => name)};
}"""


def raced(browser, name, rule="NGD"):
    Lab(browser)
    return browser.evaluate(f"({RACE})({json.dumps(name)}, {json.dumps(rule)}, {STEPS})")


def recorded(lines, step):
    """The run that the lines make, recorded at these steps."""
    assert lines.count(f", {STEPS}") == 1
    return executed(lines.replace(f", {STEPS}", f", {STEPS}, record={step}"))


@pytest.mark.parametrize("name", PRESETS)
def test_every_racer_is_the_librarys_run_and_has_its_place(browser, name):
    found, last = raced(browser, name), {}
    for run in found["runs"]:
        if run["name"] == "naive":
            continue
        trace = recorded(run["python"], run["step"])
        wanted, own = trace.W_alignment_error, np.array(run["error"], float)
        some = np.isfinite(wanted)
        assert (abs(own - wanted)[some] / np.maximum(wanted, TINY)[some]).max() < SAME, run["name"]
        assert run["norm"] == pytest.approx(trace.W_norm, rel=SAME)
        last[run["name"]] = wanted[-1]
    joint = name == "both"
    assert set(last) == {"GD", "NGD", "Polyak", "shared" if joint else "momentum"}
    assert found["places"] == sorted(last, key=last.get)


def plain_loop(data, steps, eta):
    """1 - cosine by autograd through torch's softmax, as the chapter on the float64 wall has it."""
    svm, W = solve_w_svm(data), torch.zeros(data.d, data.d, dtype=torch.float64, requires_grad=True)
    errors = [math.nan]
    for _ in range(steps):
        (gradient,) = torch.autograd.grad(empirical_risk(data, W), W)
        with torch.no_grad():
            W -= eta * gradient / gradient.norm()
            errors.append(1 - float((W * svm.weights).sum() / (W.norm() * svm.norm)))
    return np.array(errors)


def test_the_plain_softmax_is_torchs_up_to_the_wall_and_leaves_the_curve_there(browser):
    found = raced(browser, "plain-float64")
    exact, naive = (
        next(r for r in found["runs"] if r["name"] == name) for name in ("NGD", "naive")
    )
    step, own = np.array(naive["step"]), np.array(naive["error"], float)
    names = {}
    exec(exact["python"].split("trace =")[0], names)
    torchs = plain_loop(names["data"], STEPS, 0.1)[step]
    early = (step > 0) & (step < 200)  # a gap of 20, where sums and differences agree to 1e-7
    assert abs(own / torchs - 1)[early].max() < 1e-6
    trace = recorded(exact["python"], exact["step"])
    past = trace.step[trace.log_nonopt_score < WALL][0]
    assert found["wall"] == past and 0.85 * past < found["left"]["step"] < 1.2 * past
    # what comes then is rounding, and both are far off
    assert min(own[-1], torchs[-1]) > 10 * trace.W_alignment_error[-1]


@pytest.mark.parametrize(("rule", "leaves"), [("GD", False), ("momentum", True), ("Polyak", True)])
def test_gd_does_not_come_to_the_wall_and_the_longer_steps_do_sooner(browser, rule, leaves):
    found = raced(browser, "plain-float64", rule)
    assert (found["left"] is not None) == (found["wall"] is not None) == leaves
    if leaves:
        assert found["wall"] < 100 and found["left"]["factor"] > 100


def test_float64_is_told_in_words_and_drawn(browser):
    lab = Lab(browser)
    crosses = "document.querySelectorAll('[data-lab=error] .r-naive').length"
    assert browser.evaluate(crosses) == 0 and "plain softmax" not in lab.ask("said")
    browser.tab.check("[data-lab=float64]")
    lab.wait()
    lab.end()
    said = lab.ask("said")
    assert "By a plain softmax NGD is off by a tenth from step " in said and "2−53" in said
    assert browser.evaluate(crosses) > 1
    lab.choose("rule", "GD")
    assert "By a plain softmax GD is the same to a tenth at every recorded step." in lab.ask("said")
    assert "float64=on" in browser.evaluate("location.hash")


# --- time --------------------------------------------------------------------------------------

SHARE = (
    "Number(document.getElementById('lab-time').value) / document.getElementById('lab-time').max"
)


def test_it_begins_at_the_beginning_and_plays_to_the_end_in_four_seconds(browser):
    lab = Lab(browser)
    assert browser.evaluate(SHARE) == 0 and lab.ask("readout").startswith("Step 0:")
    begun = time.monotonic()
    browser.tab.click("[data-lab=play]")
    assert lab.ask("play") == "Pause" and lab.ask("readout", "ariaLive") == "off"
    browser.wait_for(f"{SHARE} > 0.4")
    assert 0.4 < browser.evaluate(SHARE) < 1
    browser.wait_for(
        f"{SHARE} === 1 && document.querySelector('[data-lab=play]').textContent === 'Play'"
    )
    assert 3.5 < time.monotonic() - begun < 12  # a slow machine draws few frames, and is on time
    lab.wait()
    assert lab.ask("readout", "ariaLive") == "polite"
    assert browser.evaluate("location.hash") == "#first-picture&at=10000"
    browser.tab.click("[data-lab=play]")  # from the beginning again
    browser.wait_for(f"{SHARE} > 0 && {SHARE} < 0.5")


def test_it_pauses_goes_on_and_is_stopped_by_what_the_reader_does(browser):
    lab = Lab(browser)
    browser.tab.click("[data-lab=play]")
    browser.wait_for(f"{SHARE} > 0.3")
    browser.tab.click("[data-lab=play]")
    paused = browser.evaluate(SHARE)
    lab.wait()
    assert browser.evaluate(SHARE) == paused < 1 and lab.ask("play") == "Play"
    step = int(browser.evaluate("location.hash").partition("at=")[2])
    again = Lab(browser, f"first-picture&at={step}")
    assert browser.evaluate(SHARE) == pytest.approx(paused, abs=0.01)
    browser.tab.click("[data-lab=play]")
    browser.evaluate("document.querySelector('g.drag[data-name=\"0.1\"]').focus()")
    browser.press("ArrowUp")
    assert again.ask("play") == "Play"


def test_who_asks_for_less_motion_sees_a_picture_for_each_factor_of_ten(browser):
    Lab(browser)
    browser.tab.emulate_media(reduced_motion="reduce")
    try:
        browser.tab.goto("about:blank")
        browser.tab.goto(PAGE.as_uri())
        browser.wait_for(DONE)
        browser.evaluate(
            """window.seen = new Set(); new MutationObserver(() => seen.add(
              document.getElementById('lab-time').getAttribute('aria-valuetext'))).observe(
              document.getElementById('lab-time'), {attributes: true})"""
        )
        browser.tab.click("[data-lab=play]")
        browser.wait_for(f"{SHARE} === 1")
        assert 3 <= len(browser.evaluate("[...seen]")) <= 6
    finally:
        browser.tab.emulate_media(reduced_motion="no-preference")


# --- ghost, legend, letters ----------------------------------------------------------------------

CURVE = "document.querySelector('[data-lab=error] .curve.{}:not(.slope)').getAttribute('d')"


def points(text):
    return np.array(text.replace("M", "").replace("L", " ").split(), float)


def test_the_last_curve_stays_as_a_ghost(browser):
    lab = Lab(browser)
    lab.end()
    followed = (
        "document.querySelector('[data-lab=error] .curve.followed:not(.slope):not(.to-come)')"
    )
    before = points(browser.evaluate(f"{followed}.getAttribute('d')"))
    ghosts = "document.querySelectorAll('.lab figure .r-ghost').length"
    assert browser.evaluate(ghosts) == 0
    browser.tab.fill("[data-lab=step]", "0.10000001")
    browser.press("Tab")
    lab.wait()
    ghost = points(browser.evaluate(CURVE.format("r-ghost:not(.to-come)")))
    assert abs(ghost - before).max() < 0.11
    browser.tab.fill("[data-lab=step]", "1")
    browser.press("Tab")
    lab.wait()
    now = points(browser.evaluate(f"{followed}.getAttribute('d')"))
    ghost = points(browser.evaluate(CURVE.format("r-ghost:not(.to-come)")))
    assert len(now) != len(ghost) or abs(now - ghost).max() > 20
    assert "before: NGD" in lab.ask("rule")
    browser.tab.select_option("[data-lab=preset]", "clash")
    lab.wait()
    assert browser.evaluate(ghosts) == 0


def test_the_legend_has_a_place_for_each_rule_and_the_race_can_be_left(browser):
    lab = Lab(browser)
    lab.end()
    found = browser.evaluate(
        "[...document.querySelectorAll('.lab-legend label:not([hidden])')].map(e => e.textContent)"
    )
    assert [each.split()[0] for each in found] == ["GD", "NGD", "momentum", "Polyak"]
    assert [place in each for each, place in zip(found, ("4th", "3rd", "1st", "2nd"), strict=True)]
    browser.tab.uncheck("[data-lab=race]")
    lab.wait()
    assert browser.evaluate("document.querySelectorAll('[data-lab=compass] .marker').length") == 1
    kept = browser.evaluate("location.hash")
    assert kept == "#first-picture&race=off&at=10000"
    again = Lab(browser, kept)
    assert browser.evaluate("document.querySelectorAll('[data-lab=error] .marker').length") == 2
    assert not again.ask("race", "checked")


LETTERS = """[...document.querySelectorAll(".lab svg text, .lab svg tspan")].map(each => {
  const svg = each.closest("svg");
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return [parseFloat(getComputedStyle(each).fontSize) * scale, each.textContent];
})"""


@pytest.mark.parametrize("width", [360, PHONE, 760, 1060, 1200])
def test_letters_are_twelve_pixels_tall(browser, width):
    Lab(browser, "lock-challenge&at=10000", width=width)
    found = browser.evaluate(LETTERS)
    assert len(found) > 30 and [each for each in found if each[0] < 12] == []


@pytest.mark.parametrize(("width", "columns"), [(PHONE, 1), (1000, 2), (1200, 3)])
def test_pictures_stand_side_by_side_where_there_is_room(browser, width, columns):
    Lab(browser, width=width)
    tops, wide = browser.evaluate(
        """[[...document.querySelectorAll(".lab figure")].slice(0, 3).map(each =>
          each.getBoundingClientRect()).filter(({left, top}, k, all) =>
          left >= 0 && left < all[0].left + document.querySelector(".lab").clientWidth - 9
          && top === all[0].top).length,
          document.querySelector(".lab").getBoundingClientRect().width / innerWidth]"""
    )
    assert tops == columns and wide > 0.85
    assert browser.evaluate("document.scrollingElement.scrollWidth") == width


def test_the_contents_can_be_opened_beside_the_pictures(browser):
    Lab(browser)
    shown = "getComputedStyle(document.querySelector('.bd-sidebar-primary')).visibility"
    assert browser.evaluate(shown) == "hidden"
    browser.tab.click(".primary-toggle >> visible=true")
    browser.wait_for(f"{shown} === 'visible'")
    assert browser.evaluate("document.scrollingElement.scrollWidth") == 1200


ENTRIES = """[...document.querySelectorAll("[data-racer]:not([hidden])")].map(
  (each) => each.querySelector(".place").textContent)"""


def test_who_loses_has_no_place_and_a_run_that_ended_says_where(browser):
    lab = Lab(browser, "score-trap")
    lab.end()
    assert all(each.startswith("lost, ") for each in browser.evaluate(ENTRIES))
    Lab(browser, "clash").end()
    words = browser.evaluate(ENTRIES)
    (ended,) = re.findall(r"ended at (\d+)$", words[3])
    assert int(ended) < 100  # Polyak's steps are long
    assert [each for each in words[:3] if "ended" in each] == []
    Lab(browser).end()
    assert sorted(each[:3] for each in browser.evaluate(ENTRIES)) == ["1st", "2nd", "3rd", "4th"]


def test_there_are_no_places_before_all_have_run(browser):
    Lab(browser)
    found = browser.evaluate(
        """(() => {
          const L = Laboratory, setup = L.filled(L.PRESETS["first-picture"].setup);
          const race = new L.Race(setup, L.prepare(setup), L.grid(setup.steps));
          const box = document.querySelector("[data-lab=rule]");
          const shown = () => (L.showLegend(box, {...setup, at: 1e4}, race, null), box.textContent);
          race.work(performance.now() + 2);
          return [shown(), race.work(Infinity) && shown()];
        })()"""
    )
    assert ["1st" in each for each in found] == [False, True]
