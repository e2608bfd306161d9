"""Nothing that the laboratory is given, by an address or a field, is changed in silence.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import random

import pytest
from test_laboratory_page import Lab, check_against_train, executed
from test_laboratory_words import PAIR, address, fill

pytestmark = pytest.mark.site

# What an address holds: what the note says, and what the address holds afterwards.
GIVEN = {
    "step=1e9": (["step: 1e9 came, 100 is used; allowed: from 0.000001 to 100"], ["step=100"]),
    "step=-1": (["step: -1 came, 0.000001 is used"], ["step=0.000001"]),
    "step=abc": (["step: abc came, 0.1 is used"], ["step=0.1"]),
    "step=": (["step: no number came, 0.1 is used"], ["step=0.1"]),
    "step=1=2": (["step: 1=2 came, 0.1 is used"], ["step=0.1"]),
    "steps=1000000": (
        ["steps: 1000000 came, 100000 is used", "from 10 to 100000"],
        ["steps=100000"],
    ),
    "steps=3": (["steps: 3 came, 10 is used"], ["steps=10"]),
    "steps=12.7": (["steps: 12.7 came, 13 is used"], ["steps=13"]),
    "rule=SGD": (["rule: SGD came, NGD is used; allowed: GD, NGD, Polyak"], ["rule=NGD"]),
    "momentum=0.9": (["momentum: 0.9 came, 0 is used", "with NGD"], ["rule=GD"]),
    "rule=NGD&momentum=5": (["momentum: 5 came, 0.99 is used"], ["momentum=0.99"]),
    "cap=5": (["cap: 5 came, 0 is used", "with Polyak"], []),
    "rule=Polyak&cap=-5": (["cap: -5 came, 0 is used"], ["rule=Polyak"]),
    "rule=Polyak&step=0": (["step: 0 came, none is used", "with GD and NGD"], ["rule=Polyak"]),
    "rule=Polyak&step=1": (["step: 1 came, none is used"], ["rule=Polyak&steps="]),
    "joint=yes": (["joint: yes came, none is used; allowed: separate"], []),
    "joint=shared": (["joint: shared came, separate is used"], ["joint=separate"]),
    "joint=separate&scores=1,2": (["scores: 1,2 came, none is used"], ["joint=separate"]),
    "W0=1,2": (["W0: 1,2 came, 0,0,0,0 is used; allowed: four numbers"], ["W0=0,0,0,0"]),
    "W0=1,2,x,4": (["W0: 1,2,x,4 came"], ["W0=0,0,0,0"]),
    "W0=1e300,0,0,-Infinity": (
        ["W0: 1e300,-Infinity came, 1000,-1000 is used"],
        ["1000,0,0,-1000"],
    ),
    "X=1e9,2,3,4": (["X: 1e9 came, 1000 is used", "from -1000 to 1000"], ["X=1000,2,3,4"]),
    "u=5000,1": (["u: 5000 came, 1000 is used"], ["u=1000,1"]),
    "race=0": (["race: 0 came, on is used; allowed: on or off"], []),
    "float64=yes": (["float64: yes came, off is used"], []),
    "at=1e9": (["at: 1e9 came, 1000 is used; allowed: a step from 0"], ["at=1000"]),
    "at=7.4&race=off": (["at: 7.4 came, 7 is used"], ["race=off&at=7"]),
    "n=2": (["n is not a part of a set-up, and is left out"], ["X=1,0,0,1&"]),
    "constructor=2": (["constructor is not a part"], []),
}
REFUSED = {
    "X=1": "X: 1 came",
    "X=1,0,0,1,1": "2 to 5 tokens for each label",
    "X=1,,0,1": "X: 1,,0,1",
    "X=": "X: no number came",
    "y=1,1,1": "for each label y",
    "y=2": "y: 2 came",
    "y=": "y: no number",
    "y=1,1,1,1&X=1,0,0,1,1,0,0,1,1,0,0,1,1,0,0,1": "1 to 3 sequences",
    "u=1": "u: 1 came",
    "u=1,NaN": "u: 1,NaN came",
    "scores=1,x": "scores: 1,x came",
    "scores=1": "scores: 1 came",
}


def kept(lab):
    """The address, when it has been kept."""
    lab.browser.evaluate("new Promise(done => setTimeout(done, 500))")
    return lab.browser.evaluate("location.hash")


def merged(given):
    parts = [part.partition("=") for part in given.split("&")]
    return address(PAIR, {key: value for key, _, value in parts})


@pytest.mark.parametrize("given", GIVEN)
def test_an_address_is_not_changed_in_silence(browser, given):
    words, held = GIVEN[given]
    lab = Lab(browser, "clash")
    lab.go(merged(given))
    lab.browser.wait_for("document.getElementById('laboratory').dataset.state === 'done'")
    note, now = lab.ask("note"), kept(lab)
    assert [each for each in words if each not in note] == [], note
    assert [each for each in held if each not in now] == [], now
    assert lab.ask("note", "getAttribute('aria-live')") == "polite"
    lines = lab.ask("python")
    again = Lab(browser, now)  # what is kept is used as it is
    assert (again.ask("note"), again.ask("python")) == ("", lines)


@pytest.mark.parametrize("given", REFUSED)
def test_an_address_that_holds_no_set_up_changes_nothing_and_that_is_said(browser, given):
    lab = Lab(browser, "clash")
    before = lab.ask("python")
    lab.go(merged(given))
    assert lab.ask("python") == before
    assert REFUSED[given] in (note := lab.ask("note")), note
    assert "nothing of this address is used; allowed: " in note
    assert note.endswith("The page keeps the set-up that it shows.") and "−" not in note
    assert kept(lab) == "#clash"


@pytest.mark.parametrize("name", ["foo", "%E0%A4%A", "<b>", "constructor"])
def test_an_unknown_set_up_is_named(browser, name):
    lab = Lab(browser, name)
    assert "set-up: " in (note := lab.ask("note")) and "first-picture, plain-float64" in note
    assert kept(lab) == "#first-picture" and lab.ask("preset", "value") == "first-picture"


def test_an_anchor_is_no_set_up_and_what_the_address_holds_stays_true(browser):
    lab = Lab(browser, "how-to-read-the-pictures")
    assert lab.ask("note") == "" and kept(lab) == "#how-to-read-the-pictures"
    lab.go("clash")
    lab.go("how-to-read-the-pictures")
    assert kept(lab) == "#clash" and lab.ask("note") == ""


@pytest.mark.parametrize(
    ("typed", "used", "came"),
    [("1e9", 100, "1e9"), ("-1", 1e-6, "-1"), ("-", 0.1, "no number"), ("0.2", 0.2, None)],
)
def test_a_step_size_is_not_changed_in_silence(browser, typed, used, came):
    lab = Lab(browser)
    fill(lab, "[data-lab=step]", typed)
    note = lab.ask("note")
    assert float(lab.ask("step", "value")) == used == lab.last["setup"]["step"]
    assert note.startswith(f"Step size: {came} came, ") if came else note == ""
    assert ("allowed: from 0.000001 to 100" in note) == bool(came)
    fill(lab, "[data-lab=step]", "0.3")
    assert lab.ask("note") == ""


def test_a_number_of_the_table_is_not_changed_in_silence(browser):
    lab = Lab(browser, "score-trap")
    for typed, used, came in (("5000", "1000", "5000"), ("-", "1000", "no number")):
        fill(lab, "[data-key='X.0.2.1']", typed)
        assert (
            lab.browser.evaluate("document.querySelector(\"[data-key='X.0.2.1']\").value") == used
        )
        assert f"sequence 1, token 3, y: {came} came, 1000 is used" in lab.ask("note")
    before = lab.ask("python")
    fill(lab, "[data-key='scores.0.1']", "-")  # no score is typed, so none is one's own
    assert lab.ask("python") == before and lab.last["setup"]["scores"] is None
    fill(lab, "[data-key='scores.0.1']", "0.5")
    assert lab.ask("note") == "" and lab.last["setup"]["scores"]
    lab.choose("joint", "both")
    assert "scores that were typed are given up" in lab.ask("note")


@pytest.mark.parametrize("value", ["", "-7", "-"])
def test_a_cap_that_is_none_is_shown_as_none(browser, value):
    lab = Lab(browser)
    lab.choose("rule", "Polyak")
    fill(lab, "[data-lab=step]", "50")
    if value:
        fill(lab, "[data-lab=step]", value)
    else:
        lab.browser.tab.fill("[data-lab=step]", "")
        lab.browser.press("Tab")
        lab.wait()
    caps = {"": 0, "-7": 0, "-": 50}
    assert lab.last["setup"]["cap"] == caps[value]
    assert lab.ask("step", "value") == (str(caps[value]) if caps[value] else "")
    assert (lab.ask("note") == "") == (value == "")


@pytest.mark.parametrize(("steps", "shown"), [("777", "777"), ("12345", "12,345"), ("100", "100")])
def test_odd_steps_and_an_odd_momentum_are_shown_in_their_menus(browser, steps, shown):
    lab = Lab(browser, address(PAIR, {"rule": "NGD", "momentum": "0.5", "steps": steps}))
    assert lab.ask("steps", "selectedOptions[0].textContent") == shown
    assert lab.ask("rule", "querySelector(':checked ~ .who').textContent") == "momentum 0.5"
    values = lab.browser.evaluate(
        "[...document.querySelector('[data-lab=steps]').options].map("
        "option => Number(option.value))"
    )
    assert values == sorted(set(values))


WORDS = ["", "x", "1e999", "-0", "0x10", "NaN", "1e-9", "7", "-3.25", "5e3", "0.1"]
LIKELY = {"W0": ["0,1,0,0.5"], "rule": ["GD", "NGD", "Polyak"], "step": ["0.5"], "steps": ["200"]}


def junk(seed):
    """An address with odd numbers, names and counts among sound ones."""
    draw = random.Random(seed)

    def some(most):
        return ",".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))

    tokens = ",".join(f"{draw.uniform(-2, 2):.3g}" for _ in range(draw.choice([4, 6, 8])))
    parts = {
        "X": draw.choice([tokens, tokens, tokens, some(9)]),
        "y": draw.choice(["1", "-1", some(2)]),
        "u": draw.choice(["1,0.3", "-2,1", some(3)]),
    }
    for key in (*LIKELY, "momentum", "cap", "joint", "n"):
        if draw.random() < 0.15:
            parts[key] = some(4)
        elif key in LIKELY:
            parts[key] = draw.choice(LIKELY[key])
    return "&".join(f"{key}={value}" for key, value in parts.items())


def test_junk_is_said_or_used_and_the_lines_reproduce_what_is_kept(browser):
    errors = []
    browser.tab.on("pageerror", lambda error: errors.append(str(error)))
    lab, said = Lab(browser, "clash"), 0
    for seed in range(30):
        lab.go(junk(seed))
        lab.browser.wait_for("document.getElementById('laboratory').dataset.state === 'done'")
        said += bool(lab.ask("note"))
        now = kept(lab)
        found = lab.last
        assert found["python"] == lab.ask("python"), now
        if "share" not in lab.ask("said") and seed % 6 == 0:
            assert executed(found["python"]).status
    assert errors == [] and 5 < said < 30
    lab.go("clash")
    lab.wait()
    check_against_train(lab)
