"""The search finds pages, boxes and sections and quotes them, in a browser, from a folder."""

import re
from html import unescape

import pytest
from reference_statements import read_statements

from tools.chapters import toc_files
from tools.files import SITE

QUOTE = "document.querySelector('#search-results .context')?.textContent ?? ''"
# The pages found for a query, in their order, and the addresses of the places below each.
FOUND = """(query => {
  document.querySelector("#search-results").replaceChildren();
  Search.performSearch(query);
  return [...document.querySelectorAll("#search-results ul.search > li")].map(page =>
    [...page.querySelectorAll("a")].map(link => link.getAttribute("href")));
})"""
STATEMENT = re.compile(r"(theorem|lemma|assumption|definition|example|condition)-\d+")
pytestmark = pytest.mark.site


@pytest.fixture
def search(browser):
    browser.open(SITE / "search.html")
    browser.wait_for("Search.hasIndex()")
    return browser


def found(search, query):
    return search.evaluate(f"{FOUND}({query!r})")


def titles():
    """The title of each page of the table of contents."""
    for name in toc_files():
        page = (SITE / f"{name}.html").read_text("utf8")
        title = re.search(r'<h1>([^\n]*?)<a class="headerlink"', page)[1]
        yield name, unescape(re.sub(r"<[^>]+>", "", title))


def test_each_title_finds_its_page_first(search):
    wrong = {}
    for name, title in titles():
        without = re.sub(r"^\d+\. ", "", title)
        for query in {title, without, without.lower()}:
            first = found(search, query)[0][0]
            if first != f"./{name}.html":
                wrong[query] = first
    assert wrong == {}
    assert "Momentum" in {re.sub(r"^\d+\. ", "", title) for _, title in titles()}


def test_each_statement_of_the_paper_is_found_first_with_its_place(search):
    boxes = {
        label: kept.chapter
        for label, kept in read_statements().items()
        if STATEMENT.fullmatch(label)
    } | {"remark-2": "book/paper/theorem1"}
    assert len(boxes) > 20 and boxes["theorem-1"] == "book/paper/theorem1"
    for label, chapter in boxes.items():
        page, *places = found(search, label.replace("-", " ").title())[0]
        assert (page, places[0]) == (f"./{chapter}.html", f"./{chapter}.html#{label}")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("Figure 4", "book/paper/fine_tuning.html"),
        ("figure 9", "book/paper/bad_start.html"),
        ("Implicit bias rate", "book/paper/theorem1.html#theorem-1"),
        ("logit gap", "book/notation.html#term-logit-gap"),
        ("Polyak", "book/paper/polyak.html"),
        ("solve_w_svm", "book/reference/geometry.html#attnbias.solve_w_svm"),
        ("attnbias.solve_w_svm()", "book/reference/geometry.html#attnbias.solve_w_svm"),
        ("float64 wall", "book/paper/float64_wall.html"),
        ("max margin", "book/paper/attention_svm.html#w-svm"),
        ("maximum-margin", "book/paper/attention_svm.html#w-svm"),
        ("learning rate", "book/paper/step_sizes.html#chap-step-sizes"),
        ("normalized gradient descent", "book/notation.html#term-normalised-gradient-descent"),
        (
            "a small start is a fair start",
            "book/paper/theorem1.html#lemma-2-a-small-start-is-a-fair-start",
        ),
    ],
)
def test_the_first_answer_is_the_plain_one(search, query, place):
    assert f"./{place}" in found(search, query)[0]


def test_sections_stand_below_their_page_with_their_anchors(search):
    pages = found(search, "gradient")
    assert len(pages) > 10 and sum(len(page) > 1 for page in pages) > 3
    for page, *places in pages:
        assert all(place.startswith(f"{page}#") for place in places) and len(places) <= 4
        text = (SITE / page).read_text("utf8")
        assert all(f'id="{place.partition("#")[2]}"' in text for place in places)


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("normalised gradient", "normalized gradient"),
        ("minimises", "minimizes"),
        ("Normalisation", "Normalization"),
        ("colour", "color"),
        ("centre", "center"),
    ],
)
def test_one_finds_the_same_in_both_spellings(search, british, american):
    pages = found(search, british)
    assert pages and found(search, american) == pages


@pytest.mark.parametrize("word", ["exponent", "slack", "margin", "support", "step", "gap"])
def test_a_plain_word_finds_chapters_before_names_in_code(search, word):
    assert "/reference/" not in found(search, word)[0][0]


def test_what_no_page_has_finds_nothing(search):
    assert found(search, "xyzzyq") == []
    said = search.evaluate("document.querySelector('.search-summary').innerText")
    assert "No page has all of these words" in said and "categor" not in said


@pytest.mark.parametrize("width", [390, 1200])
def test_the_magnifier_lies_beside_the_words(browser, width):
    browser.open(SITE / "search.html", width=width)
    for field in ("search-input", "search-input-page"):
        ends = browser.evaluate(
            f"""(input => {{
              input.closest(".search-button__wrapper")?.classList.add("show");
              const icon = input.form.querySelector(".fa-magnifying-glass").getBoundingClientRect();
              const padding = parseFloat(getComputedStyle(input).paddingLeft);
              return [icon.right, input.getBoundingClientRect().left + padding];
            }})(document.getElementById("{field}"))"""
        )
        assert 0 < ends[0] < ends[1]


def test_a_query_in_the_address_is_answered_by_the_same_ranking(browser):
    browser.tab.goto(f"{(SITE / 'search.html').as_uri()}?q=momentum")
    browser.wait_for("document.querySelector('#search-results li a') !== null")
    first = browser.evaluate("document.querySelector('#search-results li a').innerText")
    assert first.endswith("Momentum") and ">" not in first


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
