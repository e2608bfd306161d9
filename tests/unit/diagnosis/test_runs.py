"""Where runs end and when they are at the target: closed forms, longer runs, and the trap."""

import math

import numpy as np
import pytest
import torch
from orthonormal import orthonormal_pair
from tolerances import ASYMPTOTIC, CLOSED_FORM

from attnbias import GD, NGD, Dataset, Polyak, diagnose, make_dm, make_example1, solve_w_svm, train
from attnbias.data import make_two_sample_trap
from attnbias.diagnosis import runs as module
from attnbias.diagnosis.runs import affordable, random_start
from attnbias.dynamics import arguments
from attnbias.dynamics.problem import small_start
from attnbias.dynamics.trace import Trace
from attnbias.dynamics.train import train_from
from attnbias.errors import DtypeError, RangeError
from attnbias.geometry import tokens


def two_pairs() -> Dataset:
    """Of orthonormal tokens with score gaps 1 and 2: the offset settles at (1 - log 2)/2."""
    X = torch.eye(4, dtype=torch.float64).reshape(2, 2, 4)
    return Dataset(X, [1, -1], u=[1.0, 0, 0, -2])


def first_at(data: Dataset, target: float, steps: int, start=None) -> int:
    """The first iteration at the target, of a run that records them all."""
    svm = solve_w_svm(data)
    trace = train(data, NGD(0.1), steps, svm=svm, W0=start, record=range(steps + 1))
    return int(np.flatnonzero(trace.W_alignment_error <= target)[0])


def test_iterations_are_those_of_a_run():
    data = make_example1(n=6, T=4, d=60, sigma=60**-0.5)
    forecast = diagnose(data, target=0.01).forecast
    assert forecast["how"] == "counted" and forecast["runs"][0]["off"] == []
    # of 100 records of 2000 iterations each is at most 2000^(1/99) - 1 = 8% after the one before
    assert 1 <= forecast["iterations"] / first_at(data, 0.01, 200) < 1.08


def test_it_goes_on_from_a_short_run_by_the_settled_offset():
    """At (1 - log 2)/2 / (0.1 sqrt(2 target)), ten thousand iterations, from a run of a hundred."""
    found = diagnose(two_pairs(), target=1e-8, steps=100).forecast
    expected = (1 - math.log(2)) / 2 / 0.1 / math.sqrt(2e-8)
    assert found["how"] == "extrapolated" and found["runs"][0]["steps"] == 100
    assert abs(found["iterations"] / expected - 1) < ASYMPTOTIC


def test_what_a_start_has_beside_the_rows_counts():
    data = make_dm(n=6, T=2, d=30, sigma=30**-0.5)
    data = Dataset(data.X, data.y, (data.y[:, None] * data.X[torch.arange(6), data.opt]).sum(0))
    found = diagnose(data, target=1e-3, steps=300, starts=2).forecast["runs"]
    assert [run["seed"] for run in found] == [None, 0, 1]
    rows = solve_w_svm(data).rows
    for run in found[1:]:
        start = random_start(data, rows, run["seed"])
        assert float(rows.gaps(start).square().mean()) == pytest.approx(1, rel=CLOSED_FORM)
        taken = first_at(data, 1e-3, 20_000, start)
        # without the start's part the settled offset alone would be off by a factor of four
        assert not run["measured"] and abs(run["iterations"] / taken - 1) < 0.02
        assert taken > 4 * found[0]["iterations"]


def test_equal_scores_alone_promise_no_arrival():
    """The trap: Assumption 2 holds, and from zero NGD locks the second sequence's wrong token."""
    report = diagnose(make_two_sample_trap())
    run = report.forecast["runs"][0]
    assert report.hypotheses["assumption2"].holds and not report.hypotheses["assumption1"].holds
    assert run["off"] and run["ended"] and run["selected_error"] < 1e-3 < run["error"]
    assert math.isnan(report.forecast["iterations"]) and report.forecast["how"] == "none"
    assert math.isfinite(report.forecast["estimate"])  # which the dual variables gave all the same


