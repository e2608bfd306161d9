"""Assumptions 1 and 2: instances that satisfy them, and broken ones that must be refused."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_data
from orthonormal import orthonormal_pair as orthonormal

from attnbias import Dataset
from attnbias.data import make_two_sample_trap
from attnbias.geometry.assumptions import (
    check_assumption1,
    check_assumption2,
    example1_threshold,
    log_term,
)


def tilted(overlap: float, u2: float = 0.0) -> Dataset:
    """One sequence e_1, overlap e_1 + e_2."""
    return Dataset([[[1.0, 0.0], [overlap, 1.0]]], [1], u=[1.0, u2])


class TestAssumption1:
    @pytest.mark.parametrize(("phi", "allowed"), [(None, 1 / 3), (1, 1 / 3), (0.01, 0.04 / 3)])
    def test_holds_on_orthonormal_tokens(self, phi, allowed):
        """A worse start asks for more."""
        table = check_assumption1(orthonormal(), phi=phi)
        assert table.all_hold
        assert [check.value for check in table] == [0.0, 0.0]
        assert table[1].bound == pytest.approx(allowed)

    def test_fails_on_the_instance_that_does_not_converge(self):
        table = check_assumption1(make_two_sample_trap())
        assert [check.holds for check in table] == [False, False]
        assert table[0].value == pytest.approx(4.0)
        assert table[1].value == pytest.approx(2 * math.exp(4) * 1 * 4)

    def test_either_inequality_alone_can_fail(self):
        first = check_assumption1(tilted(1 / 15 + 1e-9))  # the bound is 1/15
        assert [check.holds for check in first] == [False, True]
        assert check_assumption1(tilted(1 / 15 - 1e-9))[0].holds
        second = check_assumption1(tilted(0.05).with_decoder([8.0, 0.0]))  # kappa = e^7.6
        assert [check.holds for check in second] == [True, False]

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_equal_and_opposite_optimal_tokens_are_allowed(self, sign):
        X = [[[1.0, 0, 0], [0, 1, 0]], [[sign, 0, 0], [0, 0, 1]]]
        assert check_assumption1(Dataset(X, [1, sign], u=[1.0, 0.0, 0.0])).all_hold

    def test_says_where_kappa_comes_from_without_assumption2(self):
        X = torch.eye(3, dtype=torch.float64)[None]
        exact = Dataset(X, [1], u=[1.0, 0.0, 0.0])
        assert "extreme" not in str(check_assumption1(exact)[1])
        assert "extreme" in str(check_assumption1(exact.with_decoder([1.0, 0.5, 0.0]))[1])

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**31), overlap=st.floats(0, 0.3), scale=st.floats(1e-40, 1e40))
    def test_scale_of_the_tokens_is_irrelevant(self, seed, overlap, scale):
        noise = random_data(3, 2, 6, seed=seed).X
        X = torch.eye(6).double().reshape(3, 2, 6) + overlap * noise / 8
        u = torch.tensor([1.0, 0, 1.0, 0, 1.0, 0]).double()
        data, other = Dataset(X, [1, 1, 1], u), Dataset(scale * X, [1, 1, 1], u / scale)
        for a, b in zip(check_assumption1(data), check_assumption1(other), strict=True):
            assert b.value == pytest.approx(a.value, rel=1e-9)
            assert a.holds == b.holds or abs(a.slack) < 1e-9


class TestAssumption2:
    def test_always_holds_with_two_tokens(self):
        assert check_assumption2(random_data(4, 2, 3, seed=0)).all_hold

    def test_fails_with_spread_and_ratio(self):
        X = torch.eye(3, dtype=torch.float64)[None]
        check = check_assumption2(Dataset(X, [1], u=[1.0, 0.5, 0.25]))[0]
        assert not check.holds
        assert check.value == 0.25
        assert "0.5 of the score gap" in check.reason and "1 of 1" in check.reason

    def test_padding_has_no_score(self):
        X = torch.eye(3).double().expand(2, 3, 3)
        ragged = Dataset(X, [1, 1], u=[1.0, 0.5, 0.25], lengths=[2, 2])
        assert check_assumption2(ragged).all_hold

    @settings(max_examples=25, deadline=None)
    @given(scale=st.floats(1e-6, 1e6), spread=st.floats(0.01, 0.9))
    def test_ratio_ignores_the_decoders_scale(self, scale, spread):
        X = torch.eye(3, dtype=torch.float64)[None]
        u = torch.tensor([1.0, spread, 0.0], dtype=torch.float64)
        reasons = {check_assumption2(Dataset(X, [1], u=c * u))[0].reason for c in (1.0, scale)}
        assert len(reasons) == 1


class TestExample1Threshold:
    def test_formula(self):
        exact = math.log(6 * 36 / 0.1) * (4.7 * 3 * math.e / 0.25) ** 2
        assert example1_threshold(3, 2) == math.ceil(exact)
        assert example1_threshold(2, 10**6, phi=1.0) == 2 * (10**6 - 1) + 2  # for Assumption 2
        # where 6 (n T)^2 / delta is beyond float64, its logarithm is not
        least = math.log(216) + 1074 * math.log(2)
        assert log_term(3, 2, 5e-324) == pytest.approx(least, rel=1e-15)
