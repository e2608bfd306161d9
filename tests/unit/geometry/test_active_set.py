"""The dual solver on Gram matrices alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from attnbias.geometry import active_set
from attnbias.geometry.certificate import Bounds, bounds
from attnbias.geometry.solution import certify
from attnbias.geometry.tokens import VectorRows
from tests import tolerances

EXACT = {"rtol": tolerances.SVM_CLOSED_FORM, "atol": tolerances.SVM_CLOSED_FORM}


def solve_dual(gram, pivoting=True):
    """Of a tensor, with the weights as one; without block pivoting if asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_set, "PATIENCE", 3 if pivoting else 0)
        found = active_set.solve_dual(gram.numpy())
    return replace(found, dual=torch.from_numpy(found.dual))


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def separable(m, d, seed):
    """m rows in d dimensions, all with a positive product with one vector."""
    Z, w = normal(m, d, seed=seed), normal(d, seed=seed + 1)
    return Z * torch.sign(Z @ w)[:, None]


def proof(Z, dual):
    """The bounds that weights prove for the SVM with the rows Z."""
    each = torch.arange(len(Z))
    return certify(VectorRows(Z, each, each, Z.shape[1:]), dual).bounds


def assert_optimal(Z, solution):
    assert solution.status == "optimal"
    # The Gram matrix is rounded by 2e-16 |z|^2, and so are its products with the weights.
    rounding = 1e-15 * float(solution.dual.sum() * Z.square().sum(dim=1).max())
    assert proof(Z, solution.dual).gap <= max(tolerances.SVM_GAP, rounding)
    assert float(solution.dual.min()) >= 0


@pytest.mark.parametrize(
    ("gram", "dual"),
    [
        ([[2.0]], [0.5]),
        ([[20.0, -12.0], [-12.0, 8.0]], [1.25, 2.0]),
        ([[1.0, 0.0], [0.0, 4.0]], [1.0, 0.25]),
        ([[1.0, 0.8], [0.8, 1.64]], [0.84, 0.2]),  # theory sheet, section 10, item 5
        ([[1.0, 2.0], [2.0, 9.0]], [1.0, 0.0]),  # the second row is far inside
        ([[1.0, 1.0], [1.0, 2.0]], [1.0, 0.0]),  # active with weight zero
    ],
)
@pytest.mark.parametrize("pivoting", [True, False])
def test_closed_forms(gram, dual, pivoting):
    solution = solve_dual(torch.tensor(gram, dtype=torch.float64), pivoting)
    assert solution.status == "optimal"
    torch.testing.assert_close(solution.dual, torch.tensor(dual, dtype=torch.float64), **EXACT)


@given(m=st.integers(1, 40), d=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_separable_rows_are_solved_to_rounding(m, d, seed):
    Z = separable(m, d, seed)
    solution = solve_dual(Z @ Z.T)
    margins = Z @ (Z.T @ solution.dual)
    if solution.status == "optimal" and float(solution.dual.sum()) < 1e6:
        assert_optimal(Z, solution)
        assert float(margins.min()) > 1 - 1e-9
    else:  # a margin under 1e-3 of the row norms, where rounding of H shows
        assert m > 2 * d or float(solution.dual.sum()) >= 1e6


@given(m=st.integers(2, 30), d=st.integers(1, 15), seed=st.integers(0, 10**6))
def test_both_methods_and_nnls_agree(m, d, seed):
    """Random rows, feasible or not: least distance as non-negative least squares."""
    Z = normal(m, d, seed=seed)
    gram = Z @ Z.T
    first, second = solve_dual(gram), solve_dual(gram, pivoting=False)
    E = np.vstack([Z.numpy().T, np.ones(m)])
    f = np.append(np.zeros(d), 1.0)
    u, distance = nnls(E, f)
    residual = E @ u - f
    if distance < 1e-3:  # infeasible, or too close to it for a comparison to 1e-9
        assert first.status == second.status
        return
    w = -residual[:d] / residual[d]
    for solution in (first, second):
        assert_optimal(Z, solution)
        np.testing.assert_allclose(
            (Z.T @ solution.dual).numpy(), w, rtol=0, atol=tolerances.NNLS * np.linalg.norm(w)
        )


@pytest.mark.parametrize("rows", [[[1.0], [-1.0]], [[0.0], [1.0]], [[0.0]]])
def test_smallest_infeasible_rows(rows):
    Z = torch.tensor(rows).double()
    solution = solve_dual(Z @ Z.T)
    assert solution.status == "infeasible"
    assert float((Z.T @ solution.dual).norm()) < tolerances.SVM_CLOSED_FORM
    assert float(solution.dual.sum()) == pytest.approx(1)


@pytest.mark.parametrize(("m", "d"), [(60, 4), (200, 30), (300, 100)])
def test_more_rows_than_dimensions(m, d):
    Z, w = normal(m, d, seed=2), normal(d, seed=1)
    Z = Z - (Z @ w)[:, None] * w / w.square().sum() + 0.3 * w  # margin kept away from zero
    solution = solve_dual(Z @ Z.T)
    assert_optimal(Z, solution)
    assert len(solution.active) <= d  # its rows are linearly independent


@pytest.mark.parametrize("spread", [2, 4, 8])
def test_rows_of_very_different_norms(spread):
    """One SVM with rows z and one with rows s z, s >= 1, whose solution is checked by KKT."""
    Z = separable(20, 30, 5) * 10 ** torch.linspace(0, spread, 20).double()[:, None]
    solution = solve_dual(Z @ Z.T)
    assert solution.status == "optimal"
    weights = Z.T @ solution.dual
    slack = (Z @ weights - 1) / (Z.norm(dim=1) * weights.norm())  # in units of rounding
    assert float(slack.min()) > -1e-14
    assert float((solution.dual * slack * Z.norm(dim=1)).abs().max()) < 1e-12 * weights.norm()


def test_certificate_bounds_norm_and_direction_for_any_weights():
    Z = separable(15, 25, 9)
    best = solve_dual(Z @ Z.T).dual
    optimum = Z.T @ best
    for seed in range(20):
        proved = proof(Z, normal(15, seed=seed).abs())
        assert proved.lower <= optimum.norm() * (1 + 1e-12)
        assert proved.upper >= optimum.norm() * (1 - 1e-12)
        assert proved.gap > 1e-3
    for size in (1e-2, 1e-4, 1e-6):
        dual = (best + size * best.max() * normal(15, seed=11)).clamp(min=0)
        weights = Z.T @ dual
        error = float((weights / weights.norm() - optimum / optimum.norm()).norm())
        assert error <= proof(Z, dual).direction_error < math.inf


def test_certificate_of_nonsense_is_infinite_never_nan():
    for bad in ([1.0, 1.0, -1e-9], [1.0, 1.0, math.nan], [1.0, 1.0, math.inf], [0.0, 0.0, 0.0]):
        assert proof(torch.eye(3).double(), torch.tensor(bad).double()).gap == math.inf
    for point in [(0.0, 0.0, 0.0, 0.0), (math.nan, 1.0, 1.0, 1.0), (1.0, -1.0, 1.0, 1.0)]:
        proved = bounds(*point)
        assert proved.gap == proved.direction_error == math.inf
    assert Bounds(1.0, 1.0).gap == Bounds(1.0, 1.0).direction_error == 0
