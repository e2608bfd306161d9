"""Figure 10: cosines counted exactly, kinds of pairs that differ, a result that survives disk."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from attnbias import experiments
from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.experiments import cosines as cosines_module
from attnbias.experiments import fig10
from attnbias.experiments.cosines import (
    BINS,
    Cosines,
    pair_cosines,
    random_density,
    random_mean_abs,
    random_within,
)
from attnbias.plots import plot_cosines

ONES = np.ones((3, 2))
FLOAT32 = 2e-6  # Gram matrices are in float32; sums of a few hundred cosines of size 1


def by_hand(texts, table, positions: bool) -> list[float]:
    """Every cosine, pair by pair, in float64."""
    table = np.asarray(table, dtype=float)
    table = table / np.linalg.norm(table, axis=1, keepdims=True)
    found = []
    for text in texts:
        tokens = text if positions else sorted(set(text))
        found += [float(table[a] @ table[b]) for a, b in itertools.combinations(tokens, 2)]
    return found


@pytest.fixture(scope="module")
def small():
    return fig10.run(source="bundled", texts={"NLI": 60, "toxic": 30})


@given(
    st.lists(st.lists(st.integers(0, 8), min_size=0, max_size=7), min_size=1, max_size=6),
    st.booleans(),
    st.integers(0, 100),
)
def test_every_pair_is_counted_once(texts, positions, seed):
    table = np.random.default_rng(seed).normal(size=(9, 4))
    wanted = by_hand(texts, table, positions)
    if not wanted:
        with pytest.raises(RangeError, match="texts"):
            pair_cosines(texts, table, positions=positions)
        return
    found = pair_cosines(texts, table, positions=positions)
    assert found.pairs == len(wanted)
    assert found.mean == pytest.approx(np.mean(wanted), abs=FLOAT32)
    assert found.mean_abs == pytest.approx(np.mean(np.abs(wanted)), abs=FLOAT32)
    assert found.deviation**2 == pytest.approx(np.var(wanted), abs=4 * FLOAT32)
    edges, wanted = found.edges[1:], np.sort(wanted)
    unsure = (np.abs(wanted[:, None] - edges) < FLOAT32).sum(axis=0)  # on an edge but for rounding
    assert (np.abs(np.cumsum(found.counts) - np.searchsorted(wanted, edges)) <= unsure).all()


def test_the_mean_is_that_of_the_sum_of_unit_vectors():
    """Over pairs of k tokens: (|sum of e|^2 - k) / (k (k - 1)), a form without pairs."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 20)) + 0.4
    text = rng.choice(300, 120, replace=False)
    units = table[text] / np.linalg.norm(table[text], axis=1, keepdims=True)
    total = np.linalg.norm(units.sum(axis=0)) ** 2
    wanted = (total - 120) / (120 * 119)
    assert pair_cosines([text], table).mean == pytest.approx(wanted, abs=FLOAT32)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(50, 8))
    texts = [rng.integers(0, 50, size=rng.integers(2, 20)) for _ in range(40)]
    whole = pair_cosines(texts, table, positions=True)
    monkeypatch.setattr(cosines_module, "_BLOCK", 1)
    parts = pair_cosines(texts[::-1], table, positions=True)
    assert np.array_equal(whole.counts, parts.counts)
    assert parts.mean == pytest.approx(whole.mean, abs=FLOAT32)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_lengths_do_not_matter_and_a_zero_vector_is_orthogonal(scale):
    table = scale * np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [-6.0, -8.0], [1.5, 2.0]])
    assert pair_cosines([[0, 1]], table).mean == pytest.approx(0.6, abs=FLOAT32)
    assert pair_cosines([[0, 2]], table).mean == 0
    # opposite and equal directions fall into the last bins
    found = pair_cosines([[0, 3, 4]], table)
    assert found.counts[0] == 2 and found.counts[-1] == 1 and found.within(0.9) == 0


@pytest.mark.parametrize("d", [3, 10, 384])
def test_random_directions_in_closed_form(d):
    def mean(of, low=-1):
        return pytest.approx(integrate.quad(lambda c: of(c) * random_density(c, d), low, -low)[0])

    assert mean(lambda c: 1) == 1 and mean(lambda c: c * c) == 1 / d
    assert random_mean_abs(d) == mean(abs) and random_within(0.1, d) == mean(lambda c: 1, -0.1)


def test_shares_and_quantiles_by_hand():
    counts = np.zeros(BINS, np.int64)
    counts[[200, 201, 399]] = 1, 2, 1  # [0, .005), [.005, .01), and the last bin
    found = Cosines(counts, np.zeros(3))
    assert found.within(0.005) == pytest.approx(0.25) and found.within(0.01) == pytest.approx(0.75)
    assert found.quantile(0.25) == pytest.approx(0.005)
    assert found.quantile(0.5) == pytest.approx(0.0075)
    assert found.quantile(1.0) == 1 and found.quantile(0.0) == 0
    assert found.density.sum() * 2 / BINS == pytest.approx(1)


