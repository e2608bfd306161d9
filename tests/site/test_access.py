"""Every page of the built book as axe, a keyboard and a screen reader meet it.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import re
from html import unescape

import pytest
from axe import axe_source, contrast, prepare, structure
from browser import DRAWN, or_skip

from tools.files import SITE, pages_of

LEADS_ON = re.compile(r'http-equiv="?refresh', re.IGNORECASE)
PHONE = 390  # pixels wide
PARTS = 8  # of the pages, for two browsers to share
KINDS = [  # one page of each kind, for what differs on a phone
    "book/checked",
    "book/intro",
    "book/laboratory",
    "book/ledger",
    "book/paper/one_picture",
    "book/paper/theorem1",
    "book/reference/model",
    "search",
    "slides",
]
SHORTEST = 20  # letters that say what a figure shows
FILE = re.compile(r"\.(?:svg|png|jpe?g|gif)$")
FAULTY = """<!doctype html><html lang="en"><title>Faults</title><meta charset="utf-8">
<main><h1>Faults</h1><p style="color: #999; background: #fff">pale</p>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width="9" height="9">
<button></button><input type="range"><pre id="a" style="width: 9em; overflow: auto" tabindex="-1">
a line that is far too long for its box</pre><p id="a" tabindex="0">twice</p></main>"""

pytestmark = pytest.mark.site


def pages():
    assert (SITE / "index.html").is_file(), "no built book: run `make book`"
    return [p for p in pages_of(SITE) if not LEADS_ON.search(p.read_text(encoding="utf8"))]


@pytest.fixture(scope="module")
def axe():
    return or_skip(axe_source)


def listed(page, faults):
    return [f"{page.stem}: {fault.impact} {fault.rule}: {fault.places}" for fault in faults]


@pytest.fixture(scope="module")
def known():
    """Looks of words that were measured, by theme."""
    return {"light": set(), "dark": set()}


@pytest.mark.parametrize("part", range(PARTS))
def test_axe_finds_no_fault_on_any_page_light_or_dark(browser, axe, known, part):
    found = []
    for page in pages()[part::PARTS]:
        browser.open(page, width=1200)
        prepare(browser, axe)
        for theme, looks in known.items():
            found += listed(page, contrast(browser, looks, theme))
        found += listed(page, structure(browser))
    assert found == []
    assert min(map(len, known.values())) > 30  # of words; all pages have some sixty


@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_no_fault_on_a_phone(browser, axe, name):
    page = SITE / f"{name}.html"
    browser.open(page, width=PHONE)
    prepare(browser, axe, formulas=40)
    found = (
        contrast(browser, set(), "light") + contrast(browser, set(), "dark") + structure(browser)
    )
    assert listed(page, found) == []


LETTERS = """Array.from(document.querySelectorAll(".bd-article figure:not(.slider) img"), image =>
  [image.offsetWidth / (image.parentElement.querySelector("source") ?? image).getAttribute("width"),
   image.closest("figure").tabIndex])"""


@pytest.mark.parametrize("style", ["", "figure > img { max-width: 100% !important }"])
def test_a_figure_keeps_its_letters_on_a_phone(browser, style):
    """Letters are drawn 12 pixels tall; below 9 nobody reads them. What scrolls has the Tab key."""
    browser.open(SITE / "book/paper/theorem1.html", width=PHONE)
    browser.style(style)
    browser.evaluate("document.querySelector('.bd-article figure').scrollIntoView()")
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    found = browser.evaluate(LETTERS)
    assert len(found) > 1 and browser.evaluate("document.scrollingElement.scrollWidth") == PHONE
    assert (min(ratio for ratio, _ in found) > 0.75) == (style == "")
    assert (found[0][1] == 0) == (style == "")


def test_axe_finds_planted_faults(browser, axe, tmp_path):
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY, encoding="utf8")
    browser.open(page)
    prepare(browser, axe)
    known = set()
    found = {fault.rule for fault in contrast(browser, known, "light") + structure(browser)}
    assert contrast(browser, known, "light") == []  # what is known is not measured again
    assert found >= {
        "color-contrast",
        "image-alt",
        "button-name",
        "label",
        "scrollable-region-focusable",
        "target-size",
    }


STILL = "* { transition: none !important; scroll-behavior: auto !important }"
# What has the focus: its text, whether it is in view, and whether one sees that it has it.
FOCUSED = """(function () {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const looks = () => [style.outlineStyle, style.outlineColor, style.boxShadow, style.color,
    style.borderColor, style.backgroundColor, style.textDecorationLine].join();
  const focused = looks();
  at.blur();
  const seen = focused !== looks();
  at.focus({preventScroll: true, focusVisible: true});
  const label = at.labels && at.labels[0] ? at.labels[0].textContent : "";
  const name = at.getAttribute("aria-label") || at.title || label || at.textContent;
  return [name.trim().slice(0, 40),
    box.width > 0 && box.bottom > 0 && box.top < innerHeight, seen, at.tagName];
})()"""


def walked(browser, steps):
    """What the Tab key leads to, step by step."""
    found = []
    for _ in range(steps):
        browser.press("Tab")
        browser.evaluate(DRAWN)
        found.append(browser.evaluate(FOCUSED))
    return found


def test_the_tab_key_leads_through_a_page(browser):
    browser.open(SITE / "book/paper/one_picture.html", width=1200)
    browser.style(STILL)
    start = walked(browser, 12)
    assert start[0][0] == "Skip to main content"
    browser.evaluate("document.querySelector('main a[href*=\"http\"], main p a').focus()")
    text = walked(browser, 30)
    for name, in_view, seen, tag in start + text:
        assert (name or tag in ("PRE", "DIV")) and in_view and seen, (name, tag)
    assert len({each[0] for each in start + text}) > 25  # it does not turn in a circle


def test_a_focus_that_cannot_be_seen_would_be_noticed(browser, tmp_path):
    page = tmp_path / "hidden.html"
    page.write_text("<style>:focus { outline: 0 }</style><a href='#'>one</a>", encoding="utf8")
    browser.open(page)
    assert not walked(browser, 1)[0][2]


HIDDEN_DRAWING = re.compile(r'<svg\b[^>]*aria-hidden="true".*?</svg>', re.DOTALL)
PICTURE = re.compile(r"<(?:img|svg)\b[^>]*>|</svg>")
WORDS = re.compile(r'\b(?:alt|aria-label)="([^"]*)"')


def picture_texts(page):
    """The words that stand for each picture of a page's text; a drawing in a drawing is a part."""
    found, inside = [], 0
    for tag in PICTURE.findall(re.sub(HIDDEN_DRAWING, "", page[page.index("<main") :])):
        if not inside and tag != "</svg>":
            words = WORDS.search(tag)
            found.append(unescape(words[1]).strip() if words else "")
        inside += {"<svg": 1, "</sv": -1}.get(tag[:4], 0)
    return found


