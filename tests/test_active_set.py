"""The dual solver on Gram matrices alone."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from attnbias.geometry import active_set
from attnbias.geometry.certificate import Bounds, bounds, certificate
from tests import tolerances


def solve_dual(gram, **options):
    """Of a tensor, with the weights as one."""
    found = active_set.solve_dual(gram.numpy(), **options)
    return dataclasses.replace(found, dual=torch.from_numpy(found.dual))


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def separable(m, d, seed):
    """m rows in d dimensions, all with a positive product with one vector."""
    Z, w = normal(m, d, seed=seed), normal(d, seed=seed + 1)
    return Z * torch.sign(Z @ w)[:, None]


def assert_optimal(gram, solution):
    assert solution.status == "optimal"
    proved = certificate(gram, solution.dual)
    # The Gram matrix is rounded by 2e-16 |z|^2, and so are its products with the weights.
    rounding = 1e-15 * float(solution.dual.sum() * gram.diagonal().max())
    assert proved.gap <= max(tolerances.SVM_GAP, rounding)
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
    solution = solve_dual(torch.tensor(gram, dtype=torch.float64), pivoting=pivoting)
    assert solution.status == "optimal"
    expected = torch.tensor(dual, dtype=torch.float64)
    torch.testing.assert_close(
        solution.dual, expected, rtol=tolerances.SVM_CLOSED_FORM, atol=tolerances.SVM_CLOSED_FORM
    )


@given(m=st.integers(1, 40), d=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_separable_rows_are_solved_to_rounding(m, d, seed):
    Z = separable(m, d, seed)
    gram = Z @ Z.T
    solution = solve_dual(gram)
    margins = gram @ solution.dual
    if solution.status == "optimal" and float(solution.dual.sum()) < 1e6:
        assert_optimal(gram, solution)
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
        assert_optimal(gram, solution)
        np.testing.assert_allclose(
            (Z.T @ solution.dual).numpy(), w, rtol=0, atol=tolerances.NNLS * np.linalg.norm(w)
        )


@pytest.mark.parametrize("seed", range(5))
def test_infeasible_rows_give_gordans_certificate(seed):
    Z = normal(60, 10, seed=seed)
    solution = solve_dual(Z @ Z.T)
    assert solution.status == "infeasible"
    assert float(solution.dual.min()) >= 0
    assert float(solution.dual.sum()) == pytest.approx(1, abs=1e-14)
    # The root of the rounding of H: the caller sharpens it on the rows.
    assert float((Z.T @ solution.dual).norm()) < 1e-7 * float(Z.norm(dim=1).max())


@pytest.mark.parametrize("rows", [[[1.0], [-1.0]], [[0.0], [1.0]], [[0.0]]])
def test_smallest_infeasible_rows(rows):
    Z = torch.tensor(rows, dtype=torch.float64)
    solution = solve_dual(Z @ Z.T)
    assert solution.status == "infeasible"
    assert float((Z.T @ solution.dual).norm()) < tolerances.SVM_CLOSED_FORM
    assert float(solution.dual.sum()) == pytest.approx(1)


@pytest.mark.parametrize(("m", "d"), [(60, 4), (200, 30), (300, 100)])
def test_more_rows_than_dimensions(m, d):
    w = normal(d, seed=1)
    Z = normal(m, d, seed=2)
    Z = Z - (Z @ w)[:, None] * w / w.square().sum() + 0.3 * w  # margin kept away from zero
    gram = Z @ Z.T
    solution = solve_dual(gram)
    assert_optimal(gram, solution)
    assert len(solution.active) <= d  # its rows are linearly independent


def test_repeated_rows_change_nothing():
    Z = separable(30, 40, 3)
    once = solve_dual(Z @ Z.T)
    twice = torch.cat([Z, Z[:7], Z])
    solution = solve_dual(twice @ twice.T)
    assert_optimal(twice @ twice.T, solution)
    difference = twice.T @ solution.dual - Z.T @ once.dual
    assert float(difference.norm()) <= tolerances.SVM_EQUIVALENT * float((Z.T @ once.dual).norm())


@given(exponent=st.integers(-100, 100), seed=st.integers(0, 100))
def test_units_are_exact(exponent, seed):
    """Rows times a power of two: weights times its inverse square, bit for bit."""
    Z = separable(12, 20, seed)
    plain = solve_dual(Z @ Z.T)
    factor = 2.0**exponent
    scaled = solve_dual((factor * Z) @ (factor * Z).T)
    assert torch.equal(scaled.dual * factor**2, plain.dual)


@pytest.mark.parametrize("spread", [2, 4, 8])
def test_rows_of_very_different_norms(spread):
    """One SVM with rows z and one with rows s z, s >= 1, whose solution is checked by KKT."""
    Z = separable(20, 30, 5)
    Z = Z * 10 ** torch.linspace(0, spread, 20, dtype=torch.float64)[:, None]
    gram = Z @ Z.T
    solution = solve_dual(gram)
    assert solution.status == "optimal"
    weights = Z.T @ solution.dual
    slack = (Z @ weights - 1) / (Z.norm(dim=1) * weights.norm())  # in units of rounding
    assert float(slack.min()) > -1e-14
    assert float((solution.dual * slack * Z.norm(dim=1)).abs().max()) < 1e-12 * weights.norm()


def test_correction_adds_to_the_active_margins():
    Z = separable(15, 25, 7)
    gram = Z @ Z.T
    solution = solve_dual(gram)
    wanted = normal(15, seed=8)
    got = gram @ torch.from_numpy(solution.correct(wanted.numpy()))
    torch.testing.assert_close(
        got[solution.active], wanted[solution.active], rtol=0, atol=tolerances.SVM_EQUIVALENT
    )


def test_certificate_is_a_bound_for_any_weights():
    Z = separable(15, 25, 9)
    gram = Z @ Z.T
    norm = float((Z.T @ solve_dual(gram).dual).norm())
    for seed in range(20):
        dual = normal(15, seed=seed).abs()
        proved = certificate(gram, dual)
        assert proved.lower <= norm * (1 + 1e-12)
        assert proved.upper >= norm * (1 - 1e-12)
        assert proved.gap > 1e-3


def test_certificate_bounds_the_direction():
    Z = separable(15, 25, 10)
    gram = Z @ Z.T
    best = solve_dual(gram).dual
    optimum = Z.T @ best
    for size in (1e-2, 1e-4, 1e-6):
        dual = (best + size * best.max() * normal(15, seed=11)).clamp(min=0)
        weights = Z.T @ dual
        error = float((weights / weights.norm() - optimum / optimum.norm()).norm())
        assert error <= certificate(gram, dual).direction_error < math.inf


@pytest.mark.parametrize("bad", [-1e-9, -1.0, math.nan, math.inf])
def test_certificate_of_nonsense_is_infinite(bad):
    gram = torch.eye(3, dtype=torch.float64)
    dual = torch.tensor([1.0, 1.0, bad], dtype=torch.float64)
    assert certificate(gram, dual).gap == math.inf
    assert certificate(gram, torch.zeros(3, dtype=torch.float64)).gap == math.inf


def test_undefined_bounds_are_infinite_never_nan():
    for point in [(0.0, 0.0, 0.0, 0.0), (math.nan, 1.0, 1.0, 1.0), (1.0, -1.0, 1.0, 1.0)]:
        proved = bounds(*point)
        assert proved.gap == math.inf
        assert proved.direction_error == math.inf
    assert Bounds(1.0, 1.0).gap == 0
    assert Bounds(1.0, 1.0).direction_error == 0
