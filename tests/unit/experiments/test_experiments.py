"""The registry, the results' files, and claims that can fail."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from judged import altered, fail, judged, require_sources, swapped, verdicts
from tolerances import CLOSED_FORM

from attnbias import NGD, experiments
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
from attnbias.experiments.claims import ahead_from, lead
from attnbias.experiments.fig2 import cap_step
from attnbias.experiments.runs import seed_list

SMALL = {
    "fig2": {"n": 4, "T": 3, "d": 20},
    "fig3": {"n": 4, "d": 40},
    "fig9": {"n": 6, "T": 3, "patch": 7},
}


@pytest.fixture(scope="module")
def result2() -> ExperimentResult:
    return experiments.run("fig2", seeds=2)


@pytest.fixture(scope="module")
def small2() -> ExperimentResult:
    return experiments.run("fig2", seeds=2, steps=1000, **SMALL["fig2"])


@pytest.fixture(scope="module")
def result9() -> ExperimentResult:
    return experiments.run("fig9", seeds=2)


def test_the_registry_lists_and_describes():
    figures = [f"fig{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10)]
    assert experiments.list() == [*figures, "exponents", "heads", "ranks"]
    for name in figures:
        assert experiments.describe(name).startswith("Figure " + name[3:])
    with pytest.raises(RangeError):
        experiments.describe("fig5")


BAD = {
    RangeError: [
        ("fig5", "name", {}), ("fig2", "sead", {"sead": 3}), ("fig2", "seeds", {"seeds": 0}),
        ("fig2", "seeds", {"seeds": [0, -1]}), ("fig2", "steps", {"steps": 999}),
        ("fig2", "start_norm", {"start_norm": -1.0}), ("fig2", "d", {"d": 3}),
        ("fig2", "step_size", {"gd_step_size": 0.0}), ("fig2", "seeds", {"seeds": 10**6 + 1}),
        ("fig2", "number of seeds", {"seeds": itertools.count()}),
        ("fig2", "loss", {"loss": "hinge"}), ("fig2", "record", {"record": [10, 100, 1000]}),
        ("fig2", "record", {"record": range(1000, 10_001, 100)}),
        ("fig3", "sigma", {"sigma": 0}), ("fig3", "alpha", {"alpha": -1}),
        ("fig3", "T", {"T": 1}), ("fig3", "step_size", {"gd_step_size": 0}),
        ("fig3", "start_norm", {"start_norm": 0.1}), ("fig8", "scales", {"scales": [1, 2]}),
        ("fig8", "scales", {"scales": [1, 4, 2]}), ("fig8", "scales", {"scales": [0, 1, 2]}),
        ("fig8", "scales", {"scales": [1, 1 + 1e-12, 2, 3]}), ("fig8", "seeds", {"seeds": 3}),
        ("fig8", "steps", {"steps": 10}), ("fig8", "step_size", {"gd_step_size": -1}),
        ("fig9", "patch", {"patch": 5}), ("fig9", "record", {"record": [10_001]}),
        ("fig9", "record", {"record": 5}), ("fig10", "source", {"source": "web"}),
        ("fig10", "texts", {"texts": {"MNLI": 3}}),
        ("fig10", "texts of NLI", {"texts": {"NLI": 0}}),
        ("fig10", "max_length", {"max_length": 2}), ("fig10", "seed", {"seed": -1}),
        ("heads", "sentences", {"sentences": 0}), ("heads", "sentences", {"sentences": 1000}),
        ("heads", "sentences", {"sentences": []}), ("heads", "random", {"random": 0}),
        ("heads", "seed", {"seed": -1}), ("heads", "query", {"query": 50}),
        ("exponents", "steps", {"steps": 100}), ("exponents", "seeds", {"seeds": 0}),
        ("exponents", "d", {"d": []}), ("exponents", "d", {"d": [10]}),
        ("exponents", "sigma", {"noise": [-1.0]}), ("exponents", "slack", {"slack": [-0.1]}),
        ("exponents", "workers", {"workers": 0}),
    ],
    DtypeError: [
        ("fig2", "seeds", {"seeds": []}), ("fig2", "seeds", {"seeds": "three"}),
        ("fig2", "seeds", {"seeds": [0, 1.5]}), ("fig9", "steps", {"steps": True}),
        ("fig9", "step_size", {"ngd_step_size": "fast"}), ("fig2", "progress", {"progress": "yes"}),
        ("fig8", "scales", {"scales": 4.0}), ("fig8", "scales", {"scales": [1, "2", 3]}),
        ("fig10", "texts", {"texts": 3}), ("fig10", "progress", {"progress": "yes"}),
        ("heads", "sentences", {"sentences": [1, 2]}), ("heads", "sentences", {"sentences": 2.5}),
        ("heads", "progress", {"progress": 1}), ("exponents", "noise", {"noise": ["loud"]}),
    ],
    MissingFileError: [
        ("fig10", "/no/such/folder/fig10.json", {"out": "/no/such/folder"}),
        ("heads", "/no/such/folder/heads.json", {"out": "/no/such/folder"}),
        ("heads", "no such file", {"sentences": "no such file"}),
    ],
    DeviceError: [("fig9", "device", {"device": "abacus"})],
}  # fmt: skip


GIVEN = {
    "fig10": {"source": "bundled"}, "heads": {"model": "tiny", "sentences": 3, "random": 1},
    "exponents": {"seeds": 1, "steps": 10_000, "d": [60], "noise": [1.0], "slack": [0.1]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "name", "fault", "settings"),
    [(error, *case) for error, cases in BAD.items() for case in cases],
)
def test_bad_settings_are_named(error, name, fault, settings):
    if name == "heads":
        pytest.importorskip("transformers")
    with pytest.raises(error) as caught:
        experiments.run(name, **GIVEN.get(name, {}) | settings)
    assert caught.value.what == fault
    assert caught.value.remedy


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


def test_seeds_are_how_many_or_which():
    for seeds in (3, np.int64(3), (0, 1, 2), iter([0, 1, 2])):
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
    for first, second in result.traces.values():
        assert {10, 100, 1000} <= set(first.step.tolist())
        assert first.W_norm[-1] != second.W_norm[-1], "the seeds gave one run twice"
    assert all(len(values) == 2 for values in result.measures.values())
    assert "2 seeds, 1000 steps" in repr(result) and result.provenance.keys() >= {"commit"}


def test_the_same_seed_gives_the_same_run_and_progress_is_silent_by_default(capfd):
    settings = {"seeds": [7], "steps": 1000, **SMALL["fig2"]}
    first = experiments.run("fig2", **settings)
    assert capfd.readouterr().err == ""
    second = experiments.run("fig2", progress=True, **settings)
    assert "5/5" in capfd.readouterr().err
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


# What Fig. 2's text says


FIGURE2 = {
    "holds": ["the train loss does not go to 0", "NGD's loss goes to L*",
              "NGD is significantly faster than GD", "NGD's 1 - cosine is no slower",
              "later it tends to our rate", "NGD's softmax saturates exponentially",
              "its rate an iteration", "Lemma 1's explicit rate", "momentum boosts NGD",
              "the boost is that of a 10 times longer step", "uncapped Polyak steps lead",
              "until its cap binds", "from there capped Polyak is GD", "and slows down"],
    "fails": ["its decay is closely predicted", "capped Polyak steps end ahead of uncapped",
              "Theorem 1's hypothesis"],
}  # fmt: skip


def test_figure2_claims_that_hold_and_that_our_runs_contradict(result2):
    for verdict, starts in FIGURE2.items():
        for start in starts:
            assert verdicts(result2.claims, start) == {verdict}, start
    require_sources(result2.claims, 24)


def test_swapped_rules_break_the_claims(result2):
    table = judged(fig2, result2, swapped(result2, "GD", "NGD"))
    assert fail(
        table, "NGD is significantly faster than GD", "NGD's loss goes to L*", "and slows down",
        "NGD's 1 - cosine is no slower", "later it tends to our rate", "its rate an iteration",
        "NGD's softmax saturates exponentially", "Lemma 1's explicit rate",
        "the boost is that of a 10 times longer step",
    )  # fmt: skip
    for other, start in (
        ("NGD with momentum", "momentum boosts NGD"),
        ("Polyak, uncapped", "uncapped Polyak steps lead"),
    ):
        assert fail(judged(fig2, result2, swapped(result2, other, "NGD")), start)


def test_one_bad_seed_is_enough_to_fail(result2):
    (ngd, _), (_, gd), (run, other) = (
        result2.traces[label] for label in ("NGD", "GD", "Polyak, capped")
    )
    late = run.step > 5000
    for label, runs, start in (
        ("NGD", (ngd, gd), "NGD is significantly faster than GD"),
        ("NGD", altered([ngd, ngd], W_norm=lambda t: 1e3 * t.W_norm), "until its cap binds"),
        ("Polyak, capped", (*altered([run], log_loss=lambda t: t.log_loss - 50 * late), other),
         "the train loss does not go to 0"),
        ("Polyak, capped",
         (*altered([run], log_step_size=lambda t: t.log_step_size - 0.1 * late), other),
         "from there capped Polyak is GD"),
    ):  # fmt: skip
        assert fail(judged(fig2, result2, {label: runs}), start)


def test_a_cap_that_never_binds_and_an_assumption_that_holds_are_said_so(result2):
    table = judged(fig2, result2, settings={"max_step": np.inf})
    for start in ("until its cap binds", "from there capped Polyak is GD", "and slows down"):
        assert verdicts(table, start) == {"not applicable"}
    table = judged(fig2, result2, measures={"assumption1_ratio": [0.5, 0.9]})
    assert verdicts(table, "Theorem 1's hypothesis") == {"holds"}


@pytest.mark.filterwarnings("error")
def test_a_cap_that_binds_from_the_start_or_in_some_seeds_alone(result2):
    for cap in (0.001, 100):
        result = experiments.run("fig2", seeds=2, steps=1000, max_step=cap, **SMALL["fig2"])
        (before,) = (each for each in result.claims if each.statement.startswith("until its cap"))
        assert (before.verdict, before.reason) == ("not applicable", "it binds from the start")
        assert verdicts(result.claims, "from there capped Polyak is GD") == {"holds"}
    capped, free = (result2.traces[f"Polyak, {kind}"] for kind in ("capped", "uncapped"))
    (low,) = altered(free[1:], log_step_size=lambda run: 0.0 * run.step - 1)
    table = judged(fig2, result2, {"Polyak, capped": (capped[0], low)})
    reasons = {check.reason for check in table if not check.applicable}
    assert reasons == {"it binds in 1 of 2 seeds alone"}


def test_the_first_claim_prints_the_same_slack_whatever_the_rounding(result2):
    first = result2.claims[0]
    for lowest in (1.0, 1 - 3e-16, 1 + 3e-16):
        assert "slack 1e-09" in str(dataclasses.replace(first, value=lowest))
    assert not dataclasses.replace(first, value=1 - 1e-8).holds


def test_a_common_cap_puts_polyak_ahead_on_the_loss():
    """With NGD under the same cap both end as GD, and Polyak got there first."""
    result = experiments.run("fig2", seeds=1, ngd_max_step=1e4)
    loss = "capped Polyak steps end ahead of capped NGD: loss gap L - L*, decades"
    assert verdicts(result.claims, loss) == {"holds"}
    assert verdicts(result.claims, "momentum boosts NGD") == {"fails"}


# What Fig. 9's text says


def test_figure9_claims_hold_and_can_fail(result9):
    for start in ("GD converges", "NGD converges", "NGD is faster", "the digit is the token",
                  "with noise projected off u Assumption 2 is exact"):  # fmt: skip
        assert verdicts(result9.claims, start) == {"holds"}
    assert fail(result9.claims, "aligning with Assumption 2")
    table = judged(fig9, result9, swapped(result9, "GD", "NGD"))
    assert fail(table, "NGD is faster", "NGD is significantly", "breaking Assumption 2")
    stuck = altered(result9.traces["NGD"], W_alignment_error=lambda run: 0.3 + 0.0 * run.step)
    assert fail(judged(fig9, result9, {"NGD": stuck}), "NGD converges")
    for key, value, start, verdict in (
        ("digit_optimal_fraction", 0.95, "the digit is the token", "fails"),
        ("relative_spread", 0.0, "aligning with Assumption 2", "holds"),
        ("projected_spread", 0.1, "with noise projected off u", "fails"),
    ):
        table = judged(fig9, result9, measures={key: [value, value]})
        assert verdicts(table, start) == {verdict}


# The parts that claims are made of


@pytest.mark.filterwarnings("error")
def test_leads_are_in_decades_and_level_at_the_same_infinity(result2):
    runs = result2.traces["NGD"]
    longer = altered(runs, W_norm=lambda run: 100 * run.W_norm)
    step, decades = lead(longer, runs, "norm of W")
    assert step[0] == 1
    assert decades.shape == (2, len(step))
    assert np.allclose(decades, 2.0, rtol=CLOSED_FORM)
    aligned = altered(runs, W_alignment_error=lambda run: 0.0 * run.W_norm)
    assert (lead(aligned, aligned, "1 - cosine with W_mm")[1] == 0).all()
    assert (lead(aligned, runs, "1 - cosine with W_mm")[1] == np.inf).all()


def test_ahead_from_and_cap_step(result2):
    step = np.array([1, 2, 5, 10])
    assert "at every recorded step from 1" in ahead_from(step, np.ones((2, 4)))
    assert "from step 5" in ahead_from(step, np.array([[1, 1, 1, 1], [1, -1, 1, 1]]))
    assert "from step 2 on" in ahead_from(step, np.array([[1e-16, 1, 1, 1], [1, 1, 1, 1]]))
    assert "not ahead" in ahead_from(step, np.array([[1, 1, 1, -1]]))
    capped, free = (result2.traces[f"Polyak, {kind}"][0] for kind in ("capped", "uncapped"))
    first = cap_step(capped, 1e4)
    assert capped.log_step_size[capped.step == first] == pytest.approx(np.log(1e4))
    assert np.all(capped.log_step_size[capped.step < first] < np.log(1e4))
    assert cap_step(free, np.inf) is None


def test_exponents(result2):
    table = result2.exponents()
    assert list(table.index) == list(result2.traces)
    assert table.loc["NGD", "median"] < -1.5 < table.loc["GD", "median"]
    order = table[["interval low", "min", "median", "max", "interval high"]].to_numpy()
    assert (np.diff(order) >= 0).all()
    assert -1.4 < result2.exponents(window=(10, 300)).loc["NGD", "median"] < -0.7


# Files


def test_save_and_load(small2, tmp_path):
    back = ExperimentResult.load(small2.save(tmp_path / "fig2.npz"))
    for name in ("name", "title", "seeds", "settings", "measures", "provenance"):
        assert getattr(back, name) == getattr(small2, name)
    assert repr(back.claims) == repr(small2.claims)
    for label, traces in small2.traces.items():
        for old, new in zip(traces, back.traces[label], strict=True):
            assert np.array_equal(old.log_loss_gap, new.log_loss_gap)
            assert np.array_equal(old.step, new.step)
            assert old.status == new.status and new.W.numel() == 0 and new.gaps is None
    assert repr(fig2.claims(back.traces, back.settings, back.measures)) == repr(small2.claims)


def test_files_that_are_no_results(small2, tmp_path):
    with pytest.raises(MissingFileError):
        ExperimentResult.load(tmp_path / "none.npz")
    trace = small2.traces["GD"][0].save(tmp_path / "trace.npz")
    (tmp_path / "junk.npz").write_bytes(b"junk")
    path = small2.save(tmp_path / "cut.npz")
    with np.load(path) as stored:
        kept = {key: stored[key] for key in stored.files if not key.startswith("run3/")}
    np.savez(path, **kept)
    for bad, words in ((trace, "experiment"), (tmp_path / "junk.npz", "npz"), (path, "run3")):
        with pytest.raises(FileFormatError, match=words):
            ExperimentResult.load(bad)


@pytest.mark.parametrize("change", [
    {"runs": [1]}, {"runs": None}, {"claims": [3]}, {"seeds": ["first", "second"]}, {"seeds": 2},
    {"settings": [1]}, {"measures": None}, {"provenance": "unknown"},
    {"claims": [{"statement": "s", "value": 1.0, "bound": 1.0, "sense": "=="}]},
    {"run0/u": np.array(["one", "two"])},
], ids=str)  # fmt: skip
def test_headers_and_weights_of_other_content_are_refused(small2, tmp_path, change):
    path = small2.save(tmp_path / "foreign.npz")
    arrays, header = read_npz(path, kind="experiment")
    foreign = arrays | change if "run0/u" in change else arrays
    write_npz(path, foreign, header if "run0/u" in change else header | change)
    with pytest.raises(FileFormatError):
        ExperimentResult.load(path)


# Snapshots


def test_snapshots_follow_the_run(small2):
    data, W0 = fig2.instance(seed=0, **SMALL["fig2"])
    shots = attention_snapshots(data, fig2.rules()["NGD"], [100, 0, 1000], W0=W0)
    assert shots.step.tolist() == [0, 100, 1000]
    assert shots.attention.shape == (3, data.n, data.T)
    assert np.allclose(shots.attention.sum(axis=2), 1.0, rtol=CLOSED_FORM)
    trace = small2.traces["NGD"][0]
    for k, step in enumerate(shots.step):
        assert shots.W_norm[k] == pytest.approx(float(trace.W_norm[trace.step == step][0]))
    at_opt = shots.attention[:, np.arange(data.n), shots.opt].mean(axis=1)
    assert np.allclose(at_opt, shots.opt_score, rtol=1e-9)
    for steps, error in (([-1], RangeError), ([0.5], DtypeError)):
        with pytest.raises(error):
            attention_snapshots(data, NGD(0.1), steps)
