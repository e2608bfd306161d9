"""The search page finds chapters and quotes them, in a real browser from a folder on disk."""

import pytest
from browser import Page, or_skip

from tools.browser import find_browser
from tools.chapters import ROOT

HTML = ROOT / "_build" / "html"
QUOTE = "document.querySelector('#search-results .context')?.textContent ?? ''"
pytestmark = pytest.mark.site


@pytest.fixture
def browser():
    or_skip(find_browser)
    with Page() as browser:
        browser.open(HTML / "search.html")
        browser.wait_for("Search.hasIndex()")
        yield browser


def first_quote(browser, query: str) -> str:
    browser.evaluate(f"Search.performSearch({query!r}), 0")
    browser.wait_for(f"{QUOTE} !== ''")
    return browser.evaluate(QUOTE)


def test_a_result_quotes_the_article(browser):
    quote = first_quote(browser, "Diagnose")
    assert ".pdf" not in quote and "Contents" not in quote
    found = browser.evaluate("document.querySelector('#search-results').innerText")
    assert "Diagnose your own tokens" in found


def test_the_theme_alone_would_quote_its_buttons(browser):
    page = "<div role='main'><p>.pdf</p><article class='bd-article'>Words"
    page += "<abbr class='prov'>c</abbr>.<div class='cell_input'>x = 1</div></article></div>"
    assert browser.evaluate(f'Search.htmlToText("{page}")') == "Words."
    plain = f'Search.htmlToText("{page.replace("bd-article", "other")}")'
    assert browser.evaluate(plain) == ".pdfWordsc.x = 1"
