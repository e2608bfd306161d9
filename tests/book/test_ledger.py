"""The ledger: verdicts from checks, a page from verdicts, and the page in the book up to date."""

import importlib
import itertools
import json
import math
import re

import pytest
import torch

from attnbias import NGD, Check, make_separation_pair, train
from book import claims as ledger
from book.claims import (
    ANSWERS,
    SECTIONS,
    Evidence,
    Finding,
    Kept,
    Refutation,
    judge,
    refute,
    render,
)
from book.claims.__main__ import main
from book.claims.claim import POSITIVE
from book.claims.kinds import Partly, at_record, drop_and_stall, every, window
from book.claims.places import cells, section_of
from book.claims.scope import BOUND, COUNT, END, EXISTS, SCOPE
from book.claims.seeds import SEEDS
from book.claims.tamper import series, stalls
from tools.files import ROOT

BOOK = ROOT / "book"
GOOD, BAD = Check("good", 1.0, 2.0, key="good"), Check("bad", 3.0, 2.0)
SILENT = Check.not_applicable("silent", "T > 2", source="Theorem 2")
CLAIMS = [claim for claims in SECTIONS.values() for claim in claims]
EVIDENCE, STORED = Kept(), json.loads((BOOK / "results" / "ledger.json").read_text())

# Several runs: a claim may be on those of two sequences or more, or on those that lock, and what a
# refutation says of a run with short steps may be within the claim's room.
KINDS = {
    "run": [{"run": number} for number in range(1, 7)],
    "window": [{"shape": window(0.55, 0.75)}],
    "every": [{"shape": every(3)}],
    "record": [{"shape": at_record(0.7)}],
    "stall": [{"shape": drop_and_stall(0.1)}],
}


WIDE = Check("wide", 1.0, 9.0, vacuous=True, reason="below 1 from t = 100")
OPPOSITE = Check("well beyond the spread", 5.0, 4.0, ">=")
CLOSE = Check("close", 1.9, 2.0)


def rain(*checks):
    return {"only_when": ("it rains", [*checks])}


@pytest.mark.parametrize(
    ("checks", "options", "verdict"),
    [
        ([GOOD, GOOD], {}, "holds"),
        ([GOOD], {"sharper": [GOOD]}, "holds sharper"),
        ([GOOD], {"sharper": [BAD]}, "holds"),
        ([GOOD, BAD], {"sharper": [GOOD]}, "undecided"),
        # a restriction counts only where the claim fails
        ([BAD], rain(GOOD), "holds only when it rains"),
        ([GOOD], rain(GOOD), "holds"),
        ([BAD], rain(BAD), "undecided"),
        ([BAD], rain(), "undecided"),
        # only what stands against a claim contradicts it
        ([BAD], {"against": [OPPOSITE]}, "contradicted"),
        ([BAD], {"against": [OPPOSITE, BAD]}, "undecided"),
        ([GOOD], {"against": [OPPOSITE]}, "holds"),
        ([BAD], rain(GOOD) | {"against": [OPPOSITE]}, "holds only when it rains"),
        # a silent check counts against a claim, and a bound that says nothing is no evidence
        ([SILENT], {}, "undecided"),
        ([], {}, "undecided"),
        ([SILENT, GOOD], {}, "undecided"),
        ([WIDE], {}, "vacuous here"),
        ([WIDE, GOOD], {}, "holds"),
    ],
)
def test_checks_decide_the_verdict(checks, options, verdict):
    assert judge(checks, **options).verdict == verdict


@pytest.mark.parametrize(
    ("checks", "options", "number"),
    [
        ([BAD], {"against": [OPPOSITE]}, "well beyond the spread: 5 >= 4"),
        ([WIDE], {}, "wide: 1 <= 9 (vacuous here: below 1 from t = 100)"),
        ([GOOD, BAD], {}, "bad: 3 <= 2"),
        ([BAD, Check("worse", 9.0, 2.0)], {}, "worse: 9 <= 2"),
        ([GOOD, CLOSE], {}, "close: 1.9 <= 2"),
        ([GOOD, CLOSE], {"show": "good"}, "good: 1 <= 2"),
        ([GOOD, BAD, Check("lost", math.nan, 1.0)], {}, "lost: nan <= 1"),
        # an inequality is printed so that it reads as it is
        ([Check("ratio", 1.0486, 1.05, ">=")], {}, "ratio: 1.049 >= 1.05"),
        ([Check("ratio", 1.0500001, 1.05)], {}, "ratio: 1.0500001 <= 1.05"),
        ([Check("ratio", 1.05, 1.05)], {}, "ratio: 1.05 <= 1.05"),
        (
            [Check("ratio", 1 + 1e-12, 1.0, rounding=1e-11)],
            {},
            "ratio: 1.000000000001 <= 1 (rounding 1e-11)",
        ),
    ],
)
def test_the_number_is_the_one_that_decides(checks, options, number):
    assert judge(checks, **options).number == number


