"""Heads against W_mm: the table, heads at a random start, and a file that comes back."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from room_tests import refused_settings

from attnbias import experiments
from attnbias.beyond.heads import experiments as heads
from attnbias.beyond.heads.experiments import describe, random_head
from attnbias.beyond.heads.plots import plot_head_table
from attnbias.errors import DtypeError, FileFormatError, MissingFileError, RangeError
from attnbias.nets.bundled_head import load_bundled_head


@pytest.fixture(scope="module")
def tiny():
    pytest.importorskip("transformers")
    return heads.run(model="tiny", sentences=5, random=3)


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
    table = experiments.load("heads", "book/results").table()
    for layer, number in ((5, 8), (2, 10)):
        mine, recorded = describe(load_bundled_head(layer, number)), table.loc[layer, number]
        assert recorded.favourite == mine["favourite"]
        for key in ("share", "attention", "cosine", "cosine_span", "dimension", "margin"):
            assert mine[key] == pytest.approx(recorded[key], rel=0.02)


def test_an_untrained_bert_has_four_heads_of_two_layers(tiny):
    assert [(row["layer"], row["head"]) for row in tiny.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["head"] for row in tiny.random] == [-1] * 6
    assert tiny.column("margin").min() > 0 and tiny.column("margin").max() < 1
    assert (tiny.column("cosine_span") >= tiny.column("cosine")).all()


def test_a_saved_table_comes_back(tiny, tmp_path):
    tiny.save(tmp_path / "heads.json")
    back = experiments.load("heads", tmp_path)
    assert repr(back) == repr(tiny) and back.settings == tiny.settings
    for random in (False, True):
        for key in ("margin", "cosine_span", "attention"):
            assert np.allclose(back.column(key, random), tiny.column(key, random), atol=1e-6)


@pytest.mark.parametrize("damage", ["kind", "columns", "row", "text"])
def test_a_damaged_table_is_refused(tiny, tmp_path, damage):
    path = tiny.save(tmp_path / "heads.json")
    stored = json.loads(path.read_text())
    if damage == "row":
        stored["rows"][0].pop()
    else:
        stored[damage] = "other"
    path.write_text("{" if damage == "text" else json.dumps(stored))
    with pytest.raises(FileFormatError, match="heads"):
        experiments.load("heads", tmp_path)


def test_the_claims_can_hold_and_can_fail():
    low = [{"margin": x, "cosine_span": x} for x in np.linspace(0.0, 0.1, 11)]
    high = [{"margin": x, "cosine_span": x} for x in np.linspace(0.5, 0.6, 11)]
    assert heads.claims(high, low).all_hold
    assert not any(check.holds for check in heads.claims(low, high))


def test_sentences_from_a_file_or_a_list(tiny, tmp_path):
    texts = ["A man plays the guitar.", "Two dogs run."]
    path = tmp_path / "mine.txt"
    path.write_text("\n".join([texts[0], "", "  " + texts[1] + " "]))
    results = [heads.run(model="tiny", sentences=given, random=1) for given in (texts, path)]
    assert results[0].rows == results[1].rows and results[0].settings["sentences"] == 2
    assert results[0].rows != tiny.rows


test_bad_settings_are_refused = refused_settings(
    heads.run, ("sentences", 0, RangeError), ("sentences", 1000, RangeError),
    ("sentences", [], RangeError), ("sentences", [1, 2], DtypeError),
    ("sentences", 2.5, DtypeError), ("random", 0, RangeError), ("seed", -1, RangeError),
    ("progress", 1, DtypeError), ("query", 50, RangeError), model="tiny", random=1,
    sentences=3,
)  # fmt: skip


def test_missing_places_are_named():
    for place in ({"sentences": "no such file"}, {"out": "/no/such/folder"}):
        with pytest.raises(MissingFileError, match="no such file|folder"):
            heads.run(**{"model": "tiny", "sentences": 3, "random": 1} | place)


def test_the_figure_has_a_dot_a_head_and_the_band_of_random_ones(tiny):
    fig = plot_head_table(tiny)
    for axis, name in zip(fig.axes, ("cosine_span", "margin"), strict=True):
        (dots,) = axis.lines
        assert dots.get_ydata().tolist() == tiny.column(name).tolist()
        (band,) = axis.patches
        low = np.quantile(tiny.column(name, random=True), 0.05)
        assert band.get_extents().y0 == pytest.approx(axis.transData.transform((0, low))[1])
    with pytest.raises(DtypeError, match="heads"):
        plot_head_table(tiny.rows)