@pytest.mark.parametrize(
    ("texts", "table", "error"),
    [
        ([[0, 3]], ONES, RangeError),
        ([[-1, 0]], ONES, RangeError),
        ([], ONES, RangeError),
        ([[1], [2, 2]], ONES, RangeError),
        ([[0.0, 1.0]], ONES, DtypeError),
        ([[[0, 1]]], ONES, DtypeError),
        ([[0, 1]], ONES.astype(int), DtypeError),
        ([[0, 1]], np.ones(3), ShapeError),
        ([[0, 1]], np.nan * ONES, NonFiniteError),
    ],
)
def test_bad_texts_are_refused(texts, table, error):
    with pytest.raises(error):
        pair_cosines(texts, table)


def test_kinds_say_what_they_should(small):
    for corpus in ("NLI", "toxic"):
        kinds = small.cosines[corpus]
        assert tuple(kinds) == fig10.KINDS
        assert kinds["positions"].pairs > kinds["text"].pairs == kinds["centred"].pairs
        assert kinds["positions"].mean > kinds["text"].mean > kinds["centred"].mean
        # one piece drawn twice in a text is no pair
        assert kinds["text"].pairs > kinds["shuffled"].pairs > kinds["uniform"].pairs * 0.7
        assert kinds["uniform"].mean_abs < kinds["shuffled"].mean_abs < kinds["text"].mean_abs
        assert small.to_dataframe(corpus)["pairs"].to_dict() == {
            k: kinds[k].pairs for k in fig10.KINDS
        }
        assert small.sizes[corpus]["texts"] == {"NLI": 60, "toxic": 30}[corpus]
    assert fig10.spaced(10, 4).tolist() == [0, 3, 6, 9]
    assert fig10.spaced(3, 100).tolist() == [0, 1, 2]


def test_a_table_needs_a_corpus_and_a_result_reaches_another_process(small):
    with pytest.raises(RangeError, match="corpus"):
        small.to_dataframe()
    again = pickle.loads(pickle.dumps(small))
    assert again.to_dataframe("NLI").equals(small.to_dataframe("NLI"))
    assert repr(again) == repr(small)


def test_dealing_anew_keeps_the_pieces():
    """With all texts alike but for order, dealing anew cannot change what a text holds."""
    rows = [np.array([0, 1])] * 50
    table = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    kinds = fig10.corpus_cosines(rows, table, np.random.default_rng(0))
    assert kinds["text"].mean == pytest.approx(0.6) == kinds["shuffled"].mean
    assert kinds["text"].pairs == 50 > kinds["shuffled"].pairs > 10
    assert kinds["centred"].mean == pytest.approx(-1)


def test_the_claims_can_hold_and_can_fail(small):
    d = 16
    orthogonal, alike = (pair_cosines([np.arange(d)], np.eye(d) + x) for x in (0.0, 1.0))
    for found, verdict in ((orthogonal, True), (alike, False)):
        cosines = {"corpus": {"text": found, "positions": found}}
        table = small.with_data(cosines=cosines, dimension=d).claims
        assert [check.holds for check in table] == [verdict] * 4
    for check in small.claims:  # the text's claim holds, and the proof's does not
        assert check.holds == check.key.startswith("near/")


def test_the_same_seed_the_same_result(small):
    again, other = (
        fig10.run(source="bundled", texts={"NLI": 60, "toxic": 1}, seed=seed) for seed in (0, 1)
    )
    for kind in fig10.KINDS:
        mine, same, new = (r.cosines["NLI"][kind] for r in (small, again, other))
        assert np.array_equal(mine.counts, same.counts)
        assert np.array_equal(mine.counts, new.counts) == (kind not in ("shuffled", "uniform"))


def test_other_embeddings_on_the_same_texts():
    """Random weights behind the real tokenizer: nothing but chance is left, except repeats."""
    pytest.importorskip("transformers")
    result = fig10.run(source="bundled", model="tiny", texts={"NLI": 40, "toxic": 20})
    for kinds in result.cosines.values():
        assert kinds["text"].mean_abs == pytest.approx(random_mean_abs(64), rel=0.1)
        assert kinds["positions"].counts[-1] > 0 == kinds["text"].counts[-1]
    assert "random embeddings" in " ".join(result.substitutes)


def test_the_command_writes_the_file(tmp_path):
    few = {"source": "bundled", "texts": {"NLI": 5, "toxic": 5}}
    result = experiments.run("fig10", **few, out=tmp_path)
    assert repr(experiments.load("fig10", tmp_path)) == repr(result)


def test_the_figure_draws_each_corpus(small):
    fig = plot_cosines(small, ("text", "positions", "centred"))
    assert [axis.get_title("left") for axis in fig.axes] == ["NLI", "toxic"]
    assert len(fig.axes[0].lines) == 4  # the random directions too
    middle, density = fig.axes[0].lines[0].get_data()
    found = small.cosines["NLI"]["text"]
    assert np.nansum(middle * density) / np.nansum(density) == pytest.approx(found.mean, abs=0.01)
    with pytest.raises(RangeError, match="kinds"):
        plot_cosines(small, ("other",))
    with pytest.raises(DtypeError, match="result"):
        plot_cosines(dataclasses.asdict(small.cosines["NLI"]["text"]))
