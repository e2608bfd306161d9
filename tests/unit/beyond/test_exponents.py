"""How long an idle constraint is felt: closed forms, the law, runs, and the study of exponents."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, seeds
from room_tests import refusals, refused_settings
from tolerances import ASYMPTOTIC, CLOSED_FORM, PRINTED_TWO_RELATIVE, SVM_CLOSED_FORM

from attnbias import GD, NGD, Dataset, experiments, make_example1, solve_w_svm, train
from attnbias.beyond.exponents.experiments import local_exponents, noisy_means, planted, recorded
from attnbias.beyond.exponents.geometry import slack_law, triple_bracket, triple_offset
from attnbias.beyond.exponents.plots import plot_exponent_map, plot_settled_steps, plot_settling
from attnbias.beyond.exponents.slack import least_slack, plant_slack
from attnbias.beyond.exponents.transient import transient_rate, transient_rates
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import DtypeError, FileFormatError, MissingFileError, RangeError
from attnbias.geometry.constants import limit_offset


def one_idle_row(slack):
    """All rows of the tokens before planting support W_mm, so the planted one alone is idle."""
    return plant_slack(make_example1(5, 4, 60, sigma=0.1, seed=2), slack, seed=2)


def across(trace):
    error = trace.W_alignment_error
    return trace.W_norm * np.sqrt(error * (2 - error))


@pytest.mark.parametrize("slack", [1.0, 0.1, 0.01])
def test_frozen_offset_of_the_triple(slack):
    """Small steps end at the closed form, with an error in proportion to their length."""
    off = {}
    for eta in (2.0, 0.1, 0.01):
        end = across(train(make_degenerate(-slack), NGD(eta), int(40 / slack / eta), record=2))[-1]
        low, high = triple_bracket(slack, eta)
        assert low < end < high
        off[eta] = end - triple_offset(slack)
    assert 0 < off[0.01] < ASYMPTOTIC and abs(off[0.1] / off[0.01] / 10 - 1) < 0.2
    # the broken case: without slack the offset outgrows the bracket of a slack, and stays so
    end = across(train(make_degenerate(), NGD(0.5), 10**5, record=2))[-1]
    assert end > triple_bracket(0.02, 0.5)[1]


def test_the_triple_follows_its_curve():
    """(1 - exp(-delta q)) / delta = (exp(k P) - 1) / k along a run of small steps, GD's too."""
    slack, k = 0.1, 1 + 0.1 + 0.01
    for rule, steps in ((NGD(1e-3), 20000), (GD(1e-2), 10**5)):
        gaps = train(make_degenerate(-slack), rule, steps, record=30).gaps[1:]
        c, P = gaps[:, 0], gaps[:, 1] - (1 + slack) * gaps[:, 0]
        left = -np.expm1(-slack * (c - (1 + slack) * P)) / slack
        np.testing.assert_allclose(left, np.expm1(k * P) / k, rtol=ASYMPTOTIC)


def test_law_of_the_triple():
    law = slack_law(make_degenerate(-0.01))
    assert (law.settled, law.margin, law.n) == (0.0, 1.0, 1)
    assert abs(law.spread - 1) <= SVM_CLOSED_FORM
    assert abs(law.slack - 0.01) <= SVM_CLOSED_FORM
    assert abs(law.log_push) <= CLOSED_FORM and abs(law.log_factor + 1) <= CLOSED_FORM
    assert abs(law.limit - math.log1p(100)) <= CLOSED_FORM
    assert slack_law(make_degenerate()).limit == math.inf
    assert slack_law(make_degenerate(0.2)) is None  # no idle row
    for slack in (1e-3, 1e-5):
        neglected = slack * math.log(1 / slack)
        assert abs(slack_law(make_degenerate(-slack)).limit - triple_offset(slack)) < 2 * neglected


def test_exponent_is_the_slope_of_the_offset():
    law = slack_law(one_idle_row(0.01))
    for height in (3.0, 70.0, 400.0):
        step = 1e-5
        pair = np.log(law.offset(height * np.exp([-step, step])) / height)
        slope = (pair[1] - pair[0]) / (2 * step)
        assert abs(law.exponent(height) - (2 * slope - 2)) < 1e-8
    settled = law.settled_height(0.05)
    later = law.exponent(np.geomspace(settled, 100 * settled, 500))
    assert (np.abs(later + 2) <= 0.05).all() and law.exponent(0.99 * settled) > -1.95
    assert dataclasses.replace(law, slack=0.0).settled_height() == math.inf
    assert dataclasses.replace(law, log_push=-30.0).settled_height() == 0.0
    assert 0 < dataclasses.replace(law, log_push=1e4).limit < math.inf  # beyond float range
    tiny = dataclasses.replace(law, slack=1e-14)
    assert abs(tiny.offset(50.0) - dataclasses.replace(law, slack=0.0).offset(50.0)) < 1e-10


