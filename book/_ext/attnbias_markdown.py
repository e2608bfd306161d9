"""Each page as Markdown for a chat or a program: `PAGE.html.md` beside `PAGE.html`, and `llms.txt`.

It is made from the page's HTML, so numbers are filled in, boxes have their numbers and references
their titles. Formulas are TeX, figures and other pages links, outputs as long as they are short.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag
from page_tags import BOOK
from sphinx.application import Sphinx

from tools.chapters import toc_parts
from tools.files import ROOT

ENDING = ".html.md"
SHORT = 30  # lines of an output
CODE, COLOUR = re.compile("<pre>.*?</pre>", re.DOTALL), re.compile("</?span[^>]*>")
LEGEND = (
    "*A page of “{book}”, a companion to arXiv 2402.05738: <{page}>. Letters in brackets say where "
    "a statement comes from: [a] the paper's text, [b] the literature, [c] proved here, [d] a "
    "choice made here.*"
)
# What only works on the page, or is said twice there: tags and classes.
DROPPED = {"script", "style", "svg", "button", "input", "select", "headerlink", "visually-hidden"}
DROPPED |= {"collapsed", "expanded", "statement-map", "control", "lab-scroll", "squares", "square"}
BLOCKS = {"p", "div", "section", "ul", "ol", "dl", "dt", "dd", "pre", "table", "figure", "label"}
BLOCKS |= {"figcaption", "details", "summary", "fieldset", "legend", "blockquote", "aside", "h1"}
BLOCKS |= {"form", "h2", "h3", "h4", "h5", "h6"}


def is_dropped(node: Tag) -> bool:
    """Whether a tag has no place in a text."""
    return node.name in DROPPED or not DROPPED.isdisjoint(node.get("class", ()))


def words(node: PageElement, address: str) -> str:
    """A piece of a line: formulas as TeX, letters of provenance in brackets, links by `address`."""
    if isinstance(node, NavigableString):
        return re.sub(r"\s+", " ", node) if type(node) is NavigableString else ""
    if is_dropped(node):
        return ""
    text = "".join(words(each, address) for each in node.children)
    marks, name = node.get("class", []), node.name
    if "math" in marks:
        return f"${node.get_text().strip()[2:-2].strip()}$"
    if "prov" in marks:
        return f"[{text.strip()}]"
    if "classifier" in marks:
        return f" ({text})"
    if name == "img":
        return f"![{node.get('alt', '')}]({leads(node['src'], address)})"
    if name == "br":
        return " "
    if name == "code":
        return f"`{node.get_text()}`"
    if name in ("strong", "em", "b", "i") and text.strip() and "sig-param" not in marks:
        mark = "**" if name in ("strong", "b") else "*"
        return f"{mark}{text.strip()}{mark}"
    if name == "a" and text.strip() and not {"symbol", "term", "rocq"} & {*marks}:
        link = node.get("href", "#")
        return text if link.startswith("#") else f"[{text.strip()}]({leads(link, address)})"
    return text


def leads(link: str, address: str) -> str:
    """Where a link leads from a page of Markdown: to another one, where it was to a page."""
    path = urlsplit(link).path
    if urlsplit(link).scheme or not path:
        return link
    path = path.removesuffix(".html") + ENDING if path.endswith(".html") else path
    return urljoin(address, path) if urlsplit(address).scheme else path


def indented(paragraphs: Iterator[str], mark: str) -> str:
    """An item of a list: its mark, and its lines behind and below it."""
    first, *rest = "\n\n".join(paragraphs).split("\n")
    lines = [f"{' ' * len(mark)}{line}".rstrip() for line in rest]
    return "\n".join([mark + first, *lines])


def formula(node: Tag) -> str:
    """A displayed formula and its number."""
    number = node.find(class_="eqno")
    said = f" {words(number.extract(), '')}" if number else ""
    return f"$$\n{node.get_text().strip()[2:-2].strip()}\n$${said}"


def table(node: Tag, address: str) -> str:
    """Rows of cells; the first is the head."""
    rows = [
        [words(cell, address).strip().replace("|", r"\|") for cell in row(["th", "td"])]
        for row in node("tr")
    ]
    width = max(map(len, rows), default=0)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
    return "\n".join([*lines[:1], "|" + "---|" * width, *lines[1:]])


def fenced(node: Tag) -> str:
    """Code, or an output that is cut where it is long."""
    holders = [name for each in node.parents for name in each.get("class", [])]
    language = next((name[10:] for name in holders if name.startswith("highlight-")), "")
    lines = node.get_text().strip("\n").splitlines()
    if "output" in holders:
        language, left = "text", len(lines) - SHORT
        lines = [*lines[:SHORT], f"... {left} more lines"] if left > 0 else lines
    language = "python" if language.startswith(("ipython", "default")) else language
    return "\n".join([f"```{language}", *lines, "```"])


def blocks(node: Tag, address: str) -> Iterator[str]:
    """The paragraphs, lists, tables, formulas and pieces of code inside a tag."""
    line = ""
    for child in [*node.children, None]:
        if child is None or child.name in BLOCKS:
            if line.strip():
                yield re.sub(" {2,}", " ", line.strip())
            line = ""
            if child is not None:
                yield from block(child, address)
        else:
            line += words(child, address)


def block(node: Tag, address: str) -> Iterator[str]:
    """What stands for one tag that is no piece of a line."""
    marks, name = node.get("class", []), node.name
    inside = blocks(node, address)
    if is_dropped(node):
        return
    if "math" in marks:
        yield formula(node)
    elif re.match("h[1-6]", name):
        yield f"{'#' * int(name[1])} {words(node, address).strip()}"
    elif {"admonition-title", "rubric"} & {*marks} or name in ("summary", "legend"):
        if text := " ".join(words(node, address).split()):
            yield f"**{text}**"
    elif name == "pre":
        yield fenced(node)
    elif name == "table":
        yield table(node, address)
    elif name in ("ul", "ol"):
        items = enumerate(node("li", recursive=False), start=1)
        marked = ((f"{k}. " if name == "ol" else "* ", item) for k, item in items)
        yield "\n".join(indented(blocks(item, address), mark) for mark, item in marked)
    elif name == "dt":
        yield f"`{node.get_text().strip()}`" if "sig" in marks else words(node, address).strip()
    elif name == "label":  # of a bet; elsewhere they are controls
        yield from [indented(inside, "* ")] if node.find_parent(class_="predict") else []
    elif name == "dd":
        yield indented(inside, "  ")
    elif "slider" in marks:
        yield "(Here the page has a picture to move by hand.)"
    elif {"proof", "admonition"} & {*marks} and name != "details":
        yield "\n".join(f"> {line}".rstrip() for line in "\n\n".join(inside).splitlines())
    else:
        yield from inside


def markdown(body: str, address: str) -> str:
    """A page's HTML as Markdown; `address` is its own, from which its links are resolved."""
    plain = CODE.sub(lambda code: COLOUR.sub("", code[0]), body)  # half of a page's tags
    first, *rest = blocks(BeautifulSoup(plain, "html.parser"), address)
    return "\n\n".join([first, LEGEND.format(book=BOOK, page=address), *rest]) + "\n"


