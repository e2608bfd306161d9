"""W-SVM and u-SVM on data sets: closed forms, second solvers, invariances, refusals."""

import math
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import torch
from edge_instances import FAMILIES, cancelling, simplex_tokens
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, seeds
from orthonormal import orthonormal_pair

from attnbias import (
    NGD,
    Dataset,
    SVMSolution,
    diagnose,
    make_separation_pair,
    solve_u_svm,
    solve_w_svm,
    train,
)
from attnbias._records import read_npz, write_npz
from attnbias.data import make_degenerate, make_example1, make_two_sample_trap
from attnbias.errors import AttnBiasError, FileFormatError, InfeasibleError, SolverError
from attnbias.geometry import norms, svm, tokens
from attnbias.geometry.svm import LOOSE, certify, solve
from attnbias.geometry.tokens import WIDE, gap_rows
from tests import tolerances


def normal_data(n, T, d, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    opt = torch.randint(T, (n,), generator=generator)
    y = 1 - 2 * (torch.arange(n) % 2)
    return Dataset(X, y.double()), opt


def close(got, expected, tolerance):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert float((got - expected).norm()) <= tolerance * max(float(expected.norm()), 1e-300)


@pytest.mark.parametrize(
    ("data", "dual", "margin"),
    [
        (make_separation_pair(), [1.0], 1.0),
        (orthonormal_pair(), [0.5, 0.5], 1.0),
        (make_two_sample_trap(), [1.25, 2.0], 1 / math.sqrt(3.25)),
        (make_degenerate(0.2), [0.84, 0.2], 1 / math.sqrt(1.04)),
    ],
)
def test_closed_forms(data, dual, margin):
    solution = solve_w_svm(data)
    close(solution.dual, dual, tolerances.SVM_CLOSED_FORM)
    assert solution.margin == pytest.approx(margin, rel=tolerances.SVM_CLOSED_FORM)
    assert solution.is_optimal(tolerances.SVM_GAP)


def test_closed_form_of_the_decoder():
    solution = solve_u_svm(orthonormal_pair())
    close(solution.weights, [1.0, 0, 0, -1.0], tolerances.SVM_CLOSED_FORM)
    assert solution.margin == pytest.approx(1 / math.sqrt(2), rel=tolerances.SVM_CLOSED_FORM)
    assert solution.constraints.tolist() == [[0, 0], [1, 1]]


def test_W_is_the_name_of_the_weights_where_they_are_a_matrix():
    data = make_separation_pair()
    for found in (solve_w_svm(data), solve_w_svm(make_example1(n=3, T=3, d=10))):
        assert found.W is found.weights and found.W.ndim == 2
    with pytest.raises(AttributeError, match="u-SVM has no W; its weights are u_mm"):
        print(solve_u_svm(data).W)


def test_fields_are_consistent():
    data, opt = normal_data(6, 4, 12)
    solution = solve_w_svm(data, opt)
    close(solution.rows.gram() @ solution.dual, solution.margins, tolerances.SVM_CLOSED_FORM)
    i, t = solution.constraints[7].tolist()
    z = torch.outer(data.X[i, opt[i]] - data.X[i, t], data.X[i, 0])
    assert float((z * solution.weights).sum()) == pytest.approx(float(solution.margins[7]))
    assert solution.constraints.shape == (18, 2)
    assert torch.equal(solution.support, (solution.dual > 0).nonzero().flatten())
    assert float(solution.dual.sum()) == pytest.approx(solution.norm**2)
    assert solution.margin == 1 / solution.norm
    assert "W-SVM" in repr(solution) and len(repr(solution)) < 200


@pytest.mark.parametrize(("n", "T", "d"), [(3, 3, 4), (5, 4, 6), (4, 6, 5)])
def test_primal_in_all_variables(n, T, d):
    """cvxpy on the d x d primal: another formulation and another algorithm."""
    data, opt = normal_data(n, T, d, seed=n)
    solution = solve_w_svm(data, opt)
    W, X = cp.Variable((d, d)), data.X.numpy()
    others = [(i, t) for i in range(n) for t in range(T) if t != opt[i]]
    constraints = [(X[i, opt[i]] - X[i, t]) @ W @ X[i, 0] >= 1 for i, t in others]
    cp.Problem(cp.Minimize(cp.sum_squares(W)), constraints).solve(solver=cp.CLARABEL)
    close(solution.weights, W.value, tolerances.INTERIOR_POINT)
    assert solution.norm <= np.linalg.norm(W.value) * (1 + 1e-6)


def test_primal_of_the_decoder():
    data, opt = normal_data(8, 3, 6, seed=2)
    solution = solve_u_svm(data, opt)
    u = cp.Variable(6)
    rows = data.y.numpy()[:, None] * data.X.numpy()[np.arange(8), opt.numpy()]
    cp.Problem(cp.Minimize(cp.sum_squares(u)), [rows @ u >= 1]).solve(solver=cp.CLARABEL)
    close(solution.weights, u.value, tolerances.INTERIOR_POINT)


@pytest.mark.parametrize(
    ("n", "T", "d"), [(20, 10, 50), (20, 10, 12), (50, 10, 100), (5, 3, 50), (30, 20, 25)]
)
def test_certificate_at_larger_sizes(n, T, d):
    solution = solve_w_svm(*normal_data(n, T, d))
    assert solution.direction_error <= math.sqrt(2 * tolerances.SVM_GAP)
    assert solution.is_optimal(tolerances.SVM_GAP)
    assert solution.strictly_complementary
    assert solution.least_dual > 0 and solution.least_slack > 0


sizes = {"n": st.integers(1, 6), "T": st.integers(2, 5), "d": st.integers(6, 10)}


@FEW
@given(**sizes, seed=seeds, power=st.integers(-26, 26))
def test_scaling_the_tokens(n, T, d, seed, power):
    """c X has the solution W / c^2, bit for bit for a power of two (1e-8 to 1e8)."""
    data, opt = normal_data(n, T, d, seed)
    scaled = Dataset(2.0**power * data.X, data.y)
    W, V = solve_w_svm(data, opt), solve_w_svm(scaled, opt)
    assert torch.equal(W.weights, V.weights * 4.0**power)
    assert W.duality_gap == V.duality_gap
    u, v = solve_u_svm(data, opt), solve_u_svm(scaled, opt)
    assert torch.equal(u.weights, v.weights * 2.0**power)


@FEW
@given(**sizes, seed=seeds)
def test_orders_and_rotations(n, T, d, seed):
    """Of sequences, of tokens but the query, and of features."""
    data, opt = normal_data(n, T, d, seed)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator)
    inner = torch.cat([torch.zeros(1).long(), 1 + torch.randperm(T - 1, generator=generator)])
    R, _ = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))
    other = Dataset(data.X[order][:, inner] @ R, data.y[order])
    solution = solve_w_svm(other, inner.argsort()[opt[order]])
    weights = solve_w_svm(data, opt).weights
    close(R @ solution.weights @ R.T, weights, tolerances.SVM_EQUIVALENT)