@pytest.mark.parametrize("slack", [0.03, 0.01, 0.003])
def test_law_against_runs(slack):
    """Frozen offset, and the step from which the local exponent stays within 0.05 of -2."""
    data, eta = one_idle_row(slack), 0.1
    solution = solve_w_svm(data)
    law = slack_law(data, solution)
    scale = solution.norm / (slack * eta)  # where the idle row's weight is 1/e
    steps = int(20 * scale)
    trace = train(data, NGD(eta), steps, svm=solution, record=120)
    neglected = slack * math.log(1 / slack)
    assert abs(across(trace)[-1] - law.limit) < 2 * neglected
    assert abs(across(trace)[-1] - law.settled) > 1  # what the supporting rows leave is not it
    assert abs(law.settled / limit_offset(data, solution) - 1) <= CLOSED_FORM
    late = trace.step >= 100
    t, error = np.log(trace.step[late]), np.log(trace.W_alignment_error[late])
    middle, slope = (t[1:] + t[:-1]) / 2, np.diff(error) / np.diff(t)
    reached = math.exp(middle[np.flatnonzero(slope > -1.95)[-1]])
    assert abs(reached / law.ngd_step(eta) - 1) < 2 * PRINTED_TWO_RELATIVE
    assert 1 < reached / scale < 5


def test_gd_takes_exponentially_long():
    """Tenfold slack below one: ten times the logarithm, up to the law's slow factor."""
    laws = {slack: slack_law(make_degenerate(-slack)) for slack in (0.5, 0.05)}
    ratio = laws[0.05].log_gd_step(0.5) / laws[0.5].log_gd_step(0.5)
    assert 6 < ratio < 10
    data = make_degenerate(-1.0)
    trace = train(data, GD(0.5), 10**5, record=120)
    path = np.log(trace.path_length[trace.step > 20])
    slope = np.diff(np.log(trace.W_alignment_error[trace.step > 20])) / np.diff(path)
    step = trace.step[trace.step > 20][np.flatnonzero(slope > -1.95)[-1]]
    assert abs(math.log(step) - slack_law(data).log_gd_step(0.5)) < 1


def test_no_law_for_two_idle_rows_or_a_row_in_the_span():
    twice = make_degenerate(-0.1)
    tokens = torch.cat([twice.X, twice.X[:, 2:]], dim=1)
    assert slack_law(Dataset(tokens, twice.y, twice.u)) is None
    inside = Dataset([[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]], [1], u=[1.0, 0.0])
    assert least_slack(inside) == pytest.approx(1.0, rel=1e-15)  # the dual is solved, not given
    assert slack_law(inside) is None


LAW = slack_law(make_degenerate(-0.1))


test_malformed_numbers = refusals(
    *(
        partial(call, value)
        for value in (-1, 0, math.nan, math.inf, "x")
        for call in (
            LAW.ngd_step,
            LAW.log_gd_step,
            LAW.settled_height,
            triple_offset,
            lambda value: triple_bracket(value, 0.1),
            lambda value: triple_bracket(0.1, value),
        )
    ),
)


def test_rates_in_closed_form():
    """K = diag(a, b), alpha = (1/a, 1/b): the matrix is a projection, of eigenvalues 0 and 1."""
    X = torch.zeros(2, 2, 4, dtype=torch.float64)
    X[0, 0, 0] = X[0, 1, 1] = X[1, 1, 3] = 1.0
    X[1, 0, 2] = 3.0
    data = Dataset(X, [1.0, 1.0], u=[1.0, 0.0, 1.0, 0.0])
    assert len(solve_w_svm(data).dual) == 2 and abs(transient_rate(data) - 1.0) < CLOSED_FORM
    single = Dataset([[[1.0, 0.0], [0.0, 1.0]]], [1.0], u=[1.0, 0.0])
    assert transient_rate(single) == math.inf  # a single row has nothing to settle
    for slack in (0.0, 1e-3, 0.5, 7.0):  # one idle row settles with its slack
        assert abs(transient_rate(make_degenerate(-slack)) - slack) < CLOSED_FORM
    for top in (1.0, 3.0):  # two sequences settle no faster than their softmax
        assert abs(transient_rate(opposed_rows(top)) - 1.0) < CLOSED_FORM


