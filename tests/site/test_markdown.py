"""Every page of the built book has its twin in Markdown, with its numbers; a button copies it."""

import re

import pytest

from tools.chapters import toc_files
from tools.files import SITE

PASTED = re.compile(r'<span class="pasted-text">([^<]*)</span>')
RAW = re.compile(r"\{(?:glue|ref|numref|eq|prf|cite|prov|rocq|term)[:}]")
pytestmark = pytest.mark.site


def twin(name):
    return (SITE / f"{name}.html.md").read_text(encoding="utf8")


def told(text):
    """A twin without its code, in which a role may be written out."""
    return re.sub(r"^[> ]*```.*?^[> ]*```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def lost(page, text):
    """The numbers of a page that are missing in a text, or stand there in another order."""
    place, missing = 0, []
    for number in PASTED.findall(page.replace("\N{MINUS SIGN}", "-")):  # the twin has the run's
        found = text.find(number, place)
        missing += [number] if found < 0 else []
        place = max(place, found)
    return missing


def test_every_page_has_a_twin_with_its_numbers_and_no_markup_of_the_source():
    pages = {name: (SITE / f"{name}.html").read_text(encoding="utf8") for name in toc_files()}
    assert sum(len(PASTED.findall(page)) for page in pages.values()) > 300
    assert {name: found for name, page in pages.items() if (found := lost(page, twin(name)))} == {}
    assert [name for name in pages if RAW.search(told(twin(name)))] == []


def test_a_number_that_went_missing_and_a_role_that_stayed_would_be_noticed():
    page = (SITE / "book/paper/one_picture.html").read_text(encoding="utf8")
    text = twin("book/paper/one_picture")
    number = PASTED.findall(page)[-1]
    start = text.rindex(number)
    assert lost(page, text[:start] + text[start + len(number) :]) == [number]
    assert RAW.search(told("so {glue:text}`x` it is")) and not RAW.search(told("`{ref}` in code"))


def test_the_list_of_pages_leads_to_each_of_them():
    links = re.findall(r"^- \[.+\]\((\S+)\)", (SITE / "llms.txt").read_text("utf8"), re.MULTILINE)
    assert links == [f"{name}.html.md" for name in toc_files()]
    assert all((SITE / link).is_file() for link in links)


def test_the_button_copies_the_page(online):
    online.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    online.open(SITE / "book/routes.html", width=1200)
    online.tab.click(".btn-copy-page-button")
    online.wait_for("document.querySelector('.copied')?.textContent === 'Copied'")
    assert online.evaluate("navigator.clipboard.readText()") == twin("book/routes")
    online.wait_for("document.querySelector('.copied') === null")


def test_where_nothing_may_be_copied_the_button_leads_to_the_text(online):
    online.open(SITE / "book/routes.html", width=1200)
    online.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")
    online.tab.click(".btn-copy-page-button")
    online.wait_for("location.pathname.endsWith('/book/routes.html.md')")
    assert "# Routes" in online.evaluate("document.body.innerText")
