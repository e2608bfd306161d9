"""The talk: the sections of the built page `book/slides` as slides in one file, `slides.html`.

A paragraph that is a reference to a figure becomes that figure, on the page and on its slide, from
the page that has it; so numbers, verdicts, formulas and pictures are the book's. The file asks for
nothing else. A script turns the slides; without one they stand below each other.
"""

import base64
import re
from pathlib import Path
from urllib.parse import quote

from bs4 import BeautifulSoup
from bs4.element import Tag

from attnbias.errors import AttnBiasError
from tools.browser import PATIENCE, open_browser
from tools.files import ROOT, SITE, rewrite
from tools.set_formulas import LOADER

PAGE = "book/slides"
REFERENCE = re.compile(
    r'(?:<figure class="borrowed">\s*(?:</?(?:picture|source|img)[^>]*>\s*)+<figcaption>)?<p>'
    r'(?P<link><a class="reference internal" href="(?P<page>[^"#]+)#(?P<id>fig-[^"]+)">'
    r'<span class="std std-numref">[^<]*</span></a>)</p>(?:</figcaption></figure>)?'
)
WIDE = 2.4  # of a figure that stands below the words: its width over its height
PATH, LONG = re.compile(r'\b[dxy]="[^"]*"'), re.compile(r"-?\d+\.\d{3,}")
SWAPPED = str.maketrans("\"'", "'\"")  # a double quote takes three letters in an address
SAFE = " '/:;=,()!?@*+$&[]{}|^"  # what may stand in an attribute as it is
ONE_LETTER = re.compile(r"[^{}]*mjx-c\.mjx-c([0-9A-F]+)[^{]*\{[^}]*\}\n?")
FACE = re.compile(r"@font-face[^{]*\{[^}]*?font-family: ([^;]+);[^}]*?/([\w-]+\.woff)[^}]*\}")
# Of pages alone: links to a heading and past the squares, and what copies code.
DROPPED = ".headerlink, button, .squares > :is(a, p, span)"
SHEET = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>{style}</style>{loader}</head><body><main>{slides}</main>
<nav aria-label="Slides"><a href="{home}">The book</a><progress max="{count}" value="1"
aria-label="Progress"></progress><output>1</output></nav><script>{script}</script></body></html>
"""


class SlideError(AttnBiasError, ValueError):
    """A slide that refers to a figure which no page has."""


def picture(site: Path, page: str, anchor: str) -> Tag:
    """The image of a figure, led to from the pages of `book`, with its drawing for phones."""
    path = (site / PAGE).parent / page
    soup = BeautifulSoup(path.read_text(encoding="utf8"), "html.parser")
    image = soup.select_one(f"figure#{anchor} img")
    if image is None:
        wanted, remedy = f"a figure with an image on {page}", "name another in book/slides.md"
        raise SlideError(anchor, expected=wanted, got="none", remedy=remedy)
    shown = image.parent if image.parent.name == "picture" else image
    for each in (image, *shown("source")):
        key = "src" if each is image else "srcset"
        each[key] = f"../_images/{Path(each[key]).name}"
    return shown


def with_figures(text: str, site: Path) -> str:
    """The page with each figure in the place of the paragraph that refers to it."""

    def figure(found: re.Match) -> str:
        image = picture(site, found["page"], found["id"])
        caption = f"<figcaption><p>{found['link']}</p></figcaption>"
        return f'<figure class="borrowed">{image}{caption}</figure>'

    return REFERENCE.sub(figure, text)


def inside(image: Tag, site: Path) -> None:
    """Put the picture in the place of its address, without comments and to 0.01 points."""
    svg = (site / "_images" / Path(image["src"]).name).read_text(encoding="utf8")
    svg = PATH.sub(lambda path: LONG.sub(lambda x: f"{float(x[0]):.2f}", path[0]), svg)
    svg = re.sub(r"<!--.*?-->|(?<=>)\s+(?=<)", "", svg, flags=re.DOTALL)
    svg = svg.translate(SWAPPED)
    image["src"] = f"data:image/svg+xml,{quote(svg, safe=SAFE)}"
    del image["loading"]


def slide(section: Tag, number: int, site: Path, home: str) -> str:
    """A section as a slide; `home` is where the book's pages are."""
    for each in section.select(DROPPED):
        each.decompose()
    for each in section.select("a.symbol, a.term, span.symbol"):
        each.unwrap()
    for link in section.select("a[href]"):
        away = re.match(r"[a-z]+:|#", link["href"])
        link["href"] = link["href"] if away else f"{home}book/{link['href']}"
    image = section.select_one("figure.borrowed img")
    if image is not None and image.parent.name == "picture":
        image.parent.replace_with(image)
    wide = image is None or int(image.get("width", 1)) > WIDE * int(image.get("height", 1))
    if image is not None:
        inside(image, site)
    heading, shown, said = section.h2.extract(), [], ""
    heading.name = "h1" if number == 1 else "h2"
    for part in section.find_all(recursive=False):
        if part.name == "details":
            words = part.select_one(".sd-card-body").decode_contents()
            said = f'<details class="said"><summary>To say</summary>{words}</details>'
        elif part.name != "figure":
            shown.append(str(part))
    figure = section.find("figure", recursive=False)
    if figure:
        figure["tabindex"] = "0"  # on a phone it scrolls
    return (
        f'<section class="slide{" wide" if wide else ""}" id="s{number}">{heading}'
        f'<div class="told">{"".join(shown)}</div>{figure or ""}{said}</section>\n'
    )


