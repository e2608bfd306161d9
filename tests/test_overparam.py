"""Feasibility by counting, tokens with a faint score channel, and what correlation leaves."""

import itertools
import math

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import FEW, seeds
from orthonormal import verdicts
from tolerances import CLOSED_FORM, FAINT, GORDAN

from attnbias import (
    NGD,
    Dataset,
    InfeasibleError,
    check_assumption2,
    make_separation_pair,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.beyond.overparam.data import drop_signal_feature, make_weak_signal
from attnbias.beyond.overparam.geometry import (
    check_independent_rows,
    most_feasible_sequences,
    wendel_share,
)
from attnbias.beyond.overparam.plots import plot_feasible_share
from attnbias.errors import DtypeError, NonFiniteError, RangeError
from attnbias.geometry.tokens import gap_rows


def feasible(data, opt=None):
    try:
        return bool(solve_w_svm(data, opt))
    except InfeasibleError:
        return False


# counting


@settings(FEW, max_examples=12)
@given(seed=seeds, n=st.integers(4, 6), rho=st.sampled_from([0.0, 0.7]))
def test_the_share_is_exact_for_any_tokens(seed, n, rho):
    """Of all 2^n choices of optimal tokens Wendel's share is feasible; d^2 = 4 unknowns."""
    data = drop_signal_feature(make_weak_signal(n, 2, 2, correlation=rho, seed=seed))
    found = sum(feasible(data, list(opt)) for opt in itertools.product((0, 1), repeat=n))
    assert found == round(2**n * wendel_share(n, 4))


@pytest.mark.parametrize("rows", [1, 3, 8, 60, 400])
def test_wendel_by_hand(rows):
    assert wendel_share(rows, rows) == 1.0
    assert wendel_share(2 * rows, rows) == pytest.approx(0.5, rel=CLOSED_FORM)
    assert wendel_share(rows + 1, 1) == 2.0**-rows
    assert wendel_share(rows + 1, rows) == pytest.approx(1 - 2.0**-rows, rel=CLOSED_FORM)


@FEW
@given(seed=seeds, T=st.integers(2, 5), d=st.integers(2, 7), rho=st.sampled_from([0.0, 0.8]))
def test_rows_are_independent_up_to_the_count(seed, T, d, rho):
    n = min(most_feasible_sequences(T, d), 12)
    if n == 0:
        return
    data = drop_signal_feature(make_weak_signal(n, T, d, correlation=rho, seed=seed))
    values = torch.linalg.svdvals(rows_of(data))
    assert float(values[-1]) > 0 and len(values) == n * (T - 1)
    table = check_independent_rows(data)
    assert table.all_hold or not table[0].applicable
    assert feasible(data)


def rows_of(data):
    """(N', d^2) the rows z_k written out."""
    rows = gap_rows(data)
    return torch.einsum("kd,ke->kde", rows.differences, rows.queries[rows.sequence]).flatten(1)


def test_more_rows_than_unknowns_are_not_judged():
    data = drop_signal_feature(make_weak_signal(5, 2, 2, seed=0))
    assert verdicts(check_independent_rows(data)) == ["not applicable"]
    twice = Dataset([[[1.0, 0], [0, 0]], [[0.0, 0], [1, 0]]], [1, 1], u=[1.0, 0])
    assert verdicts(check_independent_rows(twice)) == ["not applicable"]


def test_the_bound_is_attained_and_can_fail():
    data = make_separation_pair()
    check = check_independent_rows(data)[0]
    assert check.value == pytest.approx(check.bound, rel=CLOSED_FORM) and check.holds
    flat = solve_w_svm(drop_signal_feature(make_weak_signal(6, 4, 6, seed=0)))
    assert flat.margin < check.bound and not check_independent_rows(data, svm=flat).all_hold


def test_counts_by_hand():
    assert [most_feasible_sequences(4, d) for d in (2, 3, 5, 6, 7)] == [0, 3, 5, 12, 14]
    for bad, error in ((1, RangeError), ("two", DtypeError)):
        with pytest.raises(error, match="T"):
            most_feasible_sequences(bad, 3)
    with pytest.raises(RangeError, match="rows"):
        wendel_share(0, 3)


def test_infeasible_data_come_with_their_certificate():
    """Five rows in four dimensions on which block pivoting passed a pivot of pure rounding."""
    data = drop_signal_feature(make_weak_signal(5, 2, 2, correlation=0.7, seed=3689))
    for opt in ([0, 1, 1, 0, 1], [1, 0, 0, 1, 0]):
        with pytest.raises(InfeasibleError) as caught:
            solve_w_svm(data, opt)
        weights = caught.value.certificate
        assert (weights >= 0).all() and float(weights.sum()) == pytest.approx(1, rel=CLOSED_FORM)
        assert float(gap_rows(data, opt).combine(weights).norm()) < GORDAN


# the faint channel


@FEW
@given(seed=seeds, rho=st.sampled_from([0.0, 0.9]))
def test_the_channel_carries_scores_and_nothing_else(seed, rho):
    data = make_weak_signal(4, 3, 8, correlation=rho, seed=seed)
    bare = drop_signal_feature(data)
    scores = token_scores(data)
    assert check_assumption2(data).all_hold
    np.testing.assert_allclose(scores.sort(dim=1).values, [[0, 0, 1]] * 4, atol=FAINT)
    full, part = solve_w_svm(data), solve_w_svm(bare)
    assert full.margin == pytest.approx(part.margin, rel=1e-3)
    assert torch.equal(full.rows.opt, part.rows.opt)


@pytest.mark.parametrize(
    "given_, error",
    [({"correlation": 1.0}, RangeError), ({"channel": 0.0}, RangeError), ({"T": 1}, RangeError),
     ({"n": 0}, RangeError), ({"d": 0}, RangeError), ({"seed": -1}, RangeError),
     ({"channel": math.nan}, NonFiniteError), ({"correlation": "high"}, DtypeError)],
)  # fmt: skip
def test_settings_are_validated(given_, error):
    with pytest.raises(error, match=next(iter(given_))):
        make_weak_signal(**given_)
    with pytest.raises(RangeError, match="make_weak_signal"):
        drop_signal_feature(make_separation_pair())


def test_equal_scores_and_a_zero_start_may_still_lock():
    """Assumption 1 fails by a factor of 10^4, and one of these five runs does not end right."""
    lost = 0
    for seed in range(5):
        data = make_weak_signal(6, 4, 24, correlation=0.9, seed=seed)
        lost += train(data, NGD(0.5), 3000, record=[3000]).opt_score[-1] < 0.99
    assert lost == 1


# figure


def test_the_figure_refuses_what_it_cannot_show():
    table = pandas.DataFrame({"d": [1, 2, 3, 4], "rows": 5, "share": 0.5, "count": 10})
    with pytest.raises(RangeError, match="at most 3"):
        plot_feasible_share(table, wendel_share)
    with pytest.raises(RangeError, match="share"):
        plot_feasible_share(table.drop(columns="share"), wendel_share)
