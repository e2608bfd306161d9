"""Free queries: data by another's recipe, W at chosen steps, modes of (K, Q), and local ends."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import FEW
from room_tests import refusals
from tolerances import FLOAT_PATHS, MODES

from attnbias import GD, NGD, Dataset, make_separation_pair, token_scores, train
from attnbias.beyond.norms.geometry import solve_norm_svm
from attnbias.beyond.norms.matrices import train_matrices
from attnbias.beyond.plane.data import free_starts, make_plane_pair
from attnbias.beyond.plane.geometry import factor_modes
from attnbias.beyond.plane.plots import plot_query_images
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.data.cross_attention import make_free_queries
from attnbias.errors import DtypeError, RangeError


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
test_refusals = refusals(
    (RangeError, lambda: make_plane_pair(4)),
    (RangeError, lambda: make_free_queries(3, 1, 5)),
    (RangeError, lambda: free_starts(3, scale=-1.0)),
    (RangeError, lambda: train_matrices(PLANE, NGD(0.3, momentum=0.9), [1, 2])),
    (RangeError, lambda: train_matrices(PLANE, NGD(0.3, decay=(0.5, 0.5)), [1, 2])),
    (RangeError, lambda: train_factors(PLANE, *make_factors(2, 2), 0.1, 5, normalise="apart")),
    (DtypeError, lambda: factor_modes(PLANE, solve_norm_svm(PLANE, "frobenius"))),
    (DtypeError, lambda: factor_modes(PLANE, solve_norm_svm(make_plane_pair(5), "nuclear"))),
    (RangeError, lambda: plot_query_images(make_free_queries(), {"W": W_NOW}, LIMIT)),
    (DtypeError, lambda: plot_query_images(PLANE, [W_NOW], LIMIT)),
)
