"""The W-SVM in other norms, the rules that head for it, factors, and modes in the plane."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import FEW, random_data
from room_tests import normal, refusals, two_orthogonal
from scipy.optimize import linprog
from tolerances import CLOSED_FORM, FLOAT_PATHS, FORMS, MODES, MULTIPRECISION_LOG, OTHER_BATCH

from attnbias import (
    GD,
    NGD,
    Dataset,
    make_example1,
    make_separation_pair,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.beyond.norms.dynamics import (
    matrix_problem,
    steepest_direction,
    train_adam,
    train_steepest,
)
from attnbias.beyond.norms.geometry import NORMS, matrix_norm, norm_margin, solve_norm_svm
from attnbias.beyond.norms.matrices import train_matrices
from attnbias.beyond.norms.plots import plot_margin_matrix
from attnbias.beyond.plane.data import free_starts, make_plane_pair
from attnbias.beyond.plane.geometry import factor_modes
from attnbias.beyond.plane.plots import plot_query_images
from attnbias.beyond.prompt.data import prompt_keys, prompt_of
from attnbias.beyond.ranks.data import make_free_queries
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.errors import InfeasibleError
from attnbias.geometry.solution import certify
from attnbias.geometry.tokens import gap_rows
from attnbias.model import empirical_risk

DUAL = {"frobenius": "frobenius", "max": "sum", "spectral": "nuclear", "nuclear": "spectral"}


def data_of(seed=0):
    return make_example1(4, 3, 12, sigma=0.3, seed=seed)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_tight_and_no_other_matrix_beats_them(norm, seed):
    data = data_of(seed)
    solution = solve_norm_svm(data, norm)
    assert solution.duality_gap < 1e-6
    assert abs(float(solution.margins.min()) - 1) < CLOSED_FORM
    assert abs(norm_margin(data, solution.weights, norm) / solution.margin - 1) < FORMS
    for other in NORMS:  # solutions for other norms are feasible, hence no better
        W = solve_norm_svm(data, other).weights
        assert norm_margin(data, W, norm) <= (1 + 1e-6) * solution.margin


@pytest.mark.parametrize(
    ("norm", "least"), [("frobenius", math.sqrt(2)), ("max", 1), ("spectral", 1), ("nuclear", 2)]
)
def test_closed_form(norm, least):
    solution = solve_norm_svm(two_orthogonal(), norm)
    assert solution.bounds.lower - 1e-12 <= least <= solution.bounds.upper + 1e-12
    assert solution.duality_gap < 1e-6 and abs(solution.margin * least - 1) < 1e-6


def test_in_the_max_norm_a_prompt_of_many_features_is_a_linear_program():
    """Its matrix has 160,000 entries, of which the query sees 400."""
    X = normal(3, 4, 400, seed=0)
    data = prompt_keys(Dataset(X, [1, -1, 1], normal(400, seed=1)))
    solution = solve_norm_svm(data, "max")
    rows = gap_rows(data).differences.numpy()
    cost = np.r_[np.zeros(400), 1.0]  # of p and of a bound on its entries
    both = np.block([[np.eye(400), -np.ones((400, 1))], [-np.eye(400), -np.ones((400, 1))]])
    wanted = np.vstack([np.c_[-rows, np.zeros(len(rows))], both])
    right = np.r_[-np.ones(len(rows)), np.zeros(800)]
    least = linprog(cost, A_ub=wanted, b_ub=right, bounds=(None, None)).fun
    assert abs(solution.norm / least - 1) < 1e-6
    assert not solution.weights[:, 1:].any()
    assert prompt_of(solution.weights).norm() > 1.01 * solve_norm_svm(data, "frobenius").norm


def test_broken_certificates_prove_nothing():
    rows, good, dual = gap_rows(two_orthogonal()), torch.eye(3).double(), torch.ones(2).double()
    good[2, 2] = 0

    def judged(dual, W):
        return certify(rows, dual, W, norm="nuclear")

    assert judged(dual, good).duality_gap < CLOSED_FORM
    assert judged(dual, -good).duality_gap == judged(-dual, good).duality_gap == math.inf
    wide = judged(dual, torch.ones(3, 3).double())
    assert wide.duality_gap > 0.4 and wide.bounds.lower <= 2 <= wide.bounds.upper


@given(seed=st.integers(0, 10**6), norm=st.sampled_from(NORMS))
@settings(max_examples=40, deadline=None)
def test_direction_is_steepest(seed, norm):
    """Norm 1, and its product with G is the dual norm, which no other direction exceeds."""
    draw = np.random.default_rng(seed)
    G, other = torch.from_numpy(draw.standard_normal((2, 4, 4)))
    D = steepest_direction(G, norm)
    reached = float((G * D).sum())
    assert abs(matrix_norm(D, norm) - 1) < OTHER_BATCH
    assert abs(reached - matrix_norm(G, DUAL[norm])) < OTHER_BATCH * reached
    other = other / matrix_norm(other, norm)
    assert float((G * other).sum()) <= reached * (1 + OTHER_BATCH)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gradient_is_that_of_autograd(seed):
    data, W = data_of(seed), 0.3 * normal(12, 12, seed=1)
    data = Dataset(data.X, data.y, normal(12, seed=seed))  # scores of no two tokens equal
    W.requires_grad_()
    (gradient,) = torch.autograd.grad(empirical_risk(data, W, data.u, "exponential"), W)
    G = matrix_problem(data, "exponential", None).gradient(W.detach()).descent
    np.testing.assert_allclose(G.log_scale.exp() * G.parts, -gradient, rtol=0, atol=1e-13)


def test_frobenius_is_ngd_after_saturation():
    data, record = data_of(), [0, 40, 400]
    ours = train_steepest(data, "frobenius", 0.3, 400, record=record)
    exact = train(data, NGD(0.3), 400, record=record)
    assert (ours.W[-1] - exact.W).norm() <= FORMS * exact.W.norm()
    np.testing.assert_allclose(ours.log_nonopt_score, exact.log_nonopt_score, rtol=FORMS)
    assert ours.log_nonopt_score[-1] < -50
    run = train_steepest(make_separation_pair(), "max", 0.5, 100, record=[100])
    assert abs(run.log_nonopt_score[0] + 50) < MULTIPRECISION_LOG


def plain_adam(data, eta, steps, betas, eps):
    W = torch.zeros(data.d, data.d, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([W], lr=eta, betas=betas, eps=eps)
    for _ in range(steps):
        optimizer.zero_grad()
        empirical_risk(data, W, data.u, "exponential").backward()
        optimizer.step()
    return W.detach()


def test_adam_is_torch_adam_before_saturation():
    data, betas = data_of(), (0.8, 0.9)
    exact = train_adam(data, 0.01, 30, betas=betas).W[-1]
    # epsilon so small that only an entry of gradient zero would feel it
    assert (exact - plain_adam(data, 0.01, 30, betas, 1e-200)).norm() <= 1e-8 * exact.norm()
    assert (exact - plain_adam(data, 0.01, 30, (0.8, 0.99), 1e-200)).norm() > 1e-3
    # figure of margins
    texts = [text.get_text() for text in plot_margin_matrix(MARGINS).axes[0].texts]
    assert texts == ["1.00", "0.40", "0.30", "0.99"]


def test_each_norm_its_own_margin_and_its_floor():
    """min gap >= gamma S - R^2/2 sum eta^2 - log N, on attention up to its early weights."""
    data, eta, t = data_of(), 0.1, 800
    rows = gap_rows(data)
    eye = torch.eye(len(rows.sequence), dtype=torch.float64)
    best = {norm: solve_norm_svm(data, norm).margin for norm in NORMS}
    runs = {norm: train_steepest(data, norm, eta, t, record=[t]) for norm in NORMS}
    for norm in NORMS:
        R = max(matrix_norm(rows.combine(e), DUAL[norm]) for e in eye)
        floor = best[norm] * eta * t - R**2 / 2 * eta**2 * t - math.log(8)
        assert runs[norm].gaps.min() >= floor - 2 * math.log(9)
        shares = {by: norm_margin(data, run.W[-1], norm) / best[norm] for by, run in runs.items()}
        assert shares[norm] > 0.98 and max(shares, key=shares.get) == norm
    short, long = (train_steepest(data, "max", eta, 800).W[-1] for eta in (0.05, 1.0))
    assert norm_margin(data, short, "max") > 0.99 * best["max"]  # long steps fall short
    assert norm_margin(data, long, "max") < 0.9 * best["max"]


DATA, ZERO = data_of(), torch.zeros(12, 2)
TIED = Dataset([[[1.0, 0], [0, 1]], [[1.0, 0], [0, 1]]], [1, 1], opt=[0, 1])
MARGINS = pd.DataFrame([[1.0, 0.4], [0.3, 0.99]], ["NGD", "sign"], ["Frobenius", "max"])
test_refusals = refusals(
    lambda: solve_norm_svm(DATA, "sum"),
    lambda: matrix_norm(torch.eye(2), "l7"),
    lambda: train_steepest(DATA, "adam", 0.1, 5),
    lambda: train_steepest(DATA, "max", 0.0, 5),
    lambda: train_steepest(DATA, "max", 0.1, -1),
    lambda: train_steepest(DATA, "max", 0.1, 5, decay=2),
    lambda: train_steepest(None, "max", 0.1, 5),
    lambda: train_adam(DATA, 0.1, 5, betas=(0.9, 1.0)),
    lambda: make_factors(3, 0),
    lambda: train_factors(DATA, ZERO, torch.zeros(12, 3), 0.1, 5),
    lambda: train_factors(DATA, ZERO, ZERO, 0.1, 5),
    lambda: train_factors(DATA, ZERO[1:], ZERO[1:], 0.1, 5),
    lambda: plot_margin_matrix(MARGINS + 1),
    # infeasible in one norm is infeasible in all
    *((InfeasibleError, partial(solve_norm_svm, TIED, norm)) for norm in NORMS),
)


@given(st.integers(0, 10**6))
@FEW
def test_free_queries_are_units_with_unequal_scores(seed):
    data = make_free_queries(3, 4, 5, seed=seed)
    for each in (data.X, data.query, data.u):
        np.testing.assert_allclose(each.norm(dim=-1), 1, rtol=1e-6)  # float32 draws
    assert len(set(token_scores(data).flatten().tolist())) == 12
    assert set(data.y.tolist()) <= {-1.0, 1.0}
    torch.manual_seed(seed)  # starts are those of linear layers
    W = torch.nn.Linear(5, 5, bias=False).weight
    torch.randn(5)
    Q, K = (torch.nn.Linear(5, 5, bias=False).weight for _ in range(2))
    for ours, layer in zip(free_starts(5, seed=seed), (W, K, Q), strict=True):
        assert torch.equal(ours, layer.detach().double().T)


@pytest.mark.parametrize("rule", [NGD(0.3), GD(1.0)])
def test_matrices_are_those_of_one_run(rule):
    data = make_free_queries(3, 4, 5)
    W0 = free_starts(5)[0]
    found = train_matrices(data, rule, [0, 7, 40], W0=W0)
    assert torch.equal(found[0], W0)
    for W, steps in zip(found[1:], (7, 40), strict=True):
        whole = train(data, rule, steps, W0=W0, svm=False, record=[0]).W
        np.testing.assert_allclose(W, whole, rtol=FLOAT_PATHS, atol=FLOAT_PATHS)


def autograd_factors(data, K, Q, step, steps, each):
    """The loop written out with gradients by autograd and the logistic loss."""
    K, Q = K.clone().requires_grad_(), Q.clone().requires_grad_()
    for _ in range(steps):
        logits = torch.einsum("ntd,nd->nt", data.keys, data.queries @ (K @ Q.T).T)
        margin = data.y * ((logits.softmax(1)[..., None] * data.X).sum(1) @ data.u)
        to_K, to_Q = torch.autograd.grad(-torch.nn.functional.softplus(-margin).mean(), (K, Q))
        both = math.hypot(to_K.norm(), to_Q.norm())
        by = (to_K.norm(), to_Q.norm()) if each else (both, both)
        with torch.no_grad():
            K += step * to_K / by[0]
            Q += step * to_Q / by[1]
    return (K @ Q.T).detach()


@pytest.mark.parametrize(("rank", "each"), [(4, False), (4, True), (2, False)])
def test_factors_follow_autograd(rank, each):
    data, (K0, Q0) = make_free_queries(3, 4, 5), make_factors(5, rank)
    how = "separate" if each else "shared"
    W = train_factors(data, K0, Q0, 0.1, 20, loss="logistic", normalise=how).W[-1]
    expected = autograd_factors(data, K0, Q0, 0.1, 20, each)
    np.testing.assert_allclose(W, expected, rtol=FLOAT_PATHS, atol=FLOAT_PATHS)
    assert float((W - autograd_factors(data, K0, Q0, 0.1, 20, not each)).norm()) > 1e-3
    assert int(torch.linalg.matrix_rank(W)) == rank


def test_a_factor_without_gradient_stays():
    """Q = 0: the gradient of K is zero, and K stays for one step."""
    data, (K0, Q0) = make_plane_pair(), make_factors(2, 2)
    run = train_factors(data, K0, 0 * Q0, 0.1, 1, normalise="separate", record=[1])
    Q1 = torch.linalg.solve(K0, run.W[0]).T
    assert float(Q1.norm()) == pytest.approx(0.1)


def test_modes_in_closed_form():
    """One row e_1 e_1': G = e_1 e_1', so K's and Q's other entries have no growth at all."""
    data = make_separation_pair()
    modes = factor_modes(data, solve_norm_svm(data, "nuclear"))
    assert (modes.rank, modes.supporting) == (1, 1)
    assert modes.outside == pytest.approx(0, abs=MODES) and modes.exponent == pytest.approx(2)
    # four directions less the row: (k_2, q_2) do not grow, (k_1, -q_1) shrinks
    np.testing.assert_allclose(modes.inside, [0, 0, -1], atol=MODES)
    # rows e_1 e_1' and e_2 e_2': G = I, full rank, and only the sum of growths is fixed
    X = torch.zeros(2, 2, 2, dtype=torch.float64)
    X[0, 0, 0] = X[1, 0, 1] = 1
    data = Dataset(X, [1, 1], u=[1.0, 1.0])
    modes = factor_modes(data, solve_norm_svm(data, "nuclear"))
    assert (modes.rank, modes.supporting, modes.outside) == (2, 2, -math.inf)
    assert float(modes.inside.min()) == pytest.approx(-1, abs=MODES)


@given(st.integers(0, 500))
@settings(FEW, max_examples=12)
def test_growths_lie_in_range(seed):
    """At a minimum nothing that keeps the margins grows faster than the pair."""
    data = make_free_queries(2, 3, 4, seed=seed)
    modes = factor_modes(data, solve_norm_svm(data, "nuclear"))
    assert modes.inside.abs().max() <= 1 + MODES and modes.exponent <= 2


PLANE, W_NOW, LIMIT = make_plane_pair(), np.eye(2)[None], {"limit": np.eye(2)}
test_plane_refuses = refusals(
    RangeError=[
        lambda: make_plane_pair(4),
        lambda: make_free_queries(3, 1, 5),
        lambda: free_starts(3, scale=-1.0),
        lambda: train_matrices(PLANE, NGD(0.3, momentum=0.9), [1, 2]),
        lambda: train_matrices(PLANE, NGD(0.3, decay=(0.5, 0.5)), [1, 2]),
        lambda: train_factors(PLANE, *make_factors(2, 2), 0.1, 5, normalise="apart"),
        lambda: plot_query_images(make_free_queries(), {"W": W_NOW}, LIMIT),
        lambda: train_adam(PLANE, 0.1, 1, betas=0.9),
    ],
    DtypeError=[
        lambda: factor_modes(PLANE, solve_norm_svm(PLANE, "frobenius")),
        lambda: factor_modes(PLANE, solve_norm_svm(make_plane_pair(5), "nuclear")),
        lambda: plot_query_images(PLANE, [W_NOW], LIMIT),
        lambda: train_factors(None, *make_factors(2, 2), 0.1, 1),
        lambda: train_adam(PLANE, 0.1, 1, betas=None),
        lambda: train_matrices(PLANE, NGD(0.1), None),
        lambda: train_matrices(PLANE, None, [1]),
        lambda: norm_margin(PLANE, None, "max"),
    ],
    NonFiniteError=[
        lambda: norm_margin(PLANE, np.full((2, 2), np.nan), "max"),
    ],
)


def test_kept_matrices_take_an_svm_or_a_matrix():
    data = random_data(2, 3, 8, seed=3)
    trace, svm = train_steepest(data, "max", 0.1, 20), solve_w_svm(data)
    np.testing.assert_array_equal(trace.alignment_with(svm), trace.alignment_with(svm.weights))
