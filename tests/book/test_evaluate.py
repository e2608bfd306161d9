"""`make evaluate`: each kind of row agrees on the truth, and differs on what is not true."""

import json

import pytest
from nbformat import from_dict
from nbformat.v4 import new_notebook

from tools import evaluate
from tools.evaluate import CLAIMS, FIGURES, Row, status, table
from tools.files import ROOT
from tools.sync_notebooks import read_stored


def row(agrees):
    return Row("what", "1", "2", "1%", agrees)


@pytest.mark.parametrize(
    ("agree", "plain", "demanded"),
    [
        ([True, True], 0, 0),
        ([True, None], 0, 1),
        ([True, False], 1, 1),
        ([None, False], 1, 1),
        ([None], 0, 1),
    ],
)
def test_the_exit_status_is_that_of_the_rows_that_ran_unless_all_are_demanded(
    agree, plain, demanded
):
    rows = [row(each) for each in agree]
    assert (status(rows, False), status(rows, True)) == (plain, demanded)


def test_the_table_says_what_a_row_found():
    lines = table([row(True), row(False), row(None)]).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["agrees", "DIFFERS", "not run"]
    assert len({line.index("what") for line in lines}) == 1


def test_the_rows_of_the_ledger_have_five_verdicts():
    sections = json.loads((ROOT / "book/results/ledger.json").read_text())["sections"]
    kept = {row["key"]: row["verdict"] for rows in sections.values() for row in rows}
    assert len({" ".join(kept[key].split()[:3]) for key in CLAIMS}) == 5


def test_a_claim_agrees_unless_the_ledger_has_another_number_or_verdict(monkeypatch):
    found = evaluate.claim("lemma4")
    assert found.agrees and found.expected == found.measured
    real = json.loads
    for old, new in (("0.604", "0.714"), ('"holds"', '"undecided"')):
        monkeypatch.setattr(json, "loads", lambda text, o=old, n=new: real(text.replace(o, n)))
        assert evaluate.claim("lemma4").agrees is False


def test_certificates_agree_and_a_loose_one_does_not(monkeypatch):
    assert evaluate.optimum().agrees and evaluate.contradiction().agrees
    solve = evaluate.solve_w_svm

    def loose(data, **options):
        found = solve(data, **options)
        found.weights[0, 0] += 1e-3
        return found

    monkeypatch.setattr(evaluate, "solve_w_svm", loose)
    assert evaluate.optimum().agrees is False
    data = evaluate.make_example1(n=1, T=2, d=4)
    monkeypatch.setattr(evaluate, "solve_w_svm", lambda *a, **k: solve(data))
    assert evaluate.contradiction().measured == "a solution"


def test_a_head_agrees_and_another_does_not(monkeypatch):
    assert evaluate.head().agrees
    load = evaluate.load_bundled_head
    monkeypatch.setattr(evaluate, "load_bundled_head", lambda *at: load(2, 10))
    assert evaluate.head().agrees is False


@pytest.mark.parametrize("chapter, name", FIGURES.values())
def test_the_number_of_a_figure_is_glued_by_its_chapter(chapter, name):
    _, cells = read_stored(ROOT / f"book/{chapter}.ipynb")
    float(evaluate.glued(cells, name))
    with pytest.raises(KeyError, match="nobody"):
        evaluate.glued(cells, "nobody")


def test_a_figure_differs_from_a_record_of_another_run(monkeypatch):
    """The shortest notebook stands for a figure; one printed number of its record is changed."""
    chapter, name = "paper/bad_start", "bad_half_4"
    first, cells = read_stored(ROOT / f"book/{chapter}.ipynb")

    class Client:
        def execute(self):
            return new_notebook(cells=cells)

    monkeypatch.setattr(evaluate, "client_for", lambda *a, **k: Client())
    assert evaluate.figure("Figure 8", chapter, name).agrees
    changed = json.loads(json.dumps(cells))
    shown = next(
        out
        for cell in changed
        for out in cell.get("outputs", [])
        if out.get("metadata", {}).get("scrapbook", {}).get("name") == name
    )
    shown["data"][evaluate.GLUED] = "8"
    monkeypatch.setattr(evaluate, "read_stored", lambda path: (first, from_dict(changed)))
    found = evaluate.figure("Figure 8", chapter, name)
    assert found.agrees is False and found.expected == "8"


def test_rocq_is_not_run_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(evaluate.shutil, "which", lambda name: None)
    assert evaluate.proof().agrees is None and evaluate.proof().measured == "not run"


@pytest.mark.skipif(evaluate.shutil.which("coqc") is None, reason="coqc is not installed")
@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("Theorem t : True. Proof. exact I. Qed. Print Assumptions t.", True),
        ("Axiom a : False. Theorem t : False. Proof. exact a. Qed. Print Assumptions t.", False),
        ("Theorem t : False. Proof. exact I. Qed.", False),
    ],
)
def test_rocq_finds_an_axiom_and_a_gap(tmp_path, text, agrees):
    (tmp_path / "One.v").write_text(text)
    assert evaluate.proof(("One",), tmp_path).agrees is agrees
