"""A page that speaks of claims has the ledger's verdicts, and hides none that needs caution."""

import json
import re
import tomllib
from types import SimpleNamespace

import attnbias_verdicts as extension
import pytest
from docutils import nodes
from docutils.utils import new_document

from tools.files import ROOT

CHECKED = ROOT / "book/_ext/checked.toml"
PAGE = (ROOT / "book/ten_minutes.md").read_text(encoding="utf8")
ENTRIES = extension.read_entries()
PAPERS = {key: entry for key, entry in ENTRIES.items() if entry["source"] != "ours"}


def named(text: str) -> set[str]:
    """The keys of the claims that a page shows the verdict of."""
    return set(re.findall(r"\{verdict\}`([^`]+)`", text))


def hidden(text: str) -> set[str]:
    """Claims of the paper that hold under a restriction alone, or not, and are left out."""
    wary = {key for key, entry in PAPERS.items() if extension.kind(entry["verdict"]) == "partly"}
    wary |= {key for key, entry in PAPERS.items() if entry["verdict"] == "contradicted"}
    return wary - named(text)


def unmarked(text: str) -> set[str]:
    """Boxes that Rocq has checked and whose line of a list does not say so."""
    known = set(tomllib.loads(CHECKED.read_text(encoding="utf8"))) - {"axioms"}
    lines = [line for line in text.splitlines() if line.startswith("* ")]
    assert lines
    found = [
        (
            set(re.findall(r"\{prf:ref\}`([^`]+)`", line)),
            set(re.findall(r"\{rocq\}`([^`]+)`", line)),
        )
        for line in lines
    ]
    return {label for boxes, marks in found for label in boxes & known - marks}


def role(kind, text, entries=ENTRIES):
    """What a role writes for a text, and what it says where it refuses."""
    made, said = kind(), []
    app = SimpleNamespace(**{extension.STATE: entries})
    env = SimpleNamespace(app=app, docname="page", note_dependency=lambda path: None)
    reporter = SimpleNamespace(error=lambda text, line: said.append(text) or nodes.system_message())
    document = SimpleNamespace(settings=SimpleNamespace(env=env))
    made.inliner = SimpleNamespace(reporter=reporter, document=document)
    made.text, made.lineno = text, 1
    return made.run()[0], said


def test_the_page_hides_no_claim_of_the_paper_that_needs_a_restriction():
    assert hidden(PAGE) == set()
    assert hidden(PAGE.replace("{verdict}`cone`", "")) == {"cone"}


def test_the_page_speaks_of_claims_of_the_paper_and_types_no_verdict():
    assert named(PAGE) <= set(PAPERS) and len(named(PAGE)) > 40
    assert not re.search(r"\*\*(holds|undecided)", PAGE)


def test_every_numbered_theorem_of_the_paper_has_its_verdict_there():
    theorems = {key for key in PAPERS if re.fullmatch(r"theorem\d+", key)}
    assert len(theorems) >= 6 and theorems <= named(PAGE)


def test_what_is_new_names_claims_of_ours_and_every_proof_that_a_machine_checked():
    page = (ROOT / "book/literature.md").read_text(encoding="utf8")
    assert len(named(page)) > 20 and not named(page) & set(PAPERS)
    assert unmarked(page) == set()
    assert unmarked(page.replace("{rocq}`rate-m2`", "")) == {"rate-m2"}


def test_a_verdict_is_the_ledgers_and_leads_to_the_run():
    (made,), _ = role(extension.VerdictRole, "feasible")
    assert made.astext() == ENTRIES["feasible"]["verdict"] and made["classes"] == [
        "verdict",
        "partly",
    ]
    assert made.children[0]["reftarget"] == ENTRIES["feasible"]["section"]
    other = ENTRIES | {"feasible": ENTRIES["feasible"] | {"verdict": "contradicted"}}
    (made,), _ = role(extension.VerdictRole, "feasible", other)
    assert made.astext() == "contradicted" and made["classes"] == ["verdict", "undecided"]
    assert extension.kind("holds sharper") == "holds"


def test_a_formula_in_a_verdict_is_set():
    words, formula, rest = extension.shown("holds only when |W_mm| / 2 is more")
    assert isinstance(formula, nodes.math) and formula.astext() == r"\|W_{mm}\|/2"
    assert (words.astext(), rest.astext()) == ("holds only when ", " is more")
    assert extension.shown("holds") == ["holds"]


def test_all_words_of_a_resolved_verdict_stay():
    words = nodes.inline(
        "", "", *map(nodes.Text, ("holds only when the loss", "\u2019", "s |W| < 1"))
    )
    link = nodes.reference("", "", words)
    verdict = nodes.inline("", "", link, classes=["verdict", "partly"])
    other = nodes.inline("", "|W|")
    page = new_document("page")
    page += [verdict, nodes.paragraph("", "", nodes.emphasis("", "", other))]
    extension.SetFormulas(page).run()
    assert [each.astext() for each in words] == ["holds only when the loss\u2019s ", r"\|W\|<1"]
    assert other.astext() == "|W|" and len(page) == 2


@pytest.mark.parametrize("kind", [extension.VerdictRole, extension.TallyRole])
def test_what_the_ledger_does_not_have_is_refused(kind):
    made, said = role(kind, "theorem-99")
    assert made == [] and "got 'theorem-99'" in said[0]


def test_the_counts_are_those_of_the_ledgers_page():
    ledger = (ROOT / "book/ledger.md").read_text(encoding="utf8").replace("*", "")
    for side in ("paper", "ours"):
        (made,), _ = role(extension.TallyRole, side)
        assert f"\n{made.astext()}.\n" in ledger
    (made,), _ = role(extension.TallyRole, "paper", {"a": ENTRIES["theorem1"]})
    assert made.astext() == "1 claims: holds sharper 1"
    assert json.loads(extension.LEDGER.read_text("utf8"))["sections"]
