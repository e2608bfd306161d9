"""Symbols and terms that explain themselves, from `notation.toml`.

* ``{symbols} group`` is a table of symbols, ``{terms}`` the glossary, both on the page Notation.
* A formula in running text remembers which symbols stand in it. On its first use on a page a symbol
  that is a formula of its own is a link to its entry, and so is the first use of a term in prose.
* ``_cards/book/notation.js`` holds the card of each entry, and each page that uses symbols has a
  button for the card of them all.

A symbol of Table 1 without an entry, or an entry whose place is not in the book, stops the build.
These checks, and meanings that change by chapter, tie it to this book; cards as such are
`sphinx_cards`, which other books can take.
"""

import re
from html import escape

from docutils import nodes
from generated import Generated, read_first
from notation_source import (
    HOME,
    SOURCE,
    Entry,
    Notation,
    read_notation,
    symbols_in,
    to_html,
    tokens,
)
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_cards import write_cards

STATE = "attnbias_notation"
LEFT_OUT = (HOME, "book/bibliography", "book/reference")  # their words are names
NO_TERM_IN = (
    nodes.title,
    nodes.rubric,
    nodes.caption,
    nodes.term,
    nodes.table,
    nodes.raw,
    nodes.math,
    nodes.reference,
    nodes.literal,
    nodes.strong,
    nodes.emphasis,
    nodes.FixedTextElement,
    addnodes.pending_xref,
)


def link(label: str) -> str:
    """A link to a place, in MyST."""
    if label.startswith("eq-paper-"):
        return f"[Equation ({label.removeprefix('eq-paper-')})](#{label})"
    return f"{{ref}}`{label}`" if label.startswith(("chap-", "sec-")) else f"{{prf:ref}}`{label}`"


class Symbols(Generated):
    """``{symbols} group``: its symbols, with meaning, place, provenance and name in the library."""

    required_arguments = 1
    kept, source = STATE, SOURCE

    def lines(self, notation: Notation) -> list[str]:
        out = ["| symbol | meaning | from | where | in code |", "|---|---|---|---|---|"]
        for entry in notation.symbols:
            if entry.group == self.arguments[0]:
                shown = re.sub(r"\\\|", r"\\Vert ", entry.tex[0])
                code = f"`{entry.code}`" if entry.code else ""
                out.append(
                    f"| [${shown}$]{{#{entry.id}}} | {entry.means} | {{prov}}`{entry.provenance}` "
                    f"| {link(entry.place)} | {code} |"
                )
        return out


class Terms(Generated):
    """``{terms}``: the glossary."""

    kept, source = STATE, SOURCE

    def lines(self, notation: Notation) -> list[str]:
        out = ["```{glossary}"]
        for entry in sorted(notation.terms, key=lambda entry: entry.name.lower()):
            text = entry.means[0].upper() + entry.means[1:]
            out += [entry.name, f"  {text}. See {link(entry.place)}.", ""]
        return [*out[:-1], "```"]


class SymbolNode(nodes.inline):
    """Round what has a card: the ids of its `entries`, and `kind` and `uri` where it is a link."""


def spelt(tex: str) -> str:
    """A symbol as plain text: W_mm, Xi."""
    bars = re.sub(r"\\(?:lVert|rVert|\|)", "|", tex)
    return escape(re.sub(r"\\(?:mathrm|[,!])?|[{}]", "", bars).strip())


def visit_html(translator, node: SymbolNode) -> None:
    ids = " ".join(node["entries"])
    if node.get("uri"):
        # A screen reader does not take a link's name from a formula.
        name = f' aria-label="{spelt(node.astext())}"' if node["kind"] == "symbol" else ""
        link = f'<a class="{node["kind"]}" href="{node["uri"]}" data-entries="{ids}"{name}>'
        translator.body.append(link)
    else:
        translator.body.append(f'<span class="symbol" data-entries="{ids}">')


def depart_html(translator, node: SymbolNode) -> None:
    translator.body.append("</a>" if node.get("uri") else "</span>")


