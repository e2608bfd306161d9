"""The laboratory's challenge: the border of a lock, and the best that is kept in the browser.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json

import pytest
import torch
from axe import axe_source, contrast, prepare, structure
from browser import or_skip
from test_laboratory_page import DESK, DONE, PAGE, Lab
from test_laboratory_words import TRIPLE, address

from attnbias import Dataset
from book.studies.coherent import lock_border, make_lock_family

pytestmark = pytest.mark.site
KEY = "attnbias-lock"
BEST = {"X": "1,0,-1,1,0.5,-0.2", "u": "1,1.74", "y": "1", "rule": "NGD", "step": "0.1"}
PLAIN = "y: [1], rule: 'NGD', step: 0.1"


def border(browser, data):
    """By the page, and the gap that it reads off the scores."""
    setup = f"{{X: {data.X.tolist()}, u: {data.u.tolist()}, {PLAIN}}}"
    region = f"Laboratory.lockRegion({setup}, Laboratory.prepare({setup}))"
    return browser.evaluate(f"(r => r && [Laboratory.lockBorder(r), r.gap])({region})")


def drawn(seed):
    """Three tokens and a decoder, of two digits."""
    generator = torch.Generator().manual_seed(seed)
    X, u = torch.randn(1, 3, 2, generator=generator), torch.randn(2, generator=generator)
    return Dataset(X.mul(64).round() / 64, [1], u=u.mul(64).round() / 64)


def test_the_border_is_that_of_the_library(browser):
    Lab(browser)
    found, some = 0, [make_lock_family(size) for size in (0.1, 0.01, 0.001)]
    for data in [*some, *map(drawn, range(60))]:
        own = border(browser, data)
        if own is None:
            continue
        wanted = lock_border(data)
        assert own[0] == pytest.approx(wanted, rel=1e-5, abs=1e-12) and wanted < 0.5
        found += wanted > 0
    assert found >= 5


@pytest.mark.parametrize(("share", "locks"), [(0.97, True), (1.03, False)])
def test_runs_of_short_steps_change_sides_at_the_border(browser, share, locks):
    Lab(browser)
    edge = border(browser, make_lock_family(0.3))[0]
    data = make_lock_family(0.3, share * edge)
    setup = f"{{X: {data.X.tolist()}, u: {data.u.tolist()}, {PLAIN.replace('0.1', '0.01')}}}"
    run = f"Laboratory.train({setup}, [0, 100, 10000]).records"
    (end,) = browser.evaluate(f"Laboratory.endings({setup}, Laboratory.prepare({setup}), {run})")
    assert (end["locked"] == "proved") == locks


def challenge(lab):
    return lab.ask("challenge")


def test_the_best_is_kept_and_opens_again(online):
    online.open(PAGE, width=DESK)
    online.evaluate("localStorage.clear()")
    lab = Lab(online, "lock-challenge")
    assert "Your best" not in challenge(lab)  # nobody has moved anything
    lab.go(address(BEST))
    lab.wait()
    assert "these tokens lock up to the border 0.3152" in challenge(lab).lower()
    assert "theirs is 0.3066, and it locks" in challenge(lab)
    lab = Lab(online, "lock-challenge")  # a smaller gap is no new best
    assert "Your best: 0.3066" in challenge(lab)
    online.tab.click("[data-lab=challenge] a[href^='#']")
    lab.wait()
    assert lab.last["setup"]["u"] == [1, 1.74]
    online.evaluate("localStorage.clear()")


@pytest.mark.parametrize("name", ["lock-challenge&float64=on&at=100", "both&at=10000"])
def test_axe_finds_no_fault_where_the_most_is_shown(browser, name):
    source = or_skip(axe_source)
    Lab(browser, name)
    browser.evaluate("document.querySelectorAll('#laboratory details').forEach(d => d.open = true)")
    prepare(browser, source)
    faults = contrast(browser, set(), "light") + contrast(browser, set(), "dark")
    assert faults + structure(browser) == []


# One sequence of three tokens whose run does not count, and what is said.
NOT = {
    "a start": (
        address(TRIPLE, {"W0": "0,0,1,0", "rule": "NGD"}),
        "not count, as the start is not 0",
    ),
    "no lock": (address(TRIPLE, {"u": "1,1.1", "rule": "NGD"}), "does not lock in this run"),
    "momentum": (address(TRIPLE, {"rule": "NGD", "momentum": "0.5"}), "without momentum"),
    "acute": (address(TRIPLE, {"X": "1,0,0,1,0.6,0.7", "u": "1,0.5"}), "lock at no gap"),
}


@pytest.mark.parametrize("kind", NOT)
def test_what_does_not_count_is_not_kept(online, kind):
    held, words = NOT[kind]
    online.open(PAGE, width=DESK)
    online.evaluate("localStorage.clear()")
    lab = Lab(online, held)
    assert words in challenge(lab) and "Your best" not in challenge(lab)
    assert online.evaluate(f"localStorage.getItem('{KEY}')") is None


def test_other_set_ups_have_no_challenge(browser):
    for name in ("clash", "both", "first-picture"):
        assert challenge(Lab(browser, name)) == ""


@pytest.mark.parametrize(
    "kept",
    [
        *("{no json", "null", "[]", '"x"', '{"gap": 0.9, "address": "#clash"}'),
        *('{"gap": "0.3"}', '{"gap": 0.3}', '{"gap": 0.3, "address": 7}'),
        '{"gap": 0.3, "address": "javascript:alert(1)"}',
        '{"gap": 0.3, "address": "#\\"><img src=x onerror=alert(1)>"}',
    ],
)
def test_a_damaged_best_is_none(online, kept):
    online.open(PAGE, width=DESK)
    online.evaluate(f"localStorage.setItem('{KEY}', {json.dumps(kept)})")
    errors = []
    online.tab.on("pageerror", lambda error: errors.append(str(error)))
    lab = Lab(online, "lock-challenge")
    assert "theirs is 0.0769" in challenge(lab) and "Your best" not in challenge(lab)
    assert errors == []
    online.wait_for(DONE)
    online.evaluate("localStorage.clear()")
