"""Each box links to its proof, which stands on a page of proofs or in a note.

The proof of a box with the label `lemma-2` has the label `proof-lemma-2`. On the main line there
are no proofs: `book/proofs` has a page of them for each part, where each begins with a link to its
box.
"""

import re
from pathlib import Path

from docutils import nodes
from generated import boxes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_proof.nodes import proof_node

from tools.files import ROOT

BOOK = ROOT / "book"
SECTION = re.compile(r"^\(proof-([\w-]+)\)=$", re.MULTILINE)


def proved(folder: Path = BOOK) -> dict[str, Path]:
    """The labels of boxes whose proof has a label, and its page."""
    pages = sorted(folder.rglob("*.md"))
    return {label: page for page in pages for label in SECTION.findall(page.read_text("utf8"))}


def link_proofs(app: Sphinx, doctree: nodes.document) -> None:
    """A line with the link at the end of each box whose proof has a label."""
    found = proved()
    for label, content in boxes(doctree):
        if label in found:
            app.env.note_dependency(str(found[label]))
            target = {"refdomain": "std", "reftype": "ref", "reftarget": f"proof-{label}"}
            link = addnodes.pending_xref("", refexplicit=True, refwarn=True, **target)
            link += nodes.inline("", "Proof", classes=["std", "std-ref"])
            content += nodes.paragraph("", "", link, classes=["checked-by"])


def keep_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """The page has no place for the ids of a proof: they stand on an anchor before it."""
    for proof in list(doctree.findall(proof_node)):
        if proof["ids"]:
            anchor = nodes.target("", "", ids=proof["ids"])
            proof.parent.insert(proof.parent.index(proof), anchor)
            proof["ids"] = []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", link_proofs, priority=390)  # above what checked it
    app.connect("doctree-read", keep_anchors, priority=900)  # labels know their ids by then
    return {"parallel_read_safe": True, "parallel_write_safe": True}
