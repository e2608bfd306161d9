"""What chapters add to the rooms: recorded tables, heads of MiniLM, a ReLU study, figures."""

import dataclasses
from functools import partial

import pandas
import pytest
import torch
from room_tests import refusals
from tolerances import SVM_GAP

from attnbias import experiments
from attnbias.beyond.heads.experiments import describe
from attnbias.beyond.next_token.data import NextTokenData
from attnbias.beyond.ranks import experiments as ranks
from attnbias.errors import RangeError, ShapeError
from attnbias.nets import random_head
from book.claims import Evidence
from book.claims.beyond.ranks import claim
from book.plots import plot_levels, plot_lock_map
from book.studies.prompts import make_joint_prompts, make_prompt_triple, make_score_pair
from book.studies.relu import describe_run, flat_sequences, frozen_part, train_relu
from book.studies.ties import contradict
from book.texts import load_bundled_head
from tools.files import ROOT

RESULTS = ROOT / "book" / "results"


def test_recorded_study_is_of_these_data():
    """Rows of the recorded file, made again."""
    table = experiments.load("ranks", RESULTS).table
    for n, T, d, seed in ((5, 5, 10, 3), (10, 5, 5, 1), (5, 15, 3, 0), (5, 5, 1, 0)):
        old = table.query(f"n == {n} and T == {T} and d == {d} and seed == {seed}").iloc[0]
        new = ranks.instance(n, T, d, seed)
        for name in ("F_status", "N_status", "F_lower", "F_upper", "N_lower", "N_upper"):
            assert old[name] == new[name] or (old[name] != old[name] and new[name] != new[name])


def test_claims_without_a_record_are_open(tmp_path):
    for found in claim.claims[:3]:
        assert found.find(Evidence(tmp_path)).verdict == "undecided"


@pytest.fixture(scope="module")
def noun():
    return load_bundled_head(5, 8)


def test_a_row_is_what_the_head_itself_says(noun):
    row, against = describe(noun), noun.compare()
    assert row["cosine_span"] == against.cosine_span and row["dimension"] == 655
    assert row["margin"] == against.margin / against.svm.margin
    assert (row["favourite"], row["share"]) == ("man", 0.275)
    assert row["attention"] == pytest.approx(float(noun.attention.amax(dim=1).mean()), abs=0.01)
    # W_mm as a head selects the same, at cosine 1 and with the whole margin
    best = dataclasses.replace(noun, W=against.svm.weights)
    row = describe(best)
    assert torch.equal(best.selected, noun.selected)
    assert [row[key] for key in ("cosine", "cosine_span", "margin")] == pytest.approx([1, 1, 1])


def test_a_random_head_has_the_rank_and_its_own_selection(noun):
    first, again = (random_head(noun, 32, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.W, again.W) and torch.linalg.matrix_rank(first.W) == 32
    assert not torch.equal(first.selected, noun.selected)
    row = describe(first)
    assert 0 < row["cosine"] < 0.05 and 0.1 < row["cosine_span"] < 0.5 and 0 < row["margin"] < 0.1


def test_the_bundled_heads_are_rows_of_the_recorded_table():
    """But for the rounding of the hidden states."""
    table = experiments.load("heads", RESULTS).to_dataframe()
    for layer, number in ((5, 8), (2, 10)):
        mine, recorded = describe(load_bundled_head(layer, number)), table.loc[layer, number]
        assert recorded.favourite == mine["favourite"]
        for key in ("share", "attention", "cosine", "cosine_span", "dimension", "margin"):
            assert mine[key] == pytest.approx(recorded[key], rel=0.02)


@pytest.fixture(scope="module")
def relu():
    return train_relu(4, range(1, 11))


def test_no_step_changes_the_frozen_part_and_flat_sequences_drop_out(relu):
    draws, runs = relu
    for (data, _, W0), run in zip(draws, runs, strict=True):
        assert float(frozen_part(data, run.W[-1] - W0).norm()) < 1e-10
    assert flat_sequences(*draws[0][:2], runs[0]).tolist() == [False, True, False]
    rows = [describe_run(*draw, run) for draw, run in zip(draws, runs, strict=True)]
    assert rows[0]["active"] < 5e-3 and rows[0]["hard"] > 0.1 and rows[0]["flat"]
    assert {row["status"] for row in rows} == {"kept", "undecided", "finite", "no label -1"}
    kept = [k for k, row in enumerate(rows) if row["status"] == "kept"]
    assert all(rows[k]["gap"] < SVM_GAP for k in kept)


LEVELS = {"a": ([1, 10], [1, 2], 3.0), "b": ([1, 10], [2, 4], None)}
MANY = {str(i): ([1], [1], None) for i in range(8)}
NAMES = [("x", "y"), ("x", "z")]
TABLE = pandas.DataFrame({"distance": [1.0], "score": [0.3]})
test_bad_input_is_refused = refusals(
    (RangeError, lambda: make_prompt_triple(1.0)),
    (RangeError, lambda: make_score_pair(0.0)),
    (RangeError, lambda: make_joint_prompts(0)),
    (ShapeError, lambda: contradict(NextTokenData([[1.0], [2.0]], [[0, 0]], [0]))),
    (RangeError, lambda: train_relu(4, [1], steps=5)),
    (RangeError, lambda: plot_lock_map(TABLE, "distance", "score", "distance", "away")),
    *(partial(plot_levels, bad, names=NAMES) for bad in ([], [LEVELS] * 3, [MANY] * 2)),
)


def test_figures_have_the_lines_of_what_they_are_given():
    fig = plot_levels([LEVELS, LEVELS], names=NAMES)
    assert [len(axis.lines) for axis in fig.axes] == [3, 3]
