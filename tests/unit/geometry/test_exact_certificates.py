"""Certificates without rounding: closed forms, rational arithmetic, and what must be refused."""

import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import pytest
import torch

from attnbias import Dataset, SVMSolution, make_example1, solve_u_svm, solve_w_svm
from attnbias.data import make_degenerate
from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.geometry import exact, tokens
from attnbias.geometry.svm import certify, solve

pytest.importorskip("flint")
ULPS = 4e-16  # two neighbours of a float, relative: what is left of 77 digits


def proved(solution):
    return solution.certify(exact=True)


def spoiled(dual, share=1e-9):
    """Every second weight raised by this share, the others lowered."""
    return dual * (1 + share * (1 - 2 * (torch.arange(len(dual)) % 2)).double())


def test_margins_that_are_roots_are_enclosed():
    """Of tokens at right angles, sqrt 2; of the rows (1, 0) and (0, 2), the root of 4/5."""
    pair = Dataset([[[1.0, 0], [0, 1]]], [1], u=[0.0, 1])
    for solution, square in [
        (solve_w_svm(pair), Fraction(2)),
        (solve([[1.0, 0.0], [0.0, 2.0]]), Fraction(4, 5)),
    ]:
        certificate = proved(solution)
        low, high = map(Fraction, certificate.margin)
        assert low**2 <= square <= high**2 and high - low <= ULPS * high
        assert certificate.is_optimal(1e-15) and certificate.refusals() == []
        with pytest.raises(FrozenInstanceError):  # what is proved stays as it was proved
            certificate.negative = 0


def rational(rows):
    """The smallest W with <z_k, W> = 1, and its dual weights, by elimination in fractions."""
    rows = [[Fraction(x) for x in row] for row in rows]
    K = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] + [1] for a in rows]
    for j in range(len(K)):
        K[j] = [x / K[j][j] for x in K[j]]
        for i in range(len(K)):
            if i != j:
                K[i] = [x - K[i][j] * y for x, y in zip(K[i], K[j], strict=True)]
    dual = [row[-1] for row in K]
    return [
        sum(a * x for a, x in zip(dual, col, strict=True)) for col in zip(*rows, strict=True)
    ], dual


@pytest.mark.parametrize("error", [0.0, 1e-9, 0.25])
def test_the_distance_is_that_of_rational_arithmetic(error):
    rows = [[3.0, 1, 0], [1, 2, 1], [0, 1, 4]]
    W, dual = rational(rows)
    assert min(dual) > 0  # so that W solves the SVM, too
    size = sum(x * x for x in W)
    solution = solve([*rows, [9.0, 9, 9]])  # a row that is idle
    point = solution.point + error
    certificate = proved(replace(solution, point=point))
    apart = sum((Fraction(p) - x) ** 2 for p, x in zip(point.tolist(), W, strict=True)) / size
    low, high = map(Fraction, certificate.distance)
    assert low**2 <= apart <= high**2 and high - low <= ULPS * high + Fraction(1, 10**21)
    low, high = map(Fraction, certificate.margin)
    assert low**2 <= 1 / size <= high**2
    assert certificate.is_optimal() == (error == 0)


def test_outer_products_of_tokens_in_rational_arithmetic():
    """Of two sequences of random floats: the rows (x_opt - x_t) x_1' written out in fractions."""
    generator = torch.Generator().manual_seed(2)
    data = Dataset(torch.randn(2, 4, 3, generator=generator).double() / 3, [1, -1])
    solution = solve_w_svm(data, opt=[1, 2])
    X = [[[Fraction(x) for x in token] for token in tokens] for tokens in data.X.tolist()]
    rows = []
    for i, t in solution.constraints.tolist():
        difference = [a - b for a, b in zip(X[i][(1, 2)[i]], X[i][t], strict=True)]
        rows.append([a * q for a in difference for q in X[i][0]])
    W, dual = rational([rows[k] for k in solution.support.tolist()])
    margins = [sum(x * w for x, w in zip(row, W, strict=True)) for row in rows]
    assert min(dual) > 0 and min(margins) == 1 < max(margins)  # so W is W_mm
    size, point = sum(w * w for w in W), map(Fraction, solution.weights.flatten().tolist())
    apart = sum((p - w) ** 2 for p, w in zip(point, W, strict=True)) / size
    certificate = proved(solution)
    low, high = map(Fraction, certificate.distance)
    assert low**2 <= apart <= high**2 and 0 < high - low <= ULPS * high + Fraction(1, 10**21)
    low, high = map(Fraction, certificate.margin)
    assert low**2 <= 1 / size <= high**2


def test_tokens_are_taken_exactly_and_not_their_rounded_differences(tmp_path):
    """1 - 2^-60 is 1 in float64, so the stored W_mm is off by that share; from a file as well."""
    data = Dataset([[[1.0, 0], [2.0**-60, 0]]], [1])
    solution = solve_w_svm(data, opt=[0])
    assert solution.margin == 1 and solution.rows.differences.tolist() == [[1, 0]]
    for each in (solution, SVMSolution.load(solution.save(tmp_path / "svm.npz"))):
        certificate = proved(each)
        low, high = map(Fraction, certificate.distance)
        assert low <= Fraction(1, 2**60) <= high < Fraction(1, 2**59)
        assert certificate.margin == (math.nextafter(1, 0), 1)
    as_stored = replace(solution, rows=replace(solution.rows, keys=None))
    assert proved(as_stored).margin == (1, 1)


