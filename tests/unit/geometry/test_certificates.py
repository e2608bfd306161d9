"""A verdict measures the solution: not its own rounding, and nothing that float64 cannot know."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from attnbias import Dataset, SVMSolution, solve_u_svm, solve_w_svm
from attnbias.data import make_example1
from attnbias.errors import AttnBiasError, InfeasibleError, RangeError, SolverError
from attnbias.geometry import precise, tokens
from attnbias.geometry.certificate import bounds
from attnbias.geometry.solution import require_optimal
from attnbias.geometry.svm import certify, solve
from attnbias.geometry.tokens import gap_rows

SHORT = 1e-6  # by so much may a margin of an optimal solution be below 1


def fractions(values):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, dtype=float))


def awkward(seed):
    """Tokens, sequences, features or all of them in units far apart; near duplicates."""
    rng = np.random.default_rng(seed)
    n, T, d = int(rng.integers(1, 5)), int(rng.integers(2, 5)), int(rng.integers(2, 7))
    X, kind = rng.normal(size=(n, T, d)), seed % 5
    if kind == 0:
        X *= 10.0 ** rng.uniform(-6, 6, size=(n, T, 1))
    elif kind == 1:
        r = 10.0 ** rng.integers(1, 7)
        X *= np.array([r, 1, 1 / r])[np.arange(n) % 3][:, None, None]
    elif kind == 2:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-9, -2) * rng.normal(size=(n, d))
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    else:
        X *= 10.0 ** rng.uniform(-3, 3, size=(n, 1, 1)) * 10.0 ** rng.uniform(-3, 3, size=d)
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-6, -1) * X[:, 0] * rng.normal(size=(n, d))
    y = rng.choice([-1, 1], size=n)
    return Dataset(X, y, u=rng.normal(size=d) / (np.abs(X).max(axis=(0, 1)) if kind > 2 else 1))


def least_margin(data, solution) -> Fraction:
    """Of the tokens and the weights as the rational numbers that they are."""
    X, W = fractions(data.X), fractions(solution.weights)
    if W.ndim == 1:
        places = solution.constraints.tolist()
        return min(int(data.y[i]) * (X[i, t] @ W) for i, t in places)
    scores = [x @ (W @ x[0]) for x in X]
    opt = solution.rows.opt.tolist()
    return min(scores[i][opt[i]] - scores[i][t] for i, t in solution.constraints.tolist())


# The first ones passed on weights with these margins, on a decoder's too: -43941, -5966, 0.77...
@pytest.mark.parametrize("seeds", [(216, 606, 870, 686, 785), range(1000, 1040)])
def test_what_is_called_optimal_has_its_margins_in_exact_arithmetic(seeds):
    called = asked = 0
    for seed in seeds:
        data = awkward(seed)
        for find in (solve_w_svm, solve_u_svm):
            try:
                solution = find(data)
            except InfeasibleError:
                continue
            asked += 1
            if solution.is_optimal():
                called += 1
                assert least_margin(data, solution) >= 1 - SHORT
    assert called >= 0.97 * asked > 0


def rounded_weights(solution):
    """The same with weights as float32 has them: what float64 leaves of them is luck of a CPU."""
    return certify(solution.rows, solution.dual, solution.weights.float().double())


def test_weights_that_lost_their_margins_do_not_pass():
    """The weights that rounding leaves, of whoever: judged, stored, in coordinates of the span."""
    data = awkward(216)
    solution = solve_w_svm(data)
    rounded = rounded_weights(solution)
    assert least_margin(data, rounded) < 0 and solution.is_optimal()
    assert not rounded.is_optimal() and rounded.duality_gap == math.inf
    assert not rounded.certify(exact=True).is_optimal(1e-6)
    with pytest.raises(RangeError, match="Rescale the tokens of each sequence, for .* norms from"):
        require_optimal("svm", rounded)


def test_a_file_is_judged_anew(tmp_path):
    """One of an earlier version, which called it optimal."""
    solution = rounded_weights(solve_w_svm(awkward(216)))
    residuals = dict(primal_residual=0.0, dual_residual=0.0, bounds=bounds(1.0, 1.0, 1.0, 1.0))
    trusting = replace(solution, **residuals)
    assert trusting.is_optimal()
    assert not SVMSolution.load(trusting.save(tmp_path / "svm.npz")).is_optimal()


def test_thin_rows_do_not_pass_on_what_their_basis_rounds(monkeypatch):
    monkeypatch.setattr(tokens, "WIDE", 3)
    thin = 0
    for seed in (5 * k + 1 for k in range(60)):  # sequences at r, 1 and 1/r
        data = awkward(seed)
        try:
            solution = solve_w_svm(data)
        except AttnBiasError:
            continue
        thin += solution.basis is not None
        assert not solution.is_optimal() or least_margin(data, solution) >= 1 - SHORT
    assert thin > 10


@pytest.mark.parametrize("seed", [3, 216, 606, 686, 870])
def test_margins_are_right_beyond_float64(seed):
    for solution in (solve_w_svm(data := awkward(seed)), solve_u_svm(data)):
        margins, unsure, sizes = precise.margins_of(solution.rows, solution.right, solution.weights)
        W = fractions(solution.weights)
        two_floats = 2.0**-86 * float(solution.weights.norm() * sizes.max())  # where these end
        if W.ndim == 1:
            true = fractions(solution.rows.rows) @ W
        else:
            X, opt = fractions(data.X), solution.rows.opt.tolist()
            true = [
                (X[i, opt[i]] - X[i, t]) @ W @ X[i, 0] for i, t in solution.constraints.tolist()
            ]
        for found, bound, value in zip(margins.tolist(), unsure.tolist(), true, strict=True):
            last_bit = 2**-52 * abs(float(value))
            assert abs(float(Fraction(found) - value)) <= bound + last_bit
            assert bound <= max(1e-11 * max(1.0, abs(float(value))), two_floats)


@pytest.mark.parametrize("seed", range(8))
def test_right_answers_are_not_refused_for_the_rounding_of_their_certificate(seed):
    """Rows in units from 1e4 to 1e-4: the sum of rows alone was off by 1e-9 to 1e-7."""
    rng = np.random.default_rng(seed)
    Z, w = rng.normal(size=(20, 6)), rng.normal(size=6)
    Z = Z * np.sign(Z @ w)[:, None] * 10.0 ** np.linspace(4, -4, 6)
    solution = solve(Z)
    assert solution.is_optimal()
    assert min(fractions(Z) @ fractions(solution.weights)) >= 1 - SHORT
    for wrong in (1 + 1e-6, 1 - 1e-6):  # and what is wrong is still refused
        assert not certify(solution.rows, solution.dual, wrong * solution.weights).is_optimal()


def test_weights_beside_their_rows_are_refused_by_more_than_rounding():
    solution = solve_w_svm(make_example1(n=4, T=3, d=12, seed=0))
    aside = torch.randn(12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for size, passes in ((1e-6, False), (1e-8, False), (1e-14, True)):
        moved = solution.weights + size * solution.norm * aside / aside.norm()
        assert certify(solution.rows, solution.dual, moved).is_optimal() == passes


def test_infeasible_for_the_units_alone_is_advised_so():
    rows = [[1e6, 1e-6], [-1e6, 1e-6]]
    with pytest.raises(
        InfeasibleError, match="Rescale each feature, for columns .* 1e-06 to 1e.06"
    ):
        solve(rows)
    data = Dataset([[[1e-6, 1e6], [0, 0]], [[1e-6, -1e6], [0, 0]]], [1, 1], opt=[0, 0])
    with pytest.raises(InfeasibleError, match="u-SVM.*Rescale each feature"):
        solve_u_svm(data)
    with pytest.raises(InfeasibleError) as plain:
        solve([[1.0, 0.0], [-1.0, 0.0]])
    assert "escale" not in str(plain.value)


def test_ordinary_margins_are_those_of_float64():
    rows = gap_rows(make_example1(n=5, T=4, d=30, seed=1))
    solution = solve_w_svm(make_example1(n=5, T=4, d=30, seed=1))
    assert torch.equal(solution.margins, rows.gaps(solution.weights))


def test_an_interior_point_that_ends_without_weights_names_the_units():
    with pytest.raises(SolverError, match="the status .*Rescale the tokens of each"):
        solve(gap_rows(awkward(3120)), norm="max")