@FEW
@given(**sizes, seed=seeds)
def test_duplicated_sequences_leave_the_weights(n, T, d, seed):
    data, opt = normal_data(n, T, d, seed)
    double = Dataset.concat([data, data])
    for find in (solve_w_svm, solve_u_svm):
        once, twice = find(data, opt), find(double, torch.cat([opt, opt]))
        close(twice.weights, once.weights, tolerances.SVM_EQUIVALENT)
        assert twice.is_optimal(tolerances.SVM_GAP)
        # Half the weight on each copy is positive wherever it was.
        assert twice.strictly_complementary == once.strictly_complementary


@FEW
@given(**sizes, seed=seeds, place=st.integers(0, 10**6), slope=st.sampled_from([-0.2, 0.0, 0.2]))
def test_repeating_tokens_changes_neither_the_weights_nor_what_supports_them(
    n, T, d, seed, place, slope
):
    """Of random tokens, and of make_degenerate's, strictly complementary unless the slope is 0."""
    degenerate = make_degenerate(slope)
    for data, opt in (normal_data(n, T, d, seed), (degenerate, torch.tensor([0]))):
        once, i = solve_w_svm(data, opt), place % data.n
        t = (int(opt[i]) + 1 + place % (data.T - 1)) % data.T  # any but the optimal one
        again = torch.cat([data.X, data.X[:, t : t + 1]], dim=1)
        lengths = torch.full((data.n,), data.T).index_fill(0, torch.tensor([i]), data.T + 1)
        twice = solve_w_svm(Dataset(again, data.y, lengths=lengths), opt)
        close(twice.weights, once.weights, tolerances.SVM_EQUIVALENT)
        assert twice.is_optimal(tolerances.SVM_GAP)
        assert twice.strictly_complementary == once.strictly_complementary
        said = [twice.constraints.tolist().index([i, k]) for k in (t, data.T)]
        assert twice.dual[said[0]] == twice.dual[said[1]]
        before = {tuple(place) for place in once.constraints[once.support].tolist()}
        after = {tuple(place) for place in twice.constraints[twice.support].tolist()}
        assert after - {(i, data.T)} == before


