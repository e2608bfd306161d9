"""What the ledger says of a claim, where a page speaks of it.

``{verdict}`theorem1` `` is the verdict on the claim of that key, with its formulas, as a link to
the section whose code makes the run; ``{tally}`paper` `` and ``{tally}`ours` `` count the verdicts.
None is typed, and the build refuses a key that the ledger does not have.
"""

import json
from collections import Counter

from docutils import nodes
from generated import read_first
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole

from book.claims.claim import ONLY_WHEN
from book.claims.formulas import set_formulas
from tools.files import ROOT

LEDGER = ROOT / "book/results/ledger.json"
STATE = "attnbias_verdicts"


def read_entries() -> dict[str, dict]:
    """The claims of the ledger by their keys, as it judged them."""
    sections = json.loads(LEDGER.read_text(encoding="utf8"))["sections"]
    return {entry["key"]: entry for rows in sections.values() for entry in rows}


def kind(verdict: str) -> str:
    """What a verdict looks like: each that needs a word of caution has a look of its own."""
    if verdict.startswith(ONLY_WHEN):
        return "partly"
    return "undecided" if verdict in ("undecided", "contradicted") else "holds"


class VerdictRole(SphinxRole):
    """``{verdict}`KEY` ``"""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        entry = getattr(self.env.app, STATE).get(self.text)
        if entry is None:
            said = f"expected the key of a claim of {LEDGER.name}; got {self.text!r}"
            return [], [self.inliner.reporter.error(said, line=self.lineno)]
        self.env.note_dependency(str(LEDGER))
        link = addnodes.pending_xref(
            "",
            nodes.inline("", entry["verdict"]),
            refdoc=self.env.docname,
            refdomain="std",
            refexplicit=True,
            reftarget=entry["section"],
            reftype="ref",
            refwarn=True,
        )
        return [nodes.inline("", "", link, classes=["verdict", kind(entry["verdict"])])], []


class SetFormulas(SphinxPostTransform):
    """A resolved reference has words alone; the formulas in a verdict become formulas again."""

    default_priority = 20  # as soon as references are resolved

    def run(self, **options) -> None:
        for words in [*self.document.findall(nodes.inline)]:
            if words.parent.parent and "verdict" in words.parent.parent.get("classes", ()):
                words[:] = shown(words.astext())


def shown(verdict: str) -> list[nodes.Node]:
    """Its words, with the apostrophes of the page, and its formulas."""
    parts = set_formulas(verdict.replace("\u2019", "'")).split("$")
    words = [nodes.Text(part.replace("'", "\u2019")) for part in parts]
    return [nodes.math("", part) if k % 2 else words[k] for k, part in enumerate(parts) if part]


class TallyRole(SphinxRole):
    """``{tally}`paper` `` and ``{tally}`ours` ``"""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.text not in ("paper", "ours"):
            said = f"expected paper or ours; got {self.text!r}"
            return [], [self.inliner.reporter.error(said, line=self.lineno)]
        self.env.note_dependency(str(LEDGER))
        entries = getattr(self.env.app, STATE).values()
        chosen = [each for each in entries if (each["source"] == "ours") == (self.text == "ours")]
        words = [each["verdict"] for each in chosen]
        counts = Counter(ONLY_WHEN if each.startswith(ONLY_WHEN) else each for each in words)
        told = ", ".join(f"{verdict} {count}" for verdict, count in counts.items())
        return [nodes.Text(f"{len(words)} claims: {told}")], []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("verdict", VerdictRole())
    app.add_role("tally", TallyRole())
    app.add_post_transform(SetFormulas)
    read_first(app, STATE, read_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