def test_a_dual_wrong_by_1e_9_is_refused_and_float64_cannot_tell():
    solution = solve_w_svm(make_example1(n=4, T=3, d=12, seed=0))
    wrong = certify(solution.rows, spoiled(solution.dual))
    assert wrong.is_optimal(1e-9) and wrong.certify().is_optimal(1e-9)
    certificate = proved(wrong)
    assert certificate.distance[0] > 1e-10  # proved wrong, not merely unproved
    assert not certificate.is_optimal() and "the point" in certificate.refusals()[0]
    assert certificate.margin == proved(solution).margin
    beside = proved(replace(solution, dual=spoiled(solution.dual)))  # the weights are right
    assert beside.distance[1] < 1e-14 < 1e-10 < beside.dual_distance[0]
    assert [words.split(" is ")[0] for words in beside.refusals()] == ["the dual weights' sum"]


def test_negative_dual_weights_are_refused():
    solution = solve([[1.0, 0.0], [2.0, 1.0]])
    dual = solution.dual.clone()
    assert dual[1] == 0
    dual[1] = -1e-200  # below what changes the sum
    certificate = proved(replace(solution, dual=dual))
    assert certificate.negative == 1 and certificate.duality_gap == math.inf
    assert not certificate.is_optimal() and "1 dual weights" in certificate.refusals()[0]


def test_dual_weights_on_an_idle_row_are_refused_by_the_duality_gap():
    """(0, 1/2) on the rows 1 and 2 gives W = 1, the right one, and proves only |W| >= 1/2."""
    solution = solve([[1.0], [2.0]])
    certificate = proved(replace(solution, dual=torch.tensor([0.0, 0.5]).double()))
    assert certificate.dual_distance[1] < 1e-30 and certificate.duality_gap == 1
    assert not certificate.is_optimal()


def test_rows_that_cancel_have_no_proved_margin():
    rows = tokens.VectorRows(
        torch.tensor([[1.0], [-1.0]]).double(), *torch.zeros(2, 2).long(), (1,)
    )
    certificate = proved(certify(rows, torch.ones(2).double()))
    assert certificate.margin[0] == 0 and certificate.distance == (0, math.inf)
    assert not certificate.is_optimal(math.inf) and "no weights" in certificate.refusals()[0]


@pytest.mark.parametrize("slack", [-0.2, 0.0, 0.2])
def test_a_constraint_that_only_touches(slack):
    """Differences (1, 0) and (1 - slack, 1): W_mm is (1, slack), or (1, 0) where that is idle."""
    certificate = proved(solve_w_svm(make_degenerate(slack)))
    low, high = map(Fraction, certificate.margin)
    assert low**2 <= 1 / (1 + Fraction(max(slack, 0)) ** 2) <= high**2
    assert certificate.is_optimal(1e-15)


def test_repeated_sequences_and_any_dual_weights_lead_to_the_same_proof():
    data = make_example1(n=4, T=3, d=12, seed=0)
    solution = solve_w_svm(data)
    margin = proved(solution).margin
    twice = solve_w_svm(Dataset.concat([data, data[:2]]))
    assert proved(twice).margin == margin and proved(twice).is_optimal()
    for dual in (torch.ones_like(solution.dual), torch.zeros_like(solution.dual)):
        certificate = proved(certify(solution.rows, dual))
        assert certificate.margin == margin and certificate.distance[0] > 0.9


def test_weights_kept_as_a_product_and_the_decoder(monkeypatch):
    data = make_example1(n=4, T=3, d=40, seed=1)
    full = proved(solve_w_svm(data))
    monkeypatch.setattr(tokens, "WIDE", 16)
    thin = solve_w_svm(data)
    assert thin.basis is not None and proved(thin).margin == full.margin
    assert proved(thin).is_optimal()
    longer = proved(replace(thin, point=1.5 * thin.point))
    assert longer.distance == pytest.approx((0.5, 0.5), rel=1e-14)  # |1.5 W - W|, rounding aside
    decoder = solve_u_svm(data)
    certificate = proved(decoder)
    assert certificate.is_optimal() and certificate.margin[0] <= decoder.margin * (1 + 1e-14)


def test_what_no_proof_covers_is_refused_by_name(monkeypatch):
    solution = solve([[1.0, 0.0], [0.0, 2.0]])
    refused = {
        "norm": replace(solution, norm_name="max"),
        "right": solve([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.5]),
        "rows": solve([[1.0, 0.0], [2.0, 1.0]], equalities=[[0.0, 1.0]]),
    }
    for name, each in refused.items():
        with pytest.raises(RangeError, match=name):
            proved(each)
    with pytest.raises(NonFiniteError, match="dual"):
        proved(replace(solution, dual=torch.tensor([1.0, math.nan]).double()))
    with pytest.raises(ShapeError, match="dual"):
        proved(replace(solution, dual=torch.ones(3).double()))
    with pytest.raises(DtypeError, match="exact"):
        solution.certify(exact="yes")
    with pytest.raises(RangeError, match="tol"):
        proved(solution).is_optimal(-1)
    monkeypatch.setattr(exact, "LARGEST", 1)
    with pytest.raises(RangeError, match="at most 1 constraints"):
        proved(solution)


def test_bounds_are_floats_on_the_right_side():
    import flint

    with flint.ctx.workprec(exact.BITS):
        for x in (flint.arb(1) / 3, flint.arb(2).sqrt(), -flint.arb(2).sqrt(), flint.arb(0.1)):
            low, high = exact.down(flint, x), exact.up(flint, x)
            assert flint.arb(low) <= x and flint.arb(high) >= x
            assert high <= math.nextafter(low, math.inf)
        assert exact.down(flint, flint.arb("inf")) == math.inf == exact.up(flint, flint.arb("inf"))