def test_the_end_is_the_svm_of_the_tokens_that_the_last_iterate_selects():
    data = make_two_sample_trap()
    trace = train(data, NGD(0.1), 2000)
    logits = torch.einsum("ntd,nd->nt", data.X, data.X[:, 0] @ trace.W.T)
    selected = logits.argmax(dim=1)
    other = solve_w_svm(data, selected)
    cosine = float((trace.W * other.weights).sum() / trace.W.norm()) / other.norm
    run = diagnose(data).forecast["runs"][0]
    assert run["off"] == (selected != solve_w_svm(data).rows.opt).nonzero().flatten().tolist()
    assert run["selected_error"] == pytest.approx(1 - cosine, rel=1e-6)


def test_the_budget():
    data = make_example1(n=4, T=3, d=30)
    none = diagnose(data, steps=0).forecast
    assert none["runs"] == [] and none["how"] == "dual" and none["iterations"] == none["estimate"]
    assert len(diagnose(data, starts=0).forecast["runs"]) == 1
    assert len(diagnose(orthonormal_pair()).forecast["runs"]) == 1  # promised: zero alone is run
    assert affordable(20, 180, 100, 2000, 4) == 2000
    assert 0 < affordable(200, 3800, 5000, 2000) < 200
    assert affordable(200, 3800, 5000, 2000, 4) < module.LEAST


def test_no_large_matrix_is_drawn(monkeypatch):
    data = make_example1(n=4, T=3, d=30)
    monkeypatch.setattr(tokens, "WIDE", 29)
    assert len(diagnose(data).forecast["runs"]) == 1


@pytest.mark.parametrize("coordinates", ["span", "dense"])
def test_runs_that_share_an_engine_are_those_of_train(coordinates, monkeypatch):
    """Another start, and another length, begins anew; of what was before nothing is left."""
    monkeypatch.setattr(arguments, "choose_coordinates", lambda *_: coordinates)
    data, rule = make_example1(n=4, T=3, d=20), NGD(0.1)
    svm = solve_w_svm(data)
    starts = [
        (small_start(20, 3.0 * k + 1, k), steps) for k, steps in enumerate((300, 300, 200, 200))
    ]
    traces = train_from(iter(starts), data, rule, svm)
    for trace, (W0, steps) in zip(traces, starts, strict=True):
        alone = train(data, rule, steps, svm=svm, W0=W0, record=100)
        for name in ("W_alignment_error", "gaps", "path_length", "log_loss_gap"):
            assert np.array_equal(getattr(trace, name), getattr(alone, name)), name
        assert trace.W.equal(alone.W)
        assert (trace.meta["steps"], trace.meta["coordinates"]) == (steps, coordinates)


def test_a_start_without_a_direction(monkeypatch):
    empty = Trace(np.array([], dtype=int), torch.zeros(4, 4), status="zero gradient")
    monkeypatch.setattr(module, "train_from", lambda starts, *_: [empty for _ in starts])
    report = diagnose(two_pairs())
    assert "another step size" in report.next[0]
    assert report.forecast["how"] == "none" and "the run ends there: zero gradient" in str(report)


def test_rules_asked_for_have_a_line_each():
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(10, 5, 64)), [1, -1] * 5, u=rng.normal(size=64))
    rules = [GD(0.1), Polyak(), NGD(0.5, momentum=0.5)]
    report = diagnose(data, rule=rules, steps=300, starts=0)
    found = report.to_dict()["ngd_forecast"]["rules"]
    assert [run["rule"] for run in found] == [rule.name for rule in rules]
    assert "W stands still" in found[0]["ending"] and "still" not in found[1]["ending"]
    assert all(f"\n  {rule.name}" in str(report) for rule in rules)
    assert len(diagnose(data, rule=GD(0.1), steps=50, starts=0).forecast["rules"]) == 1
    lost = diagnose(data, rule=GD(1e300), steps=50, starts=0).forecast["rules"][0]
    assert lost["status"] == "diverged" and "too long for floats" in lost["ending"]
    for bad in ("GD(0.1)", [GD], 3, [GD(0.1), None]):
        with pytest.raises(DtypeError, match="rule: expected"):
            diagnose(data, rule=bad)
    with pytest.raises(RangeError, match="joint training"):
        diagnose(data, rule=NGD(0.1, decay=(0.5, 0.5)))
