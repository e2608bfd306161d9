"""The ledger: verdicts from checks, a page from verdicts, and the page in the book up to date."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
import torch
from attnbias.ledger import (
    ANSWERS,
    SECTIONS,
    STRENGTHS,
    Answer,
    Claim,
    Evidence,
    Finding,
    Refutation,
    find_all,
    judge,
    refute,
    render,
    render_answers,
    verdicts,
    write,
)
from attnbias.ledger.claim import POSITIVE
from attnbias.ledger.tamper import series, stalls
from tools.chapters import notebook_sources

from attnbias import NGD, Check, make_separation_pair, train
from attnbias.cli import main

BOOK = Path(__file__).parent.parent / "book"
GOOD, BAD = Check("good", 1.0, 2.0), Check("bad", 3.0, 2.0)
SILENT = Check.not_applicable("silent", "T > 2", source="Theorem 2")
CLAIMS = [claim for claims in SECTIONS.values() for claim in claims]


def test_a_claim_holds_if_all_its_checks_do():
    assert judge([GOOD, GOOD]).verdict == "holds"
    assert judge([GOOD], sharper=[GOOD]).verdict == "holds sharper"
    assert judge([GOOD], sharper=[BAD]).verdict == "holds"
    found = judge([GOOD, BAD], sharper=[GOOD])
    assert (found.verdict, found.failing) == ("undecided", ("bad",))


def test_a_restriction_counts_only_where_the_claim_fails():
    when = ("it rains", [GOOD])
    assert judge([BAD], only_when=when).verdict == "holds only when it rains"
    assert judge([GOOD], only_when=when).verdict == "holds"
    assert judge([BAD], only_when=("it rains", [BAD])).verdict == "undecided"
    assert judge([BAD], only_when=("it rains", [])).verdict == "undecided"


def test_only_what_stands_against_a_claim_contradicts_it():
    opposite = Check("well beyond the spread", 5.0, 4.0, ">=")
    assert judge([BAD], against=[opposite]).verdict == "contradicted"
    assert judge([BAD], against=[opposite]).number == "well beyond the spread: 5 >= 4"
    assert judge([BAD], against=[opposite, BAD]).verdict == "undecided"
    assert judge([GOOD], against=[opposite]).verdict == "holds"
    assert judge([BAD], only_when=("it rains", [GOOD]), against=[opposite]).verdict.startswith(
        "holds only when"
    )
    assert "would be decided by a longer run" in judge([BAD], decided_by="a longer run").note


def test_a_silent_check_counts_against_a_claim():
    assert judge([SILENT]).verdict == judge([]).verdict == "undecided"
    assert judge([SILENT, GOOD]).verdict == "undecided"
    assert "1 of 2 checks silent: T > 2" in judge([SILENT, GOOD]).note


def test_a_bound_that_says_nothing_is_no_evidence():
    vacuous = Check("wide", 1.0, 9.0, vacuous=True, reason="below 1 from t = 100")
    assert judge([vacuous]).verdict == "vacuous here"
    assert "vacuous here: below 1 from t = 100" in judge([vacuous]).number
    assert judge([vacuous, GOOD]).verdict == "holds"


def test_the_number_is_the_one_that_decides():
    assert judge([GOOD, BAD]).number == "bad: 3 <= 2"
    assert judge([BAD, Check("worse", 9.0, 2.0)]).number == "worse: 9 <= 2"
    close = Check("close", 1.9, 2.0)
    assert judge([GOOD, close]).number == "close: 1.9 <= 2"
    assert judge([GOOD, close], show="good").number == "good: 1 <= 2"
    lost = judge([GOOD, BAD, Check("lost", math.nan, 1.0)])
    assert lost.verdict == "undecided" and lost.number.startswith("lost: nan")


def test_an_inequality_is_printed_so_that_it_reads_as_it_is():
    assert judge([Check("ratio", 1.0486, 1.05, ">=")]).number == "ratio: 1.049 >= 1.05"
    assert judge([Check("ratio", 1.0500001, 1.05)]).number == "ratio: 1.0500001 <= 1.05"
    assert judge([Check("ratio", 1.05, 1.05)]).number == "ratio: 1.05 <= 1.05"
    allowed = Check("ratio", 1 + 1e-12, 1.0, rounding=1e-11)
    assert judge([allowed]).number == "ratio: 1.000000000001 <= 1 (rounding 1e-11)"


def test_a_claim_that_nothing_refutes_is_said_to_be_an_identity():
    claim = Claim("key", "A claim.", "Lemma 4", "chap-x", "a", lambda e: judge([GOOD]))
    assert claim.judge(None).verdict == "true by construction"
    refuted = dataclasses.replace(claim, refuted_by=(Refutation("no", {}),))
    assert refuted.judge(None).verdict == "holds"


def test_tampering_alters_what_a_claim_asks_for_and_nothing_else():
    def double(number):
        return 2 * number

    def find(e):
        return judge([Check("twice", e.run(double, 1), 2), Check("other", e.run(abs, -1), 1)])

    claim = Claim("key", "A claim.", "Lemma 4", "chap-x", "a", find)
    assert refute(claim, Evidence(), Refutation("", {"double": lambda v: v + 1})).failing == (
        "twice",
    )
    with pytest.raises(ValueError, match="never asks its evidence for train"):
        refute(claim, Evidence(), Refutation("", {"train": lambda v: v}))


def test_tampered_series_stay_finite_and_of_full_length():
    trace = train(make_separation_pair(), NGD(0.5), 10, W0=torch.eye(2).double())
    altered = stalls(0.5)([trace])[0]
    assert altered.W_alignment_error[0] == trace.W_alignment_error[0]
    assert (altered.W_alignment_error[1:] == 0.5).all()
    cosine = float((altered.W * trace.W).sum() / altered.W.norm() / trace.W.norm())
    assert cosine == pytest.approx(0.5)
    with pytest.raises(ValueError, match="finite and of full length"):
        series(W_norm=math.nan)(trace)


def test_keys_are_unique_and_every_claim_says_where():
    keys = [claim.key for claim in CLAIMS]
    assert len(set(keys)) == len(keys)
    for claim in CLAIMS:
        assert claim.text.endswith(".") and claim.source and claim.chapter.startswith("chap-")
        assert claim.provenance in "abcd"


def code_of_chapters() -> dict[str, str]:
    """The code cells of each chapter, by the chapter's label."""
    found = {}
    for page in notebook_sources():
        text = page.read_text()
        cells = re.findall(r"^```\{code-cell\}.*?^```", text, re.M | re.S)
        found[re.search(r"^\((chap-.+)\)=", text, re.M)[1]] = "\n".join(cells)
    return found