def test_tie_at_the_margin_has_no_strict_complementarity():
    solution = solve_w_svm(make_degenerate(0.0))
    assert not solution.strictly_complementary
    assert solution.support.tolist() == [0] and solution.least_slack == math.inf
    close(solution.margins, [1.0, 1.0], tolerances.SVM_CLOSED_FORM)
    near, beyond = (solve_w_svm(make_degenerate(slack)) for slack in (-0.2, 0.2))
    assert near.strictly_complementary and beyond.strictly_complementary
    assert near.least_slack == pytest.approx(0.2)


@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1e-6, 1e-6), (1e6, 1e6), (1e-4, 1e4)])
def test_a_zero_weight_that_another_solution_makes_positive_at_any_scale(sizes):
    """A sequence twice, all of its weight on one of the two; and a tie that nothing can lift."""
    X, scale = orthonormal_pair().X, torch.tensor([sizes[0], sizes[0], sizes[1]]).double()
    rows = gap_rows(Dataset(X[[0, 0, 1]], [1, 1, 1], opt=[0, 0, 0]))
    rows = replace(rows, differences=rows.differences * scale[:, None])
    gram = rows.gram().diagonal()
    dual = torch.stack([1 / gram[0], 0 * gram[0], 1 / gram[2]])
    assert certify(rows, dual).strictly_complementary
    tied = make_degenerate()
    tied = Dataset(tied.X * sizes[0], tied.y, tied.u / sizes[0])
    assert not solve_w_svm(tied).strictly_complementary


@pytest.mark.parametrize("norm, size", [("max", 0.5), ("spectral", 1.0), ("nuclear", 1.0)])
def test_other_norms_of_one_row(norm, size):
    """W with <(e_1 - e_2) e_1', W> >= 1: entries of 1/2, or half of the row itself."""
    data = Dataset([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], [1], [1.0, 0.0, 0.0])
    found = norms.least_norm(gap_rows(data), torch.ones(1).double(), norm)
    root = 1.0 if norm == "max" else math.sqrt(2)
    assert found.norm == pytest.approx(size / root, rel=tolerances.INTERIOR_POINT)
    assert found.weights.shape == (3, 3)


def test_ragged_sequences_have_no_constraint_at_padding():
    data, opt = normal_data(4, 5, 8)
    lengths = torch.tensor([5, 3, 2, 4])
    ragged = Dataset(data.X, data.y, lengths=lengths)
    solution = solve_w_svm(ragged, torch.minimum(opt, lengths - 1))
    assert len(solution.dual) == 10
    assert all(t < lengths[i] for i, t in solution.constraints.tolist())
    assert solution.is_optimal()


