"""Heads that keep several tokens: mixtures, sets, their SVM, finite part, training and checks."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from room_tests import RISK, assert_gradient, normal, refusals
from tolerances import (
    AUTOGRAD,
    CLOSED_FORM,
    INTERIOR_POINT,
    SETTLED_LAW,
    SVM_CLOSED_FORM,
    SVM_EQUIVALENT,
)

from attnbias import GD, NGD, Dataset, Polyak, solve_w_svm
from attnbias.beyond.multi_token.checks import (
    best_mixture,
    check_several,
    predict_mixture,
    predict_settled,
)
from attnbias.beyond.multi_token.data import (
    QuadraticHead,
    ReluHead,
    TorchHead,
    make_orthogonal,
    make_relu_tokens,
)
from attnbias.beyond.multi_token.dynamics import train_nonlinear, train_nonlinear_many
from attnbias.beyond.multi_token.geometry import (
    finite_part,
    selected_sets,
    several_rows,
    solve_several_svm,
)
from attnbias.beyond.multi_token.plots import plot_several
from attnbias.errors import InfeasibleError

EYE = torch.eye(3).double()
ONE = Dataset(EYE[None], [1])
PAIR = torch.tensor([[True, True, False]])


def generic(seed: int):
    """Three sequences of four random tokens in six features, and sets of one to three tokens."""
    data = Dataset(normal(3, 4, 6, seed=seed), torch.ones(3), query=normal(3, 6, seed=seed + 1))
    sets = torch.rand(3, 4, generator=torch.Generator().manual_seed(seed)) < 0.4
    sets[:, 0], sets[0, 3] = True, False
    return data, sets


def full_rows(data, sets):
    """Equality and inequality rows written out, for all pairs."""
    parts = ([], [])
    for i, s in sets.nonzero().tolist():
        for t in range(data.T):
            row = torch.outer(data.X[i, s] - data.X[i, t], data.queries[i]).reshape(-1)
            parts[0 if sets[i, t] else 1].append(row)
    return [torch.stack(rows).numpy() for rows in parts]


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), T=st.integers(2, 7))
def test_best_mixture_meets_its_optimality_conditions(seed, T):
    a, c = normal(3, T, seed=seed), 0.05 + normal(3, T, seed=seed + 1).abs()
    p = best_mixture(a, c)
    slope = a - 2 * c * p
    price = slope.masked_fill(p == 0, -torch.inf).amax(dim=1, keepdim=True)
    assert float((p.sum(dim=1) - 1).abs().max()) < CLOSED_FORM and float(p.min()) >= 0
    assert float((slope - price)[p > 0].abs().max()) < CLOSED_FORM
    assert bool((slope <= price + CLOSED_FORM).all())


def test_mixture_against_an_interior_point_solver():
    cvxpy = pytest.importorskip("cvxpy")
    data = make_orthogonal(2, 5, 6, seed=3)
    data = dataclasses.replace(data, X=data.X * torch.linspace(0.5, 1.5, 5)[:, None].double())
    found = predict_mixture(data, data.u, 0.2)
    for X, weights, best in zip(data.X.numpy(), found.weights, found.value, strict=True):
        p = cvxpy.Variable(5)
        value = (X @ data.u.numpy()) @ p - 0.2 * cvxpy.sum_squares(X.T @ p)
        problem = cvxpy.Problem(cvxpy.Maximize(value), [p >= 0, cvxpy.sum(p) == 1])
        problem.solve()
        assert np.abs(p.value - weights.numpy()).max() < INTERIOR_POINT
        assert abs(problem.value - float(best)) < INTERIOR_POINT
    assert found.room > 0 and bool((found.deficit >= 0).all())
    # one token wins from a lead of twice the curvature
    at = best_mixture([[1.0, 0.0], [1.0 - 1e-6, 0.0]], [[0.5, 0.5], [0.5, 0.5]])
    assert at[0].tolist() == [1.0, 0.0] and float(at[1, 1]) > 0


@pytest.mark.parametrize("seed", range(3))
def test_svm_and_finite_part_against_an_interior_point_solver(seed):
    cvxpy = pytest.importorskip("cvxpy")
    data, sets = generic(seed)
    log_p = normal(3, 4, seed=seed + 50)
    equal, above = full_rows(data, sets)
    pairs = [(i, s, t) for i, s in sets.nonzero().tolist() for t in range(4) if sets[i, t]]
    ratios = np.array([float(log_p[i, s] - log_p[i, t]) for i, s, t in pairs])
    w = cvxpy.Variable(36)
    for found, limits in (
        (solve_several_svm(data, sets).weights, [equal @ w == 0, above @ w >= 1]),
        (finite_part(data, log_p, sets), [equal @ w == ratios]),
    ):
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w)), limits).solve()
        scale = max(float(found.norm()), 1.0)
        assert np.linalg.norm(w.value - found.numpy().ravel()) < INTERIOR_POINT * scale


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_svm_keeps_all_pairs_apart_and_its_certificate(seed):
    data, sets = generic(seed)
    svm = solve_several_svm(data, sets)
    equal, above = full_rows(data, sets)
    w = svm.weights.numpy().ravel()
    scale = 1 + svm.norm * max(np.linalg.norm(above, axis=1).max(), 1)
    assert np.abs(equal @ w).max() < SVM_EQUIVALENT * scale
    assert (above @ w).min() > 1 - SVM_EQUIVALENT * scale
    assert svm.is_optimal(1e-9)
    bent = svm.weights + 0.01 * svm.norm * svm.rows.combine(torch.ones_like(svm.dual))
    # no longer the smallest, and the bound says so
    assert svm.bounds.lower <= svm.norm * (1 + 1e-9) < float(bent.norm())


def test_single_tokens_give_the_w_svm_and_a_pair_its_closed_form():
    data, _ = generic(7)
    sets = torch.zeros(3, 4, dtype=torch.bool)
    sets[:, 1] = True
    plain = solve_w_svm(data, torch.ones(3, dtype=torch.long))
    assert float((solve_several_svm(data, sets).weights - plain.weights).norm()) < SVM_EQUIVALENT
    svm = solve_several_svm(ONE, PAIR)
    wanted = torch.zeros(3, 3).double()
    wanted[:, 0] = torch.tensor([1, 1, -2]).double() / 3
    assert float((svm.weights - wanted).norm()) < 10 * SVM_CLOSED_FORM
    assert float(finite_part(data, torch.zeros(3, 4), sets).norm()) == 0


def test_infeasible_sets_come_with_a_certificate():
    X = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]]).double()
    with pytest.raises(InfeasibleError) as caught:
        solve_several_svm(Dataset(X, [1], query=[[1.0, 0.0]]), [[True, False, False]])
    assert float(caught.value.certificate.sum()) == pytest.approx(1)
    # and sets are read off a softmax
    p = torch.tensor([[0.7, 0.3 - 1e-9, 1e-9], [1 - 2e-9, 1e-9, 1e-9]])
    assert selected_sets(p.log()).tolist() == [[True, True, False], [True, False, False]]


V = torch.randn(5, 6, generator=torch.Generator().manual_seed(3)).double()
LINE = torch.linspace(-1, 1, 6).double()
FREE = TorchHead(lambda o: torch.tanh(o).sum(-1) - o[:, 0] ** 3)
HEADS = {  # each with the same in torch
    "relu": (ReluHead(V), lambda o: torch.relu(o @ V.T).sum(1)),
    "quadratic": (QuadraticHead(LINE, 0.4), lambda o: o @ LINE - 0.4 * o.square().sum(1)),
    "torch": (FREE, FREE.function),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("loss", RISK)
def test_gradient_against_autograd(name, loss):
    data = dataclasses.replace(generic(2)[0], y=torch.tensor([1.0, -1.0, 1.0]).double())
    (head, of_o), W0 = HEADS[name], 0.3 * normal(6, 6)

    def plain(W):
        p = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.query), 1)
        return RISK[loss](data.y * of_o(torch.einsum("nt,ntd->nd", p, data.X)))

    def run_of(W, rule=None, **split):
        return train_nonlinear(data, head, rule or GD(0.1), 1, loss=loss, W0=W, **split)

    gradient = assert_gradient(run_of, W0, plain, 100 * AUTOGRAD)
    # a split step of NGD with the same gradient: its parts in F and across
    rows = several_rows(data, torch.tensor([[True, True, False, False]] * 3))
    step, F = run_of(W0, NGD(0.1), split=rows).W, rows.basis
    soft = (F @ (F.T @ -gradient.flatten())).view_as(gradient)
    hard = -gradient - soft
    wanted = 0.1 * (soft + hard / hard.norm())
    assert float((step[1] - step[0] - wanted).abs().max()) < 1e3 * AUTOGRAD


def test_many_at_once_are_one_by_one():
    draws = [make_relu_tokens(5, seed) for seed in (1, 2, 3)]
    datas, units, starts = zip(*draws, strict=True)
    options = {"rule": NGD(0.1), "steps": 30, "loss": "logistic"}
    many = train_nonlinear_many(datas, ReluHead(torch.stack(units)), W0=starts, **options)
    for run, data, V, W0 in zip(many, datas, units, starts, strict=True):
        alone = train_nonlinear(data, ReluHead(V), W0=W0, **options)
        assert float((run.W - alone.W).abs().max()) < CLOSED_FORM


def test_one_sequence_settles_on_its_closed_form_below_the_smallest_float():
    v = torch.tensor([1.0, 0.5, 0.0])
    best = predict_mixture(ONE, v, 0.5)
    assert best.weights.tolist() == [[0.75, 0.25, 0.0]] and float(best.deficit[0, 2]) == 0.25
    svm = solve_several_svm(ONE, best.sets)
    end = predict_settled(ONE, best, svm)
    run = train_nonlinear(ONE, QuadraticHead(v, 0.5), NGD(1.0), 1200, split=svm.rows)
    assert np.abs(np.exp(run.log_attention[-1, 0, :2]) - [0.75, 0.25]).max() < 1e-9
    assert run.log_attention[-1, 0, 2] < -1000 and run.log_grad_norm[-1] < -1000
    law = run.step[-1] ** 2 * run.alignment_with(svm.weights)[-1]
    assert law == pytest.approx(end.size**2 / 2, rel=SETTLED_LAW)
    # the finite part of one tie: log(3) / 2 on each side
    tie = torch.tensor([1, -1, 0]).double() * math.log(3) / 2
    assert float((end.finite[:, 0] - tie).norm()) < CLOSED_FORM


def test_the_law_of_several_sequences_and_another_that_is_wrong():
    data, v = make_orthogonal(3, 4, 6, 15), make_orthogonal(3, 4, 6).u
    best = predict_mixture(data, v, 0.3)
    svm = solve_several_svm(data, best.sets)
    end = predict_settled(data, best, svm)
    run = train_nonlinear(data, QuadraticHead(v, 0.3), NGD(1.0), 1200, split=svm.rows)
    law = 1200**2 * run.alignment_with(svm.weights)[-1]
    assert end.complete and law == pytest.approx(end.size**2 / 2, rel=SETTLED_LAW)
    other = predict_settled(data, dataclasses.replace(best, deficit=best.deficit**2), svm)
    assert law != pytest.approx(other.size**2 / 2, rel=SETTLED_LAW)
    logistic = predict_settled(data, best, svm, loss="logistic")
    assert logistic.size != pytest.approx(end.size, rel=1e-6)


def test_check_holds_and_refuses_another_direction_and_unsettled_sets():
    data = make_orthogonal(2, 3, 5)
    head = QuadraticHead(data.u, 0.3)
    svm = solve_several_svm(data, predict_mixture(data, data.u, 0.3).sets)
    run = train_nonlinear(data, head, NGD(1.0), 800, split=svm.rows)
    check = check_several(run, svm)
    assert check.holds and not check.vacuous
    for wrong in (run.W.flip(1), -run.W):
        assert not check_several(dataclasses.replace(run, W=wrong), svm).holds
    assert not check_several(train_nonlinear(data, head, NGD(1.0), 10), svm).applicable
    other = several_rows(data, [[False, False, True], [True, False, False]])
    bad = train_nonlinear(data, head, NGD(0.1), 200, split=other)
    assert not np.isfinite(bad.log_factor[-1]).all() and not check_several(bad, svm).applicable


MIDDLE = Dataset([[[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]], [1], query=[[1.0, 0.0]])
ALL = [[True, True, True]]
UNIT = QuadraticHead([1.0, 0, 0], 1)
BEST, CONSTANT = predict_mixture(ONE, [1.0, 0.5, 0.0], 0.5), TorchHead(lambda o: torch.ones(len(o)))
FIRST, TWO_HEADS = [[True, False, False]], ReluHead(torch.ones(2, 1, 3).double())
test_bad_input_is_refused = refusals(
    InfeasibleError=[
        lambda: solve_several_svm(MIDDLE, PAIR),  # the mean of the two kept
        lambda: solve_several_svm(ONE, ALL),
        lambda: finite_part(MIDDLE, torch.tensor([[0.0, -1.0, -2.0]]), ALL),
    ],
    RangeError=[
        lambda: selected_sets(torch.tensor([[0.9, 0.0995, 5e-4]]).log()),
        lambda: selected_sets(torch.tensor([[math.nan, 0.5, 0.5]])),
        lambda: make_relu_tokens(0, 1),
        lambda: best_mixture([[1.0, 0.0]], [[1.0, 0.0]]),
        lambda: predict_mixture(ONE, [1.0, 0, 0], 0.0),
        lambda: predict_mixture(Dataset(EYE[None] + 1, [1]), [1.0, 0, 0], 0.5),
        lambda: solve_several_svm(ONE, [[False, False, False]]),
        lambda: finite_part(ONE, torch.tensor([[0.0, -math.inf, 0.0]]), PAIR),
        lambda: selected_sets(torch.zeros(1, 3), threshold=0.0),
        lambda: train_nonlinear(ONE, UNIT, Polyak(), 5),
        lambda: plot_several({"a": ([1], [1])}, {k: {"b": 1.0} for k in "abcdefgh"}),
        lambda: train_nonlinear(ONE, UNIT, GD(1.0), 5, split=several_rows(ONE, PAIR)),
        lambda: predict_settled(ONE, BEST, solve_several_svm(ONE, FIRST)),
        lambda: best_mixture([[1.0, 0.0]], [[5e-324, 5e-324]]),
    ],
    ShapeError=[
        lambda: make_orthogonal(2, 5, 4),
        lambda: best_mixture([[1.0, 0.0]], [[1.0]]),
        lambda: solve_several_svm(ONE, [[True, False]]),
        lambda: train_nonlinear(ONE, UNIT, NGD(1.0), 5, W0=torch.zeros(2, 2)),
        lambda: train_nonlinear(ONE, TorchHead(lambda o: o), NGD(1.0), 5),
        lambda: ReluHead([1.0]),
        lambda: QuadraticHead([[1.0]], 1.0),
        lambda: train_nonlinear(ONE, QuadraticHead([1.0, 1.0], 0.5), NGD(0.5), 1),
        lambda: train_nonlinear(ONE, TWO_HEADS, NGD(0.5), 1),
        lambda: QuadraticHead([1.0], 1.0).value(np.ones((1, 2))),
    ],
    LabelError=[
        lambda: predict_mixture(Dataset(EYE[None], [-1]), [1.0, 0, 0], 0.5),
    ],
    DtypeError=[
        lambda: solve_several_svm(ONE, [[1, 1, 0]]),
        lambda: train_nonlinear(ONE, lambda o: o, NGD(0.1), 5),
        lambda: train_nonlinear(ONE, UNIT, NGD(1.0), 5, split=PAIR),
        lambda: TorchHead(3),
        lambda: train_nonlinear_many([], UNIT, NGD(0.1), 5),
        lambda: check_several(None, None),
        lambda: predict_settled(ONE, BEST, solve_w_svm(ONE, [0])),
        lambda: predict_settled(ONE, None, solve_several_svm(ONE, BEST.sets)),
        lambda: CONSTANT.gradient(np.ones((1, 2))),
        lambda: ReluHead([[1], [1, 2]]),
        lambda: plot_several({}, {"a": {"b": 1.0}}),
        lambda: plot_several({"a": ([1], [1])}, {1: 2}),
        lambda: plot_several({"a": ([1], [1])}, {"a": {"b": "x"}}),
    ],
)