CODE = code_of_chapters()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_the_chapter_named_contains_the_run(claim):
    assert claim.chapter in CODE
    if claim.refuted_by:
        assert claim.calls and claim.calls in CODE[claim.chapter]


def made_up(verdict_of=lambda e: Finding("holds", "1 <= 2", "n = 1")):
    return {"Part": (Claim("key", "A | claim.", "Lemma 4", "chap-x", "a", verdict_of),)}


def test_the_page_shows_verdict_number_and_link():
    page = render(find_all(made_up(), None), {"date": "today"})
    row = "| A \\| claim. | Lemma 4 {prov}`a:key` | **true by construction** | 1 <= 2; n = 1 |"
    assert row + " {ref}`chap-x` |" in page
    assert "1 claims: *true by construction* 1." in page
    assert "date today" in page


def test_contradictions_stand_first():
    opposite = Check("opposite", 3.0, 2.5, ">=")
    found = find_all(made_up(lambda e: judge([BAD], against=[opposite], note="n = 2")), None)
    page = render(found, {})
    assert page.index("What our runs contradict") < page.index("### Part")
    assert "opposite: 3 >= 2.5" in page and "Setting: n = 2" in page


def test_the_paper_and_the_book_are_two_lists_with_two_counts():
    (claim,) = made_up()["Part"]
    own = dataclasses.replace(claim, key="own", source="ours")
    page = render(find_all({"Part": (claim,), "Own": (own, own)}, None), {})
    assert page.index("## The paper's claims\n\n1 claims") < page.index("### Part")
    assert page.index("### Part") < page.index("## What this book adds\n\n2 claims")
    for claims in SECTIONS.values():  # no section mixes the two
        assert len({claim.ours for claim in claims}) == 1


