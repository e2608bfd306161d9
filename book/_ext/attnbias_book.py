"""What the book needs from Sphinx, beyond its extensions.

* Statements of the paper keep the paper's numbers: a box labelled ``theorem-1``, ``lemma-6`` or
  ``assumption-2`` is printed, and referred to, as Theorem 1, Lemma 6 and Assumption 2. Boxes with
  any other label are the book's own and count by chapter; those and the figures of the third note,
  which is no chapter, are N3.1, N3.2, ...
* ``{prf:condition}`` stands beside sphinx-proof's theorem, lemma and assumption.
* A comma or full stop behind a formula or a badge stays on its line.
* A reference to a section whose title has a formula shows the formula, not its source.
* Launch buttons appear when git's ``origin`` is a public GitHub repository, and not otherwise;
  a chapter's notebook can be downloaded either way.
* jupyter-book's default live-code script, which would name a remote address, is left out.
* Of MathJax's 24 MB only the parts that the pages use are kept.
"""

import gc
import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from docutils import nodes
from page_tags import BOOK, description
from page_tags import tags as page_tags
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_proof import directive as proof_directive
from sphinx_proof import nodes as proof_nodes
from sphinx_provenance import ProvenanceNode

from tools.chapters import toc_files
from tools.first_cell import version
from tools.laboratory import MODULES, RACE
from tools.origin import github_address, launch_ref

SCRIPTS = {  # of one page each: the search's ranks what it finds
    "search": ["search.js"],
    "book/ledger": ["squares.js", "rows.js"],
    "book/ten_minutes": ["squares.js"],
    "book/statements": ["map.js"],
    "book/intro": [*(f"laboratory/{name}.js" for name in RACE), "race.js"],
    "book/laboratory": [f"laboratory/{name}.js" for name in MODULES],
}
# A formula in a title, as its text has it.
FORMULA_SIGNS = re.compile(r"[\\^_=]")
LAST_WORD = re.compile(r"\S*\s+\Z")
SHORT = 30  # signs, of the source of a formula
PUNCTUATION = re.compile(r"[.,;:!?)]+")
OPENED = re.compile(r"[(\[]+\Z")


class condition_node(nodes.Admonition, nodes.Element):
    """The box of a ``{prf:condition}``."""


class ConditionDirective(proof_directive.ElementDirective):
    """``{prf:condition}``, numbered and referred to as sphinx-proof's own boxes are."""

    name = "condition"


def add_condition(app: Sphinx) -> None:
    proof_nodes.NODE_TYPES["condition"] = condition_node
    proof_directive.DEFAULT_REALTYP_TO_COUNTERTYP["condition"] = "condition"
    visitors = (proof_nodes.visit_enumerable_node, proof_nodes.depart_enumerable_node)
    app.add_enumerable_node(condition_node, "condition", None, html=visitors)
    app.add_directive_to_domain("prf", "condition", ConditionDirective)


class SetTitles(SphinxPostTransform):
    """Sphinx refers to a section by its title as text; a formula in it becomes one again."""

    default_priority = 20  # as soon as references are resolved

    def run(self, **options) -> None:
        for inline in self.document.findall(nodes.inline):
            if "std-ref" in inline["classes"] and FORMULA_SIGNS.search(inline.astext()):
                title = self._title(inline.astext())
                if title is not None:
                    inline[:] = [child.deepcopy() for child in title]

    def _title(self, words: str) -> nodes.title | None:
        labels = self.env.domains["std"].data["labels"].values()
        places = [(page, anchor) for page, anchor, name in labels if name == words]
        for page, anchor in places:
            for section in self.env.get_doctree(page).findall(nodes.section):
                if anchor in section["ids"]:
                    return section.next_node(nodes.title)
        return None


class KeepPunctuation(SphinxPostTransform):
    """Browsers break a line beside a formula, also at a comma or bracket; `nobreak` forbids it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for node in [*self.document.findall(nodes.math), *self.document.findall(ProvenanceNode)]:
            parent, place = node.parent, node.parent.index(node)
            before = parent[place - 1] if place else None
            after = parent[place + 1] if place + 1 < len(parent) else None
            opened = OPENED.search(before) if isinstance(before, nodes.Text) else None
            closed = PUNCTUATION.match(after) if isinstance(after, nodes.Text) else None
            if not (opened or closed):
                continue
            kept = parent[place] = nodes.inline(classes=["nobreak"])
            # by place: `replace` would take the first text that is equal, such as another "."
            if opened:
                parent[place - 1] = nodes.Text(before[: opened.start()])
                kept += nodes.Text(opened.group())
            kept += node
            if closed:
                parent[place + 1] = nodes.Text(after[closed.end() :])
                kept += nodes.Text(closed.group())


class KeepBadges(SphinxPostTransform):
    """A badge stays on the line of the word, or of the short link or formula, before it."""

    default_priority = 920  # when terms and symbols have become links
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for badge in [*self.document.findall(ProvenanceNode)]:
            kept = badge.parent if "nobreak" in badge.parent.get("classes", ()) else badge
            parent, place = kept.parent, kept.parent.index(kept)
            text = parent[place - 1] if place else None
            word = LAST_WORD.search(text) if isinstance(text, nodes.Text) else None
            if not word:
                continue
            together = parent[place] = nodes.inline(classes=["nobreak"])
            parent[place - 1] = nodes.Text(text[: word.start()])
            before = parent[place - 2] if place > 1 and word.group().isspace() else None
            if isinstance(before, nodes.Text):  # the end of a line of the source is a node
                start = before.rfind(" ") + 1
                parent[place - 2] = nodes.Text(before[:start])
                together += nodes.Text(before[start:])
            elif before is not None and len(before.astext()) < SHORT:
                del parent[place - 2]
                together += before
            together += [nodes.Text(word.group()), kept]


def keep_paper_numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Put the paper's number where Sphinx has counted its own.

    Runs after Sphinx has numbered everything (priority above the collectors' 500).
    """
    changed = []
    for label, box in getattr(env, "proof_list", {}).items():
        kind, docname = box["countertype"], box["docname"]
        number = re.fullmatch(rf"{box['realtype']}-(\d+[a-z]?)", label)
        if number and not box["nonumber"]:
            env.toc_fignumbers[docname][kind][label] = (number.group(1),)
            changed.append(docname)
    return changed


