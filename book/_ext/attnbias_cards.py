"""What a link shows before it is followed: formulas, boxes, figures and headings of its page.

They are cut out of each page's HTML into ``_cards/PAGE.js``, by their anchors. `cards.js` loads
that file by a script tag, which works from file:// as well, when a reader points at a link to the
page; so no page grows by them.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

WHOLE = "div.math[id], div.proof[id], div.exercise[id], div.citation[id], figure[id]"
LONGEST = 20_000  # characters: a card is a glance, not a page


def cut(body: str) -> dict[str, str]:
    """The cards of a page by their anchors: headings, names, and what is shown as a whole."""
    soup, cards = BeautifulSoup(body, "html.parser"), {}
    for link in soup.select("a.headerlink"):
        link.decompose()
    for section in soup.select("section[id]"):
        heading = section.find(re.compile("^h[1-6]$"), recursive=False)
        first = heading and heading.find_next_sibling()
        text = str(first) if first and first.name == "p" and not first.attrs else ""
        for each in (section, *section.find_all("span", id=True, recursive=False)):
            if heading:
                cards[each["id"]] = f"<p><strong>{heading.decode_contents()}</strong></p>{text}"
    for name in soup.select("dt.sig[id]"):
        if first := name.find_next_sibling("dd").find("p", recursive=False):
            cards[name["id"]] = f"<p><code>{name.decode_contents().strip()}</code></p>{first}"
    cards |= {each["id"]: str(each) for each in soup.select(WHOLE)}
    return {anchor: card for anchor, card in cards.items() if len(card) <= LONGEST}


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
    if doctree is not None:
        Path(app.outdir, "_cards", f"{page}.js").unlink(missing_ok=True)
        write_cards(app, page, cut(context["body"]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_js_file("cards.js", loading_method="defer")
    app.add_css_file("cards.css")
    app.connect("html-page-context", cut_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
