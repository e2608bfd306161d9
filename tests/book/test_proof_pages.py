"""Every theorem of the main line has its proof on a page, and each leads to the other."""

import re

import pytest
from attnbias_proofs import SECTION, proved
from reference_statements import read_statements

from tests.book.test_main_line import TEXT
from tools.chapters import ROOT

PAGES = sorted((ROOT / "book/proofs").glob("*.md"))
BOX = re.compile(
    r"^`{3,}\{prf:(?:theorem|lemma|proposition|corollary)\}[^\n]*\n:label: (\S+)$", re.M
)


@pytest.mark.parametrize("chapter", TEXT)
def test_a_chapter_has_no_proof_and_each_of_its_statements_has_one_elsewhere(chapter):
    assert "{prf:proof}" not in TEXT[chapter] and "{dropdown} Proof" not in TEXT[chapter]
    assert [label for label in BOX.findall(TEXT[chapter]) if label not in proved()] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_each_proof_begins_with_a_link_to_its_statement(page):
    parts = SECTION.split(page.read_text(encoding="utf8"))[1:]
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    assert found and set(found) <= set(read_statements())
    for label, text in found.items():
        first = next(line for line in text.splitlines()[2:] if line)
        assert f"{{prf:ref}}`{label}`" in first, label


def test_a_proof_is_known_by_its_label(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.md").write_text("(proof-lemma-1)=\n## One\n\n(sec-proof-two)=\n")
    assert proved(tmp_path) == {"lemma-1": tmp_path / "a/one.md"}
    assert BOX.findall("```{prf:lemma} A\n:label: b\n```\n```{prf:definition} C\n:label: d\n") == [
        "b"
    ]
