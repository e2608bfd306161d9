"""Planted slack, how long a run feels it, and the rate at which the offset settles."""

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, dyadic_data, random_data, seeds
from tolerances import (
    ASYMPTOTIC,
    CLOSED_FORM,
    INTERIOR_POINT,
    INVARIANCE,
    PRINTED_TWO_RELATIVE,
    SVM_CLOSED_FORM,
    SVM_EQUIVALENT,
    SVM_GAP,
)

from attnbias import (
    GD,
    NGD,
    Dataset,
    InfeasibleError,
    check_assumption2,
    make_example1,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.beyond.exponents.experiments import noisy_means
from attnbias.beyond.exponents.geometry import slack_law, triple_bracket, triple_offset
from attnbias.beyond.exponents.slack import least_slack, nearest_row, plant_slack
from attnbias.beyond.exponents.transient import transient_rate
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import AttnBiasError, DtypeError, RangeError, ShapeError
from attnbias.geometry.constants import limit_offset
from attnbias.geometry.solution import certify
from attnbias.geometry.tokens import gap_rows

SLACKS = (0.0, 1e-6, 1e-3, 0.1, 1.0, 50.0)


def planted_row(data):
    return data.meta["planted_sequence"], data.meta["planted_token"]


def reduced(data, row):
    """The W-SVM without the constraint of a token, by another route: the rows themselves."""
    i, t = row
    rows = gap_rows(data)
    keep = ~((rows.sequence == i) & (rows.token == t))
    opt = rows.opt.clone()
    lengths, X = data.lengths.clone(), data.X.clone()
    # the token becomes a copy of another wrong one, which leaves the feasible set as it is
    other = next(s for s in range(int(lengths[i])) if s not in (t, int(opt[i])))
    X[i, t] = X[i, other]
    return solve_w_svm(Dataset(X, data.y, lengths=lengths), opt), keep


def example(seed=0, n=4, T=4, d=30):
    return make_example1(n, T, d, sigma=0.3, seed=seed)


# the certificate


@FEW
@given(seeds, st.sampled_from(SLACKS), st.integers(3, 5), st.booleans())
def test_the_old_solution_certifies_the_new_problem(seed, slack, T, decoder):
    data = example(seed, T=T) if decoder else random_data(3, T, 20, seed=seed)
    if not decoder:  # optimal tokens given in place of a decoder
        data = Dataset(data.X, data.y, opt=optimal_tokens(data))
    new = plant_slack(data, slack, seed=seed)
    i, t = planted_row(new)
    old, keep = reduced(data, (i, t))
    rows = gap_rows(new)
    at = int((~keep).nonzero())
    assert (int(rows.sequence[at]), int(rows.token[at])) == (i, t)
    # KKT: margins, and the old dual weights, the planted one 0
    expected = old.margins[keep]
    margins = rows.gaps(old.weights)
    assert abs(float(margins[at]) - 1 - slack) <= INVARIANCE * (1 + slack)
    assert float((margins[keep] - expected).abs().max()) <= INVARIANCE
    solved = solve_w_svm(new)
    dual = solved.dual.clone()
    dual[at] = 0
    assert certify(rows, dual, old.weights).is_optimal(SVM_EQUIVALENT)
    assert float((solved.weights - old.weights).norm()) <= INVARIANCE * old.norm
    assert abs(float(solved.dual[at])) <= SVM_EQUIVALENT * float(solved.dual.max())


@FEW
@given(seeds, st.sampled_from(SLACKS))
def test_only_the_token_moves_and_scores_stay(seed, slack):
    data = example(seed)
    new = plant_slack(data, slack, seed=seed)
    i, t = planted_row(new)
    same = torch.ones(data.n, data.T, dtype=torch.bool)
    same[i, t] = False
    assert torch.equal(new.X[same], data.X[same])
    assert not torch.equal(new.X[i, t], data.X[i, t])
    assert t != 0 and t != int(optimal_tokens(data)[i])
    assert check_assumption2(data).all_hold and check_assumption2(new).all_hold
    assert torch.equal(optimal_tokens(new), optimal_tokens(data))
    difference = float((token_scores(new) - token_scores(data)).abs().max())
    assert difference <= INVARIANCE * float(new.X[i, t].norm() * new.u.norm() + 1)
    assert torch.equal(new.y, data.y) and torch.equal(new.u, data.u)


def test_assumption2_would_fail_without_the_projection():
    """The same shift along the whole of W_mm x_1 changes the score."""
    data = example(1)
    row = nearest_row(plant_slack(data, 0.5, seed=1))
    i, t = row
    X = data.X.clone()
    X[i, t] -= reduced(data, row)[0].weights @ X[i, 0]
    assert not check_assumption2(Dataset(X, data.y, data.u)).all_hold


def test_independent_solver():
    data = plant_slack(example(5, n=2, T=3, d=8), 0.25, seed=5)
    solution, X, opt = solve_w_svm(data), data.X.numpy(), optimal_tokens(data).tolist()
    W = cp.Variable((8, 8))
    pairs = [(i, t) for i in range(2) for t in range(3) if t != opt[i]]
    constraints = [(X[i, opt[i]] - X[i, t]) @ W @ X[i, 0] >= 1 for i, t in pairs]
    cp.Problem(cp.Minimize(cp.sum_squares(W)), constraints).solve(solver=cp.CLARABEL)
    assert np.linalg.norm(W.value - solution.weights.numpy()) <= INTERIOR_POINT * solution.norm
    i, t = planted_row(data)
    margin = (X[i, opt[i]] - X[i, t]) @ W.value @ X[i, 0]
    assert abs(margin - 1.25) <= INTERIOR_POINT
    dual = float(constraints[pairs.index((i, t))].dual_value)
    assert abs(dual) <= INTERIOR_POINT < max(float(c.dual_value) for c in constraints)


@pytest.mark.parametrize("slack, strict", [(0.0, False), (1e-6, True), (0.1, True)])
def test_strict_complementarity_is_broken_at_slack_zero_alone(slack, strict):
    for seed in range(5):
        assert solve_w_svm(plant_slack(example(seed), slack)).strictly_complementary is strict


def test_slack_zero_in_the_span_of_the_others_keeps_it():
    """The proposition's proviso: a row repeated has a dual solution with both weights positive."""
    data = Dataset([[[1.0, 0, 0], [0, 1, 0], [0, 1, 0.0]]], [1], u=[1.0, 0.1, 0])
    new = plant_slack(data, 0.0, row=(0, 2))
    assert solve_w_svm(new).strictly_complementary
    assert torch.allclose(new.X, data.X, atol=SVM_CLOSED_FORM)


def test_ragged_sequences_keep_their_padding():
    data = dyadic_data(3, 4, 14, seed=2, equal_scores=True, lengths=[2, 4, 3])
    for seed in range(12):
        new = plant_slack(data, 0.3, seed=seed)
        i, t = planted_row(new)
        assert i in (1, 2) and t < int(data.lengths[i])
        assert torch.equal(new.lengths, data.lengths) and check_assumption2(new).all_hold
        k = next(k for k, row in enumerate(solve_w_svm(new).constraints.tolist()) if row == [i, t])
        assert abs(float(solve_w_svm(new).margins[k]) - 1.3) <= SVM_GAP


def test_row_and_seed():
    data = example(7)
    opt = optimal_tokens(data)
    row = next((1, t) for t in (1, 2) if t != int(opt[1]))
    assert planted_row(plant_slack(data, 0.1, row=row)) == row
    drawn = {planted_row(plant_slack(data, 0.1, seed=seed)) for seed in range(30)}
    assert len(drawn) > 3
    assert torch.equal(plant_slack(data, 0.1, seed=4).X, plant_slack(data, 0.1, seed=4).X)
    new = plant_slack(data, 0.1, row=list(row))
    assert new.name == "example 1, slack 0.1" and new.meta["maker"] == "make_example1"


# bad input


def test_malformed_arguments_and_data():
    data = example()
    opt = int(optimal_tokens(data)[2])
    for slack in (-0.1, math.inf):
        with pytest.raises(RangeError, match="slack"):
            plant_slack(data, slack)
    for row in ("first", (1, 2, 3), (0.5, 1)):
        with pytest.raises(DtypeError, match="row"):
            plant_slack(data, 0.1, row)
    for row in ((0, 0), (9, 1), (0, -1), (0, 4), (2, opt)):
        with pytest.raises(RangeError, match="row"):
            plant_slack(data, 0.1, row)
    with pytest.raises(DtypeError, match="Dataset"):
        plant_slack(data.X, 0.1)
    with pytest.raises(DtypeError, match="float64"):
        plant_slack(data.to(dtype=torch.float32), 0.1)
    with pytest.raises(ShapeError, match="at least 3"):
        plant_slack(make_separation_pair(), 0.1)
    short = Dataset([[[1.0, 0], [0, 1], [0, 0]]], [1], u=[1.0, 0], lengths=[2])
    with pytest.raises(ShapeError, match="at least 3"):
        plant_slack(short, 0.1)
    with pytest.raises(RangeError, match="padding|neither"):
        plant_slack(dyadic_data(2, 4, 10, seed=0, equal_scores=True, lengths=[3, 4]), 0.1, (0, 3))
    # x_2 = x_opt + e_2 and x_3 = x_opt - e_2 ask for opposite signs; x_4 is free
    blocked = [[[1.0, 0, 0], [1, 1, 0], [1, -1, 0], [0, 0, 1]]]
    with pytest.raises(InfeasibleError):
        plant_slack(Dataset(blocked, [1], opt=[0]), 0.1, (0, 3))


def test_image_along_the_decoder_is_refused():
    """W_mm x_1 = e_1 = u: the score of a token decides its margin."""
    with pytest.raises(RangeError, match="along u"):
        plant_slack(make_degenerate(), 0.1, (0, 2))
    assert least_slack(plant_slack(make_degenerate(), 0.1, (0, 1))) == pytest.approx(0.1)


# least slack


def test_least_slack_in_closed_form():
    assert least_slack(make_degenerate()) == 0.0
    assert nearest_row(make_degenerate()) == (0, 2)
    assert least_slack(make_degenerate(-0.25)) == 0.25
    assert nearest_row(make_degenerate(-0.25)) == (0, 2)
    assert least_slack(make_degenerate(0.25)) == math.inf
    assert nearest_row(make_degenerate(0.25)) is None
    # the solver's own skips the active row
    assert solve_w_svm(make_degenerate()).least_slack == math.inf


@FEW
@given(seeds, st.sampled_from(SLACKS[1:-1]))
def test_least_slack_finds_the_planted_row(seed, slack):
    data = plant_slack(example(seed), slack, seed=seed)
    solution = solve_w_svm(data)
    excess = solution.margins[solution.dual <= SVM_GAP * solution.dual.max()] - 1
    assert least_slack(data, solution) == float(excess.min())
    if len(excess) == 1:
        assert abs(least_slack(data) - slack) <= SVM_GAP
        assert nearest_row(data) == planted_row(data)


@pytest.mark.parametrize("function", [least_slack, nearest_row, slack_law, transient_rate])
def test_a_foreign_solution_is_refused(function):
    data = example()
    with pytest.raises(ShapeError, match="dual weights"):
        function(data, solve_w_svm(example(n=3)))
    with pytest.raises(DtypeError, match="W-SVM"):
        function(data, solve_u_svm(data))
    with pytest.raises(DtypeError, match="SVMSolution"):
        function(data, "solved")
    with pytest.raises(DtypeError, match="Dataset"):
        function(data.X)


# the law


def one_idle_row(slack):
    """All rows of the tokens before planting support W_mm, so the planted one alone is idle."""
    return plant_slack(make_example1(5, 4, 60, sigma=0.1, seed=2), slack, seed=2)


def across(trace):
    error = trace.W_alignment_error
    return trace.W_norm * np.sqrt(error * (2 - error))


@pytest.mark.parametrize("slack", [1.0, 0.1, 0.01])
def test_frozen_offset_of_the_triple(slack):
    """Small steps end at the closed form, with an error in proportion to their length."""
    data, ends = make_degenerate(-slack), {}
    for eta in (2.0, 0.1, 0.01):
        ends[eta] = across(train(data, NGD(eta), int(40 / slack / eta), record=2))[-1]
        low, high = triple_bracket(slack, eta)
        assert low < ends[eta] < high
    coarse, fine = (ends[eta] - triple_offset(slack) for eta in (0.1, 0.01))
    assert 0 < fine < ASYMPTOTIC and abs(coarse / fine / 10 - 1) < 0.2


def test_the_triple_follows_its_curve():
    """(1 - exp(-delta q)) / delta = (exp(k P) - 1) / k along a run of small steps, GD's too."""
    slack, k = 0.1, 1 + 0.1 + 0.01
    for rule, steps in ((NGD(1e-3), 20000), (GD(1e-2), 10**5)):
        gaps = train(make_degenerate(-slack), rule, steps, record=30).gaps[1:]
        c, P = gaps[:, 0], gaps[:, 1] - (1 + slack) * gaps[:, 0]
        left = -np.expm1(-slack * (c - (1 + slack) * P)) / slack
        np.testing.assert_allclose(left, np.expm1(k * P) / k, rtol=ASYMPTOTIC)


def test_bracket_refuses_the_degenerate_triple():
    """The broken case: without slack the offset outgrows the bracket of a slack, and stays so."""
    end = across(train(make_degenerate(), NGD(0.5), 10**5, record=2))[-1]
    assert end > triple_bracket(0.02, 0.5)[1]


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


def test_the_settled_part_is_limit_offset():
    """Which sees the supporting rows alone."""
    data = one_idle_row(0.01)
    assert abs(slack_law(data).settled / limit_offset(data, solve_w_svm(data)) - 1) <= CLOSED_FORM


def test_no_law_for_two_idle_rows_or_a_row_in_the_span():
    twice = make_degenerate(-0.1)
    tokens = torch.cat([twice.X, twice.X[:, 2:]], dim=1)
    assert slack_law(Dataset(tokens, twice.y, twice.u)) is None
    inside = Dataset([[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]], [1], u=[1.0, 0.0])
    assert least_slack(inside) == pytest.approx(1.0, rel=1e-15)  # the dual is solved, not given
    assert slack_law(inside) is None


@pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf, "x"])
def test_malformed_numbers(value):
    law = slack_law(make_degenerate(-0.1))
    for call in (
        lambda: law.ngd_step(value),
        lambda: law.log_gd_step(value),
        lambda: law.settled_height(value),
        lambda: triple_offset(value),
        lambda: triple_bracket(value, 0.1),
        lambda: triple_bracket(0.1, value),
    ):
        with pytest.raises(AttnBiasError):
            call()


