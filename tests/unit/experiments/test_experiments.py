"""The registry, the results' files, and claims that can fail."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias import experiments
from attnbias._records import read_npz, write_npz
from attnbias.dynamics.problem import small_start
from attnbias.errors import DeviceError, DtypeError, FileFormatError, MissingFileError, RangeError
from attnbias.experiments import ExperimentResult, fig2, fig3, fig9
from attnbias.experiments.claims.compare import at_most, unless_short
from attnbias.experiments.runs import seed_list

SMALL = {
    "fig2": {"n": 4, "T": 3, "d": 20},
    "fig3": {"n": 4, "d": 40},
    "fig9": {"n": 6, "T": 3, "patch": 7},
}


@pytest.fixture(scope="module")
def small2() -> ExperimentResult:
    return experiments.run("fig2", seeds=2, steps=1000, **SMALL["fig2"])


def test_the_registry_lists_and_describes():
    figures = [f"fig{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 10)]
    assert experiments.list()[: len(figures)] == figures
    for name in figures:
        assert experiments.describe(name).startswith("Figure " + name[3:])
    with pytest.raises(RangeError):
        experiments.describe("fig5")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("fig2", {"late", "softmax", "momentum-step"}),
        ("fig3", {"zero", "linear/joint-NGD", "factors/loss"}),
    ],
)
def test_a_run_too_short_for_a_claim_says_so_and_does_not_refute_it(name, short):
    """These claims hold at the figure's own length and fail at a tenth of it."""
    result = experiments.run(name, seeds=2, steps=1000)
    asking = [check for check in result.claims if "too short" in check.reason]
    assert {check.verdict for check in asking} == {"not applicable"}
    assert f"{len(asking)} ask for a longer run" in result.verdict
    assert {each.key for each in asking} <= short
    assert "fails" in {check.verdict for check in result.claims}  # others: at any length


def test_at_its_full_length_a_claim_can_fail():
    check = at_most("a", "a number", 2.0, 1.0)
    assert unless_short(check, {"steps": 10_000}).verdict == "fails"
    assert unless_short(check, {"steps": 9_999}).verdict == "not applicable"
    assert unless_short(at_most("a", "a number", 1.0, 1.0), {"steps": 1}).verdict == "holds"


BAD = {  # the experiment, its settings, and what is named if not the setting
    RangeError: [
        ("fig5", {}, "name"),
        ("fig2", {"sead": 3}),
        ("fig2", {"seeds": 0}),
        ("fig2", {"seeds": [0, -1]}),
        ("fig2", {"steps": 999}),
        ("fig2", {"start_norm": -1.0}),
        ("fig2", {"d": 3}),
        ("fig2", {"gd_step_size": 0.0}, "step_size"),
        ("fig2", {"seeds": 10**6 + 1}),
        ("fig2", {"seeds": itertools.count()}, "number of seeds"),
        ("fig3", {"seeds": [0] * 10**6}, "number of seeds"),
        ("fig3", {"seeds": 10**6}),
        ("fig3", {"seeds": [0, 1, np.int64(0)]}),
        ("fig2", {"loss": "hinge"}),
        ("fig2", {"record": [10, 100, 1000]}),
        ("fig2", {"record": range(1000, 10_001, 100)}),
        ("fig3", {"sigma": 0}),
        ("fig3", {"alpha": -1}),
        ("fig3", {"T": 1}),
        ("fig3", {"gd_step_size": 0}, "step_size"),
        ("fig3", {"start_norm": 0.1}),
        ("fig8", {"scales": [1, 2]}),
        ("fig8", {"scales": [1, 4, 2]}),
        ("fig8", {"scales": [0, 1, 2]}),
        ("fig8", {"scales": [1, 1 + 1e-12, 2, 3]}),
        ("fig8", {"seeds": 3}),
        ("fig8", {"steps": 10}),
        ("fig8", {"gd_step_size": -1}, "step_size"),
        ("fig9", {"patch": 5}),
        ("fig9", {"record": [10_001]}),
        ("fig9", {"record": 5}),
        ("fig10", {"source": "web"}),
        ("fig10", {"texts": {"MNLI": 3}}),
        ("fig10", {"texts": {"NLI": 0}}, "texts of NLI"),
        ("fig10", {"max_length": 2}),
        ("fig10", {"seed": -1}),
    ],
    DtypeError: [
        ("fig2", {"seeds": []}),
        ("fig2", {"seeds": "three"}),
        ("fig2", {"seeds": [0, 1.5]}),
        ("fig9", {"steps": True}),
        ("fig9", {"ngd_step_size": "fast"}, "step_size"),
        ("fig2", {"progress": "yes"}),
        ("fig8", {"scales": 4.0}),
        ("fig8", {"scales": [1, "2", 3]}),
        ("fig10", {"texts": 3}),
        ("fig10", {"progress": "yes"}),
    ],
    MissingFileError: [
        ("fig10", {"out": "/no/such/folder"}, "/no/such/folder/fig10.json"),
    ],
    DeviceError: [("fig9", {"device": "abacus"})],
}


