"""What the browser keeps for a reader may be damaged, full or forbidden: pages work all the same.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import json

import pytest
from test_console import Heard

from tools.files import SITE

PAGE = SITE / "book/paper/one_picture.html"
SCORE = SITE / "book/routes.html"
KEY = "attnbias-bets"
BOX = "document.querySelector('fieldset.predict')"
NAME = f"'book/paper/one_picture#' + {BOX}.dataset.bet"
DAMAGED = {
    "no JSON": "{not json",
    "empty": "",
    "null": "null",
    "a number": "17",
    "words": '"won"',
    "true": "true",
    "a list": '[null, 3, {"place": 0}]',
    "a list of bets": '[{"place": 0, "won": true}]',
    "huge": json.dumps({f"page#{k}": {"place": k} for k in range(30_000)}),
}
ENTRIES = [
    "null",
    "3",
    '"won"',
    "[]",
    '{"place": null}',
    '{"place": "0"}',
    '{"place": "0", "won": true}',
    '{"place": [0], "won": true}',
    '{"won": true}',
    *(f'{{"place": {place}, "won": true}}' for place in ("99", "-1", "0.5")),
]
FORBIDDEN = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, name, {configurable: true, get() {
    throw new DOMException("no", "SecurityError"); }})"""
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }"
pytestmark = pytest.mark.site


def bet_and_return(browser):
    """Bet on the first box; what is chosen in it when the page is opened again."""
    browser.tab.locator("fieldset.predict input").nth(1).check()
    browser.open(PAGE, width=1200)
    return browser.evaluate(f"[...{BOX}.querySelectorAll('input')].findIndex(each => each.checked)")


def score(browser):
    browser.open(SCORE, width=1200)
    rows = "[...document.querySelectorAll('table.bets tbody tr')].map(r => r.lastChild.textContent)"
    return browser.evaluate(rows)


@pytest.fixture
def keep(online):
    """Put a text where bets are kept, and open the page."""

    def keep(text):
        online.open(PAGE, width=1200)
        online.evaluate(f"localStorage.setItem('{KEY}', {text})")
        online.open(PAGE, width=1200)
        return online

    yield keep
    online.evaluate("localStorage.clear()")


@pytest.mark.parametrize("kind", DAMAGED)
def test_bets_are_kept_whatever_stood_there(keep, kind):
    browser = keep(json.dumps(DAMAGED[kind]))
    heard = Heard(browser.tab)
    assert bet_and_return(browser) == 1
    counted = score(browser)
    assert [each for each in counted if "1 made" in each] and heard.said == []
    assert len([each for each in counted if each != "none made yet"]) == 1


@pytest.mark.parametrize("entry", ENTRIES)
def test_one_damaged_bet_does_not_stop_it_or_the_others(keep, entry):
    """The damaged one is this box's; a sound one of another page is still counted."""
    browser = keep(
        f'\'{{"\' + {NAME} + \'": {entry}, "book/paper/bounds#0": {{"place": 0, "won": true}}}}\''
    )
    heard = Heard(browser.tab)
    assert bet_and_return(browser) == 1
    assert "1 of 1 made" in score(browser) and heard.said == []


@pytest.mark.parametrize("how", [FORBIDDEN, FULL], ids=["forbidden", "full"])
def test_a_browser_that_keeps_nothing_stops_nothing(online, how):
    context = online.tab.context.browser.new_context()
    tab = context.new_page()
    tab.add_init_script(how)
    heard = Heard(tab)
    for page in (PAGE, SCORE, SITE / "book/laboratory.html", SITE / "search.html"):
        tab.goto(online.address_of(page) + ("?q=margin" if page.stem == "search" else ""))
    tab.goto(online.address_of(PAGE))
    tab.locator("fieldset.predict input").nth(1).check()
    for theme in ("dark", "light"):
        tab.locator(".theme-switch-button >> visible=true").click()
        assert tab.evaluate("document.documentElement.dataset.theme") == theme
    assert tab.locator("fieldset.predict .answer").first.is_visible() and heard.said == []
    context.close()


@pytest.mark.parametrize("mode", ["", "null", "purple", "{}", "x" * 100_000])
def test_a_damaged_choice_of_colours_is_none(online, mode):
    online.open(PAGE, width=1200)
    heard = Heard(online.tab)
    for key in ("mode", "theme"):
        online.evaluate(f"localStorage.setItem('{key}', {json.dumps(mode)})")
    online.open(PAGE, width=1200)
    found = online.evaluate("({...document.documentElement.dataset})")
    assert (found["mode"], found["theme"]) == ("auto", "light") and heard.said == []
    online.evaluate("localStorage.clear()")