# the settling rate


@pytest.mark.parametrize("slack", [0.0, 1e-3, 0.5, 7.0])
def test_one_idle_row_settles_with_its_slack(slack):
    assert abs(transient_rate(make_degenerate(-slack)) - slack) < CLOSED_FORM


def test_a_single_row_has_nothing_to_settle():
    assert transient_rate(make_separation_pair()) == math.inf


def test_two_orthogonal_rows_in_closed_form():
    """K = diag(a, b), alpha = (1/a, 1/b): the matrix is a projection, of eigenvalues 0 and 1."""
    X = torch.zeros(2, 2, 4, dtype=torch.float64)
    X[0, 0, 0], X[0, 1, 1] = 1.0, 1.0
    X[1, 0, 2], X[1, 1, 3] = 3.0, 1.0
    data = Dataset(X, [1.0, 1.0], u=[1.0, 0.0, 1.0, 0.0])
    assert len(solve_w_svm(data).dual) == 2
    assert abs(transient_rate(data) - 1.0) < CLOSED_FORM


@FEW
@given(seeds, st.sampled_from([0.3, 1.0, 3.0]))
def test_the_same_from_finite_differences(seed, noise):
    """Of dx/dtau = (K - 1 1'/|W|^2) w(x), the flow of the supporting rows, at its fixed point."""
    data = noisy_means(4, 3, 30, noise, seed)
    svm = solve_w_svm(data)
    keep = svm.supports
    K, alpha = svm.rows.gram()[keep][:, keep].numpy(), svm.dual[keep].numpy()
    scale = svm.norm**2

    def flow(x):
        w = alpha * np.exp(-x)
        return (K - 1 / scale) @ (w * scale / w.sum())

    step = 1e-6
    jacobian = np.stack(
        [(flow(step * e) - flow(-step * e)) / (2 * step) for e in np.eye(len(K))], 1
    )
    rates = np.sort(-np.linalg.eigvals(jacobian).real)
    expected = min(rates[1], least_slack(data, svm), 1.0)
    assert abs(transient_rate(data, svm) - expected) < 1e-6 * max(
        1.0, rates[-1]
    )  # of the difference


def opposed_rows(top):
    """Two sequences with one query, K = (1, -1/2; -1/2, 1): the balance is found at rate 3."""
    half, side = -0.5, math.sqrt(0.75)
    X = [[[1.0, 0, 0], [1.0, 1.0, 0]], [[1.0, 0, 0], [1.0, half, side]]]
    return Dataset(X, [1.0, 1.0], u=[0.0, 1.0, (top - half) / side])


@pytest.mark.parametrize("top", [1.0, 3.0])
def test_two_sequences_settle_no_faster_than_their_softmax(top):
    assert abs(transient_rate(opposed_rows(top)) - 1.0) < CLOSED_FORM


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