@pytest.mark.parametrize("seed", range(4))
def test_thin_rows_give_the_same_solution(seed, monkeypatch):
    data, opt = normal_data(6, 4, 40, seed)
    full = solve_w_svm(data, opt)
    monkeypatch.setattr(tokens, "WIDE", 16)
    thin = solve_w_svm(data, opt)
    assert full.basis is None
    assert solve_w_svm(*normal_data(20, 3, 18)).basis is None  # the queries span all
    assert thin.point.shape == (40, 6) and thin.is_optimal(tolerances.SVM_GAP)
    close(thin.margins, full.margins, tolerances.SVM_CLOSED_FORM)
    close(thin.weights, full.weights, tolerances.SVM_CLOSED_FORM)
    close(thin.rows.gaps(thin.weights), thin.margins, tolerances.SVM_CLOSED_FORM)
    assert thin.strictly_complementary == full.strictly_complementary
    again = certify(thin.rows, thin.dual)
    assert again.is_optimal(tolerances.SVM_GAP) and again.basis is not None
    assert not certify(thin.rows, 1.001 * thin.dual).is_optimal()
    # weights that the caller forms are judged as they are
    assert certify(thin.rows, thin.dual, 1.5 * thin.weights).dual_residual > 0.3


def test_a_diagnosis_of_many_features_forms_no_matrix_of_them(monkeypatch):
    monkeypatch.setattr(tokens, "WIDE", 16)
    report = diagnose(make_example1(n=4, T=3, d=40))
    assert report.svm.basis is not None
    assert "weights" not in vars(report.svm)
    assert report.svm.weights.shape == (40, 40)


def assert_gordan(rows, a, tolerance):
    """Weights of sum 1 under which the rows cancel: what is left, beside the rows' norms."""
    assert float(a.min()) >= 0 and float(a.sum()) == pytest.approx(1, abs=1e-14)
    total, sizes = float(rows.combine(a).norm()), float(a @ rows.norms())
    assert total <= tolerance * sizes
    return total / max(sizes, 1e-300)


def contradicting(extra=0):
    """Two sequences that ask for opposite things, among `extra` harmless ones."""
    X = normal_data(extra + 2, 3, 8, seed=1)[0].X.clone()
    X[-1] = X[-2]
    opt = torch.zeros(extra + 2, dtype=torch.long)
    opt[-1] = 1
    return Dataset(X, torch.ones(extra + 2)), opt


@pytest.mark.parametrize(
    ("data", "opt"),
    [contradicting(), contradicting(6), normal_data(40, 6, 3), normal_data(60, 10, 4, seed=5)],
)
def test_infeasible_data_carry_gordans_certificate(data, opt):
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(data, opt)
    vanishing = assert_gordan(gap_rows(data, opt), caught.value.certificate, tolerances.GORDAN)
    assert caught.value.residual == pytest.approx(vanishing, abs=1e-15)


@pytest.mark.parametrize("wide", [tokens.WIDE, 16])
@pytest.mark.parametrize(("row", "like"), [((2, 1), (2, 0)), ((3, 0), None)])
def test_certificate_names_a_repeated_token_and_a_zero_query(row, like, wide, monkeypatch):
    monkeypatch.setattr(tokens, "WIDE", wide)
    data, _ = normal_data(4, 3, 40)
    X = data.X.clone()
    X[row] = 0 if like is None else X[like]
    with pytest.raises(InfeasibleError, match=f"sequence {row[0]}, token {row[1]}") as caught:
        solve_w_svm(Dataset(X, data.y), [0, 0, 0, 2])
    assert caught.value.certificate[2 * row[0]] == 1
    assert caught.value.residual == 0


def test_infeasible_labels_and_a_zero_optimal_token():
    X = torch.tensor([[[1.0, 0], [0, 0]], [[2.0, 0], [0, 0]]])
    with pytest.raises(InfeasibleError) as caught:
        solve_u_svm(Dataset(X, [1, -1]), [0, 0])
    close(caught.value.certificate, [2 / 3, 1 / 3], tolerances.GORDAN)
    with pytest.raises(InfeasibleError):
        solve_u_svm(Dataset(0 * X, [1, -1]), [0, 0])