@FEW
@given(seeds, st.sampled_from([0.3, 1.0, 3.0]))
def test_the_same_from_finite_differences(seed, noise):
    """Of dx/dtau = (K - 1 1'/|W|^2) w(x), the flow of the supporting rows, at its fixed point."""
    data = noisy_means(4, 3, 30, noise, seed)
    svm = solve_w_svm(data)
    keep, scale, step = svm.supports, svm.norm**2, 1e-6
    K, alpha = svm.rows.gram()[keep][:, keep].numpy(), svm.dual[keep].numpy()

    def flow(x):
        w = alpha * np.exp(-x)
        return (K - 1 / scale) @ (w * scale / w.sum())

    moves = step * np.eye(len(K))
    jacobian = np.stack([(flow(x) - flow(-x)) / (2 * step) for x in moves], 1)
    rates = np.sort(-np.linalg.eigvals(jacobian).real)[1:]
    off = 1e-6 * max(1.0, rates[-1])  # of the difference
    assert np.abs(transient_rates(svm).numpy() * svm.norm - rates).max() < off
    assert abs(transient_rate(data, svm) - min(rates[0], least_slack(data, svm), 1.0)) < off


def opposed_rows(top):
    """Two sequences with one query, K = (1, -1/2; -1/2, 1): the balance is found at rate 3."""
    half, side = -0.5, math.sqrt(0.75)
    X = [[[1.0, 0, 0], [1.0, 1.0, 0]], [[1.0, 0, 0], [1.0, half, side]]]
    return Dataset(X, [1.0, 1.0], u=[0.0, 1.0, (top - half) / side])


def test_a_run_settles_as_its_softmax_saturates():
    """Scores 1 and 3: the sequences' weights near their ratio like exp(-height), not exp(-3 h)."""
    data = opposed_rows(3.0)
    svm = solve_w_svm(data)
    trace = train(data, NGD(0.004), 6000, record=range(0, 6001, 20), svm=svm)
    difference = trace.gaps[:, 0] - trace.gaps[:, 1]
    height = trace.gaps @ svm.dual.numpy() * svm.margin**2
    late = (height > 4) & (height < 7)
    distance = np.log(np.abs(difference - difference[-1])[late])
    slope = np.polyfit(height[late], distance, 1)[0]
    assert abs(slope + transient_rate(data, svm)) < 0.1, "the next order is exp(-2 height)"


def test_runs_settle_at_this_rate():
    """All rows support: the offset's distance from its end falls like exp(-rate height)."""
    data = noisy_means(3, 3, 60, 1.0, 0)
    svm = solve_w_svm(data)
    assert bool(svm.supports.all())
    rate, eta = transient_rate(data, svm), 0.01
    record = np.unique(np.linspace(1, 12 / (rate * svm.margin * eta), 200).astype(int))
    trace = train(data, NGD(eta), int(record[-1]), record=record, svm=svm)
    gaps = trace.gaps - trace.gaps.mean(axis=1, keepdims=True)  # all margins are 1: Q's part
    distance = np.linalg.norm(gaps - gaps[-1], axis=1)
    height = svm.margin * trace.W_norm
    late = (rate * height > 4) & (rate * height < 8)
    slope = np.polyfit(height[late], np.log(distance[late]), 1)[0]
    assert abs(slope / -rate - 1) < 0.05, "half a percent of step length, and exp(-4) of the end"


