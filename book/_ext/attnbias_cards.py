"""What a link shows before it is followed: formulas, boxes, figures and headings of its page.

They are cut out of each page's HTML into ``_cards/PAGE.js``, by their anchors. `cards.js` loads
that file by a script tag, which works from file:// as well, when a reader points at a link to the
page; so no page grows by them.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx

WHOLE = {"math", "proof", "exercise", "citation"}  # classes of what is shown as a whole
LONGEST = 20_000  # characters: a card is a glance, not a page
HEADING = re.compile(
    r'<section[^>]* id="([^"]+)">\s*((?:<span id="[^"]+"></span>)*)<h\d>(.*?)</h\d>'
    r"\s*(<p>.*?</p>)?",
    re.DOTALL,
)
SIGNATURE = re.compile(r'<dt class="sig[^>]* id="([^"]+)">(.*?)</dt>\s*<dd>(<p>.*?</p>)', re.DOTALL)
HEADERLINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)


def is_card(tag: str, attributes: dict[str, str]) -> bool:
    """Whether an element is shown as a whole: a formula, a box, an exercise, a figure, a work."""
    classes = set((attributes.get("class") or "").split())
    shown = tag == "figure" or (tag == "div" and bool(classes & WHOLE))
    return shown and bool(attributes.get("id"))


class Cutter(HTMLParser):
    """Cuts the elements that are cards out of a page, as they are written there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.lines = [0]
        for line in text.split("\n"):  # as HTMLParser counts
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.open: list[list] = []  # of each card that is open: anchor, tag, start, depth
        self.cards: dict[str, str] = {}
        self.text = text
        self.feed(text)

    def reached(self) -> int:
        line, column = self.getpos()
        return self.lines[line - 1] + column

    def handle_starttag(self, tag: str, attributes: list) -> None:
        for card in self.open:
            card[3] += tag == card[1]
        named = dict(attributes)
        if is_card(tag, named):
            self.open.append([named["id"], tag, self.reached(), 1])

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        """An element without an end opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        for card in self.open:
            card[3] -= tag == card[1]
        for anchor, _, start, depth in self.open:
            if depth == 0:
                self.cards[anchor] = self.text[start : self.reached()] + f"</{tag}>"
        self.open = [card for card in self.open if card[3]]


def cut(body: str) -> dict[str, str]:
    """The cards of a page by their anchors."""
    cards = Cutter(body).cards
    for section, spans, title, first in HEADING.findall(body):
        for anchor in (section, *re.findall(r'id="([^"]+)"', spans)):
            cards.setdefault(anchor, f"<p><strong>{title}</strong></p>{first}")
    for anchor, signature, first in SIGNATURE.findall(body):
        cards[anchor] = f"<p><code>{signature.strip()}</code></p>{first}"
    short = {anchor: HEADERLINK.sub("", card) for anchor, card in cards.items()}
    return {anchor: card for anchor, card in short.items() if len(card) <= LONGEST}


def write_cards(app: Sphinx, page: str, cards: dict[str, str]) -> None:
    """Put a page's cards where `cards.js` looks for them; those written before stay beside."""
    path = Path(app.outdir, "_cards", f"{page}.js")
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"attnbiasCards({json.dumps(page)}, "
    if path.is_file():
        cards = json.loads(path.read_text(encoding="utf8").removeprefix(head)[:-2]) | cards
    body = json.dumps(cards, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{head}{body})\n", encoding="utf8")


def cut_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if doctree is not None and app.builder.format == "html":
        Path(app.outdir, "_cards", f"{page}.js").unlink(missing_ok=True)
        write_cards(app, page, cut(context["body"]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_js_file("cards.js", loading_method="defer")
    app.add_css_file("cards.css")
    app.connect("html-page-context", cut_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
