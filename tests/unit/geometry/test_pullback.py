"""The gradient of W_mm in the tokens: closed form, autograd, finite differences, kinks."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, seeds

from attnbias import Dataset, SVMSolution, solve_u_svm, solve_w_svm
from attnbias.data import make_degenerate
from attnbias.errors import (
    AttnBiasError,
    DtypeError,
    NonFiniteError,
    QueryError,
    RangeError,
    ShapeError,
)
from attnbias.geometry.svm import certify, solve

DOUBLE = torch.float64
# Both forms solve with the same Gram matrix, of condition up to 1e5 here.
SECOND_FORM = 1e-9
# Central differences of step 1e-5 of solutions right to 1e-14: the square of the step, and
# the rounding over it, times the condition.
DIFFERENCES = 1e-5


def problem(seed, n=4, T=4, d=7):
    """Ragged sequences, and a gradient in W."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=DOUBLE)
    lengths = torch.randint(2, T + 1, (n,), generator=generator)
    opt = (torch.rand(n, generator=generator) * lengths).long()
    y = 1.0 - 2 * (torch.arange(n) % 2)
    grad = torch.randn(d, d, generator=generator, dtype=DOUBLE)
    return (lambda X: Dataset(X, y, lengths=lengths, opt=opt)), X, grad


def test_closed_form_of_two_tokens():
    """W_mm = z / |z|^2 with z = (a - b) a': <G, W_mm> = (a - b)'G a / (|a - b|^2 |a|^2)."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 5, generator=generator, dtype=DOUBLE)
    G = torch.randn(5, 5, generator=generator, dtype=DOUBLE)
    found = solve_w_svm(Dataset(torch.stack([a, b])[None], [1], opt=[0])).pullback(G)[0]
    c = a - b
    value, size = c @ G @ a, (c @ c) * (a @ a)
    by_c = G @ a / size - 2 * value * c / (size * (c @ c))
    by_a = G.T @ c / size - 2 * value * a / (size * (a @ a))
    right = torch.stack([by_c + by_a, -by_c])
    assert torch.allclose(found, right, rtol=1e-13, atol=1e-14)


def by_autograd(svm, rows, grad):
    """Through the weights Z'K^-1 b of the support rows (m, D), which torch differentiates."""
    weights = torch.linalg.solve(rows @ rows.T, svm.right[svm.support]) @ rows
    return (grad.reshape(-1) * weights).sum()


@FEW
@given(seed=seeds, n=st.integers(1, 6), T=st.integers(2, 5), d=st.integers(6, 9))
def test_the_gradient_is_autograds_on_the_support_rows(seed, n, T, d):
    make, X, G = problem(seed, n, T, d)
    svm = solve_w_svm(make(X))
    X.requires_grad_()
    i, t = svm.constraints[svm.support].T
    differences = X[i, svm.rows.opt[i]] - X[i, t]
    rows = (differences[:, :, None] * X[i, 0][:, None, :]).flatten(1)
    (right,) = torch.autograd.grad(by_autograd(svm, rows, G), X)
    found = svm.pullback(G)
    assert float((found - right).norm()) <= SECOND_FORM * float(right.norm())
    assert not found[~make(X).mask].any()
    # W_mm(cX) = W_mm(X) / c^2: by Euler, and c^-3 in the gradient
    twice = -2 * (G * svm.weights).sum()
    X = X.detach()
    assert abs(float((found * X).sum() - twice)) <= SECOND_FORM * float(
        (found.abs() * X.abs()).sum()
    )
    assert torch.equal(solve_w_svm(make(4 * X)).pullback(G), found / 64)


@pytest.mark.parametrize("seed", range(6))
def test_finite_differences_of_certified_solutions(seed):
    make, X, G = problem(seed)
    generator = torch.Generator().manual_seed(seed)
    gradient = solve_w_svm(make(X)).pullback(G)
    for _ in range(3):
        step = 1e-5 * torch.randn(X.shape, generator=generator, dtype=DOUBLE)
        ends = [solve_w_svm(make(X + sign * step)) for sign in (1, -1)]
        assert all(end.is_optimal(1e-12) for end in ends)
        change = ((ends[0].weights - ends[1].weights) * G).sum() / 2
        assert float((gradient * step).sum()) == pytest.approx(
            float(change), rel=DIFFERENCES, abs=DIFFERENCES * float(gradient.norm() * step.norm())
        )