test_refusals = refusals(
    lambda: transient_rate(make_example1(3, 3, 20), solve_w_svm(make_example1(4, 3, 20))),
    lambda: transient_rate("data"),
    RangeError=[
        lambda: triple_bracket(5e-324, 0.1),
        lambda: LAW.ngd_step(5e-324),
    ],
    DtypeError=[
        lambda: dataclasses.replace(LAW, slack="x"),
    ],
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder, options = tmp_path_factory.mktemp("exponents"), {"seeds": 2, "steps": 20_000}
    options |= {"d": [60, 240], "noise": [3.0], "slack": [0.1, 0.03, 0.0]}
    return experiments.run("exponents", out=folder, **options), folder


def test_rows_and_parts(small):
    result, _ = small
    assert result.table.groupby("part").size().to_dict() == {"map": 2 * 2 * 6, "margins": 3 * 2 * 4}
    assert (result.table["status"] == "completed").all()
    assert {"exponent_1", "exponent_3", "norm_3"} <= set(result.table)
    assert "exponent_4" not in result.table  # its decade would end beyond the run
    steady = result.table.query("rule == 'NGD(0.5)' and d == 240")
    assert (steady["exponent_3"] + 2).abs().max() < ASYMPTOTIC


def test_data_are_what_they_say():
    data = noisy_means(n=6, T=3, d=4000, noise=2.0, seed=1)
    norms = data.X.norm(dim=2)
    noise = norms[norms.sub(2**0.5).abs() > 0.1]
    assert abs(float(noise.mean()) / (2 * 2**0.5) - 1) < ASYMPTOTIC
    assert abs(least_slack(planted(5, 4, 120, 2.0, 0.03, seed=0)) - 0.03) < CLOSED_FORM
    # a power law is read off exactly
    step = np.array([0, *np.unique(np.geomspace(1, 1e4, 61).round())])
    middle, slope, at = local_exponents(step, 3.0 / np.maximum(step, 1) ** 1.5, 0.1 * step)
    np.testing.assert_allclose(slope, -1.5, rtol=CLOSED_FORM)
    np.testing.assert_allclose(at, 0.1 * middle, rtol=CLOSED_FORM)
    steps = np.array(recorded(10**6))
    assert steps[0] == 0 and steps[-1] == 10**6
    counts = np.histogram(steps, 10.0 ** np.arange(2, 7))[0]
    assert counts.tolist() == [15, 15, 15, 16]  # the last step is in the last decade


def test_saved_and_judged_anew(small, tmp_path):
    result, folder = small
    assert sorted(path.name for path in folder.iterdir()) == ["exponents.parquet"]
    again = experiments.load("exponents", folder)
    assert again.table.equals(result.table) and again.settings == result.settings
    assert [check.verdict for check in again.claims] == [check.verdict for check in result.claims]
    assert {"command", "commit", "date"} <= again.provenance[0].keys()
    assert "24 runs of the map" in repr(again)
    # files are refused
    with pytest.raises(MissingFileError):
        experiments.load("exponents", tmp_path)
    (tmp_path / "exponents.parquet").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        experiments.load("exponents", tmp_path)


def test_claims_can_fail(small):
    """Tampered curves are found out, one claim at a time."""
    result, keys = small[0], {"Polyak": "settled/Polyak", "GD": "gd", "NGD": "settled/NGD"}
    assert all(result.claims[key].holds for key in keys.values())
    for rule, exponent in (("Polyak", -1.5), ("GD", -2.0), ("NGD", -2.2)):
        wrong = result.table.copy()
        wrong.loc[wrong["rule_name"] == rule, "exponent_3"] = exponent
        found = result.with_data(table=wrong).claims
        assert [other for other, key in keys.items() if not found[key].holds] == [rule]
    law = result.table[["law_settled", "law_limit"]] * [2, 1.2]
    found = result.with_data(table=result.table.assign(**law)).claims
    assert {found[key].verdict for key in ("law/step", "law/offset")} == {"fails"}


SETTINGS = {"seeds": 1, "steps": 10_000, "d": [60], "noise": [1.0], "slack": [0.1]}
test_bad_settings_are_refused = refused_settings(
    partial(experiments.run, "exponents"),
    ("steps", 100, RangeError),
    ("seeds", 0, RangeError),
    ("d", [], RangeError),
    ("d", [10], RangeError),
    ("slack", [-0.1], RangeError),
    ("noise", ["loud"], DtypeError),
    ("workers", 0, RangeError),
    **SETTINGS,
)
test_bad_noise_is_refused = refused_settings(
    lambda sigma: experiments.run("exponents", **SETTINGS | {"noise": sigma}),
    ("sigma", [-1.0], RangeError),
)


def test_figures(small):
    table = small[0].table
    grid = table[table["part"] == "map"]
    cells = plot_exponent_map(grid, 3)
    assert len([axis for axis in cells.axes if axis.get_title("left")]) == 6
    texts = [text.get_text() for text in cells.axes[0].texts]
    assert len(texts) == 2 and all(float(text) <= 0 for text in texts)
    margins = table[(table["part"] == "margins") & (table["slack"] > 0)]
    dots = plot_settling(margins, [2, 3]).axes[0].lines
    assert len(dots) == 4 and len(dots[0].get_xdata()) == 2 * 4 and (dots[0].get_xdata() > 0).all()
    lines = plot_settled_steps(margins[margins["rule"] == "NGD(0.1)"]).axes[0].lines
    np.testing.assert_allclose(lines[0].get_xdata(), [0.03, 0.1])
