"""What a search result or a chat shows of a page: title, description, and how to cite it."""

import re
from html import escape

from docutils import nodes

BOOK = "The implicit bias of self-attention"
# The paper that the book follows, as search engines for papers read a reference.
PAPER = (
    "citation_title=Implicit Bias and Fast Convergence Rates for Self-attention; "
    "citation_author=B. Vasudeva; citation_author=P. Deora; citation_author=C. Thrampoulidis; "
    "citation_journal_title=Transactions on Machine Learning Research; "
    "citation_publication_date=2025; citation_arxiv_id=2402.05738"
)
CITED = {
    "citation_title": BOOK,
    "citation_author": "The attnbias authors",
    "citation_publication_date": "2026",
    "citation_reference": PAPER,
}
PREVIEW = "_static/preview.png"  # made by scripts/make_front_picture.py
FONTS = re.compile(r"\\(?:mathrm|mathbf|mathcal|operatorname|text|left|right)\b\s*")
FRACTION = re.compile(r"\\[td]?frac(\{[^{}]*\}|\w)(\{[^{}]*\}|\w)")
LONGEST = 200  # letters of a description; search engines show some 160


def spoken(formula: str) -> str:
    r"""A formula without its markup: ``\Xi = 1/\|W_{mm}\|`` is Xi = 1/|W_mm|."""
    formula = FRACTION.sub(r"\1/\2", FONTS.sub("", formula)).replace(r"\pm", "±")
    return re.sub(r"[\\{}$]", "", formula).strip()


def words(node: nodes.Node) -> str:
    """The text of a paragraph as one reads it aloud."""
    if isinstance(node, nodes.math):
        return spoken(node.astext())
    return "".join(map(words, node.children)) if node.children else node.astext()


def description(doctree: nodes.document | None) -> str:
    """The first paragraph of a page, on one line, cut between words where it is long."""
    for paragraph in [] if doctree is None else doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document):
            text = re.sub(r"\s+(?=[.,;:])", "", " ".join(words(paragraph).split()))  # of a badge
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."
    return ""


def tags(title: str, about: str, address: str = "", home: str = "", picture: str = PREVIEW) -> str:
    """The tags of one page's head.

    Its address and the picture stand there only where the site has an address of its own, `home`:
    Open Graph takes no relative ones, and a book on a reader's disk asks for nothing elsewhere. A
    `picture` of the page's own is named all the same, for those that read it from where they are.
    """
    named = {"description": about} if about else {}
    shown = {"og:type": "article", "og:site_name": BOOK, "og:title": title}
    shown |= {"og:description": about} if about else {}
    shown |= {"og:url": address} if address else {}
    if home or picture != PREVIEW:
        shown["og:image"] = f"{home.rstrip('/')}/{picture}" if home else picture
    lines = [
        f'<meta name="{key}" content="{escape(text)}" />' for key, text in (named | CITED).items()
    ]
    lines += [f'<meta property="{key}" content="{escape(text)}" />' for key, text in shown.items()]
    return "\n".join(lines) + "\n"