class Explain(SphinxPostTransform):
    """Wrap the formulas that hold a symbol, and the first use of each term."""

    default_priority = 910  # after KeepPunctuation, which looks at what stands beside a formula
    formats = ("html",)

    def run(self, **kwargs) -> None:
        page = self.env.docname
        if page.startswith(LEFT_OUT):
            return
        notation = getattr(self.app, STATE)
        self.home = self.app.builder.get_relative_uri(page, HOME)
        here = [entry for entry in notation.symbols if entry.holds_on(page)]
        self.symbols({tokens(form): entry.id for entry in here for form in entry.tex})
        known = [e for e in notation.terms if notation.places[e.place].page == page]
        self.terms([e for e in notation.terms if e not in known and e.holds_on(page)])

    def symbols(self, forms: dict[tuple[str, ...], str]) -> None:
        seen: set[str] = set()
        for math in list(self.document.findall(nodes.math)):
            ids = symbols_in(math.astext(), forms)
            if not ids or inside(math, (nodes.title, nodes.reference, nodes.raw)):
                continue
            node = SymbolNode(entries=ids, kind="symbol")
            own = forms.get(tokens(math.astext()))
            if own and own not in seen:
                seen.add(own)
                node["uri"] = f"{self.home}#{own}"
            math.parent[math.parent.index(math)] = node
            node += math
        blocks = [symbols_in(b.astext(), forms) for b in self.document.findall(nodes.math_block)]
        inline = [n["entries"] for n in self.document.findall(SymbolNode)]
        used = {one for ids in (*blocks, *inline) for one in ids}
        self.document["symbols"] = [one for one in dict.fromkeys(forms.values()) if one in used]

    def terms(self, entries: list[Entry]) -> None:
        forms = {form.lower(): e for e in entries for form in (e.name, *e.forms)}
        words = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        pattern = re.compile(rf"(?<![\w-])(?<!wide )(?<!softmax )({words})(?![\w-])", re.IGNORECASE)
        seen: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            if not forms or inside(text, NO_TERM_IN):
                continue
            parts: list[nodes.Node] = []
            for k, part in enumerate(pattern.split(text)):
                parts.append(nodes.Text(part))
                entry = forms[part.lower()] if k % 2 else None
                if entry and entry.id not in seen:
                    seen.add(entry.id)
                    link = {"kind": "term", "uri": f"{self.home}#{entry.id}"}
                    parts[-1] = SymbolNode("", part, entries=[entry.id], **link)
            if any(isinstance(part, SymbolNode) for part in parts):
                place = next(k for k, child in enumerate(text.parent) if child is text)
                text.parent[place : place + 1] = parts


def inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Whether it stands in an element of one of these kinds."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def offer_card(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """The button of a page that uses symbols, and the place of its card."""
    used = doctree.get("symbols") if doctree is not None else None
    if not used:
        return
    app.add_js_file("notation.js", loading_method="defer")
    home = app.builder.get_relative_uri(page, HOME)
    context["body"] += (
        '<div id="notation-card" popover="manual" hidden role="dialog" tabindex="-1" '
        'aria-label="Symbols on this page"><p><strong>Symbols on this page</strong> '
        f'<a href="{home}">all of them</a></p><div data-symbols="{" ".join(used)}"></div></div>\n'
    )
    context["header_buttons"].append(
        {
            "type": "javascript",
            "javascript": "window.attnbiasNotation?.(this)",
            "tooltip": "Symbols on this page",
            "icon": "fas fa-book",
            "label": "notation-button",
        }
    )


def card(entry: Entry, notation: Notation, page_of) -> str:
    """The card of an entry, in HTML."""
    place = notation.places[entry.place]
    what = to_html(f"${entry.tex[0]}$") if entry.tex else entry.name
    where = f'<a href="{page_of(place.page)}#{place.anchor}">{to_html(place.title)}</a>'
    return f"<dt>{what}</dt><dd>{to_html(entry.means)}. <small>See {where}</small></dd>"


def write_notation(app: Sphinx, error: Exception | None) -> None:
    """The cards of all entries."""
    if error is None and app.builder.format == "html":
        notation = getattr(app, STATE)

        def page_of(name):
            return app.builder.get_relative_uri(HOME, name)

        entries = (*notation.symbols, *notation.terms)
        write_cards(app, HOME, {entry.id: card(entry, notation, page_of) for entry in entries})


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("symbols", Symbols)
    app.add_directive("terms", Terms)
    app.add_node(SymbolNode, html=(visit_html, depart_html))
    app.add_post_transform(Explain)
    app.add_css_file("notation.css")
    read_first(app, STATE, read_notation)
    app.connect("html-page-context", offer_card, priority=600)
    app.connect("build-finished", write_notation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
