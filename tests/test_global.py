"""Unequal scores: the score trap in closed form, local optimality, and data of given spread."""

import math

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, random_data, seeds
from orthonormal import tampered, verdicts
from scipy.special import lambertw
from tolerances import CLOSED_FORM, GENERIC_ENDS, SPREAD_SCORES

from attnbias import (
    GD,
    NGD,
    Dataset,
    InfeasibleError,
    Polyak,
    check_assumption2,
    optimal_tokens,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.beyond.local.checks import (
    check_score_trap,
    lock_threshold,
    trap_level,
    trap_threshold,
)
from attnbias.beyond.local.data import make_score_trap, make_unequal_scores
from attnbias.beyond.local.geometry import (
    check_locally_optimal,
    score_margins,
    selected_tokens,
    wrong_selections,
)
from attnbias.beyond.local.plots import plot_trap
from attnbias.data.degenerate import make_two_sample_trap
from attnbias.dynamics.problem import adversarial_init
from attnbias.dynamics.trace import alignment_error
from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from book.plots import plot_lock_map

inner = st.floats(0.01, 0.95)


def trap_run(score, distance, rule=None, steps=500):
    data = make_score_trap(score)
    svm = solve_w_svm(data)
    start = adversarial_init(svm, distance / svm.margin)
    return data, train(data, rule or NGD(0.2), steps, W0=start, svm=svm, record=60)


# the three tokens


@pytest.mark.parametrize("score", [-0.5, 0.0, 0.3, 0.9])
def test_both_svms_in_closed_form(score):
    data = make_score_trap(score)
    assert token_scores(data).tolist() == [[1, 0, score]]
    svm = solve_w_svm(data)
    np.testing.assert_allclose(svm.weights, np.full((2, 2), 0.25), rtol=CLOSED_FORM)
    local = solve_w_svm(data, [2])
    expected = np.outer([-1, score], [1, 1]) / (1 + score**2) / 2
    np.testing.assert_allclose(local.weights, expected, atol=CLOSED_FORM)
    # x_3 has x_2 for its one neighbour, and beats it if its score is positive
    assert check_locally_optimal(data, [2]).all_hold is (score > 0)
    assert check_assumption2(data).all_hold is (score == 0)


def plain_direction(data, W):
    """-grad L by autograd of the plain model, up to its positive factor."""
    W = W.clone().requires_grad_()
    X = data.X[0]
    attention = torch.softmax(X @ W @ X[0], 0)
    (attention @ (X @ data.u)).backward()
    return W.grad


@FEW
@given(score=inner, a=st.floats(-6, 6), b=st.floats(-6, 6))
def test_level_and_threshold_against_autograd(score, a, b):
    """log r moves down in the region of positive level, up if r >= s / (3 - s)."""
    data = make_score_trap(score)
    x = data.X[0, 0]
    W = torch.outer(torch.tensor([a, b], dtype=torch.float64), x) / 2
    gap2, gap3 = a + b, 2 * a + (1 - score) * b
    move = data.X[0] @ plain_direction(data, W) @ x
    if abs(trap_level(score, gap2, gap3)) > 1e-6:
        assert (trap_level(score, gap2, gap3) > 0) == bool(move[0] < move[1])
    if trap_level(score, gap2, gap3) > 1e-6:
        assert move[1] < move[2]
    if gap2 > -trap_threshold(score):
        assert move[0] > move[1]


@FEW
@given(score=inner, factor=st.sampled_from([0.3, 0.9, 1.3, 3.0]), eta=st.floats(0.01, 2),
       kind=st.sampled_from(["GD", "NGD", "momentum", "Polyak"]))  # fmt: skip
def test_the_start_decides_for_every_rule(score, factor, eta, kind):
    rule = {"GD": GD(eta), "NGD": NGD(eta), "momentum": NGD(eta, momentum=0.5),
            "Polyak": Polyak(max_step=10.0)}[kind]  # fmt: skip
    data, trace = trap_run(score, factor * trap_threshold(score), rule)
    table = check_score_trap(data, trace)
    assert table.all_hold or not table[0].applicable
    if factor < 1:
        assert len(table) == 1 and table[0].sense == ">="


@pytest.mark.parametrize("score", [0.001, 0.05, 0.3, 0.7, 0.95])
def test_starts_lock_from_the_second_threshold_on(score):
    lock, free = lock_threshold(score), trap_threshold(score)
    for factor, inside in ((1 + 1e-6, True), (1 - 1e-6, False)):
        data, trace = trap_run(score, factor * lock, steps=2000)
        level = trap_level(score, trace.gaps[0, 0], trace.gaps[0, 1])
        assert (level > 0) is np.bool_(inside)
        if inside:
            assert len(check_score_trap(data, trace)) == 2
            assert check_score_trap(data, trace).all_hold and trace.opt_score[-1] < 0.5
    assert lock > free
    if score < 0.01:  # the difference is 2 / 3 sqrt(s / 3) to first order
        assert abs((lock - free) / (2 / 3 * math.sqrt(score / 3)) - 1) < 0.05


@FEW
@given(seed=seeds, T=st.integers(2, 5), eta=st.sampled_from([0.1, 1.0, 10.0]))
def test_one_sequence_with_equal_scores_keeps_m1_from_every_start(seed, T, eta):
    """A = N' / e in M1, whatever the softmax is and however far from orthogonal the tokens are."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(1, T, 3, generator=generator, dtype=torch.float64)
    X[0, :, 0] = 0.0
    X[0, T - 1, 0] = 1.0
    data = Dataset(X, [1], u=[1.0, 0, 0])
    svm = solve_w_svm(data)
    W0 = 20 * torch.randn(3, 3, generator=generator, dtype=torch.float64)
    trace = train(data, NGD(eta), 20_000, W0=W0, svm=svm, record=60)
    along = trace.gaps @ svm.dual.numpy() * svm.margin  # <W, unit W_mm>
    turn = int(np.argmax(along >= 0))
    assert along[turn] >= 0
    across2 = float(trace.W_norm[turn]) ** 2 - along[turn] ** 2
    path = eta * (trace.step[turn + 1 :] - trace.step[turn])
    Lambda = float(lambertw((T - 1) / math.e).real)
    growth = (across2 + (2 * Lambda / svm.margin + eta) * path) / path**2
    B = float(X.norm(dim=2).max())
    bound = 2 * B**4 / svm.margin**2 * growth
    assert (trace.W_alignment_error[turn + 1 :] <= bound).all()


@pytest.mark.parametrize("score", [0.05, 0.3, 0.8])
def test_locked_runs_turn_to_the_svm_of_their_tokens(score):
    data, trace = trap_run(score, trap_threshold(score) + 4, steps=5000)
    assert len(check_score_trap(data, trace)) == 2 and trace.status == "completed"
    assert selected_tokens(data, trace.W).tolist() == [2]
    assert alignment_error(trace.W[None], solve_w_svm(data, [2]).weights)[0] < GENERIC_ENDS


def test_uncapped_polyak_diverges_in_the_trap_and_equal_scores_always_rise():
    _, trace = trap_run(0.3, 4, Polyak())
    assert trace.status == "diverged" and trace.step[-1] < 10
    data, trace = trap_run(0.0, 60, steps=5000)
    assert (np.diff(trace.gaps, axis=0) > 0).all() and trace.opt_score[-1] > 0.99


def test_tampered_runs_are_refused():
    data, locked = trap_run(0.3, 6)
    risen, back = locked.gaps.copy(), locked.gaps.copy()
    risen[-1] += 100
    back[30] = back[20]  # below the start, and yet not a fall
    data, free = trap_run(0.3, 1)
    fallen = free.gaps.copy()
    fallen[-1] -= 1e6
    for run, gaps in ((locked, risen), (locked, back), (free, fallen)):
        assert not check_score_trap(data, tampered(run, gaps=gaps)).all_hold


def test_other_data_are_not_judged():
    data = make_two_sample_trap()
    table = check_score_trap(data, train(data, NGD(0.1), 10))
    assert verdicts(table) == ["not applicable"] * 2
    data, trace = trap_run(0.0, 1)
    assert "s > 0" in check_score_trap(data, trace)[0].reason
    sliver = make_score_trap(0.3)
    lag = -trap_threshold(0.3) - 1e-9
    start = torch.outer(torch.tensor([lag - 9, 9.0]).double(), torch.ones(2).double()) / 2
    table = check_score_trap(sliver, train(sliver, NGD(0.1), 5, W0=start))
    assert "between" in table[0].reason


SCORES = {1: RangeError, 2: RangeError, -1: RangeError, math.nan: NonFiniteError, "low": DtypeError}


@pytest.mark.parametrize("score", SCORES)
def test_scores_are_validated(score):
    for function in (
        make_score_trap, trap_threshold, lock_threshold, lambda s: trap_level(s, 0.0, 0.0)
    ):  # fmt: skip
        with pytest.raises(SCORES[score], match="score"):
            function(score)


# data of a given spread


@FEW
@given(seed=seeds, spread=st.sampled_from([0.0, 0.3, 1.9]), rho=st.sampled_from([0.0, 0.5, 0.9]))
def test_spread_is_what_was_asked(seed, spread, rho):
    data = make_unequal_scores(2, 4, 12, spread=spread, correlation=rho, seed=seed)
    ordered = token_scores(data).sort(dim=1).values
    np.testing.assert_allclose(ordered[:, 3], 1, rtol=SPREAD_SCORES)
    found = ordered[:, 2] - ordered[:, 0]
    np.testing.assert_allclose(found, spread, atol=SPREAD_SCORES)
    assert check_assumption2(data).all_hold is (spread == 0)
    other = make_unequal_scores(2, 4, 12, spread=0.7, correlation=rho, seed=seed)
    assert torch.equal(data.X, other.X)


def test_correlation_is_the_share_along_one_axis():
    flat = make_unequal_scores(20, 10, 400, correlation=0.8, seed=0).X.reshape(-1, 400)
    sizes = torch.linalg.svdvals(flat).square()
    assert 0.7 < float(sizes[0] / sizes.sum()) < 0.9
    assert float(sizes.sum() / len(flat)) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(
    "settings, error",
    [({"d": 11}, RangeError), ({"spread": 2.0}, RangeError), ({"spread": -0.1}, RangeError),
     ({"correlation": 1.0}, RangeError), ({"correlation": math.nan}, NonFiniteError),
     ({"n": 0}, RangeError), ({"T": 1}, RangeError), ({"seed": -1}, RangeError),
     ({"spread": "wide"}, DtypeError), ({"d": 12.5}, DtypeError)],
)  # fmt: skip
def test_settings_are_validated(settings, error):
    with pytest.raises(error, match=next(iter(settings))):
        make_unequal_scores(**{"n": 3, "T": 4, "d": 12} | settings)


# local optimality


@FEW
@given(seed=seeds)
def test_optimal_tokens_are_locally_optimal(seed):
    data = random_data(2, 3, 8, seed=seed)
    table = check_locally_optimal(data, optimal_tokens(data))
    assert table.all_hold or not table[0].applicable


@pytest.mark.slow
@FEW
@given(seed=seeds)
def test_orthonormal_tokens_have_no_trap(seed):
    """All tokens are neighbours, the optimal ones among them."""
    frame = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(seed)))[0]
    u = torch.randn(12, generator=torch.Generator().manual_seed(seed + 1)).double()
    found = wrong_selections(Dataset(frame.double().reshape(3, 4, 12), [1, -1, 1], u))
    assert len(found) == 63 and not any(each.locally_optimal for each in found)


def test_leads_by_hand_and_infeasible_selections():
    data = make_score_trap(0.25)
    assert score_margins(data, [0]).tolist() == [1.0, math.inf]
    assert score_margins(data, [1]).tolist() == [-1.0, -0.25]
    assert check_locally_optimal(data, [1])[0].value == 2
    line = Dataset([[[1.0], [0.0], [-1.0]]], [1], [1.0])
    table = check_locally_optimal(line, [1])
    assert verdicts(table) == ["not applicable"] and not table.all_hold
    assert [each.tokens.tolist() for each in wrong_selections(line)] == [[2]]
    with pytest.raises(InfeasibleError):
        score_margins(line, [1])


def test_the_two_sample_trap_ends_at_a_locally_optimal_selection():
    data = make_two_sample_trap()
    end = selected_tokens(data, train(data, NGD(0.1), 2000, record=[0]).W)
    assert check_locally_optimal(data, end).all_hold and (end != optimal_tokens(data)).any()


@pytest.mark.parametrize("seed", [0, 4])
def test_a_start_far_out_stays_exactly_if_locally_optimal(seed):
    data = make_unequal_scores(3, 4, 30, spread=0.3, correlation=0.9, seed=seed)
    both = set()
    for each in wrong_selections(data)[::3]:
        both.add(each.locally_optimal)
        height = max(30, 20 / each.svm.least_slack) if each.locally_optimal else 30
        end = train(data, NGD(0.5), 4000, W0=height * each.svm.weights, svm=False, record=[0]).W
        assert bool((selected_tokens(data, end) == each.tokens).all()) is each.locally_optimal
    assert False in both


def test_selected_tokens_take_no_padding_and_validate():
    data = random_data(2, 3, 4, seed=0, lengths=[2, 3])
    for seed in range(20):
        W = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)).double()
        assert int(selected_tokens(data, W)[0]) < 2
    with pytest.raises(ShapeError):
        selected_tokens(data, torch.zeros(3, 3))
    with pytest.raises(NonFiniteError):
        selected_tokens(data, torch.full((4, 4), math.nan))
    with pytest.raises(RangeError, match="at most 5"):
        wrong_selections(data, most=5)


# figures


def test_figures_refuse_what_they_cannot_show():
    table = pandas.DataFrame({"distance": [1.0], "score": [0.3]})
    with pytest.raises(RangeError, match="locked"):
        plot_trap(make_score_trap(), table, trap_threshold)
    with pytest.raises(RangeError, match="data"):
        plot_trap(make_two_sample_trap(), table.assign(locked=True), trap_threshold)
    with pytest.raises(RangeError, match="away"):
        plot_lock_map(table, "distance", "score", "distance", "away")
