"""Badges that say where a statement comes from, and a table with the source's words behind them.

* ``{prov}`c` `` is a badge: a letter on the page, its meaning in a tooltip and in a text for screen
  readers. The letters and their meanings are the setting `provenance_letters`.
* ``{prov}`a:KEY` `` stands on the entry KEY of a file of quotations: the tooltip quotes the words,
  and the badge is a link to them. ``{prov}`legend-a` `` is the letter alone, for legends.
* ``{words}`` is the table of the entries, with links back to where each is used.

A badge a without an entry, an entry without words, and one that nobody uses fail the build.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

__version__ = "0.1.0"
STATIC = Path(__file__).with_name("static")
BADGE = re.compile(r"\{prov\}`([^`\n]*)`")
KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PARTS = ("Abstract", "Section", "Appendix")
LETTERS = {
    "a": "fixed by the paper's text, up to absolute constants",
    "b": "recalled from the literature, probable form, not a quotation",
    "c": "derived and proved here",
    "d": "a choice made here where the text leaves freedom",
}
USED, HOME = "provenance-used", "provenance-words"  # in a page's metadata: its keys; has the table
logger = logging.getLogger(__name__)


class ProvenanceError(ExtensionError):
    """A file of quotations that lacks something, or a badge that says nothing."""


@dataclass(frozen=True)
class Words:
    """A few words of the paper that carry what stands on them, and where they are."""

    key: str
    place: str
    words: str

    @property
    def id(self) -> str:
        """The anchor of its entry on the page."""
        kind = "check-" if " " in self.key else ""  # "Lemma 1", a source, beside lemma-1
        return f"prov-{kind}" + re.sub(r"\W+", "-", self.key.lower())

    @property
    def in_order(self) -> tuple:
        """Sorts by place: abstract, sections, appendices."""
        part = next((k for k, word in enumerate(PARTS) if self.place.startswith(word)), len(PARTS))
        return (
            part,
            [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", self.place)],
            self.key,
        )


def read_words(source: Path) -> dict[str, Words]:
    """The entries by key.

    Raises
    ------
    ProvenanceError
        If an entry lacks its place or its words, has anything else, or stands there twice.
    """
    try:
        given = tomllib.loads(source.read_text(encoding="utf8"))
        entries = {key: Words(key, **fields) for key, fields in given.items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:  # such as a key that stands there twice
        wanted = "expected one entry a key, with a place and words, and nothing else"
        raise ProvenanceError(f"{source.name}: {wanted}; got {error}") from error
    ids = [entry.id for entry in entries.values()]
    texts = [(key, text) for key, each in entries.items() for text in (each.place, each.words)]
    empty = {key for key, text in texts if not isinstance(text, str) or not text.strip()}
    wrong = {
        "a place in the paper and its words, neither empty": empty,
        "one entry a name": {one for one in ids if ids.count(one) > 1},
    }
    for rule, broken in wrong.items():
        if broken:
            raise ProvenanceError(f"{source.name}: expected {rule}; see {sorted(broken)}")
    return entries


def source_of(config: Config, folder: str | Path) -> Path:
    """The file of quotations."""
    return Path(folder, config.provenance_file)


def read_badge(text: str, entries: dict[str, Words], config: Config) -> tuple[str, str]:
    """Letter and key of what stands in a badge; the key is empty but for a:KEY.

    Raises
    ------
    ProvenanceError
        If it is no letter, an a without a key, or a key without an entry.
    """
    quoted = config.provenance_quoted
    if text == f"legend-{quoted}" or (text in config.provenance_letters and text != quoted):
        return text.removeprefix("legend-"), ""
    letter, _, key = text.partition(":")
    if letter == quoted and KEY.fullmatch(key) and key in entries:
        return letter, key
    if letter == quoted:
        raise ProvenanceError(
            f"expected {quoted}:KEY, KEY an entry of {config.provenance_file}; got {text!r}. Add "
            "the entry, with the source's words, or choose the letter that is true."
        )
    others = [each for each in config.provenance_letters if each != quoted]
    wanted = ", ".join([f"{quoted}:KEY", *others]) + f" or legend-{quoted}"
    raise ProvenanceError(f"unknown provenance {text!r}; expected {wanted}")


class ProvenanceRole(SphinxRole):
    """``{prov}`c` ``: a badge that says where a statement comes from."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        entries = self.env.app.provenance_words
        self.env.note_dependency(str(source_of(self.config, self.env.srcdir)))
        try:
            letter, key = read_badge(self.text.strip(), entries, self.config)
        except ProvenanceError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        if not key:
            said = self.config.provenance_letters[letter]
            return [ProvenanceNode(letter=letter, said=said, target="")], []
        self.env.metadata[self.env.docname].setdefault(USED, []).append(key)
        said = f"{self.config.provenance_lead}: {quoted(entries[key])}"
        return [ProvenanceNode(letter=letter, said=said, target=entries[key].id)], []


class ProvenanceNode(nodes.inline):
    """The badge in the document tree."""


def quoted(entry: Words) -> str:
    """The place and the words of an entry."""
    return f"{entry.place}: “{entry.words}”"


