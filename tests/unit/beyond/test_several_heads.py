"""Several heads: gradients, the invariant, each its own SVM; heads of a BERT against W_mm."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from room_tests import RISK, assert_gradient, assert_unit_steps, normal, refusals, refused_settings
from tolerances import ALIGNMENT_FLOOR, ASYMPTOTIC, CLOSED_FORM

from attnbias import GD, NGD, Dataset, Polyak, experiments, make_separation_pair, solve_w_svm, train
from attnbias.beyond.heads import experiments as heads
from attnbias.beyond.heads.checks import (
    check_heads,
    gap_invariant,
    growth_of_difference,
    invert_gap_invariant,
)
from attnbias.beyond.heads.columns import column
from attnbias.beyond.heads.decoders import interpolating_decoder
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.heads.plots import plot_head_runs, plot_head_table
from attnbias.data.degenerate import make_two_sample_trap
from attnbias.errors import (
    DtypeError,
    FileAccessError,
    FileFormatError,
    MissingFileError,
    RangeError,
)
from attnbias.experiments import ExperimentResult
from attnbias.nets import head_from_qk, load_model, record_heads

PAIR = make_separation_pair()
SIX_DECIMALS = 1e-6  # what a file of heads keeps
SAME = torch.stack([PAIR.u, PAIR.u])


def two_heads(seed: int):
    """Gaussian tokens, two decoders that prefer different ones, and both optimal tokens."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randn(4, 3, 40, generator=g, dtype=torch.float64) / 40**0.5
    data, first = Dataset(tokens, [1, -1, 1, -1]), torch.randint(3, (4,), generator=g)
    opts = (first, (first + 1) % 3)
    return data, torch.stack([interpolating_decoder(data, opt) for opt in opts]), opts


@pytest.mark.parametrize("loss", RISK)
def test_gradients_against_autograd(loss):
    data, u, _ = two_heads(0)
    u, W0 = u + 0.05 * normal(*u.shape, seed=1), normal(2, 40, 40, seed=2)

    def plain(W):
        s = torch.softmax(torch.einsum("ntd,hde,ne->hnt", data.X, W, data.X[:, 0]), 2)
        return RISK[loss](data.y * torch.einsum("hd,ntd,hnt->n", u, data.X, s))

    def run_of(rule, W=W0):
        return train_heads(data, u, rule, 1, W0=W, loss=loss)

    assert_gradient(lambda W: run_of(GD(0.1), W), W0, plain)
    assert_unit_steps(run_of)


def test_one_head_is_train_and_equal_heads_are_one():
    data, u, _ = two_heads(1)
    many = train_heads(data, u[:1], NGD(0.2), 50)
    one = train(data.with_decoder(u[0]), NGD(0.2), 50, record=[50])
    assert float((many.W[-1, 0] - one.W).abs().max()) < CLOSED_FORM * 100
    # equal heads stay equal and are one with twice the decoder
    data, u, _ = two_heads(2)
    equal, one = torch.stack([u[0], u[0]]), train_heads(data, 2 * u[:1], GD(0.25), 100)
    for rule in (NGD(0.2), NGD(0.2, normalise="shared"), GD(0.5)):
        two = train_heads(data, equal, rule, 100).W
        assert float((two[:, 0] - two[:, 1]).abs().max()) < CLOSED_FORM
    assert float((two[:, 0] - one.W[:, 0]).abs().max()) < CLOSED_FORM


def invariant_along(start, scale, rule, steps):
    W0 = torch.zeros(2, 2, 2).double()
    W0[:, 0, 0] = torch.tensor(start)
    u = torch.stack([PAIR.u, scale * PAIR.u])
    w = train_heads(PAIR, u, rule, steps, W0=W0).W.numpy()[:, :, 0, 0]
    return gap_invariant(w[:, 0]) - gap_invariant(w[:, 1]) / scale


