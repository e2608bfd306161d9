"""Where a run ended: selected tokens, in words, and its direction beside any hard-margin SVM."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import (
    ENGINES,
    FEW,
    KINDS,
    make_locked,
    problems,
    random_data,
    random_start,
    seeds,
    start_decoder,
)
from own_rules import Sign
from tolerances import FORMS

from attnbias import (
    GD,
    NGD,
    Dataset,
    Polyak,
    Trace,
    make_example1,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
    train,
)
from attnbias._records import read_npz, write_npz
from attnbias.dynamics import metrics
from attnbias.dynamics import trace as trace_module
from attnbias.dynamics.trace import alignment_error
from attnbias.errors import (
    DtypeError,
    FileFormatError,
    InfeasibleError,
    RangeError,
    ShapeError,
)
from attnbias.geometry.tokens import gap_rows, gaps_of, logits_of, selected_tokens


def gaussian(seed: int) -> Dataset:
    """30 ragged sequences of Gaussian tokens: in about one of four such sets a run locks."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 10, (30,), generator=generator)
    X = torch.randn(30, 9, 64, generator=generator, dtype=torch.float64)
    u = torch.randn(64, generator=generator, dtype=torch.float64)
    return Dataset(X, 1.0 - 2.0 * (torch.arange(30) % 2), u, lengths=lengths, name="Gaussian")


LOCKED, START = make_locked()


def run_of(data, form=("auto", "auto"), joint=False, **options) -> Trace:
    options = {"record": [0, 3, 40]} | options
    if joint:
        options |= {"u0": start_decoder(data, 0.3), "train_u": True}
    return train(data, NGD(0.3), 40, engine=form[0], coordinates=form[1], **options)


@pytest.mark.parametrize("record", [[0], [0, 40]], ids=str)
@pytest.mark.parametrize("form, joint", KINDS)
def test_selected_tokens_are_those_of_the_last_iterate(form, joint, record):
    """Also where the last iterate is not recorded, and for tokens other than the optimal ones."""
    others = 0
    for seed in range(4):
        data = random_data(4, 5, 6, seed=seed, lengths=[5, 2, 3, 4])
        trace = run_of(data, form, joint, W0=random_start(data, 3.0, seed), record=record)
        logits = (data.X @ trace.W @ data.queries[:, :, None]).squeeze(2)
        logits = logits.masked_fill(~data.mask, -torch.inf)
        assert trace.selected.dtype == torch.long
        assert torch.equal(trace.selected, logits.argmax(dim=1))
        assert torch.equal(trace.selected, selected_tokens(data, trace.W))
        assert torch.equal(trace.opt, optimal_tokens(data))
        away = logits - logits.gather(1, trace.opt[:, None])
        torch.testing.assert_close(trace.last_logits, away, rtol=FORMS, atol=FORMS)
        others += int((trace.selected != trace.opt).sum())
    assert others > 0


@FEW
@given(seeds, st.lists(st.integers(2, 5), min_size=1, max_size=4))
def test_gaps_of_any_selection_come_from_those_of_another(seed, lengths):
    data = random_data(len(lengths), 5, 4, seed=seed, lengths=lengths)
    W, draw = random_start(data, 1.0, seed), torch.Generator().manual_seed(seed)
    one, two = ((torch.rand(data.n, generator=draw) * data.lengths).long() for _ in range(2))
    logits = logits_of(gap_rows(data, one).gaps(W), one, data.mask)
    expected = gap_rows(data, two).gaps(W)
    torch.testing.assert_close(gaps_of(logits, two, data.mask), expected, rtol=0, atol=FORMS)


def test_a_run_that_locks_on_a_wrong_token_says_so_and_where_it_went():
    """NGD stays away from W_mm for ever, and arrives at the SVM of the tokens selected."""
    data = gaussian(1)
    trace = train(data, NGD(0.1), 10_000)
    left = (trace.selected != optimal_tokens(data)).nonzero().flatten().tolist()
    assert 1 <= len(left) <= 3 and trace.W_alignment_error[-1] > 1e-2
    found = re.fullmatch(
        r"(\d+) of 30 sequences end on their optimal token \(not: (.*)\); "
        r"1 - cosine with the SVM of the selected tokens (\S+)",
        trace.ending,
    )
    assert int(found[1]) == 30 - len(left) and found[2] == ", ".join(map(str, left))
    exact = alignment_error(trace.W[None], solve_w_svm(data, trace.selected).weights)[0]
    assert float(found[3]) == pytest.approx(exact, rel=0.05)  # printed with two digits
    assert exact < 1e-5
    assert repr(trace).endswith(f", {trace.ending})") and trace.ending in trace._repr_html_()