GIVEN = {
    "fig10": {"source": "bundled"},
}


@pytest.mark.parametrize(
    ("error", "name", "settings", "fault"),
    [
        (error, name, settings, *(fault or settings))
        for error, cases in BAD.items()
        for name, settings, *fault in cases
    ],
)
def test_bad_settings_are_named(error, name, settings, fault):
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
    with pytest.raises((DeviceError, DtypeError, RangeError)):
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
    assert experiments.load("fig2", result.save(tmp_path / "kinds.npz")).settings == result.settings


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


@pytest.mark.parametrize("module", [fig2, fig9])
def test_a_start_is_refused_before_its_data_are_made(module):
    with pytest.raises(RangeError, match="start_norm"):
        module.instance(start_norm=-1.0, n="junk")


def test_save_and_load(small2, tmp_path):
    back = experiments.load("fig2", small2.save(tmp_path / "fig2.npz"))
    for name in ("name", "title", "seeds", "settings", "measures", "provenance"):
        assert getattr(back, name) == getattr(small2, name)
    assert repr(back.claims) == repr(small2.claims)
    for label, traces in small2.traces.items():
        for old, new in zip(traces, back.traces[label], strict=True):
            assert np.array_equal(old.log_loss_gap, new.log_loss_gap)
            assert np.array_equal(old.step, new.step)
            assert old.status == new.status and new.W.numel() == 0 and new.gaps is None
    assert repr(fig2.claims(back)) == repr(small2.claims)


def test_weights_gaps_and_scores_are_kept_on_request(tmp_path):
    result = experiments.run("fig3", seeds=1, steps=1000, **SMALL["fig3"])
    back = experiments.load("fig3", result.save(tmp_path / "fig3.npz", weights=True))
    assert repr(fig3.claims(back)) == repr(result.claims)
    (old,), (new,) = result.traces["NGD"], back.traces["NGD"]
    assert np.array_equal(old.scores, new.scores) and np.array_equal(old.gaps, new.gaps)
    assert torch.equal(old.u, new.u) and torch.equal(old.W, new.W)


def test_files_that_are_no_results(small2, tmp_path):
    with pytest.raises(MissingFileError):
        experiments.load("fig2", tmp_path / "none.npz")
    trace = small2.traces["GD"][0].save(tmp_path / "trace.npz")
    (tmp_path / "junk.npz").write_bytes(b"junk")
    path = small2.save(tmp_path / "cut.npz")
    arrays, header = read_npz(path, kind="experiment")
    write_npz(path, {k: a for k, a in arrays.items() if not k.startswith("run3/")}, header)
    for bad, words in ((trace, "experiment"), (tmp_path / "junk.npz", "npz"), (path, "run3")):
        with pytest.raises(FileFormatError, match=words):
            experiments.load("fig2", bad)


@pytest.mark.parametrize(
    "change",
    [
        {"runs": [1]},
        {"runs": None},
        {"claims": [3]},
        {"seeds": ["first", "second"]},
        {"seeds": 2},
        {"settings": [1]},
        {"measures": None},
        {"provenance": "unknown"},
        {"claims": [{"statement": "s", "value": 1.0, "bound": 1.0, "sense": "=="}]},
        {"run0/u": np.array(["one", "two"])},
    ],
    ids=str,
)
def test_headers_and_weights_of_other_content_are_refused(small2, tmp_path, change):
    path = small2.save(tmp_path / "foreign.npz")
    arrays, header = read_npz(path, kind="experiment")
    foreign = arrays | change if "run0/u" in change else arrays
    write_npz(path, foreign, header if "run0/u" in change else header | change)
    with pytest.raises(FileFormatError):
        experiments.load("fig2", path)


def test_the_trace_of_another_experiment_is_refused_under_its_name(tmp_path):
    experiments.run("fig2", seeds=1, steps=1000).save(tmp_path / "fig3.npz")
    with pytest.raises(FileFormatError, match="the result of fig3.*fig2"):
        experiments.load("fig3", tmp_path)


def test_no_file_and_no_experiment(tmp_path):
    for name, file in (("fig6", "fig6.json"), ("fig2", "fig2.npz")):
        with pytest.raises(MissingFileError, match=file):
            experiments.load(name, tmp_path)
    with pytest.raises(RangeError, match="fig99"):
        experiments.load("fig99", tmp_path)
    (tmp_path / "fig2.npz").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        experiments.load("fig2", tmp_path)