@settings(max_examples=10, deadline=None)
@given(first=st.floats(-5, 5), second=st.floats(-5, 5), scale=st.sampled_from([1.0, 3.0]))
def test_the_invariant_is_kept_by_small_steps(first, second, scale):
    value = invariant_along([first, second], scale, GD(3e-3), 100)
    assert np.abs(value - value[0]).max() < 1e-3
    assert abs(invert_gap_invariant(gap_invariant(first)) - first) < CLOSED_FORM


def test_the_invariant_is_broken_by_separate_norms_and_growth_in_closed_form():
    value = invariant_along([-3.0, -2.0], 1.0, NGD(0.01), 300)
    assert abs(value[-1] / value[0] - 1) > 0.1
    for start in (-4.0, -0.5):  # growth is the ratio of softmax products
        p = 1 / (1 + math.exp(-start))
        assert growth_of_difference(start) == pytest.approx(1 / (4 * p * (1 - p)))
    assert growth_of_difference(0.5) == 1.0


def test_each_head_turns_to_its_own_svm_and_not_to_the_others():
    data, u, opts = two_heads(3)
    run = train_heads(data, u, NGD(0.4), 300)
    svms = [solve_w_svm(data, opt).weights for opt in opts]
    for h in (0, 1):
        assert run.alignment_with(svms[h], h)[-1] < ASYMPTOTIC
        assert run.alignment_with(svms[1 - h], h)[-1] > 0.5
    assert check_heads(data, u, run).all_hold
    assert check_heads(data, u, train_heads(data, u, NGD(0.4), 10))[0].vacuous
    bold = train_heads(data, u, NGD(200.0), 300)
    assert check_heads(data, u, bold).all_hold and not check_heads(data, u, bold)[0].vacuous
    assert not any(check.holds for check in check_heads(data, u.flip(0), bold))


def test_reweighting_is_that_of_the_other_heads_score():
    data, u, _ = two_heads(0)
    run = train_heads(data, u, NGD(0.4), 50)
    # at W = 0 each head's score is the mean of its scores, 1/3, and exp(-1/3) the factor
    assert np.abs(run.log_reweighting[0] + 1 / 3).max() < CLOSED_FORM
    late = train_heads(data, u, NGD(1.0), 400).log_reweighting[-1]
    assert np.abs(late + 1).max() < ALIGNMENT_FLOOR**0.25


def test_check_needs_assumption_2_and_says_nothing_in_the_trap():
    data, u, _ = two_heads(0)
    loose = u + 0.05 * normal(*u.shape, seed=1)
    assert not check_heads(data, loose, train_heads(data, loose, NGD(0.1), 20))[0].applicable
    trap = make_two_sample_trap()
    both = torch.stack([trap.u, trap.u])
    check = check_heads(trap, both, train_heads(trap, both, NGD(0.2), 200))[0]
    assert check.bounds[-1] > 2 and check.values[-1] > 0.5  # 1 - cosine is at most 2


RAGGED = Dataset(torch.ones(2, 3, 2).double(), [1, -1], lengths=[2, 3])
REPEATED = Dataset(torch.ones(1, 2, 2).double(), [1])
RUN = train_heads(PAIR, SAME, NGD(0.1), 3)
NONE = ExperimentResult(heads.FORM, {"rows": (), "random": ()}, {})


test_bad_input_is_refused = refusals(
    ShapeError=[
        lambda: train_heads(RAGGED, SAME, NGD(0.1), 5),
        lambda: train_heads(PAIR, PAIR.u, NGD(0.1), 5),
        lambda: train_heads(PAIR, SAME, NGD(0.1), 5, W0=torch.zeros(2, 2)),
        lambda: check_heads(PAIR, SAME[:1], RUN),
        lambda: check_heads(PAIR, PAIR.u, RUN),
    ],
    TiedTokensError=[
        lambda: train_heads(PAIR, 0 * SAME, NGD(0.1), 5),
    ],
    RangeError=[
        lambda: train_heads(PAIR, SAME, Polyak(), 5),
        lambda: train_heads(PAIR, SAME, NGD(0.1, momentum=0.5), 5),
        lambda: column(NONE, "x"),
        lambda: interpolating_decoder(PAIR, [2]),
    ],
    DtypeError=[
        lambda: train_heads(PAIR, SAME, 0.1, 5),
        lambda: train_heads("data", SAME, NGD(0.1), 5),
        lambda: check_heads(PAIR, SAME, None),
        lambda: column(NONE, "margin", random="no"),
        lambda: plot_head_runs({}, {}),
    ],
    InfeasibleError=[
        lambda: interpolating_decoder(REPEATED, [0]),
    ],
)