def test_only_what_is_needed_is_said():
    trace = train(make_separation_pair(), NGD(0.5), 100, record=[0, 100])
    assert trace.ending == "every sequence ends on its optimal token"
    start = train(make_separation_pair(), NGD(0.5), 0)
    assert start.ending == "all logits are equal, so that no token is selected"
    assert start.selected.tolist() == [0] and "nan" not in repr(start)
    assert (
        "<li>" in start._repr_html_()
        and "&lt;b&gt;" in Trace(np.zeros(0, int), torch.zeros(0, 0), status="<b>")._repr_html_()
    )


def test_many_wrong_tokens_are_cut_short():
    data = random_data(10, 3, 40, seed=0)
    wrong = (optimal_tokens(data) + 1) % 3
    trace = train(data, NGD(1e-3), 1, W0=1e3 * solve_w_svm(data, wrong).weights)
    assert trace.ending.startswith("0 of 10 sequences") and "(not: 0, 1, 2, 3, 4, 5, ...)" in (
        trace.ending
    )


def test_an_svm_of_selected_tokens_that_cannot_be_had_is_named(monkeypatch):
    data = Dataset(LOCKED.X[:, [0, 1, 2, 2]], LOCKED.y, LOCKED.u)
    trace = train(data, GD(1e-3), 10, W0=START)
    assert trace.selected.tolist() == [2]  # the first of two that tie
    assert trace.ending.endswith("; the SVM of the selected tokens has no solution")
    monkeypatch.setattr(trace_module, "AT_ONCE", 1)
    trace = train(LOCKED, GD(1e-3), 10, W0=START)
    assert trace.ending.endswith(
        "; solve_w_svm(data, trace.selected) is the SVM of the selected tokens"
    )


def test_infeasible_data_have_selected_tokens():
    data = Dataset([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]], [1, -1], u=[1.0, 0.0])
    W0 = torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()
    with pytest.raises(InfeasibleError, match="svm=False") as caught:
        train(data, NGD(0.1), 50, W0=W0)
    assert float(caught.value.certificate.sum()) == pytest.approx(1)
    trace = train(data, NGD(0.1), 50, W0=W0, svm=False)
    assert torch.equal(trace.selected, selected_tokens(data, trace.W))
    assert trace.ending.startswith("1 of 2 sequences end on their optimal token (not: 1)")


@pytest.mark.parametrize("joint", [False, True], ids=["fixed", "joint"])
def test_what_is_said_survives_a_file_and_files_from_before_load(tmp_path, joint):
    options = {"u0": LOCKED.u, "train_u": True} if joint else {}
    trace = train(LOCKED, GD(1e-3), 20, W0=START, **options)
    path = trace.save(tmp_path / "run.npz")
    again = Trace.load(path)
    assert "selected tokens" in again.ending and repr(again) == repr(trace)
    assert torch.equal(again.selected, trace.selected) and torch.equal(again.opt, trace.opt)
    svm = solve_w_svm(LOCKED, trace.selected)
    assert again.alignment_with(svm).tolist() == trace.alignment_with(svm).tolist()
    assert dataclasses.replace(trace, status="x").ending == trace.ending.split(";")[0]
    arrays, header = read_npz(path, kind="trace")
    new = ("opt", "last_logits")
    names = [name for name in header["arrays"] if name not in new]
    old = {key: value for key, value in header.items() if key != "ending"} | {"arrays": names}
    write_npz(path, {name: arrays[name] for name in arrays if name not in new}, old)
    before = Trace.load(path)
    assert before.ending == "" and before.opt is None and "optimal" not in repr(before)
    with pytest.raises(AttributeError, match=r"selected_tokens\(data, W\)"):
        _ = before.selected
    with pytest.raises(ShapeError, match="Run the training again"):
        before.alignment_with(svm)
    outside = {"opt": arrays["opt"] + 7}, {"opt": arrays["opt"] - 7}
    for broken in (*outside, {"opt": arrays["opt"] * 1.0}, {"last_logits": None}):
        kept = {k: v for k, v in (arrays | broken).items() if v is not None}
        write_npz(path, kept, header | {"arrays": sorted(kept)})
        with pytest.raises(FileFormatError, match="opt"):
            Trace.load(path)
    write_npz(path, arrays, header | {"ending": 5})
    with pytest.raises(FileFormatError, match="ending"):
        Trace.load(path)


# ---- alignment with any SVM -------------------------------------------------------------------


