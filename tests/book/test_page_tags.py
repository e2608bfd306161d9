"""What a search result or a chat shows of a page."""

from types import SimpleNamespace

import attnbias_book
import pytest
from docutils.core import publish_doctree
from page_tags import LONGEST, PREVIEW, description, spoken, tags

from tools.files import ROOT


def page(text):
    return publish_doctree("Title\n=====\n\n" + text + "\n\nPart\n----\n\nLater.\n")


def test_the_description_is_the_first_paragraph_on_one_line():
    assert description(page("* a list\n\nThe first\nwords.")) == "The first words."
    assert description(None) == ""
    long = description(page("word " * 100))
    assert long.endswith("word ...") and len(long) <= LONGEST + 4


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (r"\Xi = 1/\|W_{mm}\|", "Xi = 1/|W_mm|"),
        (r"\mathrm{corr}(W_t, W_{mm})", "corr(W_t, W_mm)"),
        (r"1 - \eta_t", "1 - eta_t"),
        (r"p = \tfrac{1}{3} \pm \frac23", "p = 1/3 ± 2/3"),
        (r"$200 \times 200$", "200 times 200"),
    ],
)
def test_a_formula_is_said_without_its_markup(formula, said):
    assert " ".join(spoken(formula).split()) == said
    text = description(page(f"Its inverse :math:`{formula}` *is* the ``margin``."))
    assert text == f"Its inverse {said} is the margin." and "\\" not in text


@pytest.mark.parametrize("address", ["", "https://example.org/book/page.html"])
def test_tags_are_escaped_and_name_an_address_only_where_there_is_one(address):
    found = tags('A "title"', "x < y & z", address, address and "https://example.org/book/")
    assert '<meta property="og:title" content="A &quot;title&quot;" />' in found
    assert '<meta name="description" content="x &lt; y &amp; z" />' in found
    assert ("http" in found) is bool(address) and 'name="citation_title"' in found
    picture = f'<meta property="og:image" content="https://example.org/book/{PREVIEW}" />'
    assert (picture in found) is bool(address) and (ROOT / "book" / PREVIEW).is_file()
    assert "citation_arxiv_id=2402.05738" in found
    assert "og:description" not in tags("A", "")


def test_a_page_of_the_book_gets_them_beside_what_it_has():
    app = SimpleNamespace(srcdir="/nowhere", config=SimpleNamespace(html_baseurl=""))
    context = {"title": "Why <em>W</em> &amp; u", "metatags": "before", "pageurl": None}
    attnbias_book.complete_page(app, "page", "page.html", context, page("It begins."))
    assert context["metatags"].startswith("before")
    assert 'content="Why W &amp; u"' in context["metatags"]
    assert 'content="It begins."' in context["metatags"]


def test_a_workflow_says_where_the_book_is_published(monkeypatch):
    for address in ("", "https://example.org/book/"):
        monkeypatch.setenv("BOOK_ADDRESS", address)
        config = SimpleNamespace(html_theme_options={})
        attnbias_book.name_site(None, config)
        assert config.html_baseurl == address
    pages = (ROOT / ".github/workflows/pages.yml").read_text("utf8")
    assert "BOOK_ADDRESS: ${{" in pages