def test_the_margin_grows_along_its_gradient_and_hardly_by_what_does_not_support_it():
    make, X, _ = problem(2, n=3, T=5, d=8)
    svm = solve_w_svm(make(X))
    gradient = svm.pullback(-(svm.margin**3) * svm.weights)
    step = 1e-4 * gradient / gradient.norm()
    raised = solve_w_svm(make(X + step)).margin - svm.margin
    assert raised == pytest.approx(1e-4 * float(gradient.norm()), rel=1e-2)  # second order
    touched = {tuple(place) for place in svm.constraints[svm.support].tolist()}
    touched |= {(i, int(t)) for i, t in enumerate(svm.rows.opt)} | {(i, 0) for i in range(3)}
    still = torch.ones(3, 5, dtype=torch.bool)
    still[tuple(torch.tensor(sorted(touched)).T)] = False
    assert still.any() and not gradient[still].any() and gradient[~still].any(dim=1).all()


def test_a_decoder_and_rows_of_right_sides_and_equalities():
    generator = torch.Generator().manual_seed(1)
    make, X, _ = problem(5, n=5, T=3, d=9)
    data, G = make(X), torch.randn(9, generator=generator, dtype=DOUBLE)
    svm = solve_u_svm(data)
    rows = (data.y[:, None] * X[torch.arange(5), data.opt]).requires_grad_()
    (right,) = torch.autograd.grad(by_autograd(svm, rows[svm.support], G), rows)
    assert torch.allclose(svm.pullback(G), right, rtol=SECOND_FORM, atol=1e-12)

    Z = torch.randn(4, 9, generator=generator, dtype=DOUBLE)
    ties = torch.randn(2, 9, generator=generator, dtype=DOUBLE)
    b = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=DOUBLE)
    gradient = solve(Z, b, equalities=ties).pullback(G)
    step = 1e-5 * torch.randn(Z.shape, generator=generator, dtype=DOUBLE)
    ends = [solve(Z + sign * step, b, equalities=ties).weights for sign in (1, -1)]
    change = float((ends[0] - ends[1]) @ G) / 2
    assert float((gradient * step).sum()) == pytest.approx(change, rel=DIFFERENCES)


def test_a_stored_solution_and_one_of_single_precision(tmp_path):
    make, X, G = problem(3)
    svm = solve_w_svm(make(X.float()))
    right = solve_w_svm(make(X.float().double())).pullback(G)
    assert torch.equal(svm.pullback(G.float()), svm.pullback(G.float().double()))
    again = SVMSolution.load(svm.save(tmp_path / "svm.npz"))
    assert torch.equal(again.pullback(G), svm.pullback(G))
    assert torch.allclose(svm.pullback(G), right, rtol=SECOND_FORM, atol=1e-12)


def repeated(token):
    make, X, _ = problem(0, n=2, T=3, d=7)
    X = torch.cat([X, X[:, [token]]], dim=1)
    return solve_w_svm(Dataset(X, [1, -1], opt=[1 - token // 2, 1 - token // 2]))


KINKS = {
    "a tie at the margin": lambda: solve_w_svm(make_degenerate(0.0)),
    "an idle active row": lambda: solve([[1.0, 0.0], [1.0, 1.0]]),
    "a row twice": lambda: solve([[1.0, 0.0], [1.0, 0.0]]),
    "a token twice": lambda: repeated(2),
    "three rows in a plane": lambda: solve([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_are_refused_by_name(name):
    svm = KINKS[name]()
    with pytest.raises(RangeError, match="have a kink; got .*(without one|depend on each other)"):
        svm.pullback(svm.weights)


def test_beside_a_kink_there_is_a_gradient():
    for slope in (-0.1, 0.1):
        svm = solve_w_svm(make_degenerate(slope))
        assert bool(svm.pullback(svm.weights).isfinite().all())


def test_refusals():
    make, X, G = problem(1)
    svm = solve_w_svm(make(X))
    for error, wrong in (
        (ShapeError, G[0]),
        (ShapeError, G[:2]),
        (DtypeError, "G"),
        (NonFiniteError, G * torch.nan),
    ):
        with pytest.raises(error, match="grad"):
            svm.pullback(wrong)
    with pytest.raises(RangeError, match="optimal"):
        certify(svm.rows, 2 * svm.dual).pullback(G)
    own = Dataset(X, [1, -1, 1, -1], opt=[0] * 4, query=X[:, 1])
    with pytest.raises(QueryError, match="queries"):
        solve_w_svm(own).pullback(G)
    with pytest.raises(AttnBiasError, match="Frobenius"):
        replace(svm, norm_name="max").pullback(G)
