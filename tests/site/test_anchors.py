"""Every address with an anchor shows its place: opened cold, by a click, at night, from the search.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import random
import re
from contextlib import ExitStack, contextmanager

import pytest
from browser import or_skip

from tools.browser import find_browser, open_browser
from tools.files import SITE, pages_of

HEADER = 64  # pixels: what the theme keeps free above a place that is asked for
NEAR = 8  # pixels, less than half a line
WIDTHS = {1200: 800, 390: 844}
TOGETHER = 5  # windows at once: most of a test is waiting for a page to stand still
# Those that a reader found screens away from their place, and the longest page.
NAMED = [
    ("book/paper/one_picture", "sec-one-break"),
    ("book/paper/one_picture", "sec-one-prediction"),
    ("book/paper/unequal_scores", "sec-unequal-map"),
    ("book/paper/theorem1", "sec-theorem1-break"),
    ("book/yours/your_model", "sec-your-model-own"),
    ("book/paper/fine_tuning", "sec-figure4-break"),
    ("book/checked", "rocq-rate-m1"),
    ("book/paper/bounds", "rate-m2"),
]
# How many of each kind are drawn beside them: forty in all.
KINDS = {
    r'<(?:section|span) (?:class="[^"]*" )?id="(sec-[^"]+)"': 8,
    r'<div class="(?:proof|exercise)[^"]*" id="([^"]+)"': 6,
    r'<div class="math[^"]*" id="(equation-[^"]+)"': 5,
    r'<figure class="[^"]*" id="(fig-[^"]+)"': 4,
    r'id="((?:rocq|prov)-[^"]+)"': 4,
    r'id="((?:sym|term)-[^"]+)"': 2,
    r'<dt class="sig[^"]*" id="([^"]+)"': 3,
}
# Where a place is once the page stands still: as far below the top as it is, and as it should be.
# At the end of the page, which scrolls no further, any place in view is as near as can be.
LANDED = """async anchor => {
  const root = document.documentElement;
  const wait = () => new Promise(done => setTimeout(done, 60));
  const top = () => Math.round(document.getElementById(anchor).getBoundingClientRect().top);
  while (document.readyState !== "complete") await wait();
  for (let last, still = 0; still < 3; still = top() === last ? still + 1 : 0) {
    last = top();
    await wait();
  }
  const end = scrollY + innerHeight >= root.scrollHeight - 1;
  return end && top() >= 0 && top() < innerHeight ? null : top();
}"""

pytestmark = pytest.mark.site


def drawn() -> list[tuple[str, str]]:
    """Forty places of the book, by page and anchor: those named, and some of every kind."""
    chance, found = random.Random(35), list(NAMED)
    texts = {page: page.read_text(encoding="utf8") for page in pages_of(SITE)}
    for pattern, count in KINDS.items():
        places = {
            (page.relative_to(SITE).with_suffix("").as_posix(), anchor)
            for page, text in texts.items()
            for anchor in re.findall(pattern, text)
        }
        found += chance.sample(sorted(places - set(found)), count)
    return found


@pytest.fixture(scope="module")
def browser():
    or_skip(find_browser)
    with open_browser() as browser:
        yield browser


@contextmanager
def window(browser, width, night=False):
    """A tab that has seen nothing yet; a narrow one is a phone's."""
    size = {"width": width, "height": WIDTHS[width]}
    context = browser.new_context(
        viewport=size, is_mobile=width < 600, color_scheme="dark" if night else "light"
    )
    yield context.new_page()
    context.close()


def address(page, anchor=""):
    return (SITE / f"{page}.html").as_uri() + (f"#{anchor}" if anchor else "")


def missed(tab, anchor):
    """How far from the top a place stands that is not where it should; nothing where it is."""
    top = tab.evaluate(LANDED, anchor)
    return None if top is None or abs(top - HEADER) <= NEAR else top


def open_cold(browser, places, width, night=False):
    """The places that are missed by who opens their addresses, each in a new window."""
    found = {}
    for k in range(0, len(places), TOGETHER):
        with ExitStack() as opened:
            tabs = {
                place: opened.enter_context(window(browser, width, night))
                for place in places[k : k + TOGETHER]
            }
            for place, tab in tabs.items():
                tab.goto(address(*place), wait_until="commit")
            for (page, anchor), tab in tabs.items():
                if (top := missed(tab, anchor)) is not None:
                    found[f"{page}#{anchor}"] = top
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_an_address_shows_its_place(browser, width):
    places = drawn()
    assert len(set(places)) == 40
    assert open_cold(browser, places, width) == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_it_does_by_night(browser, width):
    assert open_cold(browser, drawn()[:10], width, night=True) == {}