def two_against_one(margin):
    """Three optimal tokens, two of them opposite but for `margin`."""
    x = torch.tensor([[1.0, margin], [-1.0, margin], [1.0, 2 * margin]], dtype=torch.float64)
    return Dataset(torch.stack([x, torch.zeros_like(x)], dim=1), [1.0, 1.0, 1.0], opt=[0, 0, 0])


@pytest.mark.parametrize("margin", [1e-3, 1e-6, 1e-7, 1e-8, 1e-9])
def test_margins_that_a_gram_matrix_cannot_hold(margin):
    """In closed form u = (0, 1/margin); before, a SolverError from 1e-7 on."""
    solution = solve_u_svm(two_against_one(margin))
    close(solution.weights, [0.0, 1 / margin], tolerances.SVM_EDGE)
    assert solution.is_optimal(LOOSE)


@pytest.mark.parametrize("margin", [0.0, 1e-17, 1e-13, 1e-11])
def test_margins_that_count_as_none(margin):
    with pytest.raises(InfeasibleError) as caught:
        solve_u_svm(two_against_one(margin))
    assert caught.value.residual <= 1e-10


def exact_margins(data, W):
    """<z_k, W> for the tokens and weights as the rational numbers that they are."""
    fraction = np.vectorize(Fraction, otypes=[object])
    X, W = fraction(data.X.double().numpy()), fraction(W.numpy())
    for i in range(data.n):
        scores = X[i] @ W @ X[i, 0]
        for t in range(int(data.lengths[i])):
            if t != int(data.opt[i]):
                yield scores[int(data.opt[i])] - scores[t]


@pytest.mark.parametrize("n", [6, 7])
def test_a_simplex_that_rounding_opened(n):
    """An eigenvalue of 1e-17 in place of 0 leaves tokens with a margin of 1e-9 to 1e-8.

    In exact arithmetic they are feasible, and their weights prove it. Before, a SolverError.
    """
    data = simplex_tokens(n, (1 - 1e-16) / (n - 1), least=2e-17)
    solution = solve_w_svm(data)
    assert 1e-9 < solution.margin < 1e-8 and solution.is_optimal(LOOSE)
    assert min(exact_margins(data, solution.weights)) > 0


@pytest.mark.parametrize("n", range(3, 9))
def test_a_closed_simplex(n):
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(simplex_tokens(n, 1 / (n - 1)))
    weights = caught.value.certificate.reshape(n, n + 1)
    close(weights[:, 1:], [[n**-2.0] * n] * n, tolerances.SVM_EQUIVALENT)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_problem_at_the_edge_is_decided(family):
    """Either weights or Gordan's certificate, both proved; before, 19 of 96 had neither."""
    kinds = set()
    for seed in range(16):
        data = family(np.random.default_rng(seed))
        rows = gap_rows(data)
        try:
            solution = solve_w_svm(data)
        except InfeasibleError as error:
            assert_gordan(rows, error.certificate, 1e-10)
            kinds.add("infeasible")
        else:
            assert certify(rows, solution.dual, solution.weights).is_optimal(LOOSE)
            kinds.add(solution.solver == "50 digits")
    assert kinds == {"infeasible", True, False}


@pytest.mark.parametrize("seed", range(6))
def test_scaled_rows_are_decided_like_rows_at_unit_norm(seed):
    """Tokens by factors of 1e-3 to 1e3 in each sequence: feasible or not as before."""
    data = cancelling(np.random.default_rng(seed), margin=1e-7)
    sizes = 10 ** np.random.default_rng(seed).uniform(-3, 3, (data.n, 1, 1))
    verdicts = set()
    for each in (data, Dataset(data.X.numpy() * sizes, data.y, opt=data.opt)):
        try:
            verdicts.add(solve_w_svm(each).is_optimal(LOOSE))
        except InfeasibleError:
            verdicts.add(False)
    assert len(verdicts) == 1