def test_the_finding_says_what_failed_what_was_silent_and_what_would_decide():
    assert judge([GOOD, BAD], sharper=[GOOD]).failing == ("bad",)
    assert "1 of 2 checks silent: T > 2" in judge([SILENT, GOOD]).note
    assert "would be decided by a longer run" in judge([BAD], decided_by="a longer run").note


def made_up(find=lambda e: judge([GOOD]), refutation=None, **options) -> ledger.Claim:
    """A claim of its own section, with that function and one refutation."""
    section = ledger.Section("Part", 1, **{"source": "Lemma 4", "chapter": "chap-x"} | options)

    def key(e):
        """A | claim,
        on two lines."""
        return find(e)

    return section("a")(ledger.refuted("no", **refutation)(key) if refutation else key)


def test_a_function_gives_its_claim_and_one_that_nothing_refutes_is_an_identity():
    claim = made_up(refutation={"train": abs}, source="ours")
    assert (claim.key, claim.text, claim.ours) == ("key", "A | claim, on two lines.", True)
    assert claim.refuted_by == (Refutation("no", {"train": abs}),)
    assert claim.judge(None).verdict == "holds"
    assert made_up().judge(None).verdict == "true by construction"


def test_the_ledger_finds_every_module_of_claims():
    folder = BOOK / "claims"
    found = {path for path in folder.glob("*/*.py") if "claim = Section(" in path.read_text()}
    modules = {importlib.import_module(claim.find.__module__).__file__ for claim in CLAIMS}
    assert found and {str(path) for path in found} == modules


def test_tampering_alters_what_a_claim_asks_for_and_nothing_else():
    def double(number):
        return 2 * number

    def find(e):
        return judge([Check("twice", e.run(double, 1), 2), Check("other", e.run(abs, -1), 1)])

    claim = made_up(find)
    found = refute(claim, Evidence(), Refutation("", {"double": lambda v: v + 1}))
    assert found.failing == ("twice",)
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


def test_keys_are_unique_and_a_row_leads_to_the_section_that_contains_its_run():
    keys = [claim.key for claim in CLAIMS]
    assert len(set(keys)) == len(keys)
    for claim in CLAIMS:
        assert claim.text.endswith(".") and claim.source and claim.provenance in "abcd"
        assert claim.chapter in cells(), claim.key
        inside = [label for label, code in cells()[claim.chapter] if claim.calls in code]
        if claim.refuted_by:
            assert claim.calls and inside, claim.key
        if claim.calls:  # a record that is read before the first section is the chapter's own
            wanted = next((label for label in inside if label), claim.chapter)
            assert section_of(claim.chapter, claim.calls) == wanted
    sections = {entry["section"] for rows in STORED["sections"].values() for entry in rows}
    assert sum(label.startswith("sec-") for label in sections) > len(sections) / 2


def test_the_section_is_that_of_the_cell_with_the_code():
    """A mark of a section counts up to the next, a page's own is none; code in prose is no cell."""
    pages = (path.read_text(encoding="utf8") for path in BOOK.glob("*/*.md"))
    titles = {label for page in pages for label in re.findall(r"^\((chap-.+)\)=\n+# ", page, re.M)}
    assert "chap-figure2" in titles
    for chapter, inside in cells().items():
        for label, code in inside:
            assert label not in titles and code.strip(), chapter
    assert section_of("chap-figure2", 'experiments.run("fig2"').startswith("sec-")
    assert section_of("chap-figure2", "no such code") == "chap-figure2"


def judged(**options):
    return ledger.find_all({"Part": (made_up(**options),)}, None)


def test_the_page_shows_verdict_number_and_link():
    page = render(judged(find=lambda e: Finding("holds", "x: 1 <= 2", "n = 1")), {"date": "today"})
    claim = "A | claim, on two lines. (Lemma 4 {prov}`a:key`) **True by construction**"
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert f"* {{mark}}`key` {claim}\n\n  $x$: 1 ≤ 2 · $n=1$ · {{ref}}`run <chap-x>`\n" in page
    assert "1 claims: *true by construction* 1." in page
    assert "date today" in page


