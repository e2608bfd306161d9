"""What a link shows before it is followed: formulas, boxes, figures and headings of its page.

They are cut out of each page's HTML into ``_cards/PAGE.js``, by their anchors. `cards.js` loads
that file by a script tag, which works from file:// as well, when a reader points at a link to the
page; so no page grows by them. Terms of a ``{glossary}`` have cards too. Other extensions add cards
by `write_cards`, and show those of the page `cards_entries` where ``data-entries`` names them.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

__version__ = "0.1.0"
STATIC = Path(__file__).with_name("static")
BUILDERS = ("html", "dirhtml")
WHOLE = "div.math[id], div.proof[id], div.exercise[id], div.citation[id], figure[id]"
LONGEST = 20_000  # characters: a card is a glance, not a page
logger = logging.getLogger(__name__)


def cut(body: str, whole: str = WHOLE, longest: int = LONGEST) -> dict[str, str]:
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
    for name in soup.select("dl.glossary > dt[id]"):
        meaning = name.find_next_sibling("dd").decode_contents().strip()
        cards[name["id"]] = f"<dt>{name.decode_contents().strip()}</dt><dd>{meaning}</dd>"
    cards |= {each["id"]: str(each) for each in soup.select(whole)}
    return {anchor: card for anchor, card in cards.items() if len(card) <= longest}


def named(page: str) -> str:
    """How `cards.js` calls a page: by its folder where an address has that alone."""
    return page.removesuffix("/index")


def path_of(app: Sphinx, page: str) -> Path:
    """The file of a page's cards."""
    return Path(app.outdir, "_cards", f"{named(page)}.js")


def write_cards(app: Sphinx, page: str, cards: dict[str, str]) -> None:
    """Put a page's cards where `cards.js` looks for them; those written before stay beside."""
    path = path_of(app, page)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"sphinxCards({json.dumps(named(page))}, "
    if path.is_file():
        cards = json.loads(path.read_text(encoding="utf8").removeprefix(head)[:-2]) | cards
    body = json.dumps(cards, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{head}{body})\n", encoding="utf8")


def cut_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if doctree is not None and app.builder.name in BUILDERS:
        path_of(app, page).unlink(missing_ok=True)
        write_cards(
            app, page, cut(context["body"], app.config.cards_whole, app.config.cards_longest)
        )


def add_static(app: Sphinx, config: Config) -> None:
    config.html_static_path.append(str(STATIC))


def add_script(app: Sphinx) -> None:
    """Its tag says where entries are, and what shows its card at the first touch."""
    if app.builder.name in BUILDERS:
        told, home = {"data-touch": app.config.cards_touch}, app.config.cards_entries
        if home:
            told["data-home"] = app.builder.get_target_uri(home)
        app.add_css_file("cards.css")
        app.add_js_file("cards.js", loading_method="defer", **told)


def check_home(app: Sphinx, env) -> None:
    home = app.config.cards_entries
    if home and home not in env.found_docs:
        wanted = "the name of a page of this book, such as `glossary`"
        logger.warning(
            "conf.py: cards_entries: expected %s; got %r. Mend or drop it.", wanted, home
        )


def setup(app: Sphinx) -> dict[str, object]:
    app.add_config_value("cards_whole", WHOLE, "html", str)
    app.add_config_value("cards_longest", LONGEST, "html", int)
    app.add_config_value("cards_touch", "[data-entries]", "html", str)
    app.add_config_value("cards_entries", "", "html", str)
    app.connect("config-inited", add_static)
    app.connect("builder-inited", add_script)
    app.connect("env-check-consistency", check_home)
    app.connect("html-page-context", cut_page)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
