"""Each claim of the ledger has a square, which has its verdict's look and leads to its row."""

import json
import re
from types import SimpleNamespace

import attnbias_squares as extension
import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from generated import SourceError

from tools.files import ROOT

SECTIONS = extension.read_sections()
ENTRIES = {entry["key"]: entry for rows in SECTIONS.values() for entry in rows}
PAGE = (ROOT / "book/ledger.md").read_text(encoding="utf8")


def drawn(sections=SECTIONS, ledger=""):
    return BeautifulSoup(extension.picture(sections, ledger), "html.parser")


def look(soup, key):
    (link,) = soup("a", href=f"#claim-{key}")
    return link["class"][1], link.get_text(), link["aria-label"]


def changed(key, verdict):
    """The ledger's parts with another verdict on one claim."""
    return {
        part: [entry | {"verdict": verdict} if entry["key"] == key else entry for entry in rows]
        for part, rows in SECTIONS.items()
    }


def test_each_claim_has_a_square_that_leads_to_its_row():
    links = [link["href"] for link in drawn()("a", class_="square")]
    assert links == [f"#claim-{key}" for key in ENTRIES]
    rows = re.findall(r"^\* \{mark\}`([a-z0-9-]+)`", PAGE, re.MULTILINE)
    assert [f"#claim-{row}" for row in rows] == links
    elsewhere = drawn(ledger="ledger.html")("a", class_="square")
    assert {link["href"].partition("#")[0] for link in elsewhere} == {"ledger.html"}


def test_parts_are_rows_and_the_legend_counts():
    soup = drawn()
    assert [part["aria-label"] for part in soup("ul")[1:]] == list(SECTIONS)
    assert [len(part("a")) for part in soup("ul")[1:]] == [*map(len, SECTIONS.values())]
    counts = [int(line.get_text().split()[-1]) for line in soup.ul("li")]
    assert sum(counts) == len(ENTRIES)


@pytest.mark.parametrize("verdict", [*extension.LOOKS, "holds only when it rains"])
def test_another_verdict_is_another_square(verdict):
    soup = drawn(changed("theorem1", verdict))
    expected = extension.LOOKS[extension.kind({"verdict": verdict})]
    found = look(soup, "theorem1")
    assert found[:2] == expected and found[2].endswith(f": {verdict}")
    assert look(soup, "feasible") == look(drawn(), "feasible")  # and the others stay


def marked(key):
    """What the role of a row's mark writes, and what it says where it refuses."""
    made, said = extension.Mark(), []
    app = SimpleNamespace(**{extension.STATE: SECTIONS})
    settings = SimpleNamespace(env=SimpleNamespace(app=app))
    reporter = SimpleNamespace(error=lambda text, line: said.append(text) or nodes.system_message())
    document = SimpleNamespace(settings=settings)
    made.inliner = SimpleNamespace(reporter=reporter, document=document)
    made.text, made.lineno = key, 1
    return "".join(node.astext() for node in made.run()[0]), said


def test_the_mark_of_a_row_is_its_square_with_the_anchor_of_the_others():
    for key in ("theorem1", "feasible", "priority"):
        html, _ = marked(key)
        row = BeautifulSoup(html, "html.parser").span
        classes, mark, _ = look(drawn(), key)
        assert row["id"] == f"claim-{key}" and row.span["class"][1] == classes
        assert row.get_text() == mark
    assert marked("theorem-99") == (
        "",
        [f"expected the key of a claim of {extension.LEDGER.name}; got 'theorem-99'"],
    )


def test_no_two_verdicts_have_one_look():
    classes, marks = zip(*extension.LOOKS.values(), strict=True)
    assert len(set(classes)) == len(set(marks)) == len(extension.LOOKS)
    styles = (ROOT / "book/_static/squares.css").read_text(encoding="utf8")
    assert "0 2px 2px 0" in styles  # the tick, the one mark that is drawn


def test_the_papers_claims_and_ours_are_all():
    paper, ours = (extension.chosen(SECTIONS, side) for side in ("paper", "ours"))
    assert paper | ours == SECTIONS and not paper.keys() & ours.keys() and paper and ours
    assert extension.chosen(SECTIONS, "") == SECTIONS
    with pytest.raises(ValueError, match="paper"):
        extension.side_of("theirs")


def test_a_verdict_without_a_look_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({"sections": changed("theorem1", "perhaps")}), encoding="utf8")
    monkeypatch.setattr(extension, "LEDGER", path)
    with pytest.raises(SourceError, match="perhaps"):
        extension.read_sections()
