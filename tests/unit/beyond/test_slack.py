"""Planted slack, and the least slack of tokens."""

import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, dyadic_data, random_data, seeds
from tolerances import (
    INTERIOR_POINT,
    INVARIANCE,
    SVM_CLOSED_FORM,
    SVM_EQUIVALENT,
    SVM_GAP,
)

from attnbias import (
    Dataset,
    InfeasibleError,
    check_assumption2,
    make_example1,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
    token_scores,
)
from attnbias.beyond.exponents.geometry import slack_law
from attnbias.beyond.exponents.slack import least_slack, nearest_row, plant_slack
from attnbias.beyond.exponents.transient import transient_rate
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import DtypeError, RangeError, ShapeError
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