def contents(tab):
    """The links of the page's own contents by their anchors; a phone has them behind a button."""
    tab.wait_for_load_state()
    button, drawer = (
        tab.locator(f".bd-{part}") for part in ("main .secondary-toggle", "sidebar-secondary")
    )
    if button.is_visible() and not drawer.is_visible():
        button.click()
    links = tab.locator(".bd-toc-nav a.nav-link[href^='#']")
    return {links.nth(k).get_attribute("href")[1:]: links.nth(k) for k in range(links.count())}


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_in_the_contents_of_a_page_shows_its_place_and_so_does_the_way_back(browser, width):
    chance, found = random.Random(35), {}
    for page in dict.fromkeys(page for page, _ in NAMED if "checked" not in page):
        with window(browser, width) as tab:
            tab.goto(address(page))
            first, second = chance.sample([name for name in contents(tab)][1:], 2)
            for name in (first, second):
                contents(tab)[name].click()
                if width < 600:  # what lies over the page has gone
                    tab.locator(".bd-sidebar-secondary").wait_for(state="hidden")
                found[page, name] = missed(tab, name)
            for go, name in ((tab.go_back, first), (tab.go_forward, second)):
                go()
                found[page, name, go.__name__] = missed(tab, name)
    assert len(found) >= 20
    assert {place: top for place, top in found.items() if top is not None} == {}


FOLDED = re.compile(
    r'<details class="sd-[^"]*"(?:(?!</details>).)*?id="(equation-[^"]+|eq-[^"]+)"', re.DOTALL
)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_place_that_is_folded_away_is_unfolded(browser, width):
    texts = {p: p.read_text(encoding="utf8") for p in pages_of(SITE / "book/paper")}
    places = [
        (page.relative_to(SITE).with_suffix("").as_posix(), found[1])
        for page, text in texts.items()
        if (found := FOLDED.search(text))
    ]
    assert len(places) > 2
    assert open_cold(browser, places, width) == {}


@pytest.mark.parametrize("written", ["sec%2Done%2Dbreak", "sec-one-bre%61k"])
def test_an_anchor_may_be_encoded(browser, written):
    with window(browser, 1200) as tab:
        tab.goto(address("book/paper/one_picture", written))
        assert missed(tab, "sec-one-break") is None


def test_a_place_that_moved_to_another_page_is_shown_there(browser):
    with window(browser, 1200) as tab:
        tab.goto(address("book/paper/one_picture", "theorem-1"))
        tab.wait_for_url("**/theorem1.html#theorem-1")
        assert missed(tab, "theorem-1") is None
        tab.goto(address("book/paper/one_picture", "no-such-place"))
        tab.wait_for_function("'attnbiasPlaces' in window && document.readyState === 'complete'")
        assert tab.url.endswith("one_picture.html#no-such-place")


NUMBER = re.compile(r"^[\d.]+ ")


def test_the_search_leads_to_the_place_that_it_names(browser):
    found = {}
    for page in dict.fromkeys(page for page, _ in drawn() if "reference" not in page):
        with window(browser, 1200) as tab:
            tab.goto(address(page))
            titles = [NUMBER.sub("", link.inner_text()) for link in contents(tab).values()]
            plain = [title for title in titles if title.isascii() and "\n" not in title]
            tab.goto(address("search"))
            tab.wait_for_function("Search.hasIndex()")
            tab.evaluate("title => Search.performSearch(title)", plain[-1])
            link = tab.locator(f"#search-results a[href*='{page}.html#']").first
            anchor = link.get_attribute("href").partition("#")[2]
            link.click()
            tab.wait_for_url(f"**/{page}.html#*")
            found[page, anchor] = missed(tab, anchor)
        if len(found) == 10:
            break
    assert len(found) == 10
    assert {place: top for place, top in found.items() if top is not None} == {}


UNSEEN = "document.documentElement.classList.contains('unseen')"
WATCH = """window.was = false; new MutationObserver(() => {
  window.was ||= document.documentElement?.classList.contains("unseen") ?? false;
}).observe(document, {subtree: true, childList: true, attributes: true});"""


def test_a_page_waits_for_its_first_paint_alone_and_with_an_anchor_for_nothing(browser):
    for anchor, waits in (("", True), ("sec-theorem1-break", False)):
        with window(browser, 1200) as tab:
            tab.add_init_script(WATCH)
            tab.goto(address("book/paper/theorem1", anchor))
            tab.wait_for_function(f"!{UNSEEN}")
            assert tab.evaluate("window.was") == waits