def test_page_and_data_are_written_together(tmp_path):
    sections = find_all(made_up(), None)
    write(tmp_path, sections, {"date": "today"})
    stored = json.loads((tmp_path / "results" / "ledger.json").read_text())
    assert stored["sections"] == sections
    assert (tmp_path / "ledger.md").read_text() == render(sections, stored["made"])


def test_answers_rest_on_every_claim_beyond_the_paper_once():
    beyond = {claim.key: claim for claim in SECTIONS["Beyond the paper"]}
    named = [key for answer in ANSWERS for key in answer.claims]
    assert sorted(named) == sorted(beyond)
    for answer in ANSWERS:
        assert answer.strength in STRENGTHS and answer.question.endswith("?")
        assert bool(answer.claims) == (answer.strength != "conjectured")
        assert answer.chapter in {beyond[key].chapter for key in answer.claims} or not answer.claims
        if answer.strength == "proved":
            assert {beyond[key].provenance for key in answer.claims} == {"c"}


def test_answers_stand_by_strength_with_their_verdicts():
    weak = Answer("Guess?", "Perhaps.", "conjectured", "chap-x")
    strong = Answer("Sure?", "Yes.", "proved", "chap-x", ("key",))
    page = render_answers((weak, strong), find_all(made_up(), None))
    assert page.index("Sure?") < page.index("Guess?")
    assert (
        "Yes. {ref}`chap-x`" in page
        and "* A | claim. **True by construction**: 1 <= 2; n = 1." in page
    )
    with pytest.raises(KeyError):  # an answer whose claim no ledger judges
        render_answers((strong,), {})


def test_the_command_refuses_a_missing_folder(tmp_path, capsys):
    assert main(["ledger", "--write", str(tmp_path / "none")]) == 2
    assert "MissingFileError" in capsys.readouterr().err


@pytest.fixture(scope="module")
def evidence():
    return Evidence()


@pytest.fixture(scope="module")
def found(evidence):
    return find_all(SECTIONS, evidence)


REFUTATIONS = [(claim, each) for claim in CLAIMS for each in claim.refuted_by]


@pytest.mark.parametrize(
    ("claim", "refutation"), REFUTATIONS, ids=[f"{c.key}: {r.words}" for c, r in REFUTATIONS]
)
def test_a_tampered_run_changes_the_verdict(claim, refutation, evidence):
    """A check that applies fails; silence is no refutation."""
    found = refute(claim, evidence, refutation)
    assert found.failing
    assert not found.verdict.startswith(POSITIVE)


def test_a_positive_verdict_is_one_that_something_refutes(found):
    """What nothing refutes is undecided, vacuous or true by construction, and says so."""
    refuted = {claim.key for claim in CLAIMS if claim.refuted_by}
    for key, verdict in verdicts(found).items():
        assert key in refuted or not verdict.startswith((*POSITIVE, "contradicted"))


@pytest.mark.slow
def test_no_verdict_has_changed(found):
    """`make ledger` writes the new ones, once the reason is understood."""
    stored = json.loads((BOOK / "results" / "ledger.json").read_text())
    assert verdicts(found) == verdicts(stored["sections"])


def test_the_page_in_the_book_is_the_data():
    stored = json.loads((BOOK / "results" / "ledger.json").read_text())
    assert (BOOK / "ledger.md").read_text() == render(stored["sections"], stored["made"])
    assert (BOOK / "answers.md").read_text() == render_answers(ANSWERS, stored["sections"])
    texts = [
        (entry["key"], entry["text"]) for rows in stored["sections"].values() for entry in rows
    ]
    assert texts == [(claim.key, claim.text) for claim in CLAIMS]
