"""The search page finds chapters and quotes them, in a real browser from a folder on disk."""

import pytest

from tools.files import SITE

QUOTE = "document.querySelector('#search-results .context')?.textContent ?? ''"
pytestmark = pytest.mark.site


@pytest.fixture
def search(browser):
    browser.open(SITE / "search.html")
    browser.wait_for("Search.hasIndex()")
    return browser


def test_a_result_quotes_the_article(search):
    search.evaluate("Search.performSearch('Diagnose'), 0")
    search.wait_for(f"{QUOTE} !== ''")
    quote = search.evaluate(QUOTE)
    assert ".pdf" not in quote and "Contents" not in quote
    found = search.evaluate("document.querySelector('#search-results').innerText")
    assert "Diagnose your own tokens" in found


def test_the_theme_alone_would_quote_its_buttons(search):
    page = "<div role='main'><p>.pdf</p><article class='bd-article'>Words"
    page += "<abbr class='prov'>c</abbr>.<div class='cell_input'>x = 1</div></article></div>"
    assert search.evaluate(f'Search.htmlToText("{page}")') == "Words."
    plain = f'Search.htmlToText("{page.replace("bd-article", "other")}")'
    assert search.evaluate(plain) == ".pdfWordsc.x = 1"