@pytest.fixture(scope="module")
def tiny():
    pytest.importorskip("transformers")
    return heads.run(model="tiny", sentences=5, random=3)


def test_a_saved_table_comes_back(tiny, tmp_path):
    tiny.save(tmp_path / "heads.json")
    back = experiments.load("heads", tmp_path)
    assert repr(back) == repr(tiny) and back.settings == tiny.settings
    for random in (False, True):
        for key in ("margin", "cosine_span", "attention"):
            assert np.allclose(column(back, key, random), column(tiny, key, random), atol=1e-6)
    # an untrained bert has four heads of two layers
    assert [(row["layer"], row["head"]) for row in tiny.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["head"] for row in tiny.random] == [-1] * 6
    assert column(tiny, "margin").min() > 0 and column(tiny, "margin").max() < 1
    assert (column(tiny, "cosine_span") >= column(tiny, "cosine")).all()


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
    for rows, random, holds in ((high, low, True), (low, high, False)):
        claims = ExperimentResult(heads.FORM, {"rows": rows, "random": random}, {}).claims
        assert {check.holds for check in claims} == {holds}


def test_sentences_from_a_file_or_a_list(tiny, tmp_path):
    texts = ["A man plays the guitar.", "Two dogs run."]
    path = tmp_path / "mine.txt"
    path.write_text("\n".join([texts[0], "", "  " + texts[1] + " "]))
    results = [heads.run(model="tiny", sentences=given, random=1) for given in (texts, path)]
    assert results[0].rows == results[1].rows and results[0].settings["sentences"] == 2
    assert results[0].rows != tiny.rows


test_bad_settings_are_refused = refused_settings(
    heads.run,
    ("sentences", 0, RangeError),
    ("sentences", 1000, RangeError),
    ("sentences", [], RangeError),
    ("sentences", [1, 2], DtypeError),
    ("sentences", 2.5, DtypeError),
    ("random", 0, RangeError),
    ("seed", -1, RangeError),
    ("progress", 1, DtypeError),
    ("query", 50, RangeError),
    model="tiny",
    random=1,
    sentences=3,
)


def test_missing_places_are_named():
    for place in ({"sentences": "no such file"}, {"out": "/no/such/folder"}):
        with pytest.raises(MissingFileError, match="no such file|folder"):
            heads.run(**{"model": "tiny", "sentences": 3, "random": 1} | place)


def test_the_figure_has_a_cell_a_head_and_marks_those_outside_the_band(tiny):
    fig = plot_head_table(tiny)
    for axis, name in zip(fig.axes, ("attention", "cosine_span", "margin"), strict=False):
        (image,) = axis.images
        values = column(tiny, name)
        assert image.get_array().tolist() == values.reshape(2, 2).tolist()
        if name == "attention":
            assert not axis.lines  # a random head's is a matter of its size
            continue
        low, high = np.quantile(column(tiny, name, random=True), [0.1, 0.9])
        above, below = (sorted(line.get_ydata() * 2 + line.get_xdata()) for line in axis.lines)
        assert above == np.flatnonzero(values > high).tolist()
        assert below == np.flatnonzero(values < low).tolist()
    with pytest.raises(DtypeError, match="heads"):
        plot_head_table(tiny.rows)