def faults_of(texts):
    """Texts that say too little: short, a file's name, or another picture's too."""
    short = [text for text in texts if len(text) < SHORTEST or FILE.search(text)]
    return short + [text for text in set(texts) if texts.count(text) > 1]


def test_every_picture_has_words_of_its_own():
    texts = {page: picture_texts(page.read_text(encoding="utf8")) for page in pages()}
    assert sum(map(len, texts.values())) > 100
    assert {page.stem: faults_of(each) for page, each in texts.items() if faults_of(each)} == {}


@pytest.mark.parametrize(
    ("markup", "fine"),
    [
        ('<img src="a.svg">', False),
        ('<img src="a.svg" alt="a/long/path/of/a/picture.svg">', False),
        ('<svg role="img" aria-label="a figure"></svg>', False),
        ('<img alt="Two curves fall along a line.">' * 2, False),
        ('<img alt="Two curves fall along a line.">', True),
    ],
)
def test_a_picture_without_words_would_be_noticed(markup, fine):
    assert (faults_of(picture_texts(f"<main>{markup}</main>")) == []) == fine


# The least contrast of the words and links in a row that the mouse is on, by their styles.
IN_A_ROW = """(row => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = light(getComputedStyle(row).backgroundColor);
  return Math.min(...[...row.querySelectorAll("td, td a")].map(each => {
    const [a, b] = [light(getComputedStyle(each).color), ground].sort();
    return (b + 0.05) / (a + 0.05);
  }));
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["book/notation", "book/literature"])
def test_a_row_under_the_mouse_can_be_read(browser, name, theme):
    browser.open(SITE / f"{name}.html", width=1200)
    browser.style("* { transition: none !important }")
    browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    rows = browser.tab.locator(".bd-article table tbody tr:visible")
    linked = rows.filter(has=browser.tab.locator("td a"))
    row = (linked if linked.count() else rows).first
    plain = row.evaluate("row => getComputedStyle(row).backgroundColor")
    row.hover()
    assert row.evaluate("row => getComputedStyle(row).backgroundColor") != plain
    assert row.evaluate(IN_A_ROW) >= 4.5


HEADER = """[...document.querySelectorAll(".bd-header-article :is(button, label, a)")]
  .filter(each => each.checkVisibility() && each.tabIndex >= 0).map(each => {
    each.focus({focusVisible: true});
    return [document.activeElement === each, parseFloat(getComputedStyle(each).outlineWidth),
      getComputedStyle(each).outlineStyle];
  })"""


def test_a_button_above_a_page_shows_that_it_has_the_focus(browser):
    browser.open(SITE / "book/laboratory.html", width=1200)
    browser.press("Tab")
    found = [looks for has, *looks in browser.evaluate(HEADER) if has]
    assert len(found) > 3 and [each for each in found if each != [3, "solid"]] == []