@pytest.mark.parametrize(("spread", "gap"), [(2, 1e-12), (4, 1e-8)])
def test_token_norms_that_vary(spread, gap):
    """The gap is the rounding of the largest rows' margins, 2e-16 times 10^(2 spread)."""
    data, opt = normal_data(20, 10, 50, seed=3)
    generator = torch.Generator().manual_seed(4)
    sizes = 10 ** (spread * torch.rand(20, 10, 1, generator=generator, dtype=torch.float64))
    assert solve_w_svm(Dataset(sizes * data.X, data.y), opt).duality_gap <= gap


def opposite_pairs(count, margin):
    """Random optimal tokens and their opposites, but for a margin, in rotated coordinates."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((count // 2, 6))
    x = np.c_[np.concatenate([half, -half]), np.full(2 * len(half), margin)]
    x = x @ np.linalg.qr(rng.standard_normal((7, 7)))[0]
    return Dataset(np.stack([x, 0 * x], axis=1), [1.0] * len(x), opt=[0] * len(x))


def test_neither_provable(monkeypatch):
    """More rows than 50 digits serve, or weights that float64 does not hold: both by name."""
    near = opposite_pairs(40, 1e-9)
    assert solve_u_svm(near).norm == pytest.approx(1e9, rel=tolerances.SVM_EDGE)
    with pytest.raises(SolverError, match="a margin above 1e-9 .* got 440 rows"):
        solve_u_svm(opposite_pairs(440, 1e-9))
    monkeypatch.setattr(svm, "LOOSE", 1e-10)  # rounding over the margin is 2e-7
    with pytest.raises(SolverError, match="a margin above 1e-9 .* got 3.*e-10, feasible"):
        solve_u_svm(near)


@pytest.mark.parametrize("rows", [gap_rows(*contradicting()), [[1.0], [-1.0]]])
def test_a_problem_of_any_name_is_refused_with_its_certificate(rows):
    with pytest.raises(InfeasibleError, match="layer-two SVM: expected rows with a common"):
        solve(rows, problem="layer-two SVM")


def labelled_points(seed):
    generator = torch.Generator().manual_seed(seed)
    y = 1.0 - 2 * (torch.arange(12) % 2).double()
    X = torch.randn(12, 3, generator=generator, dtype=torch.float64) + 4 * y[:, None] + 1
    return X, y


def offset_svm(X, y, price):
    """cvxpy's w and b of the SVM whose offset costs price * b^2."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    held = [cp.multiply(y.numpy(), X.numpy() @ w + b) >= 1]
    cost = cp.sum_squares(w) + price * cp.square(b)
    cp.Problem(cp.Minimize(cost), held).solve(solver=cp.CLARABEL)
    return w.value, float(b.value)


@pytest.mark.parametrize("seed", range(3))
def test_the_svm_of_points_with_an_offset_is_that_of_a_program_in_w_and_b(seed):
    X, y = labelled_points(seed)
    above, below = X[y > 0], X[y < 0]
    free = solve((above[:, None] - below).reshape(-1, 3), 2.0).weights
    w, b = offset_svm(X, y, price=0)
    close(free, w, tolerances.INTERIOR_POINT)
    assert 1 - float((above @ free).min()) == pytest.approx(b, rel=tolerances.INTERIOR_POINT)
    paid = solve(y[:, None] * torch.column_stack([X, torch.ones(12)])).weights
    w, b = offset_svm(X, y, price=1)
    close(paid, [*w, b], tolerances.INTERIOR_POINT)
    assert float((paid[:3] - free).norm()) > 1e-3  # the price of an offset moves the weights


@pytest.mark.parametrize(("one", "other"), [((3.0, 1.0), (-1.0, 4.0)), ((1.0, 0.0), (5.0, 2.0))])
def test_two_points_are_divided_half_way(one, other):
    apart = torch.tensor([one]).double() - torch.tensor([other]).double()
    found = solve(apart, 2.0)
    close(found.weights, 2 * apart[0] / apart.square().sum(), tolerances.SVM_CLOSED_FORM)
    assert found.margin == pytest.approx(float(apart.norm()) / 2, rel=tolerances.SVM_CLOSED_FORM)