def index(site: Path, address: str) -> str:
    """`llms.txt`: the pages by the parts of the book, each with its first sentences."""
    lines = []
    for part, names in toc_parts(ROOT / "_toc.yml"):
        lines += [f"\n## {part}\n"] if part else []
        for name in names:
            title, _, *paragraphs = (site / f"{name}{ENDING}").read_text("utf8").split("\n\n")
            told = next((text for text in paragraphs if text[0].isalpha()), "")
            link = f"[{title.lstrip('# ').strip()}]({urljoin(address, name + ENDING)})"
            told = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(told.split()))  # no links
            lines += [f"- {link}: {told}"] if part else [f"# {BOOK}\n\n> {told}\n\n- {link}"]
    return "\n".join(lines) + "\n"


def write_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Write it, and put what copies it among the page's buttons (attnbias.js)."""
    if doctree is None:
        return
    address = context.get("pageurl") or f"{Path(page).name}.html"
    path = Path(app.outdir, page + ENDING)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(markdown(context["body"], address), encoding="utf8")
    context["header_buttons"].append(
        {
            "type": "link",
            "url": path.name,
            "tooltip": "Copy this page as Markdown",
            "icon": "fas fa-copy",
            "label": "copy-page-button",
        }
    )


def write_index(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        text = index(Path(app.outdir), app.config.html_baseurl)
        Path(app.outdir, "llms.txt").write_text(text, encoding="utf8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", write_page, priority=590)  # behind the theme's own buttons
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
