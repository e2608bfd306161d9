"""What the laboratory says of a run's end and of a set-up, in states where it could be false.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest
from test_laboratory_page import PRESETS, Lab

pytestmark = pytest.mark.site
PAIR = {"X": "1,0,0,1", "y": "1", "u": "1,0"}
CLASH = {"X": "1,0,0,1,1,0,0,1", "y": "1,-1", "u": "1,-1"}
STEPS = {"rule": "GD", "step": "1", "steps": "1000"}
START = {"W0": "0,0,0,0"}
TRIPLE = {"X": "1,0,-0.2,0.97,0.1,-0.1", "y": "1", "u": "1,1.2268"}


def address(*parts):
    """An address that holds these parts, the last of a name, and none that is None."""
    held = STEPS | START
    for each in parts:
        held = held | each
    return "&".join(f"{key}={value}" for key, value in held.items() if value is not None)


def fill(lab, selector, value):
    """Type into a field, all that it held replaced, and leave it."""
    lab.browser.evaluate(
        "document.querySelectorAll('#laboratory details').forEach(d => d.open = true)"
    )
    lab.browser.tab.click(selector, click_count=3)
    lab.browser.tab.keyboard.type(value)
    lab.browser.press("Tab")
    lab.wait()


# What is said of an end, and what would be false of it.
ENDS = {
    "even by symmetry": (
        address(CLASH),
        [
            "1: attention is split evenly between tokens 1 and 2.",
            "2: attention is split evenly",
            "does not exist",
            "gradient is zero",
        ],
        ["may still", "its optimal one", "locked"],
    ),
    "all but a clash": (
        address({"X": "1,0,0,1,1,0,0.000001,1", "y": "1,-1", "u": "1,-1"}),
        ["Constraints that support Wmm: 1.1 over 1.2, 2.2 over 2.1"],
        ["does not exist"],
    ),
    "so with long tokens": (
        address(
            {"X": "1000,0,0,1000,1000,0,0.001,1000", "y": "1,-1", "u": "1,-1"},
            {"W0": "100,0,99.99995,0", "step": "0.000001", "steps": "10"},
        ),
        ["1: attention is on token 1, its optimal", "2: attention is on token 2, its optimal"],
        ["does not exist"],
    ),
    "a saturated start stands still": (
        address(PAIR, {"W0": "-40,0,40,0"}),
        ["on token 2, not on token 1. There it stands still"],
        ["locked", "may still"],
    ),
    "so it does with NGD for a sequence that no step moves": (
        address({"X": "0,0,1,0,1,0,0,1", "y": "1,1", "u": "1,0.5", "rule": "NGD"}),
        ["1: attention is split evenly between tokens 1 and 2."],
        ["may still"],
    ),
    "a slow turn may still come": (
        address(PAIR, {"W0": "-9,0,0,0"}),
        ["on token 2, not on token 1. It may still turn."],
        ["locked", "stands still"],
    ),
    "a balance that is not even": (
        address({"X": "1,0,0,1,1,0,0,1", "y": "1,-1", "u": "1,-2", "steps": "10000"}),
        ["most on token", "%)", "There it stands still in float64."],
        ["may still", "locked"],
    ),
    "two lead and a third has some": (
        address(
            {"X": "1,0,1,1,0.5,0.3", "u": "1,0.5", "y": "1", "W0": "1,0,0,0"},
            {"step": "0.000001", "steps": "100"},
        ),
        ["attention is most on tokens 1 and 2 (38% each)"],
        ["evenly"],
    ),
    "a little more than even": (
        address(
            {"X": "1,0,0,1,1,0,0.001,1", "y": "1,-1", "u": "1,-1"},
            {"rule": "NGD", "step": "0.1", "steps": "100000"},
        ),
        ["1: attention is most on token 2 (51%)", "2: attention is most on token 2 (52%)"],
        ["evenly"],
    ),
    "no query, no step": (
        address({"X": "0,0,1,0,2,0", "y": "1", "u": "1,0"}),
        ["split evenly between tokens 1, 2 and 3.", "ended at step 0: the gradient is zero"],
        ["may still", "locked"],
    ),
    "a step too long": (
        address(PAIR, {"W0": "-1000,0,0,0", "rule": "Polyak", "step": None}),
        ["not on token 1. There it stays.", "ended at step 0: a step too long for floats"],
        ["may still", "locked", "zero"],
    ),
    "a lock by the theorem": (
        address(TRIPLE, {"rule": "NGD", "step": "0.1"}),
        ["has locked: by the theorem of the lock every later step draws attention to token 2."],
        ["may still", "its optimal"],
    ),
    "on its way to the lock": (
        address(TRIPLE, {"W0": "-40,0,-30,0", "rule": "GD", "step": "0.000001"}),
        ["on token 3, not on token 1. It has locked", "draws attention to token 2"],
        ["may still"],
    ),
    "a lead that grows": (
        address({"X": "2,0,0,1,2,0,1,1", "y": "1,-1", "u": "0,2", "rule": "NGD"}),
        ["1: attention is on token 1, not on token 2. It looks locked: the lead of token 1"],
        ["may still", "has locked"],
    ),
    "half way": (
        address(PAIR, {"step": "0.01", "steps": "100"}),
        ["most on token 1 (", "%), its optimal"],
        ["evenly"],
    ),
    "all scores zero": (
        address(PAIR, {"u": "0,0"}),
        ["tokens 1 and 2 share its largest score", ": move u."],
        ["or one of them"],
    ),
    "one place": (
        address({"X": "1,0,1,0", "y": "1", "u": "1,0"}),
        [": move one of them."],
        ["move u"],
    ),
    "equal projections": (
        address({"X": "1,0,1,1,0,0", "y": "1", "u": "1,0"}),
        ["Sequence 1: tokens 1 and 2 share", "move u or one of them."],
        [],
    ),
    "typed scores": (
        address(PAIR, {"scores": "1,1"}),
        ["type another score for one of them"],
        ["move"],
    ),
    "both, no query": (
        address({"X": "0,0,1,0", "y": "1", "u": "1,0", "joint": "separate"}),
        ["split evenly"],
        ["may still", "ended"],
    ),
    "both": (address(CLASH, {"joint": "separate"}), ["does not exist"], ["has locked"]),
    "momentum": (
        address(TRIPLE, {"rule": "NGD", "step": "0.1", "momentum": "0.5"}),
        ["looks locked"],
        ["has locked", "may still"],
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_is_said_of_an_end_is_true(browser, end):
    held, words, false = ENDS[end]
    errors = []
    browser.tab.on("pageerror", lambda error: errors.append(str(error)))
    lab = Lab(browser, held)
    said = lab.ask("said")
    assert [each for each in words if each not in said] == [], said
    assert [each for each in false if each in said] == [], said
    assert lab.ask("note") == "" and errors == []


# What the words of each set-up tell one to do, and something less.
FOLLOWED = {
    "first-picture": [("rule", "GD")],
    "plain-float64": [("rule", "GD")],
    "clash": [("u.1", "1.9"), ("u.1", "1")],
    "score-trap": [("u.1", "1.21"), ("u.1", "1.18")],
    "lock-challenge": [
        *(("X.0.0.0", "1"), ("X.0.1.1", "1"), ("X.0.2.0", "0.5")),
        ("u.1", "1.74"),
    ],
    "degenerate": [("steps", "10000"), ("X.0.2.0", "0.05")],
    "figure-8": [("W0.1.0", "12"), ("W0.1.1", "12")],
    "both": [("rule", "shared")],
}


# What they say nothing of.
UNLIKE = {
    "first-picture": [("length", "2"), ("count", "2")],
    "plain-float64": [("length", "2"), ("joint", "both")],
    "clash": [("rule", "Polyak"), ("length", "3")],
    "score-trap": [("rule", "Polyak"), ("count", "3"), ("joint", "both")],
    "lock-challenge": [("rule", "Polyak"), ("length", "4")],
    "degenerate": [("length", "4"), ("rule", "GD")],
    "figure-8": [("rule", "NGD"), ("joint", "both")],
    "both": [("joint", "W"), ("rule", "GD")],
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_hint_goes_when_something_else_is_changed(browser, name):
    for key, value in UNLIKE[name]:
        lab = Lab(browser, "clash" if name != "clash" else "degenerate")
        lab.go(name)
        lab.wait()
        assert not lab.ask("look").startswith("A set-up of your own")
        browser.evaluate(
            "document.querySelectorAll('#laboratory details').forEach(d => d.open = true)"
        )
        lab.choose(key, value)
        assert lab.ask("look").startswith("A set-up of your own"), (name, key)


@pytest.mark.parametrize("name", PRESETS)
def test_a_hint_stays_until_it_is_followed_and_then_says_what_is_next(browser, name):
    lab = Lab(browser, name)
    hint = lab.ask("look")
    assert "Try: " in hint and len(hint) > 40
    *before, last = FOLLOWED[name]
    for key, value in before:
        follow(lab, key, value)
        assert lab.ask("look") == hint
    follow(lab, *last)
    done = lab.ask("look")
    assert done.startswith("✓ Done: ") and lab.ask("preset", "value") == ""
    following = lab.ask("look", "querySelector('a').getAttribute('href')")[1:]
    assert following in PRESETS and following != name
    browser.evaluate("document.querySelector('[data-lab=look] a').click()")
    browser.wait_for(f"document.querySelector('[data-lab=preset]').value === '{following}'")
    lab.go(address(PAIR))
    lab.wait()
    assert lab.ask("look").startswith("A set-up of your own")


def follow(lab, key, value):
    if key in ("rule", "steps"):
        lab.choose(key, value)
    else:
        fill(lab, f"[data-key='{key}']", value)


# What was done is not what the words speak of, though the tokens end where they should.
ELSEWISE = {
    "first-picture": [("X.0.1.0", "-1"), ("rule", "GD")],
    "clash": [("X.1.0.0", "0"), ("u.1", "1")],
    "score-trap": [("X.0.0.1", "0.9")],
    "figure-8": [("W0.1.0", "300"), ("W0.1.1", "300")],
}


@pytest.mark.parametrize("name", ELSEWISE)
def test_done_is_said_of_what_the_words_tell_alone(browser, name):
    lab = Lab(browser, name)
    for key, value in ELSEWISE[name]:
        follow(lab, key, value)
    assert "Done" not in lab.ask("look")


def test_without_w_mm_the_picture_of_the_error_says_so(browser):
    lab = Lab(browser, ENDS["even by symmetry"][0])
    assert "There is no Wmm, and so no error." in lab.ask("error")
    assert "There is no W" not in Lab(browser).ask("error")