def formula_style(site: Path, slides: str) -> str:
    """MathJax's sheet for the letters on these slides, with their fonts inside."""
    path = site / "_static/formulas.css"
    if "<mjx-" not in slides or not path.is_file():
        return ""
    used = set(re.findall(r"\bmjx-c([0-9A-F]+)\b", slides))
    kept = ONE_LETTER.sub(lambda rule: rule[0] if rule[1] in used else "", path.read_text("utf8"))
    named = set(re.findall(r"\b(TEX-[A-Z0-9]+)\b", slides))

    def face(found: re.Match) -> str:
        family = found[1].strip("\"' ").removeprefix("MJX")
        font = site / "_static/letters" / found[2]
        if not font.is_file() or family not in {"TEX", *named}:
            return ""
        data = base64.b64encode(font.read_bytes()).decode()
        return f"@font-face{{font-family:{found[1]};src:url(data:font/woff;base64,{data})}}\n"

    return FACE.sub(face, kept)


def deck(site: Path, home: str) -> str:
    """The whole file."""
    text = (site / f"{PAGE}.html").read_text(encoding="utf8")
    soup = BeautifulSoup(text, "html.parser")
    sections = soup.select("article section > section")
    parts = [slide(each, k, site, home) for k, each in enumerate(sections, 1)]
    slides, own = "".join(parts), ROOT / "tools"
    squares = (site / "_static/squares.css").read_text(encoding="utf8")
    loader = LOADER.search(text)  # of a page whose formulas are not set
    return SHEET.format(
        title=soup.title.get_text(),
        style=formula_style(site, slides) + squares + (own / "slides.css").read_text("utf8"),
        loader=loader[0].replace("../_static", f"{home}_static") if loader else "",
        slides=slides,
        home=f"{home}{PAGE}.html",
        count=len(parts),
        script=(own / "slides.js").read_text("utf8"),
    )


def make_slides(site: Path = SITE, home: str = "") -> None:
    """Fill the page with its figures, and write the file of slides beside the book.

    Raises
    ------
    SlideError
        A slide names a figure that is not there.
    """
    rewrite(site / f"{PAGE}.html", lambda text: with_figures(text, site))
    (site / "slides.html").write_text(deck(site, home), encoding="utf8")


def print_slides(site: Path = SITE, out: Path = ROOT / "_build/slides.pdf") -> None:
    """The slides as a browser prints them, one a page."""
    with open_browser() as browser:
        tab = browser.new_page()
        tab.goto((site / "slides.html").resolve().as_uri(), timeout=PATIENCE)
        tab.emulate_media(media="print", color_scheme="light")
        tab.pdf(path=out, print_background=True, prefer_css_page_size=True)
