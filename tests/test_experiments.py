"""The registry, the results' files, and claims that can fail."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from attnbias import NGD, experiments, make_example1
from attnbias._files import read_npz, write_npz
from attnbias.dynamics.problem import small_start
from attnbias.errors import (
    AttnBiasError,
    DeviceError,
    DtypeError,
    FileFormatError,
    MissingFileError,
    RangeError,
)
from attnbias.experiments import ExperimentResult, attention_snapshots, fig2, fig9
from attnbias.experiments.claims import ahead_from, cap_step, lead
from attnbias.experiments.runs import seed_list
from tests.tolerances import CLOSED_FORM

SMALL = {
    "fig2": {"n": 4, "T": 3, "d": 20},
    "fig3": {"n": 4, "d": 40},
    "fig9": {"n": 6, "T": 3, "patch": 7},
}


@pytest.fixture(scope="module")
def result2() -> ExperimentResult:
    return experiments.run("fig2", seeds=2)


@pytest.fixture(scope="module")
def result9() -> ExperimentResult:
    return experiments.run("fig9", seeds=2)


def verdicts(table, start: str) -> set[str]:
    chosen = {check.verdict for check in table if check.statement.startswith(start)}
    assert chosen, f"no claim starts with {start!r}"
    return chosen


def test_the_registry_lists_and_describes():
    figures = [f"fig{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10)]
    assert experiments.list() == [*figures, "exponents", "heads", "ranks"]
    for name in figures:
        assert experiments.describe(name).startswith("Figure " + name[3:])


@pytest.mark.parametrize(
    ("name", "settings", "error", "fault"),
    [
        ("fig5", {}, RangeError, "name"),
        ("fig2", {"sead": 3}, RangeError, "sead"),
        ("fig2", {"seeds": 0}, RangeError, "seeds"),
        ("fig2", {"seeds": []}, DtypeError, "seeds"),
        ("fig2", {"seeds": "three"}, DtypeError, "seeds"),
        ("fig2", {"seeds": [0, -1]}, RangeError, "seeds"),
        ("fig2", {"seeds": [0, 1.5]}, DtypeError, "seeds"),
        ("fig2", {"steps": 999}, RangeError, "steps"),
        ("fig9", {"steps": True}, DtypeError, "steps"),
        ("fig2", {"start_norm": -1.0}, RangeError, "start_norm"),
        ("fig2", {"d": 3}, RangeError, "d"),
        ("fig2", {"gd_step_size": 0.0}, RangeError, "step_size"),
        ("fig9", {"patch": 5}, RangeError, "patch"),
        ("fig9", {"ngd_step_size": "fast"}, DtypeError, "step_size"),
        ("fig2", {"seeds": 10**6 + 1}, RangeError, "seeds"),
        ("fig2", {"seeds": itertools.count()}, RangeError, "number of seeds"),
        ("fig2", {"loss": "hinge"}, RangeError, "loss"),
        ("fig2", {"record": [10, 100, 1000]}, RangeError, "record"),
        ("fig2", {"record": range(1000, 10_001, 100)}, RangeError, "record"),
        ("fig2", {"progress": "yes"}, DtypeError, "progress"),
        ("fig9", {"progress": "yes"}, DtypeError, "progress"),
        ("fig9", {"record": [10_001]}, RangeError, "record"),
        ("fig9", {"record": 5}, RangeError, "record"),
        ("fig9", {"device": "abacus"}, DeviceError, "device"),
    ],
)
def test_bad_settings_are_named(name, settings, error, fault):
    with pytest.raises(error) as caught:
        experiments.run(name, **settings)
    assert caught.value.what == fault
    assert caught.value.remedy


def test_an_unknown_experiment_is_not_described():
    with pytest.raises(RangeError):
        experiments.describe("fig5")


@pytest.mark.parametrize("name", ["fig2", "fig3", "fig8", "fig9"])
@pytest.mark.parametrize(
    "settings", [{"device": "abacus"}, {"record": 0.5}, {"progress": None}, {"seeds": []}]
)
def test_bad_settings_are_refused_before_any_work(name, settings, monkeypatch):
    def worked(*args, **kwargs):
        raise AssertionError("work was done first")

    monkeypatch.setattr(getattr(experiments, name), "instance", worked)
    with pytest.raises(AttnBiasError):
        experiments.run(name, **settings)


@pytest.mark.parametrize("seeds", [3, np.int64(3), (0, 1, 2), iter([0, 1, 2])])
def test_seeds_are_how_many_or_which(seeds):
    assert seed_list(seeds) == (0, 1, 2)


@pytest.mark.parametrize("settings", [{"gd_step_size": 1e200}, {"start_norm": 1e6}])
def test_a_run_that_stops_early_is_refused_by_name(settings):
    with pytest.raises(RangeError, match="diverged"):
        experiments.run("fig2", seeds=1, steps=1000, **SMALL["fig2"], **settings)


def test_numbers_of_any_kind_are_settings(tmp_path):
    settings = {"momentum": Fraction(9, 10), "max_step": np.float32(2.0), "seeds": np.int64(1)}
    result = experiments.run("fig2", steps=1000, **SMALL["fig2"], **settings)
    plain = experiments.run("fig2", seeds=1, steps=1000, momentum=0.9, max_step=2, **SMALL["fig2"])
    assert repr(result.claims) == repr(plain.claims)
    assert type(result.settings["momentum"]) is float
    assert ExperimentResult.load(result.save(tmp_path / "kinds.npz")).settings == result.settings


@pytest.mark.filterwarnings("error")
def test_a_start_at_zero_has_no_direction_and_still_has_claims():
    result = experiments.run("fig2", seeds=2, steps=1000, start_norm=0, **SMALL["fig2"])
    assert np.isnan(result.traces["NGD"][0].W_alignment_error[0])
    assert all(np.isfinite(check.value) for check in result.claims)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_has_what_it_promises(name):
    result = experiments.run(name, seeds=[3, 1], steps=1000, **SMALL[name])
    assert set(getattr(experiments, name).rules()) <= set(result.traces)
    assert result.seeds == (3, 1)
    for traces in result.traces.values():
        assert len(traces) == 2
        assert {10, 100, 1000} <= set(traces[0].step.tolist())
        assert traces[0].W_norm[-1] != traces[1].W_norm[-1], "the seeds gave one run twice"
    assert all(len(values) == 2 for values in result.measures.values())
    assert result.provenance["commit"] is None or isinstance(result.provenance["commit"], str)
    assert "2 seeds, 1000 steps" in repr(result)


def test_the_same_seed_gives_the_same_run():
    settings = {"seeds": [7], "steps": 1000, **SMALL["fig2"]}
    first, second = (experiments.run("fig2", **settings) for _ in range(2))
    for label, traces in first.traces.items():
        assert np.array_equal(traces[0].W_norm, second.traces[label][0].W_norm)


def test_the_start_is_small_and_not_tied_to_the_data():
    data, W0 = fig2.instance(seed=5, d=64)
    assert float(W0.norm()) == pytest.approx(0.1, rel=CLOSED_FORM)
    # the data's own stream would give W_0 the direction of the first draws of that stream
    stream = torch.Generator().manual_seed(5)
    same = torch.randn(64, 64, generator=stream, dtype=torch.float64).flatten()
    assert abs(float(same @ W0.flatten() / (same.norm() * W0.norm()))) < 0.1
    assert not torch.equal(small_start(8, 1.0, 0), small_start(8, 1.0, 1))
    assert data.meta["seed"] == 5


def test_progress_is_silent_by_default(capfd):
    experiments.run("fig2", seeds=1, steps=1000, **SMALL["fig2"])
    assert capfd.readouterr().err == ""
    experiments.run("fig2", seeds=1, steps=1000, progress=True, **SMALL["fig2"])
    assert "5/5" in capfd.readouterr().err


# What Fig. 2's text says


def test_figure2_claims_that_hold(result2):
    table = result2.claims
    for start in (
        "the train loss does not go to 0",
        "NGD's loss goes to L*",
        "NGD is significantly faster than GD",
        "NGD's 1 - cosine is no slower",
        "later it tends to our rate",
        "NGD's softmax saturates exponentially",
        "its rate an iteration",
        "Lemma 1's explicit rate",
        "momentum boosts NGD",
        "the boost is that of a 10 times longer step",
        "uncapped Polyak steps lead",
        "until its cap binds",
        "from there capped Polyak is GD",
        "and slows down",
    ):
        assert verdicts(table, start) == {"holds"}, start


def test_figure2_claims_that_our_runs_contradict(result2):
    for start in ("its decay is closely predicted", "capped Polyak steps end ahead of uncapped"):
        assert verdicts(result2.claims, start) == {"fails"}, start
    assert verdicts(result2.claims, "Theorem 1's hypothesis") == {"fails"}


def test_every_figure2_claim_says_where_it_comes_from(result2):
    assert len(result2.claims) == 24
    for check in result2.claims:
        assert check.source or check.provenance == "d"
        assert np.isfinite(check.value)
    assert len({check.statement for check in result2.claims}) == 24


def changed(result, **traces):
    names = {"gd": "GD", "ngd": "NGD", "momentum": "NGD with momentum", "capped": "Polyak, capped",
             "free": "Polyak, uncapped"}  # fmt: skip
    new = result.traces | {names[key]: runs for key, runs in traces.items()}
    return fig2.claims(new, result.settings, result.measures)


def test_swapped_rules_break_the_claims(result2):
    runs = result2.traces
    swapped = changed(result2, gd=runs["NGD"], ngd=runs["GD"])
    for start in (
        "NGD is significantly faster than GD",
        "NGD's loss goes to L*",
        "NGD's 1 - cosine is no slower",
        "later it tends to our rate",
        "NGD's softmax saturates exponentially",
        "its rate an iteration",
        "Lemma 1's explicit rate",
        "and slows down",
        "the boost is that of a 10 times longer step",
    ):
        assert verdicts(swapped, start) == {"fails"}, start
    swapped = changed(result2, ngd=runs["NGD with momentum"], momentum=runs["NGD"])
    assert verdicts(swapped, "momentum boosts NGD") == {"fails"}
    swapped = changed(result2, ngd=runs["Polyak, uncapped"], free=runs["NGD"])
    assert verdicts(swapped, "uncapped Polyak steps lead") == {"fails"}
    better = tuple(dataclasses.replace(run, W_norm=1e3 * run.W_norm) for run in runs["NGD"])
    assert verdicts(changed(result2, ngd=better), "until its cap binds") == {"fails"}


def test_one_bad_seed_is_enough_to_fail(result2):
    good, bad = result2.traces["NGD"][0], result2.traces["GD"][1]
    table = changed(result2, ngd=(good, bad))
    assert verdicts(table, "NGD is significantly faster than GD") == {"fails"}


def test_a_loss_that_goes_to_zero_breaks_its_claim(result2):
    run = result2.traces["Polyak, capped"][0]
    sunk = dataclasses.replace(run, log_loss=run.log_loss - 50 * (run.step > 100))
    table = changed(result2, capped=(sunk, result2.traces["Polyak, capped"][1]))
    assert verdicts(table, "the train loss does not go to 0") == {"fails"}


def test_a_step_size_off_the_cap_breaks_its_claim(result2):
    run = result2.traces["Polyak, capped"][0]
    off = dataclasses.replace(run, log_step_size=run.log_step_size - 0.1 * (run.step > 5000))
    table = changed(result2, capped=(off, result2.traces["Polyak, capped"][1]))
    assert verdicts(table, "from there capped Polyak is GD") == {"fails"}


def test_a_cap_that_never_binds_is_not_applicable(result2):
    table = changed(result2, capped=result2.traces["Polyak, uncapped"])
    settings = result2.settings | {"max_step": np.inf}
    table = fig2.claims(result2.traces, settings, result2.measures)
    assert verdicts(table, "until its cap binds") == {"not applicable"}
    assert verdicts(table, "from there capped Polyak is GD") == {"not applicable"}
    assert verdicts(table, "and slows down") == {"not applicable"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("max_step", [0.001, 0.3, 1, 100])
def test_a_cap_that_binds_from_the_start_leaves_nothing_before_it(max_step):
    result = experiments.run("fig2", seeds=2, steps=1000, max_step=max_step, **SMALL["fig2"])
    before = [check for check in result.claims if check.statement.startswith("until its cap")]
    assert [(check.verdict, check.reason) for check in before] == [
        ("not applicable", "it binds from the start")
    ]
    assert verdicts(result.claims, "from there capped Polyak is GD") == {"holds"}


def test_a_cap_that_binds_in_some_seeds_says_in_how_many(result2):
    capped, free = (result2.traces[f"Polyak, {kind}"] for kind in ("capped", "uncapped"))
    low = dataclasses.replace(free[1], log_step_size=np.full(len(free[1].step), -1.0))
    table = changed(result2, capped=(capped[0], low))
    reasons = {check.reason for check in table if not check.applicable}
    assert reasons == {"it binds in 1 of 2 seeds alone"}


def test_the_first_claim_prints_the_same_slack_whatever_the_rounding(result2):
    first = result2.claims[0]
    for lowest in (1.0, 1 - 3e-16, 1 + 3e-16):
        assert "slack 1e-09" in str(dataclasses.replace(first, value=lowest))
    assert not dataclasses.replace(first, value=1 - 1e-8).holds


def test_satisfied_assumption_1_is_said_so(result2):
    measures = result2.measures | {"assumption1_ratio": [0.5, 0.9]}
    table = fig2.claims(result2.traces, result2.settings, measures)
    assert verdicts(table, "Theorem 1's hypothesis") == {"holds"}


def test_a_common_cap_puts_polyak_ahead_on_the_loss():
    """With NGD under the same cap both end as GD, and Polyak got there first."""
    result = experiments.run("fig2", seeds=1, ngd_max_step=1e4)
    loss = [check for check in result.claims
            if check.statement == "capped Polyak steps end ahead of capped NGD: "
            "loss gap L - L*, decades"]  # fmt: skip
    assert [check.verdict for check in loss] == ["holds"]
    assert verdicts(result.claims, "momentum boosts NGD") == {"fails"}


# What Fig. 9's text says


def test_figure9_claims(result9):
    table = result9.claims
    for start in ("GD converges", "NGD converges", "NGD is faster", "the digit is the token"):
        assert verdicts(table, start) == {"holds"}
    assert verdicts(table, "aligning with Assumption 2") == {"fails"}
    assert verdicts(table, "with noise projected off u Assumption 2 is exact") == {"holds"}


def test_figure9_claims_can_fail(result9):
    runs, settings, measures = result9.traces, result9.settings, result9.measures
    swapped = runs | {"GD": runs["NGD"], "NGD": runs["GD"]}
    table = fig9.claims(swapped, settings, measures)
    assert verdicts(table, "NGD is faster") == verdicts(table, "NGD is significantly") == {"fails"}
    assert verdicts(table, "breaking Assumption 2") == {"fails"}
    stuck = tuple(
        dataclasses.replace(run, W_alignment_error=np.full(len(run.step), 0.3))
        for run in runs["NGD"]
    )
    table = fig9.claims(runs | {"NGD": stuck}, settings, measures)
    assert verdicts(table, "NGD converges") == {"fails"}
    table = fig9.claims(runs, settings, measures | {"digit_optimal_fraction": [1.0, 0.95]})
    assert verdicts(table, "the digit is the token") == {"fails"}
    table = fig9.claims(runs, settings, measures | {"relative_spread": [0.0, 0.0]})
    assert verdicts(table, "aligning with Assumption 2") == {"holds"}


# The parts that claims are made of


def test_lead_in_decades(result2):
    runs = result2.traces["NGD"]
    longer = tuple(dataclasses.replace(run, W_norm=100 * run.W_norm) for run in runs)
    step, decades = lead(longer, runs, "norm of W")
    assert step[0] == 1
    assert decades.shape == (2, len(step))
    assert np.allclose(decades, 2.0, rtol=CLOSED_FORM)


@pytest.mark.filterwarnings("error")
def test_two_runs_at_the_same_infinity_are_level(result2):
    runs = result2.traces["NGD"]
    aligned = tuple(dataclasses.replace(run, W_alignment_error=0.0 * run.W_norm) for run in runs)
    assert (lead(aligned, aligned, "1 - cosine with W_mm")[1] == 0).all()
    assert (lead(aligned, runs, "1 - cosine with W_mm")[1] == np.inf).all()


def test_ahead_from():
    step = np.array([1, 2, 5, 10])
    assert "at every recorded step from 1" in ahead_from(step, np.ones((2, 4)))
    assert "from step 5" in ahead_from(step, np.array([[1, 1, 1, 1], [1, -1, 1, 1]]))
    assert "not ahead" in ahead_from(step, np.array([[1, 1, 1, -1]]))


def test_cap_step(result2):
    capped, free = (result2.traces[f"Polyak, {kind}"][0] for kind in ("capped", "uncapped"))
    first = cap_step(capped, 1e4)
    assert capped.log_step_size[capped.step == first] == pytest.approx(np.log(1e4))
    assert np.all(capped.log_step_size[capped.step < first] < np.log(1e4))
    assert cap_step(free, np.inf) is None


def test_exponents(result2):
    table = result2.exponents()
    assert list(table.index) == list(result2.traces)
    assert table.loc["NGD", "median"] < -1.5 < table.loc["GD", "median"]
    assert (table["interval low"] <= table["min"]).all()
    assert (table["min"] <= table["median"]).all()
    assert (table["max"] <= table["interval high"]).all()
    early = result2.exponents(window=(10, 300))
    assert -1.4 < early.loc["NGD", "median"] < -0.7


# Files


def test_save_and_load(result2, tmp_path):
    path = result2.save(tmp_path / "fig2.npz")
    back = ExperimentResult.load(path)
    assert back.settings == result2.settings
    assert (back.name, back.title, back.seeds) == (result2.name, result2.title, result2.seeds)
    assert back.measures == result2.measures
    assert back.provenance == result2.provenance
    assert repr(back.claims) == repr(result2.claims)
    for label, traces in result2.traces.items():
        for old, new in zip(traces, back.traces[label], strict=True):
            assert np.array_equal(old.log_loss_gap, new.log_loss_gap)
            assert np.array_equal(old.step, new.step)
            assert old.status == new.status
            assert new.W.numel() == 0
    assert repr(fig2.claims(back.traces, back.settings, back.measures)) == repr(result2.claims)


def test_weights_are_kept_on_request(tmp_path):
    result = experiments.run("fig2", seeds=1, steps=1000, **SMALL["fig2"])
    back = ExperimentResult.load(result.save(tmp_path / "all.npz", weights=True))
    assert torch.equal(back.traces["NGD"][0].W, result.traces["NGD"][0].W)


def test_files_that_are_no_results(result2, tmp_path):
    with pytest.raises(MissingFileError):
        ExperimentResult.load(tmp_path / "none.npz")
    trace = result2.traces["GD"][0].save(tmp_path / "trace.npz")
    with pytest.raises(FileFormatError, match="experiment"):
        ExperimentResult.load(trace)
    (tmp_path / "junk.npz").write_bytes(b"junk")
    with pytest.raises(FileFormatError):
        ExperimentResult.load(tmp_path / "junk.npz")
    path = result2.save(tmp_path / "cut.npz")
    with np.load(path) as stored:
        kept = {key: stored[key] for key in stored.files if not key.startswith("run3/")}
    np.savez(path, **kept)
    with pytest.raises(FileFormatError, match="run3"):
        ExperimentResult.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"runs": [1]},
        {"runs": None},
        {"claims": [{"statement": "s", "value": 1.0, "bound": 1.0, "sense": "=="}]},
        {"claims": [3]},
        {"seeds": ["first", "second"]},
        {"seeds": 2},
        {"settings": [1]},
        {"measures": None},
        {"provenance": "unknown"},
    ],
    ids=str,
)
def test_headers_of_other_content_are_refused(result2, tmp_path, change):
    path = result2.save(tmp_path / "foreign.npz")
    arrays, header = read_npz(path, kind="experiment")
    write_npz(path, arrays, header | change)
    with pytest.raises(FileFormatError):
        ExperimentResult.load(path)


def test_weights_that_are_no_numbers_are_refused(result2, tmp_path):
    path = result2.save(tmp_path / "foreign.npz")
    arrays, header = read_npz(path, kind="experiment")
    write_npz(path, arrays | {"run0/u": np.array(["one", "two"])}, header)
    with pytest.raises(FileFormatError):
        ExperimentResult.load(path)


# Snapshots


def test_snapshots_follow_the_run(result2):
    data, W0 = fig2.instance(seed=0)
    shots = attention_snapshots(data, fig2.rules()["NGD"], [100, 0, 1000], W0=W0)
    assert shots.step.tolist() == [0, 100, 1000]
    assert shots.attention.shape == (3, data.n, data.T)
    assert np.allclose(shots.attention.sum(axis=2), 1.0, rtol=CLOSED_FORM)
    trace = result2.traces["NGD"][0]
    for k, step in enumerate(shots.step):
        assert shots.W_norm[k] == pytest.approx(float(trace.W_norm[trace.step == step][0]))
    at_opt = shots.attention[:, np.arange(data.n), shots.opt].mean(axis=1)
    assert np.allclose(at_opt, shots.opt_score, rtol=1e-9)


@pytest.mark.parametrize(("steps", "error"), [([-1], RangeError), ([0.5], DtypeError)])
def test_snapshots_refuse_bad_steps(steps, error):
    with pytest.raises(error):
        attention_snapshots(make_example1(n=2, T=2, d=6), NGD(0.1), steps)
