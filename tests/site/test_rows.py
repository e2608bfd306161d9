"""The ledger's rows in the built book, by part, verdict and words; the choice is in the address."""

import json

import pytest

from tools.files import ROOT, SITE

PAGE = SITE / "book/ledger.html"
STORED = json.loads((ROOT / "book/results/ledger.json").read_text(encoding="utf8"))["sections"]
ALL = [entry["key"] for rows in STORED.values() for entry in rows]
SHOWN = """[...document.querySelectorAll(".rows [id^='claim-']")].filter(
  (each) => each.checkVisibility()).map((each) => each.id.slice(6))"""
SAID = "document.querySelector('.sift output').textContent"
pytestmark = pytest.mark.site


@pytest.fixture(params=[1200, 390])
def ledger(online, request):
    online.open(PAGE, width=request.param)
    return online


def opened(page, query):
    """The rows that an address shows."""
    page.tab.goto(page.address_of(PAGE) + query)
    return page.evaluate(SHOWN)


def test_a_choice_of_part_verdict_and_words_is_kept_in_the_address(ledger):
    assert (
        ledger.evaluate(SHOWN) == ALL
        and ledger.evaluate(SAID) == f"{len(ALL)} of {len(ALL)} claims"
    )
    ledger.tab.select_option(".sift select[name=part]", "Networks")
    networks = [entry["key"] for entry in STORED["Networks"]]
    assert ledger.evaluate(SHOWN) == networks
    ledger.tab.fill(".sift input", "VIT norms")
    assert ledger.evaluate(SHOWN) == ["fig7-norms"] and ledger.evaluate(SAID).startswith("1 of ")
    address = ledger.evaluate("location.search")
    assert address == "?part=Networks&words=VIT+norms"
    assert opened(ledger, address) == ["fig7-norms"]
    ledger.tab.click(".sift button")
    ledger.wait_for("location.search === ''")
    assert ledger.evaluate(SHOWN) == ALL


def test_each_verdict_shows_its_rows_and_headings_without_rows_go(ledger):
    for verdict in ("undecided", "holds only when", "holds sharper"):
        wanted = [
            entry["key"]
            for rows in STORED.values()
            for entry in rows
            if entry["verdict"].startswith(verdict)
        ]
        assert opened(ledger, f"?verdict={verdict.replace(' ', '+')}") == wanted
    headings = (
        "[...document.querySelectorAll('h3')].filter((each) => each.checkVisibility()).length"
    )
    assert ledger.evaluate(headings) < len(STORED)
    assert opened(ledger, "?words=no-such-word") == [] and ledger.evaluate(SAID).startswith("0 of")
    assert opened(ledger, "?part=Nowhere&verdict=<b>&other=1") == ALL


def test_a_square_leads_to_its_row_also_where_it_was_left_out(ledger):
    assert "cone" not in opened(ledger, "?part=Networks")
    ledger.tab.click(".squares a[href='#claim-cone']")
    ledger.wait_for(f"({SHOWN}).includes('cone')")
    top = "document.getElementById('claim-cone').getBoundingClientRect().top"
    ledger.wait_for(f"0 < {top} && {top} < innerHeight")
    assert "fig1" in opened(ledger, "?part=The+setting#claim-fig1")
    assert opened(ledger, "?part=Networks#claim-fig1") != ALL  # it is there already


def test_by_the_keyboard_alone(ledger):
    ledger.evaluate("document.querySelector('.sift select').focus()")
    for keys in ("Tab", "Tab", "b", "e", "r", "t"):
        ledger.press(keys)
    assert 0 < len(ledger.evaluate(SHOWN)) < 20
    ledger.press("Enter")  # sends nothing
    assert ledger.evaluate("location.search") == "?words=bert"
    ledger.press("Tab")
    ledger.press("Enter")
    ledger.wait_for("location.search === ''")
    assert ledger.evaluate("document.querySelector('.sift output').ariaLive") == "polite"


def test_without_scripts_all_rows_are_there(ledger):
    ledger.scripts(False)
    try:
        ledger.tab.goto(ledger.address_of(PAGE) + "?part=Networks")
        assert ledger.tab.locator(".rows [id^='claim-']").count() == len(ALL)
        assert ledger.tab.locator(".rows li:visible").count() == len(ALL)
        assert ledger.tab.locator(".sift").count() == 0
    finally:
        ledger.scripts(True)


def test_the_page_is_light_and_has_no_table(ledger):
    assert PAGE.stat().st_size < 1_000_000
    assert ledger.evaluate("document.querySelectorAll('main table').length") == 0
    assert ledger.evaluate("document.scrollingElement.scrollWidth") == ledger.evaluate("innerWidth")
