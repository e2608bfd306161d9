"""What a search result or a chat shows of a page."""

from types import SimpleNamespace

import attnbias_book
import pytest
from docutils.core import publish_doctree
from page_tags import LONGEST, description, tags


def page(text):
    return publish_doctree("Title\n=====\n\n" + text + "\n\nPart\n----\n\nLater.\n")


def test_the_description_is_the_first_paragraph_on_one_line():
    assert description(page("* a list\n\nThe first\nwords.")) == "The first words."
    assert description(None) == ""
    long = description(page("word " * 100))
    assert long.endswith("word ...") and len(long) <= LONGEST + 4


@pytest.mark.parametrize("address", ["", "https://example.org/book/page.html"])
def test_tags_are_escaped_and_name_an_address_only_where_there_is_one(address):
    found = tags('A "title"', "x < y & z", address)
    assert '<meta property="og:title" content="A &quot;title&quot;" />' in found
    assert '<meta name="description" content="x &lt; y &amp; z" />' in found
    assert ("http" in found) is bool(address) and 'name="citation_title"' in found
    assert "og:description" not in tags("A", "")


def test_a_page_of_the_book_gets_them_beside_what_it_has():
    app = SimpleNamespace(srcdir="/nowhere")
    context = {"title": "Why <em>W</em> &amp; u", "metatags": "before", "pageurl": None}
    attnbias_book.complete_page(app, "page", "page.html", context, page("It begins."))
    assert context["metatags"].startswith("before")
    assert 'content="Why W &amp; u"' in context["metatags"]
    assert 'content="It begins."' in context["metatags"]
