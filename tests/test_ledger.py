"""The ledger: verdicts from checks, a page from verdicts, and the page in the book up to date."""

import json
import math
import re
from pathlib import Path

import pytest

from attnbias import Check
from attnbias.cli import main
from attnbias.ledger import (
    ANSWERS,
    SECTIONS,
    STRENGTHS,
    Answer,
    Claim,
    Evidence,
    Finding,
    find_all,
    judge,
    render,
    render_answers,
    verdicts,
    write,
)

BOOK = Path(__file__).parent.parent / "book"
GOOD, BAD = Check("good", 1.0, 2.0), Check("bad", 3.0, 2.0)
SILENT = Check.not_applicable("silent", "T > 2", source="Theorem 2")
CLAIMS = [claim for claims in SECTIONS.values() for claim in claims]


def test_a_claim_holds_if_all_its_checks_do():
    assert judge([GOOD, GOOD]).verdict == "holds"
    assert judge([GOOD, BAD]).verdict == "doesn't hold"
    assert judge([GOOD], sharper=[GOOD]).verdict == "holds sharper"
    assert judge([GOOD], sharper=[BAD]).verdict == "holds"
    assert judge([BAD], sharper=[GOOD]).verdict == "doesn't hold"


def test_a_restriction_counts_only_where_the_claim_fails():
    when = ("it rains", [GOOD])
    assert judge([BAD], only_when=when).verdict == "holds only when it rains"
    assert judge([GOOD], only_when=when).verdict == "holds"
    assert judge([BAD], only_when=("it rains", [BAD])).verdict == "doesn't hold"
    assert judge([BAD], only_when=("it rains", [])).verdict == "doesn't hold"


def test_what_does_not_apply_decides_nothing():
    assert judge([SILENT]).verdict == "not checked"
    assert "T > 2" in judge([SILENT]).note
    assert judge([]).verdict == "not checked"
    assert judge([SILENT, GOOD]).verdict == "holds"
    assert "1 of 2 checks silent: T > 2" in judge([SILENT, GOOD]).note


def test_the_number_is_the_one_that_decides():
    assert judge([GOOD, BAD]).number == "bad: 3 <= 2"
    close = Check("close", 1.9, 2.0)
    assert judge([GOOD, close]).number == "close: 1.9 <= 2"
    assert judge([GOOD, close], show="good").number == "good: 1 <= 2"
    assert judge([GOOD, Check("lost", math.nan, 1.0)]).verdict == "doesn't hold"
    vacuous = Check("wide", 1.0, 9.0, vacuous=True, reason="bites from t = 100")
    assert "vacuous here: bites from t = 100" in judge([vacuous]).number


def test_keys_are_unique_and_every_claim_says_where():
    keys = [claim.key for claim in CLAIMS]
    assert len(set(keys)) == len(keys)
    for claim in CLAIMS:
        assert claim.text.endswith(".") and claim.source and claim.chapter.startswith("chap-")
        assert claim.provenance in "abcd"


def test_every_chapter_named_exists():
    pages = [*(BOOK / "chapters").glob("*.md"), *BOOK.glob("*.md")]
    labels = {
        match for page in pages for match in re.findall(r"^\((.+)\)=", page.read_text(), re.M)
    }
    assert {claim.chapter for claim in CLAIMS} <= labels


def made_up(verdict_of=lambda e: Finding("holds", "1 <= 2", "n = 1")):
    return {"Part": (Claim("key", "A | claim.", "Lemma 4", "chap-x", "a", verdict_of),)}


def test_the_page_shows_verdict_number_and_link():
    page = render(find_all(made_up(), None), {"date": "today"})
    assert "| A \\| claim. | Lemma 4 [a] | **holds** | 1 <= 2; n = 1 | {ref}`chap-x` |" in page
    assert "1 claims: *holds* 1." in page
    assert "date today" in page


def test_contradictions_stand_first():
    page = render(find_all(made_up(lambda e: judge([BAD], note="n = 2")), None), {})
    assert page.index("What our runs contradict") < page.index("## Part")
    assert "bad: 3 <= 2" in page and "Setting: n = 2" in page


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
    assert "Yes. {ref}`chap-x`" in page and "* A | claim. **Holds**: 1 <= 2; n = 1." in page
    with pytest.raises(KeyError):  # an answer whose claim no ledger judges
        render_answers((strong,), {})


def test_the_command_refuses_a_missing_folder(tmp_path, capsys):
    assert main(["ledger", "--write", str(tmp_path / "none")]) == 2
    assert "MissingFileError" in capsys.readouterr().err


@pytest.fixture(scope="module")
def found():
    return find_all(SECTIONS, Evidence())


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
