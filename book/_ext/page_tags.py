"""What a search result or a chat shows of a page: title, description, and how to cite it."""

from __future__ import annotations

from html import escape

from docutils import nodes

BOOK = "The implicit bias of self-attention"
CITED = {"citation_title": BOOK, "citation_author": "The attnbias authors",
         "citation_publication_date": "2026"}  # fmt: skip
LONGEST = 200  # letters of a description; search engines show some 160


def description(doctree: nodes.document | None) -> str:
    """The first paragraph of a page, on one line, cut between words where it is long."""
    for paragraph in [] if doctree is None else doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document):
            words = " ".join(paragraph.astext().split())
            return words if len(words) <= LONGEST else words[:LONGEST].rsplit(" ", 1)[0] + " ..."
    return ""


def tags(title: str, about: str, address: str = "") -> str:
    """The tags of one page's head; an address only where the site has one of its own."""
    named = {"description": about} if about else {}
    shown = {"og:type": "article", "og:site_name": BOOK, "og:title": title}
    shown |= {"og:description": about} if about else {}
    shown |= {"og:url": address} if address else {}
    lines = [f'<meta name="{key}" content="{escape(text)}" />'
             for key, text in (named | CITED).items()]  # fmt: skip
    lines += [f'<meta property="{key}" content="{escape(text)}" />' for key, text in shown.items()]
    return "\n".join(lines) + "\n"
