"""No page says an error or a warning in the console: opened, pointed at, clicked, at night.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import pytest

from tools.files import SITE, pages_of

PARTS = 4  # of the pages, for two browsers to share
TOUCHED = [  # one page of each kind, with what is pointed at and clicked on it
    ("book/intro", "main p"),
    (
        "book/paper/bounds",
        "a.symbol, a.term, a.reference.internal[href*='#'], main p, figure, button",
    ),
    (
        "book/paper/one_picture",
        "fieldset.predict label, .admonition-title, figure.slider input, th",
    ),
    ("book/statements", ".statement-map a, .statement-map p"),
    ("book/ledger", "main p, .rows summary, .sift button, a.reference.internal[href*='#']"),
    ("book/notation", "dt, dd a"),
    ("book/routes", "table.bets, button"),
    ("book/reference/geometry", "dt.sig, a.reference.internal[href*='#']"),
    ("search", "main, .search-button__button"),
]
pytestmark = pytest.mark.site


class Heard:
    """What the console of a tab says that is no mere note, and what its scripts throw."""

    def __init__(self, tab):
        self.said = []
        tab.on("console", self.hear)
        tab.on("pageerror", lambda error: self.said.append(f"thrown: {error}"))

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.said.append(f"{message.type}: {message.text}")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_says_an_error(online, part):
    heard, found = Heard(online.tab), {}
    for page in pages_of(SITE)[part::PARTS]:
        online.open(page, width=1200)
        if heard.said:
            found[page.stem] = heard.said.copy()
        heard.said.clear()
    assert found == {}


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize(("name", "parts"), TOUCHED, ids=[name for name, _ in TOUCHED])
def test_none_does_when_it_is_pointed_at_and_clicked(online, name, parts, width):
    heard, tab = Heard(online.tab), online.tab
    online.open(SITE / f"{name}.html", width=width)
    tab.evaluate("addEventListener('click', event => event.preventDefault(), true)")  # stay here
    for part in [*parts.split(", "), ".theme-switch-button", "body", "html"]:
        for place in tab.locator(f"{part} >> visible=true").all()[:2]:
            place.hover(force=True)
            tab.wait_for_timeout(250)  # until its card has come
            tab.mouse.down()
            tab.mouse.up()
    tab.evaluate("document.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))")
    online.press("Escape")
    assert heard.said == []


def test_an_error_would_be_heard(online):
    heard = Heard(online.tab)
    online.tab.set_content(
        "<script>console.warn('a'); console.error('b'); console.log('c'); d()</script>"
    )
    online.tab.wait_for_timeout(300)  # errors are told late
    assert [each.partition(":")[0] for each in heard.said] == ["warning", "error", "thrown"]