def test_a_run_that_was_stopped_goes_on(tiny, tmp_path, monkeypatch):
    calls, own = [], heads.describe

    def stopping(head):
        calls.append(head)
        if len(calls) > 6:  # in the second layer
            raise KeyboardInterrupt
        return own(head)

    monkeypatch.setattr(heads, "describe", stopping)
    settings = dict(model="tiny", sentences=5, random=3, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        heads.run(**settings)
    assert [path.name for path in tmp_path.iterdir()] == ["heads.partial.json"]
    calls[:] = [None]
    result = heads.run(**settings)  # two heads and three random ones are left
    assert len(calls) == 6 and result.rows == tiny.rows and result.random == tiny.random
    assert [path.name for path in tmp_path.iterdir()] == ["heads.json"]
    before = (tmp_path / "heads.json").read_bytes()
    monkeypatch.setattr(heads, "describe", lambda head: pytest.fail("it is finished"))
    again = heads.run(**settings)
    assert_frame_equal(again.to_dataframe(), result.to_dataframe(), rtol=0, atol=SIX_DECIMALS)
    assert (tmp_path / "heads.json").read_bytes() == before


def made_heads(seed: int, count: int = 2) -> list:
    """Heads of random queries and keys, one a layer."""
    generator = torch.Generator().manual_seed(seed)
    drawn = (torch.randn(2, 4, 5, 8, generator=generator) for _ in range(count))
    return [replace(head_from_qk(q, k), layer=i, head=0) for i, (q, k) in enumerate(drawn)]


def renamed(found: list) -> list:
    return [replace(found[0], tokens=[list("abcde")] * 4), *found[1:]]


OTHERS = {
    "other weights": (lambda: made_heads(2), {}),
    "another order": (lambda: made_heads(1)[::-1], {}),
    "fewer": (lambda: made_heads(1)[:1], {}),
    "other lengths": (lambda: [replace(h, lengths=h.lengths - 1) for h in made_heads(1)], {}),
    "named tokens": (lambda: renamed(made_heads(1)), {}),
    "another seed": (lambda: made_heads(1), {"seed": 1}),
    "more random heads": (lambda: made_heads(1), {"random": 3}),
    "another model": (lambda: made_heads(1), {"about": {"model": "other"}}),
}


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("other", OTHERS)
def test_the_work_on_other_heads_is_refused_and_stays(other, finished, tmp_path, monkeypatch):
    """A killed run whose model had changed gave a table of rows of two models."""
    if not finished:
        write = heads.write_json

        def killed(*given):
            write(*given)
            raise KeyboardInterrupt

        monkeypatch.setattr(heads, "write_json", killed)
    with nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        heads.measure(made_heads(1), {"model": "mine"}, random=2, out=tmp_path)
    monkeypatch.undo()
    (kept,) = tmp_path.iterdir()
    before, (found, options) = kept.read_bytes(), OTHERS[other]
    options = {"about": {"model": "mine"}, "random": 2} | options
    with pytest.raises(FileFormatError, match="Name another folder"):
        heads.measure(found(), **options, out=tmp_path)
    assert [*tmp_path.iterdir()] == [kept] and kept.read_bytes() == before
    whole = heads.measure(made_heads(1), {"model": "mine"}, random=2, out=tmp_path).to_dataframe()
    alone = heads.measure(made_heads(1), {"model": "mine"}, random=2).to_dataframe()
    assert_frame_equal(whole, alone, rtol=0, atol=SIX_DECIMALS)


def test_one_process_at_a_time_works_in_a_folder(tmp_path, monkeypatch):
    def second(*_):
        with pytest.raises(FileAccessError, match="another process works at"):
            heads.measure(made_heads(1), out=tmp_path)
        raise KeyboardInterrupt

    monkeypatch.setattr(heads, "describe", second)
    with pytest.raises(KeyboardInterrupt):
        heads.measure(made_heads(1), out=tmp_path)
    assert not [*tmp_path.iterdir()]


def test_the_table_of_recorded_heads_is_that_of_the_command(tiny):
    texts = heads._sentences(5)
    model, tokenizer = load_model("tiny")
    table = record_heads(model, texts, tokenizer=tokenizer).compare()
    assert table.equals(tiny.to_dataframe())


def test_every_query_has_its_rows(tiny):
    several = heads.run(model="tiny", sentences=5, random=1, query="all")
    first = [row for row in several.rows if row["query"] == 0]
    assert first == list(tiny.rows) and several.settings["query"] == "all"
    assert len(several.rows) % 4 == 0 and len(several.rows) > 20
