"""Cards of symbols, terms and references in the built book, by mouse, keyboard and finger.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import gzip
import json
import re

import pytest

from tools.chapters import toc_files
from tools.files import SITE

CHAPTER = SITE / "book/paper/bounds.html"
SYMBOL = "a.symbol[href$='#sym-w-mm']"
TERM = "a.term[href$='#term-vacuous']"
EQUATION = "a.reference.internal[href='#equation-eq-m1']"
BOX = "a.reference.internal[href$='theorem1.html#theorem-1']"
FIGURE = "a.reference.internal[href='#fig-bounds-path']"
LINK = re.compile(r'<a class="reference internal" href="([^"]*#[^"]+)"')
HEAVIEST_SCRIPT, HEAVIEST_CARDS = 10_000, 30_000  # bytes; cards as they are sent
OPEN = "document.getElementById('hover-card').matches(':popover-open')"
SHEET = "document.getElementById('notation-card')"
pytestmark = pytest.mark.site


@pytest.fixture
def chapter(browser):
    """The chapter on a desk, its formulas set."""
    assert CHAPTER.is_file(), f"{CHAPTER} is missing: run `make book`"
    browser.fingers(False)
    browser.open(CHAPTER, width=1200, height=900)
    browser.wait_for("document.querySelector('a.symbol mjx-container') !== null")
    return browser


def where(browser, selector):
    """The middle of the first element that fits, brought into view."""
    element = f"document.querySelector({json.dumps(selector)})"
    browser.evaluate(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = f"(b => [b.left + b.width / 2, b.top + b.height / 2])({element}.getClientRects()[0])"
    return browser.evaluate(box)


def point_at(browser, selector):
    browser.point(5, 5)
    browser.point(*where(browser, selector))
    browser.wait_for(OPEN)
    return text(browser)


def text(browser):
    """What the card says, formulas left out."""
    return browser.evaluate(
        "(c => (c.querySelectorAll('mjx-container').forEach(m => m.remove()), c.textContent))"
        "(document.getElementById('hover-card').cloneNode(true))"
    )


def formulas(browser, box="document.getElementById('hover-card')"):
    """How many formulas of the card are set, and whether TeX is left."""
    count = browser.evaluate(f"{box}.querySelectorAll('mjx-container').length")
    return count, browser.evaluate(f"/\\\\[([]/.test({box}.innerText)")


def test_a_symbol_shows_its_card_and_escape_hides_it(chapter):
    assert "max-margin matrix, the solution of (W-SVM)" in point_at(chapter, SYMBOL)
    assert formulas(chapter) == (2, False)
    described = f"document.querySelector(\"{SYMBOL}\").getAttribute('aria-describedby')"
    assert chapter.evaluate(described) == "hover-card"
    link = "document.querySelector('#hover-card a').href"
    assert chapter.evaluate(link) == (CHAPTER.parent / "attention_svm.html").as_uri() + "#w-svm"
    chapter.press("Escape")
    assert not chapter.evaluate(OPEN)
    assert chapter.evaluate(described) is None


def test_the_card_goes_when_the_mouse_does_and_stays_under_it(chapter):
    point_at(chapter, SYMBOL)
    box = "document.getElementById('hover-card').getBoundingClientRect()"
    x, y = chapter.evaluate(f"(b => [b.left + 20, b.top + 10])({box})")
    chapter.point(x, y)
    chapter.evaluate("new Promise(done => setTimeout(done, 600))")
    assert chapter.evaluate(OPEN)
    chapter.point(5, 5)
    chapter.wait_for(f"!{OPEN}")

    # a formula shows all its symbols
    said = point_at(chapter, "span.symbol[data-entries='sym-xi sym-w-mm']")
    assert "margin" in said and "max-margin matrix" in said
    assert chapter.evaluate("document.querySelectorAll('#hover-card dt').length") == 2


def test_the_keyboard_shows_and_hides(chapter):
    # a symbol is one stop of the key
    chapter.wait_for("document.querySelector('a.symbol mjx-container[tabindex=\"0\"]') === null")
    before = "e => { const b = document.createElement('button'); e.before(b); b.focus(); }"
    chapter.evaluate(f"({before})(document.querySelector(" + json.dumps(TERM) + "))")
    chapter.press("Tab")
    assert chapter.evaluate(f'document.activeElement.matches("{TERM}")')
    chapter.wait_for(OPEN)
    assert "said of a bound that is true and says nothing" in text(chapter)
    chapter.press("Tab")
    assert not chapter.evaluate(f'document.activeElement.matches("{TERM}, #hover-card *")')
    chapter.wait_for(f"!document.querySelector(\"{TERM}\").hasAttribute('aria-describedby')")


def test_a_finger_shows_the_card_first_and_follows_the_link_then(browser):
    browser.open(CHAPTER)
    browser.wait_for("document.querySelector('a.symbol mjx-container') !== null")
    at = where(browser, TERM)
    browser.touch(*at)
    browser.wait_for(OPEN)
    box = "document.getElementById('hover-card').getBoundingClientRect()"
    left, right = browser.evaluate(f"(b => [b.left, b.right])({box})")
    assert 0 <= left < right <= 390
    for place, there in (((5, 840), "!"), (at, "")):
        browser.touch(*place)
        browser.wait_for(there + OPEN)
    browser.touch(*at)
    browser.wait_for("location.hash === '#term-vacuous' && document.readyState === 'complete'")
    assert "Vacuous" not in browser.evaluate("document.title")
    assert browser.evaluate("document.getElementById('term-vacuous').textContent").startswith("vac")


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (EQUATION, "(22.3)"),
        (BOX, "Theorem 1"),
        (FIGURE, "The same three runs"),
        ("p.checked-by a.reference[href*='reference/']", "M1 and the steps of its proof"),
        ("a.reference.internal[href$='#chap-near-orthogonality']", "When training arrives"),
    ],
    ids=["equation", "box", "figure", "function", "chapter"],
)
def test_a_reference_shows_what_it_leads_to(chapter, selector, words):
    number = chapter.evaluate("document.querySelector('#equation-eq-m1 .eqno').innerText")
    words = words.replace("(22.3)", number.rstrip("#"))
    assert words in point_at(chapter, selector)
    count, raw = formulas(chapter)
    assert not raw
    assert count > 0 or selector not in (EQUATION, BOX)
    inside = "Array.from(document.querySelectorAll('#hover-card img'), i => i.naturalWidth > 0)"
    chapter.wait_for(f"{inside}.every(Boolean)")
    assert chapter.evaluate(inside) == ([True] if selector == FIGURE else [])
    for none in ("[id]", "a[tabindex='0']"):
        assert chapter.evaluate(f'document.querySelector("#hover-card {none}")') is None


@pytest.mark.parametrize("width", [1200, 390])
def test_the_button_lists_the_symbols_of_the_page(browser, width):
    browser.open(CHAPTER, width=width)
    browser.wait_for("document.querySelector('a.symbol mjx-container') !== null")
    height = browser.evaluate("document.querySelector('article').getBoundingClientRect().height")
    button = "document.querySelector('.btn-notation-button')"
    browser.evaluate(f"{button}.click()")
    browser.wait_for(f"{SHEET}.matches(':popover-open')")
    used = browser.evaluate(f"{SHEET}.querySelector('[data-symbols]').dataset.symbols").split()
    assert browser.evaluate(f"{SHEET}.querySelectorAll('dt').length") == len(used) > 10
    assert formulas(browser, SHEET)[1] is False
    left, right = browser.evaluate(f"(b => [b.left, b.right])({SHEET}.getBoundingClientRect())")
    assert 0 <= left < right <= width
    assert browser.evaluate(f"{button}.getAttribute('aria-expanded')") == "true"
    after = browser.evaluate("document.querySelector('article').getBoundingClientRect().height")
    assert after == height  # nothing moved
    browser.press("Escape")
    assert not browser.evaluate(f"{SHEET}.matches(':popover-open')")
    assert browser.evaluate(f"document.activeElement === {button}")
    for there in ("", "!"):  # a click opens it, and another closes it
        browser.evaluate(f"{button}.click()")
        browser.wait_for(f"{there}{SHEET}.matches(':popover-open')")


def test_cards_take_the_colours_of_the_page(chapter):
    colours = "(s => [s.color, s.backgroundColor])(getComputedStyle(document.querySelector('{}')))"
    for theme in ("light", "dark"):
        chapter.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        point_at(chapter, SYMBOL)
        page = chapter.evaluate(colours.format("body"))
        assert chapter.evaluate(colours.format("#hover-card")) == page
        chapter.press("Escape")


def test_nothing_of_it_is_printed(chapter):
    point_at(chapter, SYMBOL)
    chapter.evaluate("document.querySelector('.btn-notation-button').click()")
    chapter.wait_for(f"{SHEET}.matches(':popover-open')")
    chapter.paper()
    for selector in ("#hover-card", "#notation-card"):
        shown = f"getComputedStyle(document.querySelector('{selector}')).display"
        assert chapter.evaluate(shown) == "none"
    line = f'getComputedStyle(document.querySelector("{SYMBOL}")).borderBottomWidth'
    assert chapter.evaluate(line) == "0px"


def test_without_scripts_a_symbol_is_a_link(chapter):
    chapter.scripts(False)
    try:
        chapter.open(CHAPTER)
        assert chapter.evaluate(f"getComputedStyle({SHEET}).display") == "none"
        href = chapter.evaluate(f'document.querySelector("{SYMBOL}").href')
        assert href == (SITE / "book/notation.html").as_uri() + "#sym-w-mm"
    finally:
        chapter.scripts(True)


def test_a_missing_entry_would_be_noticed(chapter):
    silent = "(say => { window.sphinxCards = page => say(page, {}); })(window.sphinxCards)"
    chapter.evaluate(silent)
    chapter.point(*where(chapter, SYMBOL))
    chapter.evaluate("new Promise(done => setTimeout(done, 800))")
    assert not chapter.evaluate(OPEN)


def cards_of(file):
    """The cards of a page, by their anchors."""
    return json.loads(file.read_text(encoding="utf8").partition(", ")[2].rstrip()[:-1])


def test_every_entry_that_a_page_names_has_a_card():
    known = set(cards_of(SITE / "_cards/book/notation.js"))
    for name in toc_files():
        page = (SITE / f"{name}.html").read_text(encoding="utf8")
        named = re.findall(r'data-(?:entries|symbols)="([^"]*)"', page)
        assert {one for ids in named for one in ids.split()} <= known, name
    assert {"sym-w-mm", "term-vacuous"} <= known


def test_nearly_every_reference_has_a_card_and_cards_are_light():
    files, lacking, seen = list((SITE / "_cards").rglob("*.js")), [], 0
    cards = {f.with_suffix(".html").relative_to(SITE / "_cards"): cards_of(f) for f in files}
    for name in toc_files():
        page = SITE / f"{name}.html"
        for link in LINK.findall(page.read_text(encoding="utf8")):
            path, _, anchor = link.partition("#")
            leads = (page.parent / path).resolve() if path else page.resolve()
            shown = cards[leads.relative_to(SITE.resolve())]
            seen += 1
            lacking += [] if anchor in shown else [f"{name}: {link}"]
    assert seen > 1000
    assert len(lacking) < 0.01 * seen, lacking

    assert (SITE / "_static/cards.js").stat().st_size < HEAVIEST_SCRIPT
    assert len(files) >= len(toc_files())
    assert max(len(gzip.compress(file.read_bytes())) for file in files) < HEAVIEST_CARDS