def number_notes(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Count what is numbered on pages that have no number themselves by page, with an N before it.

    Sphinx would count them through as 1, 2, ..., which are the numbers of the paper's figures.
    """
    notes = [
        page
        for page in toc_files(Path(app.srcdir, "_toc.yml"))
        if env.toc_fignumbers.get(page) and not any(env.toc_secnumbers.get(page, {}).values())
    ]
    for place, page in enumerate(notes, 1):
        for kind, numbers in env.toc_fignumbers[page].items():
            own = {label: (f"N{place}", k) for k, label in enumerate(numbers, 1)}
            env.toc_fignumbers[page][kind] = own
    return notes


def name_site(app: Sphinx, config) -> None:
    """Its title, which the theme leaves out beside a logo, and the address of a published one."""
    config.html_theme_options["logo"] = {"text": BOOK, "alt_text": ""}
    config.html_baseurl = os.environ.get("BOOK_ADDRESS", "")


def add_launch_buttons(app: Sphinx, config) -> None:
    """Binder and Colab open the .ipynb beside a chapter's .md; without an origin, nothing does."""
    options, root = config.html_theme_options, Path(app.srcdir)
    address = github_address(root)
    options["launch_buttons"] = {}
    if address is None:
        options.pop("repository_url", None)
        return
    options.update(
        repository_url=address,
        repository_branch=launch_ref(root, version(root)),
        path_to_docs="",
        use_repository_button=True,
        use_issues_button=True,
        launch_buttons={
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    )


def notebook_beside(app: Sphinx, page: str) -> Path | None:
    """The committed, executed .ipynb of a chapter."""
    notebook = Path(app.srcdir, f"{page}.ipynb")
    return notebook if notebook.is_file() else None


def complete_page(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Name its notebook to the theme's download menu, which runs after this, and say what it is.

    Its own scripts are loaded by it alone; their sheets, as all, become a part of the book's one.
    """
    if notebook_beside(app, page):
        context["ipynb_source"] = f"{page}.ipynb"
    if doctree is not None:
        title = re.sub(r"<[^>]+>", "", context.get("title") or BOOK)
        address = context.get("pageurl") or ""  # of a site with html_baseurl
        home = app.config.html_baseurl
        found = page_tags(unescape(title), description(doctree), address, home)
        context["metatags"] = context.get("metatags", "") + found
    for name in SCRIPTS.get(page, ()):
        app.add_js_file(name, loading_method="defer")


def copies(app: Sphinx, error: Exception | None, ending: str) -> Iterator[tuple[Path, Path]]:
    """Each chapter's notebook in a built site, and where a copy with that ending belongs."""
    if error is None and app.builder.format == "html":
        for page in app.env.found_docs:
            if notebook := notebook_beside(app, page):
                target = Path(app.outdir, "_sources", f"{page}{ending}")
                target.parent.mkdir(parents=True, exist_ok=True)
                yield notebook, target


def copy_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Put them where the menu links to, over the copies that the theme makes for Binder."""
    for notebook, target in copies(app, error, ".ipynb"):
        shutil.copyfile(notebook, target)


def drop_live_code(app: Sphinx) -> None:
    """Disconnect sphinx-thebe, which jupyter-book always loads: the pages have no live kernel."""
    unwanted = {"init_thebe_core", "update_thebe_context"}
    for event, listeners in app.events.listeners.items():
        kept = [e for e in listeners if getattr(e.handler, "__name__", "") not in unwanted]
        app.events.listeners[event] = kept


def write_on_every_core(app: Sphinx, env: BuildEnvironment) -> None:
    """jupyter-book has no option for it. Pages are read one by one: sphinx-proof can't else."""
    app.parallel = os.cpu_count() or 1


def prune_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Keep tex-chtml.js, its fonts and its TeX extensions (2 MB of 24)."""
    mathjax = Path(app.outdir, "_static", "mathjax")
    if error is not None or not mathjax.is_dir():
        return
    kept = [mathjax / part for part in ("tex-chtml.js", "input/tex", "output/chtml")]
    for path in mathjax.rglob("*"):
        if path.is_file() and not any(path.is_relative_to(part) for part in kept):
            path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    gc.set_threshold(100_000, 20, 100)  # a fifth of a build went into looking for garbage
    app.setup_extension("sphinx_proof")
    app.add_css_file("laboratory/laboratory.css")
    add_condition(app)
    drop_live_code(app)
    app.add_post_transform(SetTitles)
    app.add_post_transform(KeepPunctuation)
    app.add_post_transform(KeepBadges)
    app.connect("env-get-updated", number_notes, priority=850)
    app.connect("env-get-updated", keep_paper_numbers, priority=900)
    app.connect("env-updated", write_on_every_core)
    app.connect("config-inited", name_site)
    app.connect("config-inited", add_launch_buttons)
    app.connect("html-page-context", complete_page)
    app.connect("build-finished", copy_notebooks, priority=900)
    app.connect("build-finished", prune_mathjax, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
