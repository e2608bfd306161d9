"""Conditions 1 and 2: tokens at each limit, just past it, and the sizes they ask for."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, seeds
from joint_instances import at_the_limit, from_gram, largest_eta, orthogonal
from lemma_instances import failing
from tolerances import CLOSED_FORM

from attnbias import Dataset, make_separation_pair
from attnbias.data import make_dm
from attnbias.theorems import check_lemma6, check_lemma9
from attnbias.theorems.joint.conditions import check_condition1, check_condition2, dm_threshold
from attnbias.theorems.joint.constants import first_step, joint_constants, power_sum


class TestCondition2:
    def test_orthogonal_family_at_its_limits(self):
        eta = 0.0145 / (3 * 2**0.5)
        table = check_condition2(orthogonal(), eta)
        assert table.all_hold
        assert table[3].value == pytest.approx(9.0, rel=CLOSED_FORM)  # a / b_+, at its limit
        assert table[5].bound == pytest.approx(eta, rel=CLOSED_FORM)  # eta, at its limit
        assert failing(check_condition2(orthogonal(), 1.000001 * eta)) == ["step_size"]

    @FEW
    @given(n=st.integers(1, 6), seed=seeds, p=st.floats(0, 0.95), a=st.sampled_from([0.01, 1, 90]))
    def test_saturated_tokens_hold_and_a_little_more_fails(self, n, seed, p, a):
        eta, decay = largest_eta(n, p, a), (p, 1)
        assert check_condition2(at_the_limit(n, seed=seed, a=a), eta, decay=decay).all_hold
        more = at_the_limit(n, seed=seed, coupling=0.00501, a=a)
        assert failing(check_condition2(more, eta, decay=decay)) == ["coupling"]
        beyond = check_condition2(at_the_limit(n, seed=seed, a=a), 1.001 * eta, decay=decay)
        assert failing(beyond) == ["step_size"]

    @pytest.mark.parametrize(
        ("sizes", "item"),
        [
            ((1.0, 0.89, 0.1, 0.1), "opt_norms"),
            ((1.0, 1.0, 0.1, 0.08), "other_norms"),
            ((1.0, 1.0, 0.112, 0.112), "ratio"),
            ((0.5, 0.5, 0.5, 0.5), "ratio"),
        ],
    )
    def test_norms(self, sizes, item):
        gram = torch.diag(torch.tensor(sizes, dtype=torch.float64))
        table = check_condition2(from_gram(gram, [1, 1], [True, True]), 1e-4)
        assert failing(table) == [item]

    @pytest.mark.parametrize(
        "start",
        [{"u0": [1e-300, 0, 0, 0]}, {"W0": torch.eye(4, dtype=torch.float64)}],
        ids=["u0", "W0"],
    )
    def test_a_start_that_is_not_zero_is_a_check_that_fails(self, start):
        assert failing(check_condition2(orthogonal(), 1e-4, **start)) == ["start"]
        zero = {"u0": torch.zeros(4), "W0": torch.zeros(4, 4)}
        assert check_condition2(orthogonal(), 1e-4, **zero).all_hold

    @pytest.mark.parametrize(("decay", "item"), [((2 / 3, 0), "decay"), ((1, 1), "step_size")])
    def test_decay(self, decay, item):
        assert failing(check_condition2(orthogonal(), 1e-4, decay=decay)) == [item]

    def test_products_of_optimal_tokens_count(self):
        gram = torch.diag(torch.tensor([1.0, 1.0, 0.1, 0.1], dtype=torch.float64))
        gram[0, 1] = gram[1, 0] = -0.01
        data = from_gram(gram, [1, 1], [True, True])
        assert joint_constants(data).nu == pytest.approx(0.01, rel=CLOSED_FORM)
        assert failing(check_condition2(data, 1e-4)) == ["coupling"]

    def test_real_draws_zero_tokens_and_decoders(self):
        """One sequence meets iii) in a million features; Figure 3's ten in a hundred don't."""
        assert check_condition2(make_dm(n=1, d=1_000_000, alpha=3.4, sigma=1e-3), 1e-4).all_hold
        assert "coupling" in failing(check_condition2(make_dm(), 1e-4))
        data = Dataset([[[1.0, 0.0], [0.0, 0.0]]], [1], opt=[0])
        assert failing(check_condition2(data, 1e-4)) == ["other_norms", "coupling"]
        assert joint_constants(make_separation_pair()).a == 1.0  # its decoder decides opt

    def test_zero_optimal_tokens_fail_it_and_tokens_of_any_size_have_the_same_ratios(self):
        """Squares of tokens under 1e-154 underflow, and those above 1e154 overflow."""
        data = Dataset([[[0.0, 0.0], [-1.0, 0.0]]], [1], u=[1.0, 0.0])
        assert failing(check_condition2(data, 0.1)) == ["opt_norms", "ratio"]
        X = torch.tensor([[[4.0, 0.5], [0.0, 1.0]], [[0.5, 4.0], [1.0, 0.0]]]).double()
        known = check_condition2(Dataset(X, [1, 1], opt=[0, 0]), 1e-3)
        for unit in (2.0**-600, 2.0**520):
            table = check_condition2(Dataset(X * unit, [1, 1], opt=[0, 0]), 1e-3)
            assert [each.value for each in table[1:5]] == [each.value for each in known[1:5]]
            assert table[5].holds == (unit < 1)


class TestCondition1:
    def test_figure_3_misses_alpha_and_d(self):
        table = check_condition1(make_dm(), 1e-4)
        assert failing(table) == ["alpha", "dimension"]
        assert table[2].bound == dm_threshold(10, 3.0)
        assert failing(check_condition1(make_dm(), 0.05)) == ["alpha", "dimension", "step_size"]

    def test_other_data_have_no_alpha(self):
        table = check_condition1(orthogonal(), 1e-4)
        assert [check.verdict for check in table] == ["holds"] + ["not applicable"] * 3

    def test_sizes_at_their_limits(self):
        def found(d, alpha=3.4, share=1.0, u0=None):
            data = make_dm(2, 2, d, alpha=alpha, sigma=1e-6, span=True)
            return failing(check_condition1(data, share * eta, u0=u0))

        d = dm_threshold(2, 3.4)
        eta = largest_eta(2, 2 / 3, 1.05 * 3.4**2 * 1e-12 * d)
        assert found(d) == []
        assert found(d - 1) == ["dimension"] and found(d, share=1.001) == ["step_size"]
        assert found(d, alpha=3.39) == ["alpha"]
        assert found(d, u0=1e-9 * torch.ones(5)) == ["start"]

    def test_draws_beyond_the_threshold(self):
        """Ten sequences in as many features as Condition 1 asks for: both conditions hold."""
        d = dm_threshold(10, 3.4, delta=0.01)
        for seed in range(3):
            data = make_dm(10, 2, d, alpha=3.4, sigma=1e-5, span=True, seed=seed)
            assert check_condition1(data, 1e-5, delta=0.01).all_hold
            assert check_condition2(data, 1e-5).all_hold

    def test_threshold_formula(self):
        assert dm_threshold(3, 2.0) == math.ceil(math.log(2160) * 1.8e5 * 16 * 9)
        assert dm_threshold(1, 0.1) == math.ceil(1680 * math.log(240))
        assert dm_threshold(3, 2.0, T=4) > dm_threshold(3, 2.0)


class TestPowerSum:
    @pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 2 / 3, 0.9, 1.0, 4 / 3, 1.8])
    def test_against_term_by_term_sums(self, p):
        steps = [0, 1, 2, 1023, 1024, 1025, 5000, 40_000]
        exact = [math.fsum(s**-p for s in range(1, t + 1)) for t in steps]
        assert power_sum(steps, p).tolist() == pytest.approx(exact, rel=CLOSED_FORM)

    @FEW
    @given(total=st.floats(0.1, 1e4), p=st.floats(0, 0.8))
    def test_first_step_is_the_first(self, total, p):
        t = first_step(total, p)
        if t < 1e12:
            assert float(power_sum(t, p)) >= total * (1 - CLOSED_FORM)
            assert t == 1 or float(power_sum(t - 1, p)) < total
        assert first_step(1e5, 0.999) == math.inf  # out of reach

    def test_a_far_first_step_is_known_to_twelve_digits(self):
        """For p = 0 the sum is t itself."""
        for total in np.geomspace(3e13, 3e17, 40):
            assert 0 <= first_step(total, 0.0) - total <= 1e-12 * total + 1


def test_meta_that_lacks_what_the_maker_writes_is_no_maker():
    """A data set may be given any meta: then nothing is known about how it was drawn."""
    pair = make_separation_pair()
    for meta in ({"maker": "make_dm"}, {"maker": "make_dm", "d": 9, "alpha": "x", "sigma": 1.0}):
        bare = Dataset(pair.X, pair.y, opt=[0], meta=meta)
        assert "not drawn" in check_lemma9(bare)[0].reason
        assert "not drawn" in check_condition1(bare, 0.1)[1].reason
    bare = Dataset(pair.X, pair.y, pair.u, meta={"maker": "make_example1", "sigma": 1.0})
    assert "make_example1" in check_lemma6(bare)[0].reason