@FEW
@given(problems())
def test_alignment_from_the_gaps_is_that_of_the_run(instance):
    """From W_0 in or out of the span, with momentum and Polyak steps, in every coordinates."""
    data, start, rule, loss = instance
    options = {"W0": start, "loss": loss, "record": [0, 5, 60]}
    for form in ("span", "dense"):
        trace = train(data, rule, 60, coordinates=form, **options)
        found, told = trace.alignment_with(solve_w_svm(data)), trace.W_alignment_error
        # both are squares of parts across W_mm, whose rounding is 1e-13 of W at the most
        np.testing.assert_allclose(found[1:], told[1:], rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("joint", [False, True], ids=["fixed", "joint"])
@pytest.mark.parametrize("form", ENGINES[::2])
def test_alignment_with_any_selection_is_that_of_W(form, joint):
    """Beside runs of 3 and 40 steps, whose last W is there; the rows are dependent here."""
    data = random_data(3, 5, 3, seed=1, lengths=[5, 2, 3])
    W0 = random_start(data, 0.5, 1)
    trace = run_of(data, form, joint, W0=W0, svm=False)
    for opt in ([0, 0, 0], trace.selected, [0, 1, 2]):
        svm = solve_w_svm(data, opt) if _separable(data, opt) else None
        if svm is None:
            continue
        found = trace.alignment_with(svm)
        last = alignment_error(trace.W[None], svm.weights)[0]
        assert found[-1] == pytest.approx(last, rel=FORMS)
        assert found[0] == pytest.approx(alignment_error(W0[None], svm.weights)[0], rel=FORMS)


def _separable(data, opt) -> bool:
    try:
        return bool(solve_w_svm(data, opt).margin)
    except ValueError:
        return False


def test_a_rule_that_leaves_the_span_is_measured_as_well():
    """Sign descent."""
    data = random_data(2, 3, 8, seed=3)
    trace, svm = train(data, Sign(), 50, record=[0, 10, 50]), solve_w_svm(data)
    assert trace.alignment_with(svm)[1:] == pytest.approx(trace.W_alignment_error[1:], rel=FORMS)
    assert trace.W_alignment_error[-1] > 0.01


def test_other_directions_are_refused_with_the_way_on():
    data, other = (random_data(3, 4, 20, seed=seed) for seed in (0, 1))
    trace = run_of(data)
    svm = solve_w_svm(other)
    with pytest.raises(RangeError, match="do not give the norms") as caught:
        trace.alignment_with(svm)
    assert caught.value.remedy.endswith("dynamics.trace.alignment_error(trace.W[None], svm.W)")
    assert alignment_error(trace.W[None], svm.W).shape == (1,)
    with pytest.raises(ShapeError, match="3 sequences of the lengths"):
        trace.alignment_with(solve_w_svm(random_data(2, 4, 20, seed=0)))
    with pytest.raises(ShapeError, match=r"Pass an SVMSolution.*alignment_error\(trace.W\[None\]"):
        trace.alignment_with(torch.eye(20))
    with pytest.raises(DtypeError, match="solve_w_svm"):
        trace.alignment_with(solve_u_svm(random_data(9, 4, 20, seed=0)))


# ---- why a run diverged -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_uncapped_polyak_on_a_lock_names_the_cap_and_a_cap_cures_it(engine):
    trace = train(LOCKED, Polyak(), 500, W0=START, engine=engine)
    assert trace.status == "diverged" and "Polyak(max_step=...)" in trace.meta["diverged"]
    assert trace.meta["diverged"] in repr(trace) and "the SVM of" not in repr(trace)
    capped = train(LOCKED, Polyak(max_step=1.0), 500, W0=START, engine=engine)
    assert capped.status == "completed" and "diverged" not in capped.meta


def test_other_long_steps_ask_for_a_smaller_one():
    trace = train(make_separation_pair(), GD(1e200), 50)
    assert trace.status == "diverged" and "smaller step size" in repr(trace)


def test_a_tie_with_the_optimal_token_is_no_end_on_it():
    logits = torch.tensor([[0.0, 0.0, -1.0], [0.0, -1.0, -torch.inf], [0.0, 2.0, 1.0]])
    assert metrics.missed(logits, torch.tensor([0, 0, 0])).tolist() == [0, 2]


def test_a_run_that_stands_still_says_since_when():
    rng = np.random.default_rng(0)
    X, y, u = rng.normal(size=(10, 5, 64)), [1, -1] * 5, rng.normal(size=64)
    data = Dataset(X, y, u=u)
    start = 300 * np.outer(X[0, 1] - X[0, 0], X[0, 0])  # wrong tokens hold the softmax
    for rule, more in ((GD(0.1), {}), (Polyak(max_step=0.01), {"W0": start}), (GD(1.0), {})):
        for engine in ("compiled", "torch"):
            trace = train(data, rule, 1000, svm=False, engine=engine, **more)
            assert "W stands still: it has moved by" in repr(trace)
            assert f"since step {0 if more else 1}, at step size" in trace.ending
    moving = [(NGD(0.1), data), (NGD(0.1, momentum=0.9), data), (GD(1e-4), data)]
    for rule, each in [*moving, (GD(0.1), make_example1(seed=0))]:
        assert "still" not in train(each, rule, 1000, svm=False).ending
    assert "still" not in train(data, GD(0.1), 0, svm=False).ending