def test_wrong_weights_are_not_optimal():
    data, opt = normal_data(6, 4, 12)
    solution = solve_w_svm(data, opt)
    rows, dual, first = solution.rows, solution.dual, torch.eye(len(solution.dual)).double()[0]
    shifted = dual.clone()
    shifted[solution.support[0]] *= 1 + 1e-6
    assert certify(rows, dual).is_optimal()
    for wrong in (1.001 * dual, dual.flip(0), 0 * dual, math.nan * dual, shifted):
        assert not certify(rows, wrong).is_optimal()
    assert certify(rows, dual - (1e-3 + dual[0]) * first).duality_gap == math.inf
    off = certify(rows, dual, 1.5 * solution.weights)
    assert off.primal_residual == 0 and off.dual_residual > 0.3 and not off.is_optimal()
    assert not replace(solution, primal_residual=1e-3).is_optimal()


@pytest.mark.parametrize(
    ("weights", "off"), [([0.25, 0.25], 0.0), ([1 / 3, 0.0], 0.25), ([-1.0, 0.0], 1.75)]
)
def test_how_far_weights_are_from_dual_to_their_rows_in_the_largest_entry(weights, off):
    """min max|w_j| with 3 w_1 + w_2 >= 1: (1/4, 1/4), and 1/4 of the row has a sum of 1."""
    rows, dual = solve([[3.0, 1.0]]).rows, torch.tensor([0.25]).double()
    found = certify(rows, dual, torch.tensor(weights).double(), norm="max")
    assert found.dual_residual == pytest.approx(off, abs=tolerances.CLOSED_FORM)
    assert found.is_optimal() == (off == 0)


def test_equalities_are_met_and_cost_nothing_elsewhere():
    """min |w| with w_1 + w_2 >= 1 and w_1 = 3 w_2: (3/4, 1/4)."""
    found = solve([[1.0, 1.0, 0.0]], equalities=[[1.0, -3.0, 0.0]])
    close(found.weights, [0.75, 0.25, 0.0], tolerances.SVM_CLOSED_FORM)
    assert found.is_optimal(tolerances.SVM_GAP)
    assert float((found.rows.basis.T @ found.weights).norm()) < tolerances.SVM_CLOSED_FORM
    with pytest.raises(InfeasibleError, match="1 in the span"):
        solve([[1.0, -3.0, 0.0]], equalities=[[1.0, -3.0, 0.0]])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_right_sides_scale_the_weights(scale):
    rows = normal_data(6, 4, 12)[0].X[:, 0]
    right = torch.tensor([1.0, 2, 0, 1, 3, 0.5]).double()
    plain, scaled = solve(rows, right), solve(rows, scale * right)
    assert plain.is_optimal(tolerances.SVM_GAP) and scaled.is_optimal(tolerances.SVM_GAP)
    close(scaled.weights / scale, plain.weights, tolerances.SVM_EQUIVALENT)
    assert float((plain.margins - right).min()) > -tolerances.SVM_EQUIVALENT


def test_a_zero_row_of_right_side_zero_is_no_constraint():
    rows = torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()
    assert solve(rows, [1.0, 0.0]).weights.tolist() == [1.0, 0.0]
    with pytest.raises(InfeasibleError):
        solve(rows)


def test_opposite_rows_of_right_side_zero_leave_the_others():
    """Equalities by two inequalities: the rows that cancel have b'a = 0 and prove nothing."""
    rows = torch.tensor([[1.0, 1.0, 0], [1, -3, 0], [-1, 3, 0]]).double()
    found = solve(rows, [1.0, 0.0, 0.0])
    close(found.weights, [0.75, 0.25, 0.0], tolerances.SVM_CLOSED_FORM)
    assert found.is_optimal(tolerances.SVM_GAP)