def visit_html(translator, node: ProvenanceNode) -> None:
    letter, said = node["letter"], escape(node["said"])
    inside = (
        f'<span aria-hidden="true">{letter}</span>'
        f'<span class="visually-hidden">provenance {letter}: {said}</span>'
    )
    shown = f'class="prov prov-{letter}" title="{said}"'
    builder = translator.builder
    home = next((page for page, kept in builder.env.metadata.items() if HOME in kept), "")
    if node["target"] and home:
        address = builder.get_relative_uri(builder.current_docname, home)
        translator.body.append(f'<a {shown} href="{address}#{node["target"]}">{inside}</a>')
    else:
        translator.body.append(f'<abbr {shown} tabindex="0">{inside}</abbr>')
    raise nodes.SkipNode


class PlainBadge(SphinxPostTransform):
    """In formats other than HTML a badge is its letter in brackets."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        if self.app.builder.format != "html":
            for node in list(self.document.findall(ProvenanceNode)):
                node.replace_self(nodes.inline("", f"[{node['letter']}]"))


class UsersNode(nodes.inline):
    """Where the pages that use the entry `key` belong; they are known once every page is read."""


class WordsTable(SphinxDirective):
    """``{words}``: the entries in the order of the paper, and where each is used."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(source_of(self.config, self.env.srcdir)))
        self.env.metadata[self.env.docname][HOME] = True
        body = []
        for entry in sorted(self.env.app.provenance_words.values(), key=lambda each: each.in_order):
            name = nodes.inline("", "", nodes.literal("", entry.key), ids=[entry.id])
            place = [nodes.Text(f"{entry.place} ("), name, nodes.Text(")")]
            body.append([place, [nodes.Text(f"“{entry.words}”")], [UsersNode(key=entry.key)]])
        head = [[nodes.Text(text)] for text in self.config.provenance_head]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=33) for _ in head), cols=len(head))
        group += nodes.thead("", row(head))
        group += nodes.tbody("", *map(row, body))
        return [nodes.table("", group, classes=["colwidths-auto"])]


def row(cells: Iterable[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def users(env: BuildEnvironment, key: str) -> list[str]:
    """The pages that use an entry, and what else does by `provenance_elsewhere`."""
    left_out = tuple(env.config.provenance_unlisted)
    pages = [page for page, kept in env.metadata.items() if key in kept.get(USED, ())]
    pages = [page for page in pages if not page.startswith(left_out)]
    return [*sorted(pages, key=lambda page: page.split("/")), *elsewhere(env).get(key, [])]


def elsewhere(env: BuildEnvironment) -> dict[str, list[str]]:
    return env.config.provenance_elsewhere


def link(env: BuildEnvironment, user: str) -> nodes.Node:
    """A reference to a page, by its title's label where it has one; other words as they are."""
    if user not in env.found_docs:
        return nodes.Text(user)
    title = env.titles[user].astext()
    labels = env.get_domain("std").labels.items()
    label = next((name for name, (page, _, text) in labels if (page, text) == (user, title)), "")
    kind, target = ("ref", label) if label else ("doc", f"/{user}")
    inner = nodes.inline("", title, classes=["xref", "std", f"std-{kind}"])
    wanted = {"refdomain": "std", "reftype": kind, "reftarget": target, "refdoc": env.docname}
    return addnodes.pending_xref("", inner, refexplicit=False, refwarn=True, **wanted)


class NameUsers(SphinxPostTransform):
    """Put the pages that use an entry into its row, before references are resolved."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        for place in list(self.document.findall(UsersNode)):
            found = [link(self.env, user) for user in dict.fromkeys(users(self.env, place["key"]))]
            apart = [part for each in found for part in (nodes.Text(", "), each)]
            place.replace_self(apart[1:])


def pages_with_tables(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """They are written anew in every build: a page elsewhere may have gained or lost a badge."""
    return [page for page in env.found_docs if HOME in env.metadata[page]]


def check_uses(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of an entry without a use, and of what is used elsewhere without an entry."""
    entries = set(app.provenance_words)
    used = {key for kept in env.metadata.values() for key in kept.get(USED, ())}
    wrong = {
        "entries that something uses; drop them, or list them in provenance_elsewhere": entries
        - used
        - set(elsewhere(env)),
        "an entry for each key of provenance_elsewhere; add it": set(elsewhere(env)) - entries,
    }
    source = source_of(app.config, app.srcdir)
    for rule, broken in wrong.items():
        if broken:
            logger.warning("%s: expected %s; see %s", source, rule, sorted(broken))


def read_first(app: Sphinx) -> None:
    """The quotations, once a build; none where there is no file."""
    source = source_of(app.config, app.srcdir)
    app.provenance_words = read_words(source) if source.is_file() else {}


def add_static(app: Sphinx, config: Config) -> None:
    config.html_static_path.append(str(STATIC))
    app.add_css_file("provenance.css")


def setup(app: Sphinx) -> dict[str, object]:
    settings = {
        "letters": LETTERS,
        "quoted": "a",
        "lead": "fixed by the paper's text",
        "file": "provenance.toml",
        "head": ["place in the paper (entry)", "its words", "used by"],
        "elsewhere": {},
        "unlisted": [],
    }
    for name, value in settings.items():
        app.add_config_value(f"provenance_{name}", value, "env")
    app.add_role("prov", ProvenanceRole())
    app.add_directive("words", WordsTable)
    app.add_node(ProvenanceNode, html=(visit_html, None))
    for transform in (PlainBadge, NameUsers):
        app.add_post_transform(transform)
    app.connect("config-inited", add_static)
    app.connect("builder-inited", read_first)
    app.connect("env-updated", pages_with_tables)
    app.connect("env-check-consistency", check_uses)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