def test_the_paper_and_the_book_are_two_lists_with_two_counts():
    own = made_up(source="ours")
    page = render(ledger.find_all({"Part": (made_up(),), "Own": (own, own)}, None), {})
    assert page.index("## The paper's claims\n\n1 claims") < page.index("### Part")
    assert page.index("### Part") < page.index("## What this book adds\n\n2 claims")
    for claims in SECTIONS.values():  # no section mixes the two
        assert len({claim.ours for claim in claims}) == 1


def test_page_and_data_are_written_together_into_a_folder_that_is_there(tmp_path, capsys):
    sections = judged()
    ledger.write(tmp_path, sections, {"date": "today"})
    stored = json.loads((tmp_path / "results" / "ledger.json").read_text())
    assert stored["sections"] == sections
    assert (tmp_path / "ledger.md").read_text() == render(sections, stored["made"])
    with pytest.raises(SystemExit):
        main(["--write", str(tmp_path / "none")])
    assert "a folder was expected" in capsys.readouterr().err


def test_pages_are_written_from_stored_verdicts_without_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("book.claims.__main__.find_all", None)  # to judge would be an error
    (tmp_path / "results").mkdir()
    (tmp_path / "results/ledger.json").write_text(json.dumps(STORED))
    main(["--write", str(tmp_path), "--pages"])
    for name in ("ledger.md", "answers.md"):
        assert (tmp_path / name).read_text() == (BOOK / name).read_text()
    changed = json.loads(json.dumps(STORED).replace('"holds sharper"', '"contradicted"'))
    (tmp_path / "results/ledger.json").write_text(json.dumps(changed))
    main(["--write", str(tmp_path), "--pages"])
    assert (tmp_path / "ledger.md").read_text().count("**Contradicted**") > 1
    with pytest.raises(SystemExit):
        main(["--pages"])
    assert "add --write" in capsys.readouterr().err


def test_answers_rest_on_every_claim_beyond_the_paper_once():
    beyond = {claim.key: claim for claim in SECTIONS["Beyond the paper"]}
    named = [key for answer in ANSWERS for key in answer.claims]
    assert sorted(named) == sorted(beyond)
    for answer in ANSWERS:
        assert answer.strength in ledger.STRENGTHS and answer.question.endswith("?")
        assert bool(answer.claims) == (answer.strength != "conjectured")
        assert answer.chapter in {beyond[key].chapter for key in answer.claims} or not answer.claims
        if answer.strength == "proved":
            assert {beyond[key].provenance for key in answer.claims} == {"c"}


def test_answers_stand_by_strength_with_their_verdicts():
    weak = ledger.Answer("Guess?", "Perhaps.", "conjectured", "chap-x")
    strong = ledger.Answer("Sure?", "Yes.", "proved", "chap-x", ("key",))
    page = ledger.render_answers((weak, strong), judged())
    assert page.index("Sure?") < page.index("Guess?")
    assert "Yes. {ref}`chap-x`" in page
    assert "* **True by construction**: {ref}`chap-x`\n" in page
    twice = ledger.Answer("Sure?", "Yes.", "proved", "chap-x", ("key", "key"))
    failed = judged(find=lambda e: judge([BAD], against=[OPPOSITE]))
    page = ledger.render_answers((twice,), failed)
    assert "* **Contradicted**, 2 claims: {ref}`chap-x`\n" in page
    with pytest.raises(KeyError):  # an answer whose claim no ledger judges
        ledger.render_answers((strong,), {})


def test_the_library_knows_no_chapter_and_no_role_of_the_book():
    """The ledger and the pages are the book's; what is in the wheel reads the same without them."""
    library = BOOK.parent / "attnbias"
    roles = "prov|ref|numref|doc|eq|term|cite|prf:ref"
    pattern = re.compile(rf"\bchap-\w|\{{(?:{roles})\}}`|:(?:{roles}):`|\bbook\.ledger\b")
    assert pattern.search("{prov}`c`") and not pattern.search("`{name}`")
    assert [p for p in library.rglob("*.py") if pattern.search(p.read_text(encoding="utf8"))] == []


