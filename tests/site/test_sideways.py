"""What is wider than its place scrolls sideways, shows that it does, and does so by the keyboard.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest
from test_anchors import window

from tools.files import SITE

PAGES = [
    "book/checked",
    "book/notation",
    "book/paper/bounds",
    "book/paper/figure3",
    "book/paper/fine_tuning",
    "book/paper/one_picture",
    "book/paper/theorem1",
]
# Whatever scrolls sideways: whether it is cut off, has a sign at its right edge, and a key.
FOUND = """async () => {
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  await new Promise(done => setTimeout(done, 1000));
  const all = [...document.querySelectorAll(".bd-article *")].filter(each => each.clientWidth
    && !each.closest("figure.slider, .solution, .toggle-hidden")
    && ["auto", "scroll"].includes(getComputedStyle(each).overflowX));
  window.look = () => all.map(each => {
    const sign = getComputedStyle(each, "::before");
    const cut = each.scrollWidth - each.clientWidth > 16; // more than an empty edge
    const shown = sign.position === "sticky" && parseFloat(sign.height) > 8;
    const name = `${each.tagName} ${each.className} ${each.textContent.trim().slice(0, 30)}`;
    return [cut, shown, each.tabIndex === 0, name];
  });
  return look();
}"""
TO_THE_END = """async () => {
  document.querySelectorAll(".goes-on").forEach(each => { each.scrollLeft = 1e6; });
  await new Promise(done => setTimeout(done, 1000));
  return look();
}"""
pytestmark = pytest.mark.site


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", PAGES)
def test_what_is_cut_off_shows_it_until_its_end_is_in_view(browser, name, width):
    browser.open(SITE / f"{name}.html", width=width)
    found = browser.tab.evaluate(FOUND)
    assert width > 390 or any(cut for cut, *_ in found)
    assert [each for cut, sign, key, each in found if cut and not (sign and key)] == []
    assert [each for cut, sign, _, each in found if sign and not cut] == []
    assert [each for _, sign, _, each in browser.tab.evaluate(TO_THE_END) if sign] == []


@pytest.mark.parametrize(
    "name", ["book/ledger", "genindex", "prf-prf", "search", "404", "book/statements"]
)
def test_no_page_is_wider_than_a_phone(browser, name):
    browser.open(SITE / f"{name}.html", width=390)
    assert browser.evaluate("document.scrollingElement.scrollWidth") == 390


def test_numbers_of_the_laboratory_are_not_cut_without_a_sign(browser):
    browser.open(SITE / "book/laboratory.html", width=390)
    found = [each for each in browser.tab.evaluate(FOUND) if "lab-scroll" in each[-1]]
    assert [each[:3] for each in found] == [[True, True, True]]


CHECKS = """Array.from(document.querySelectorAll("table.attnbias-checks"),
  each => each.parentElement.scrollWidth - each.parentElement.clientWidth)"""


@pytest.mark.parametrize("style", ["", "table.attnbias-checks { min-width: 39rem !important }"])
def test_a_table_of_checks_fits_a_phone(browser, style):
    browser.open(SITE / "book/paper/figure2.html", width=390)
    browser.style(style)
    wider = browser.evaluate(CHECKS)
    assert len(wider) > 2 and (max(wider) <= 0) == (style == "")


@pytest.mark.parametrize("night", [False, True])
def test_a_sign_is_drawn_over_a_picture(browser, night):
    """A figure of two panels looks other with the sign than without."""
    with window(browser.tab.context.browser, 390, night) as tab:
        tab.goto((SITE / "book/paper/theorem1.html").as_uri())
        tab.locator(".bd-article figure.goes-on").first.scroll_into_view_if_needed()
        tab.wait_for_timeout(500)
        shown = tab.screenshot()
        assert tab.screenshot() == shown
        tab.add_style_tag(content=".goes-on::before { visibility: hidden }")
        assert tab.screenshot() != shown