@pytest.mark.parametrize(
    "change",
    [
        {"right": -1.0},
        {"right": [1.0, 1.0]},
        {"norm": "l7"},
        {"norm": "nuclear"},
        {"equalities": [[1.0]]},
        {"rows": [[1.0, math.nan]]},
        {"rows": [1.0, 2.0]},
        {"rows": gap_rows(make_separation_pair()), "equalities": [[1.0, 0, 0, 0]]},
    ],
)
def test_malformed_problems_are_refused(change):
    with pytest.raises(AttnBiasError, match="expected"):
        solve(**({"rows": [[1.0, 0.0]]} | change))


def test_two_decisions_of_50_digits_are_asked_for_in_turn(monkeypatch):
    """Where the first finds no weights there is nothing to ask the second for."""
    answers = iter([(torch.tensor([1.0, 0.0]).double(), None)])
    monkeypatch.setattr(svm, "decide", lambda *_: next(answers))
    with pytest.raises(SolverError, match="float64 does not hold"):
        solve([[1.0, 1e-9], [-1.0, 1e-9]])


def same(a, b) -> bool:
    """The same type and, through all fields, the same bits."""
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a)
        )
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    "find",
    [
        lambda: solve_w_svm(make_example1(n=4, T=3, d=20)),
        lambda: solve_u_svm(make_example1(n=4, T=3, d=20)),
        lambda: solve_w_svm(make_example1(n=2, T=2, d=WIDE + 1)),  # weights in a basis
        lambda: solve([[1.0, 1.0], [1.0, -1.0], [0.5, 1.5]], [1.0, 1.0, 0.0]),
        lambda: solve([[1.0, 1.0]], equalities=[[0.0, 1.0]]),
        lambda: certify(
            gap_rows(make_separation_pair()), torch.zeros(1).double()
        ),  # infinite bounds
    ],
)
def test_a_saved_solution_comes_back_to_the_last_bit(find, tmp_path):
    solution = find()
    again = SVMSolution.load(solution.save(tmp_path / "svm.npz"))
    assert same(again, solution) and repr(again) == repr(solution)
    assert torch.equal(again.weights, solution.weights)


def test_training_takes_a_loaded_solution_and_refuses_that_of_other_data(tmp_path):
    data = make_example1(n=4, T=3, d=20)
    again = SVMSolution.load(solve_w_svm(data).save(tmp_path / "svm.npz"))
    one, two = train(data, NGD(0.1), 50, svm=again), train(data, NGD(0.1), 50)
    assert np.array_equal(one.W_alignment_error, two.W_alignment_error, equal_nan=True)
    with pytest.raises(AttnBiasError, match="^svm"):
        train(make_example1(n=4, T=3, d=20, seed=1), NGD(0.1), 50, svm=again)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ("arrays", "dual", None),
        ("arrays", "rows.queries", None),
        ("arrays", "other", np.ones(2)),
        ("arrays", "margins", np.ones(3)),
        ("arrays", "dual", np.ones(2)),
        ("arrays", "right", np.ones(2)),
        ("arrays", "rows.token", np.zeros(3, int)),
        ("arrays", "point", np.ones((3, 3))),
        ("arrays", "point", np.array("a")),
        ("header", "rows", None),
        ("rows", "class", "list"),
        ("rows", "class", []),
        ("header", "bounds", [1.0]),
        ("header", "norm", "1"),
        ("header", "norm_name", "other"),
        ("header", "kind", "trace"),
    ],
)
def test_a_file_of_something_else_is_no_solution(place, name, value, tmp_path):
    path = solve_w_svm(make_separation_pair()).save(tmp_path / "svm.npz")
    arrays, header = read_npz(path, kind="solution")
    assert SVMSolution.load(write_npz(path, arrays, header))
    held = {"arrays": arrays, "header": header, "rows": header["rows"]}[place]
    held[name] = value
    if value is None:
        del held[name]
    write_npz(path, arrays, header)
    with pytest.raises(FileFormatError, match="svm.npz: expected a solution"):
        SVMSolution.load(path)