@pytest.mark.slow
def test_a_tampered_run_changes_each_verdict():
    """A check that applies fails; silence is no refutation."""
    unmoved = []
    for claim in CLAIMS:
        for refutation in claim.refuted_by:
            found = refute(claim, EVIDENCE, refutation)
            if not found.failing or found.verdict.startswith(POSITIVE):
                unmoved.append(f"{claim.key}: {refutation.words}")
    assert unmoved == []


def silent(claim, parts) -> bool:
    """Whether no refutation of the claim is rejected where it is made in that part alone."""
    tried = 0
    for refutation, part in itertools.product(claim.refuted_by, parts):
        partly = Partly(**part)
        try:
            found = refute(claim, EVIDENCE, refutation, partly)
        except Exception:  # the checks refuse such a run, as they would a damaged file
            continue
        if partly.changed:
            tried += 1
            if found.failing and not found.verdict.startswith(POSITIVE):
                return False
    return tried > 0


@pytest.mark.slow
def test_each_claim_rejects_every_kind_of_partial_tampering_that_makes_it_false():
    found = {}
    for claim in CLAIMS:
        if claim.judge(EVIDENCE).verdict.startswith(POSITIVE):
            kinds = {kind for kind in KINDS if claim.key not in SCOPE[kind]}
            missed = {kind for kind in kinds if silent(claim, KINDS[kind])}
            if missed:
                found[claim.key] = missed
    assert found == {}


def test_what_a_claim_need_not_reject_has_a_reason():
    assert set(SCOPE) == set(KINDS)
    refuted = {claim.key for claim in CLAIMS if claim.refuted_by}
    assert refuted >= END | BOUND | COUNT | EXISTS
    assert not END & BOUND


def test_without_its_recorded_run_a_claim_is_undecided_and_says_what_makes_one(tmp_path):
    found = [
        claim.judge(Evidence(tmp_path)) for claim in CLAIMS if "experiments.load(" in claim.calls
    ]
    assert len(found) > 10 and {each.verdict for each in found} == {"undecided"}
    assert all(each.note.startswith("no recorded run: attnbias run ") for each in found)


def test_fresh_seeds_are_none_that_were_looked_at():
    chapters = {claim.key: claim.chapter for claim in CLAIMS}
    for key, seeds in SEEDS.items():
        looked_at = [
            other.looked_at for at, other in SEEDS.items() if chapters[at] == chapters[key]
        ]
        assert len(seeds.fresh) >= 5
        assert not set(seeds.fresh) & {seed for each in looked_at for seed in each}, key


class Recorded:
    """The evidence, and the seeds of its runs: a seed, or a range, is the first argument."""

    def __getattr__(self, name):
        return getattr(EVIDENCE, name)

    def run(self, make, *arguments, **options):
        first = arguments[0]
        self.asked.extend(first if isinstance(first, range) else [first])
        return EVIDENCE.run(make, *arguments, **options)


@pytest.mark.slow  # the runs are those of the tests beside it, made once
def test_limits_of_ours_are_judged_on_fresh_seeds():
    evidence, claims = Recorded(), {claim.key: claim for claim in CLAIMS}
    for key, seeds in SEEDS.items():
        evidence.asked = []
        found = claims[key].judge(evidence)
        assert evidence.asked and set(evidence.asked) <= set(seeds.fresh), key
        assert str(seeds) in found.note


@pytest.mark.slow
def test_no_verdict_has_changed():
    """`make ledger` writes the new ones, once the reason is understood."""
    found = ledger.find_all(SECTIONS, EVIDENCE)
    assert ledger.verdicts(found) == ledger.verdicts(STORED["sections"])


def test_a_positive_verdict_is_one_that_something_refutes():
    """What nothing refutes is undecided, vacuous or true by construction, and says so."""
    refuted = {claim.key for claim in CLAIMS if claim.refuted_by}
    for key, verdict in ledger.verdicts(STORED["sections"]).items():
        assert key in refuted or not verdict.startswith((*POSITIVE, "contradicted"))


def test_the_page_in_the_book_is_the_data():
    assert (BOOK / "ledger.md").read_text() == render(STORED["sections"], STORED["made"])
    assert (BOOK / "answers.md").read_text() == ledger.render_answers(ANSWERS, STORED["sections"])
    entries = [entry for rows in STORED["sections"].values() for entry in rows]
    assert [(e["key"], e["text"]) for e in entries] == [(c.key, c.text) for c in CLAIMS]
