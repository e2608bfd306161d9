"""Unequal scores: the score trap in closed form, local optimality; feasibility by counting."""

import dataclasses
import itertools
import math

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import FEW, not_optimal, random_data, seeds
from lemma_instances import tampered, verdicts
from room_tests import normal, refusals, refused_settings
from tolerances import CLOSED_FORM, FAINT, GENERIC_ENDS, GORDAN, SPREAD_SCORES

from attnbias import (
    GD,
    NGD,
    Dataset,
    InfeasibleError,
    Polyak,
    check_assumption2,
    make_example1,
    make_separation_pair,
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
from attnbias.beyond.overparam.data import drop_signal_feature, make_weak_signal
from attnbias.beyond.overparam.geometry import (
    check_independent_rows,
    most_feasible_sequences,
    wendel_share,
)
from attnbias.beyond.overparam.plots import plot_feasible_share
from attnbias.data.degenerate import make_two_sample_trap
from attnbias.dynamics.problem import adversarial_init
from attnbias.errors import DtypeError, NonFiniteError, RangeError
from attnbias.geometry.constants import row_bound
from attnbias.geometry.tokens import gap_rows

inner = st.floats(0.01, 0.95)


def trap_run(score, distance, rule=None, steps=500):
    data = make_score_trap(score)
    svm = solve_w_svm(data)
    start = adversarial_init(svm, distance / svm.margin)
    return data, train(data, rule or NGD(0.2), steps, W0=start, svm=svm, record=60)


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
    W, X = W.clone().requires_grad_(), data.X[0]
    (torch.softmax(X @ W @ X[0], 0) @ (X @ data.u)).backward()
    return W.grad


@FEW
@given(score=inner, a=st.floats(-6, 6), b=st.floats(-6, 6))
def test_level_and_threshold_against_autograd(score, a, b):
    """log r moves down in the region of positive level, up if r >= s / (3 - s)."""
    data = make_score_trap(score)
    x = data.X[0, 0]
    W = torch.outer(torch.tensor([a, b], dtype=torch.float64), x) / 2
    level = trap_level(score, a + b, 2 * a + (1 - score) * b)
    move = data.X[0] @ plain_direction(data, W) @ x
    if abs(level) > 1e-6:
        assert (level > 0) == bool(move[0] < move[1])
        assert level < 0 or move[1] < move[2]
    if a + b > -trap_threshold(score):
        assert move[0] > move[1]


@FEW
@given(
    score=inner,
    factor=st.sampled_from([0.3, 0.9, 1.3, 3.0]),
    eta=st.floats(0.01, 2),
    kind=st.sampled_from(["GD", "NGD", "momentum", "Polyak"]),
)
def test_the_start_decides_for_every_rule(score, factor, eta, kind):
    rule = {
        "GD": GD(eta),
        "NGD": NGD(eta),
        "momentum": NGD(eta, momentum=0.5),
        "Polyak": Polyak(max_step=10.0),
    }[kind]
    data, trace = trap_run(score, factor * trap_threshold(score), rule)
    table = check_score_trap(data, trace)
    assert table.all_hold or not table[0].applicable
    if factor < 1:
        assert len(table) == 1 and table[0].sense == ">="


@pytest.mark.parametrize("score", [0.001, 0.05, 0.3, 0.7, 0.95])
def test_starts_lock_from_the_second_threshold_on(score):
    lock, free = lock_threshold(score), trap_threshold(score)
    for factor, inside in ((1 - 1e-6, False), (1 + 1e-6, True)):
        data, trace = trap_run(score, factor * lock, steps=2000)
        assert (trap_level(score, *trace.gaps[0]) > 0) is np.bool_(inside)
    table = check_score_trap(data, trace)
    assert len(table) == 2 and table.all_hold and trace.opt_score[-1] < 0.5 and lock > free
    if score < 0.01:  # the difference is 2 / 3 sqrt(s / 3) to first order
        assert abs((lock - free) / (2 / 3 * math.sqrt(score / 3)) - 1) < 0.05


@FEW
@given(seed=seeds, T=st.integers(2, 5), eta=st.sampled_from([0.1, 1.0, 10.0]))
def test_one_sequence_with_equal_scores_keeps_m1_from_every_start(seed, T, eta):
    """A = N' / e in M1, whatever the softmax is and however far from orthogonal the tokens are."""
    X = normal(1, T, 3, seed=seed)
    X[0, :, 0] = 0.0
    X[0, T - 1, 0] = 1.0
    data = Dataset(X, [1], u=[1.0, 0, 0])
    svm, W0 = solve_w_svm(data), 20 * normal(3, 3, seed=seed + 1)
    trace = train(data, NGD(eta), 20_000, W0=W0, svm=svm, record=60)
    along = trace.gaps @ svm.dual.numpy() * svm.margin  # <W, unit W_mm>
    turn = int(np.argmax(along >= 0))
    across = math.sqrt(max(float(trace.W_norm[turn]) ** 2 - along[turn] ** 2, 0.0))
    path = eta * (trace.step[turn + 1 :] - trace.step[turn])
    B = float(X.norm(dim=2).max())
    bound = row_bound(2 * B**2, svm.margin, math.log(T - 1) - 1, eta, across, path)
    assert along[turn] >= 0 and (trace.W_alignment_error[turn + 1 :] <= bound).all()


@pytest.mark.parametrize("score", [0.05, 0.3, 0.8])
def test_locked_runs_turn_to_the_svm_of_their_tokens(score):
    data, trace = trap_run(score, trap_threshold(score) + 4, steps=5000)
    assert len(check_score_trap(data, trace)) == 2 and trace.status == "completed"
    assert selected_tokens(data, trace.W).tolist() == [2]
    local = solve_w_svm(data, [2])
    cosine = float((trace.W * local.weights).sum() / (trace.W.norm() * local.norm))
    assert 1 - cosine < GENERIC_ENDS
    _, capless = trap_run(0.3, 4, Polyak())  # without a cap steps diverge in the trap
    assert capless.status == "diverged" and capless.step[-1] < 10
    even, trace = trap_run(0.0, 60, steps=5000)  # equal scores always rise
    assert (np.diff(trace.gaps, axis=0) > 0).all() and trace.opt_score[-1] > 0.99
    assert "s > 0" in check_score_trap(even, trace)[0].reason


def test_tampered_runs_are_refused():
    data, locked = trap_run(0.3, 6)
    risen, back = locked.gaps.copy(), locked.gaps.copy()
    risen[-1] += 100
    back[30] = back[20]  # below the start, and yet not a fall
    _, free = trap_run(0.3, 1)
    fallen = free.gaps.copy()
    fallen[-1] -= 1e6
    for trace, gaps in ((locked, risen), (locked, back), (free, fallen)):
        assert not check_score_trap(data, tampered(trace, gaps=gaps)).all_hold


def test_other_data_are_not_judged():
    data = make_two_sample_trap()
    table = check_score_trap(data, train(data, NGD(0.1), 10))
    assert verdicts(table) == ["not applicable"] * 2
    sliver, lag = make_score_trap(0.3), -trap_threshold(0.3) - 1e-9
    start = torch.outer(torch.tensor([lag - 9, 9.0]).double(), torch.ones(2).double()) / 2
    table = check_score_trap(sliver, train(sliver, NGD(0.1), 5, W0=start))
    assert "between" in table[0].reason


@FEW
@given(seed=seeds, spread=st.sampled_from([0.0, 0.3, 1.9]), rho=st.sampled_from([0.0, 0.5, 0.9]))
def test_spread_is_what_was_asked(seed, spread, rho):
    data = make_unequal_scores(2, 4, 12, spread=spread, correlation=rho, seed=seed)
    ordered = token_scores(data).sort(dim=1).values
    np.testing.assert_allclose(ordered[:, 3], 1, rtol=SPREAD_SCORES)
    np.testing.assert_allclose(ordered[:, 2] - ordered[:, 0], spread, atol=SPREAD_SCORES)
    assert check_assumption2(data).all_hold is (spread == 0)
    other = make_unequal_scores(2, 4, 12, spread=0.7, correlation=rho, seed=seed)
    assert torch.equal(data.X, other.X)


BAD_SCORES = [("score", value, RangeError) for value in (1, 2, -1)]
BAD_SCORES += [("score", math.nan, NonFiniteError), ("score", "low", DtypeError)]
test_score_of_the_trap = refused_settings(make_score_trap, *BAD_SCORES)
test_score_of_the_threshold = refused_settings(trap_threshold, *BAD_SCORES)
test_score_of_the_lock = refused_settings(lock_threshold, *BAD_SCORES)
test_score_of_the_level = refused_settings(trap_level, *BAD_SCORES, gap2=0.0, gap3=0.0)
test_settings_are_validated = refused_settings(
    make_unequal_scores,
    ("d", 11, RangeError),
    ("spread", 2.0, RangeError),
    ("spread", -0.1, RangeError),
    ("correlation", 1.0, RangeError),
    ("correlation", math.nan, NonFiniteError),
    ("n", 0, RangeError),
    ("T", 1, RangeError),
    ("seed", -1, RangeError),
    ("spread", "wide", DtypeError),
    ("d", 12.5, DtypeError),
    **{"n": 3, "T": 4, "d": 12},
)
TABLE, FOUR = pandas.DataFrame({"distance": [1.0], "score": [0.3]}), random_data(2, 3, 4, seed=0)
LINE = Dataset([[[1.0], [0.0], [-1.0]]], [1], [1.0])
DATA, TRAP = make_example1(2, 3, 12, seed=0), make_score_trap(0.3)
SVM, OTHER = solve_w_svm(DATA), solve_w_svm(make_example1(2, 3, 12, seed=1))
WITH_SVM = {
    "independent rows": lambda svm: check_independent_rows(DATA, svm=svm),
    "locally optimal": lambda svm: check_locally_optimal(DATA, DATA.opt, svm=svm),
}
test_refusals = refusals(
    RangeError=[
        lambda: plot_trap(make_score_trap(), TABLE, trap_threshold),
        lambda: plot_trap(FOUR, TABLE.assign(locked=True), trap_threshold),
        lambda: wrong_selections(FOUR, most=5),
        lambda: check_independent_rows(DATA, svm=OTHER),
        lambda: score_margins(TRAP, [2], svm=solve_w_svm(TRAP, [1])),
    ],
    ShapeError=[
        lambda: selected_tokens(FOUR, torch.zeros(3, 3)),
    ],
    NonFiniteError=[
        lambda: selected_tokens(FOUR, torch.full((4, 4), math.nan)),
    ],
    InfeasibleError=[
        lambda: score_margins(LINE, [1]),
    ],
    DtypeError=[
        lambda: check_independent_rows(DATA, svm=solve_w_svm(make_separation_pair())),
        lambda: check_independent_rows(DATA, svm=1.0),
        lambda: score_margins(TRAP, [2], svm="x"),
        lambda: drop_signal_feature(None),
    ],
)


@pytest.mark.parametrize("kind", ["longer", "random"])
@pytest.mark.parametrize("check", WITH_SVM)
def test_a_solution_that_is_not_optimal_is_refused(check, kind):
    with pytest.raises(RangeError, match="svm: expected an optimal solution"):
        WITH_SVM[check](not_optimal(SVM, kind))
    WITH_SVM[check](SVM)


def test_leads_by_hand_and_infeasible_selections():
    data = make_score_trap(0.25)
    assert score_margins(data, [0]).tolist() == [1.0, math.inf]
    assert score_margins(data, [1]).tolist() == [-1.0, -0.25]
    assert score_margins(data, [0], neighbours=False).tolist() == [1.0, 0.75]
    assert check_locally_optimal(data, [1])[0].value == 2
    table = check_locally_optimal(LINE, [1])  # infeasible selections are not applicable
    assert verdicts(table) == ["not applicable"] and not table.all_hold
    assert [each.tokens.tolist() for each in wrong_selections(LINE)] == [[2]]


def test_runs_and_starts_select_what_is_there():
    data = make_two_sample_trap()
    end = selected_tokens(data, train(data, NGD(0.1), 2000, record=[0]).W)
    assert check_locally_optimal(data, end).all_hold and (end != optimal_tokens(data)).any()
    padded = random_data(2, 3, 4, seed=0, lengths=[2, 3])
    assert all(int(selected_tokens(padded, normal(4, 4, seed=s))[0]) < 2 for s in range(20))
    # correlation is the share along one axis
    flat = make_unequal_scores(20, 10, 400, correlation=0.8, seed=0).X.reshape(-1, 400)
    sizes = torch.linalg.svdvals(flat).square()
    assert 0.7 < float(sizes[0] / sizes.sum()) < 0.9
    assert float(sizes.sum() / len(flat)) == pytest.approx(1, rel=0.15)
    # all tokens are neighbours, the optimal ones among them
    frame, _ = torch.linalg.qr(normal(12, 12))
    found = wrong_selections(Dataset(frame.reshape(3, 4, 12), [1, -1, 1], normal(12, seed=1)))
    assert len(found) == 63 and not any(each.locally_optimal for each in found)


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


def feasible(data, opt=None):
    try:
        return bool(solve_w_svm(data, opt))
    except InfeasibleError:
        return False


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
    assert wendel_share(9, 4) == sum(math.comb(8, k) for k in range(4)) / 2**8
    assert wendel_share(2 * rows, rows) == pytest.approx(0.5, rel=CLOSED_FORM)
    assert wendel_share(rows + 1, 1) == 2.0**-rows
    assert wendel_share(rows + 1, rows) == pytest.approx(1 - 2.0**-rows, rel=CLOSED_FORM)


@FEW
@given(seed=seeds, T=st.integers(2, 5), d=st.integers(2, 7), rho=st.sampled_from([0.0, 0.8]))
def test_rows_are_independent_up_to_the_count(seed, T, d, rho):
    n = min(most_feasible_sequences(T, d), 12)
    if n:
        data = drop_signal_feature(make_weak_signal(n, T, d, correlation=rho, seed=seed))
        rows = gap_rows(data)
        flat = torch.einsum("kd,ke->kde", rows.differences, rows.queries[rows.sequence]).flatten(1)
        values = torch.linalg.svdvals(flat)
        assert float(values[-1]) > 0 and len(values) == n * (T - 1) and feasible(data)
        table = check_independent_rows(data)
        assert table.all_hold or not table[0].applicable


def test_the_bound_is_attained_and_can_fail():
    data = make_separation_pair()
    check = check_independent_rows(data)[0]
    assert check.value == pytest.approx(check.bound, rel=CLOSED_FORM) and check.holds
    flat = dataclasses.replace(solve_w_svm(data), norm=10.0)
    assert flat.margin < check.bound and not check_independent_rows(data, svm=flat).all_hold
    # more rows than unknowns, and a row twice, are not judged
    twice = Dataset([[[1.0, 0], [0, 0]], [[0.0, 0], [1, 0]]], [1, 1], u=[1.0, 0])
    for data in (twice, drop_signal_feature(make_weak_signal(5, 2, 2, seed=0))):
        assert verdicts(check_independent_rows(data)) == ["not applicable"]


def test_counts_by_hand():
    assert [most_feasible_sequences(4, d) for d in (2, 3, 5, 6, 7)] == [0, 3, 5, 12, 14]
    # five rows in four dimensions on which block pivoting passed a pivot of pure rounding
    data = drop_signal_feature(make_weak_signal(5, 2, 2, correlation=0.7, seed=3689))
    for opt in ([0, 1, 1, 0, 1], [1, 0, 0, 1, 0]):
        with pytest.raises(InfeasibleError) as caught:
            solve_w_svm(data, opt)
        weights = caught.value.certificate
        assert (weights >= 0).all() and float(weights.sum()) == pytest.approx(1, rel=CLOSED_FORM)
        assert float(gap_rows(data, opt).combine(weights).norm()) < GORDAN


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


test_settings_of_the_signal = refused_settings(
    make_weak_signal,
    ("correlation", 1.0, RangeError),
    ("channel", 0.0, RangeError),
    ("T", 1, RangeError),
    ("n", 0, RangeError),
    ("d", 0, RangeError),
    ("seed", -1, RangeError),
    ("channel", math.nan, NonFiniteError),
    ("correlation", "high", DtypeError),
)
SHARES = pandas.DataFrame({"d": [1, 2, 3, 4], "rows": 5, "share": 0.5, "count": 10})
test_counts_refuse = refusals(
    RangeError=[
        lambda: drop_signal_feature(make_separation_pair()),
        lambda: most_feasible_sequences(1, 3),
        lambda: wendel_share(0, 3),
        lambda: plot_feasible_share(SHARES, wendel_share),
        lambda: plot_feasible_share(SHARES.drop(columns="share"), wendel_share),
    ],
    DtypeError=[
        lambda: most_feasible_sequences("two", 3),
    ],
)
