"""The W-SVM in other norms, and the rules that head for it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import AUTOGRAD, CLOSED_FORM, FORMS, MULTIPRECISION_LOG, OTHER_BATCH

from attnbias import NGD, Dataset, make_example1, make_separation_pair, solve_w_svm, train
from attnbias.beyond.norms.dynamics import Pull, steepest_direction, train_adam, train_steepest
from attnbias.beyond.norms.geometry import (
    NORMS,
    certify_norm,
    matrix_norm,
    norm_margin,
    solve_norm_svm,
)
from attnbias.beyond.norms.plots import plot_margin_matrix
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.errors import AttnBiasError, InfeasibleError
from attnbias.geometry.tokens import gap_rows
from attnbias.model import empirical_risk


def data_of(seed=0):
    return make_example1(4, 3, 12, sigma=0.3, seed=seed)


def two_orthogonal():
    """Two sequences with rows e1 e1' and e2 e2': margins ask for W11, W22 >= 1."""
    X = [[[1.0, 0, 0], [0, 0, 0]], [[0, 1.0, 0], [0, 0, 0]]]
    return Dataset(X, [1, 1], u=[1.0, 1.0, 0])


@pytest.mark.parametrize(
    ("norm", "least"), [("frobenius", math.sqrt(2)), ("max", 1), ("spectral", 1), ("nuclear", 2)]
)
def test_closed_form(norm, least):
    solution = solve_norm_svm(two_orthogonal(), norm)
    assert solution.bounds.lower - 1e-12 <= least <= solution.bounds.upper + 1e-12
    assert solution.duality_gap < 1e-6 and abs(solution.margin * least - 1) < 1e-6


@pytest.mark.parametrize("norm", NORMS)
def test_only_the_frobenius_solution_is_the_only_one(norm):
    data, W = two_orthogonal(), torch.diag(torch.tensor([1.0, 1, 0], dtype=torch.float64))
    best = norm_margin(data, W, norm)
    W[0, 1] = W[1, 0] = 0.5
    if norm == "spectral":  # its norm leaves the third feature free instead
        W = torch.diag(torch.tensor([1.0, 1, 0.5], dtype=torch.float64))
    assert (abs(norm_margin(data, W, norm) / best - 1) < CLOSED_FORM) == (norm != "frobenius")


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


def test_broken_certificates_prove_nothing():
    rows = gap_rows(two_orthogonal())
    good, dual = torch.diag(torch.tensor([1.0, 1, 0]).double()), torch.ones(2).double()
    assert certify_norm(rows, good, dual, "nuclear").duality_gap < CLOSED_FORM
    assert certify_norm(rows, -good, dual, "nuclear").duality_gap == math.inf
    assert certify_norm(rows, good, -dual, "nuclear").duality_gap == math.inf
    wide = certify_norm(rows, torch.ones(3, 3).double(), dual, "nuclear")
    assert wide.duality_gap > 0.4 and wide.bounds.lower <= 2 <= wide.bounds.upper


@given(seed=st.integers(0, 10**6), norm=st.sampled_from(NORMS))
@settings(max_examples=40, deadline=None)
def test_direction_is_steepest(seed, norm):
    """Norm 1, and its product with G is the dual norm, which no other direction exceeds."""
    draw = np.random.default_rng(seed)
    G, other = draw.standard_normal((2, 4, 4))
    D = steepest_direction(G, norm)
    dual = {"frobenius": "frobenius", "max": "sum", "spectral": "nuclear", "nuclear": "spectral"}
    reached = float((G * D).sum())
    assert abs(matrix_norm(torch.from_numpy(D), norm) - 1) < OTHER_BATCH
    assert abs(reached - matrix_norm(torch.from_numpy(G), dual[norm])) < OTHER_BATCH * reached
    other = other / matrix_norm(torch.from_numpy(other), norm)
    assert float((G * other).sum()) <= reached * (1 + OTHER_BATCH)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pull_is_the_gradient(seed):
    data = data_of(seed)
    u = torch.randn(data.d, generator=torch.Generator().manual_seed(seed)).double()
    data = Dataset(data.X, data.y, u)  # scores of no two tokens equal
    W = 0.3 * torch.randn(data.d, data.d, generator=torch.Generator().manual_seed(1)).double()
    W.requires_grad_()
    (gradient,) = torch.autograd.grad(empirical_risk(data, W, data.u, "exponential"), W)
    G, scale = Pull(data).at(W.detach().numpy())
    np.testing.assert_allclose(math.exp(scale) * G, -gradient.numpy(), rtol=0, atol=1e-13)


def test_frobenius_is_ngd_after_saturation():
    data = data_of()
    ours = train_steepest(data, "frobenius", 0.3, 400, record=[0, 40, 400])
    exact = train(data, NGD(0.3), 400, record=[0, 40, 400])
    assert (ours.W[-1] - exact.W).norm() <= FORMS * exact.W.norm()
    np.testing.assert_allclose(ours.log_nonopt_score, exact.log_nonopt_score, rtol=FORMS)
    assert ours.log_nonopt_score[-1] < -50


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


def plain_factors(data, K, Q, eta, steps):
    for _ in range(steps):
        K, Q = K.detach().requires_grad_(), Q.detach().requires_grad_()
        risk = empirical_risk(data, K @ Q.T, data.u, "exponential")
        to_K, to_Q = torch.autograd.grad(risk, (K, Q))
        length = torch.hypot(to_K.norm(), to_Q.norm())
        K, Q = K - eta * to_K / length, Q - eta * to_Q / length
    return (K @ Q.T).detach()


def test_factors_against_autograd():
    data, start = data_of(), make_factors(12, 3, seed=1)
    exact = train_factors(data, *start, 0.1, 15).W[-1]
    plain = plain_factors(data, *start, 0.1, 15)
    assert (exact - plain).norm() <= 100 * AUTOGRAD * exact.norm()
    assert int(torch.linalg.matrix_rank(exact)) == 3


def test_each_norm_its_own_margin():
    data = data_of()
    best = {norm: solve_norm_svm(data, norm).margin for norm in NORMS}
    ends = {norm: train_steepest(data, norm, 0.1, 800).W[-1] for norm in NORMS}
    for norm in NORMS:
        shares = {rule: norm_margin(data, W, norm) / best[norm] for rule, W in ends.items()}
        assert shares[norm] > 0.98 and max(shares, key=shares.get) == norm


def test_floor_of_the_margin_with_fixed_weights():
    """min gap >= gamma S - R^2/2 sum eta^2 - log N, on attention up to its early weights."""
    data, eta, t = data_of(), 0.1, 1000
    rows = gap_rows(data)
    dual = {"frobenius": "frobenius", "max": "sum", "spectral": "nuclear", "nuclear": "spectral"}
    eye = torch.eye(len(rows.sequence), dtype=torch.float64)
    for norm in NORMS:
        R = max(matrix_norm(rows.combine(e), dual[norm]) for e in eye)
        run = train_steepest(data, norm, eta, t, record=[t])
        floor = solve_norm_svm(data, norm).margin * eta * t - R**2 / 2 * eta**2 * t - math.log(8)
        assert run.gaps.min() >= floor - 2 * math.log(9)


def test_long_steps_of_sign_descent_fall_short():
    data = data_of()
    best = solve_norm_svm(data, "max").margin
    short, long = (
        norm_margin(data, train_steepest(data, "max", eta, 800).W[-1], "max") / best
        for eta in (0.05, 1.0)
    )
    assert short > 0.99 and long < 0.9


def test_log_nonopt_of_one_row():
    run = train_steepest(make_separation_pair(), "max", 0.5, 100, record=[100])
    assert abs(run.log_nonopt_score[0] + 50) < MULTIPRECISION_LOG


@pytest.mark.parametrize(
    "call",
    [
        lambda: solve_norm_svm(data_of(), "sum"),
        lambda: matrix_norm(torch.eye(2), "l7"),
        lambda: train_steepest(data_of(), "adam", 0.1, 5),
        lambda: train_steepest(data_of(), "max", 0.0, 5),
        lambda: train_steepest(data_of(), "max", 0.1, -1),
        lambda: train_steepest(data_of(), "max", 0.1, 5, decay=2),
        lambda: train_steepest(None, "max", 0.1, 5),
        lambda: train_adam(data_of(), 0.1, 5, betas=(0.9, 1.0)),
        lambda: make_factors(3, 0),
        lambda: train_factors(data_of(), torch.zeros(12, 2), torch.zeros(12, 3), 0.1, 5),
        lambda: train_factors(data_of(), torch.zeros(12, 2), torch.zeros(12, 2), 0.1, 5),
        lambda: train_factors(data_of(), torch.zeros(11, 2), torch.zeros(11, 2), 0.1, 5),
        lambda: train_steepest(
            Dataset(torch.eye(3).expand(2, 3, 3), [1, 1], u=[1.0, 0, 0], lengths=[2, 3]),
            "max", 0.1, 5,
        ),
    ],
)  # fmt: skip
def test_refusals(call):
    with pytest.raises(AttnBiasError):
        call()


def test_infeasible_in_one_norm_is_infeasible_in_all():
    X = [[[1.0, 0], [0, 1]], [[1.0, 0], [0, 1]]]
    data = Dataset(X, [1, 1], opt=[0, 1])
    for norm in NORMS:
        with pytest.raises(InfeasibleError):
            solve_norm_svm(data, norm)
    assert solve_w_svm(two_orthogonal()).margin > 0


def test_figure_of_margins():
    import pandas as pd

    table = pd.DataFrame([[1.0, 0.4], [0.3, 0.99]], ["NGD", "sign"], ["Frobenius", "max"])
    texts = [text.get_text() for text in plot_margin_matrix(table).axes[0].texts]
    assert texts == ["1.00", "0.40", "0.30", "0.99"]
    with pytest.raises(AttnBiasError):
        plot_margin_matrix(table + 1)
