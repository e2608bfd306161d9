"""What joint-outrun proves, beside runs of every step: the loss, where W points, its hypotheses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnbias import NGD, Dataset, InfeasibleError, make_dm, train
from book.studies import outrun

ALIKE = Dataset([[[0, 0, 1 / 3], [1, 0, 0]], [[0, 1 / 3, 0], [2, 0, 0]]], [1, 1], opt=[1, 1])


def every_step(data, step_size, decay, steps=1000):
    lengths = outrun.eq10_steps(step_size, decay, steps)
    rule = NGD(step_size, decay=decay)
    return train(data, rule, steps, train_u=True, record=range(steps + 1)), lengths


def random_tokens(seed):
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, T, n * T + 3)) * 10 ** rng.uniform(-0.7, 0.3, (n, T, 1))
    return Dataset(torch.tensor(X), rng.choice([-1, 1], n), opt=rng.integers(0, T, n))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("decay", [(0, 1), (2 / 3, 1), (0.9, 0.6), (0.5, 0)])
def test_the_loss_falls_as_proved_with_any_number_of_tokens(seed, decay):
    data = random_tokens(seed)
    sizes = outrun.outrun_sizes(data)
    run, lengths = every_step(data, 0.05 / sizes.longest, decay)
    # log L is a sum of a thousand steps, each right to some 1e-16
    assert (-run.log_loss >= outrun.proved_fall(sizes, *lengths) - 1e-12).all()


def test_a_hull_one_per_cent_farther_would_promise_too_much():
    # equal norms: the score gaps stay zero, and the mean is the nearest point of the hull
    data = Dataset(torch.eye(4).double().reshape(2, 2, 4), [1, -1], opt=[0, 1])
    sizes = outrun.outrun_sizes(data)
    assert abs(sizes.hull - 0.5) < 1e-9  # 1 / sqrt(4)
    run, lengths = every_step(data, 1e-3, (0, 1))
    bound = outrun.proved_fall(sizes, *lengths)
    assert (-run.log_loss >= bound - 1e-12).all() and bound[-1] > 0.99 * -run.log_loss[-1]
    assert (-run.log_loss < outrun.proved_fall(replace(sizes, hull=0.505), *lengths))[-1]


STEEP = torch.tensor([[[1, 0.1], [0.9, 0.1]], [[-0.5, 0.1], [-0.4, 0.1]]]).double()
# scaled, because tokens 100 times as long make steps of W that much longer than those of u
TURNED = (
    100 * torch.tensor([[[0.36, 2.57], [0.46, -0.48]], [[0.47, -1.23], [0.42, -1.87]]]).double()
)


@pytest.mark.parametrize("tokens, step_size, part", [(STEEP, 1, "u"), (TURNED, 5e-4, "W")])
def test_long_steps_cost_some_of_the_fall(tokens, step_size, part):
    data = Dataset(tokens, [1, 1], opt=[0, 0])
    sizes = outrun.outrun_sizes(data)
    run, (u_steps, W_steps) = every_step(data, step_size, (0, 0), 25)
    assert (-run.log_loss >= outrun.proved_fall(sizes, u_steps, W_steps) - 1e-12).all()
    # without the curvature of both steps, or of W's alone, more would be promised than happens
    cost = 0 if part == "u" else outrun.curvature(sizes, u_steps, 0 * W_steps)
    assert (-run.log_loss < sizes.hull * outrun.path(u_steps) - cost - 0.01).any()


@pytest.mark.parametrize("b", [1 / 9, 1 / 25])
def test_the_hull_gives_a_smaller_constant_than_theorem_two(b):
    X = torch.eye(20).double().reshape(2, 10, 20).transpose(0, 1).clone()
    X[:, 1] *= b**0.5  # a = 1
    hull = outrun.outrun_sizes(Dataset(X, [1, -1] * 5, opt=[0] * 10)).hull
    assert abs(hull - (10 * (1 + 1 / b)) ** -0.5) < 1e-9 and hull < 0.4 * 10**-0.5


def test_one_token_under_both_labels_has_no_hull_apart():
    X = torch.eye(3).double()[torch.tensor([[0, 2], [1, 2]])]
    with pytest.raises(InfeasibleError):
        outrun.outrun_sizes(Dataset(X, [1, -1], opt=[0, 0]))


@pytest.mark.parametrize("decay", [(2 / 3, 0), (0.9, 0), (0.9, 0.6), (2 / 3, 1), (0, 0)])
def test_the_direction_of_W_is_within_its_bound(decay):
    sizes = outrun.outrun_sizes(ALIKE)
    run, lengths = every_step(ALIKE, 0.5, decay)
    ratio = outrun.allowed_ratio(ALIKE, sizes, lengths[0])
    bound = outrun.proved_error(ALIKE, sizes, *lengths, ratio)
    assert (run.W_alignment_error[2:] <= bound[2:]).all()
    assert (bound[-1] < 1) == (decay in [(2 / 3, 0), (0.9, 0)])


@pytest.mark.parametrize("decay", [(2 / 3, 1), (2 / 3, 0.7), (0.8, 0.65)])
def test_the_margin_of_u_is_at_least_as_proved(decay):
    run, lengths = every_step(ALIKE, 0.3, decay, 10_000)
    margin = run.scores[1:, :, 1].min(axis=1) / run.u_norm[1:]
    proved = outrun.proved_margin(ALIKE, run.gaps, *lengths)[1:]
    assert (margin >= proved).all() and proved[-1] > 0.1


def test_attention_that_is_wasted_costs_a_part_of_the_margin():
    single = Dataset([[[1.0, 0], [0, 0.9]]], [1], opt=[0])
    run, lengths = every_step(single, 0.001, (2 / 3, 1))
    margin = float(run.scores[-1, 0, 0] / run.u_norm[-1])
    assert abs(margin - 1.81**-0.5) < 0.003  # u is along e_1 + 0.9 e_2, as W hardly moves
    proved, saturated = (
        outrun.proved_margin(single, gaps, *lengths)[-1] for gaps in (run.gaps, run.gaps + 50)
    )
    assert 0.2 < proved <= margin < saturated


def test_without_the_growth_of_the_losses_ratio_the_bound_would_be_wrong():
    sizes = outrun.outrun_sizes(ALIKE)
    run, lengths = every_step(ALIKE, 0.5, (0, 0), 3000)
    bound = outrun.proved_error(ALIKE, replace(sizes, spread=0.0), *lengths, 2.0)
    assert bound[-1] < run.W_alignment_error[-1]


def test_gaps_grow_from_the_first_step_where_no_product_is_negative():
    gaps, least = outrun.first_gaps(ALIKE)
    run, lengths = every_step(ALIKE, 0.5, (2 / 3, 0))
    score_gaps = run.scores[:, :, 1] - run.scores[:, :, 0]
    assert least >= 0 and np.allclose(score_gaps[1], 0.5 * gaps)
    assert (np.diff(score_gaps, axis=0) >= 0).all() and (np.diff(run.gaps, axis=0) >= 0).all()
    ratio = outrun.allowed_ratio(ALIKE, outrun.outrun_sizes(ALIKE), lengths[0])
    assert (score_gaps[1:].max(axis=1) <= ratio[1:] * score_gaps[1:].min(axis=1)).all()


def test_a_negative_product_lets_attention_fall_below_one_half():
    data = make_dm(n=10, d=20)
    _, least = outrun.first_gaps(data)
    run, lengths = every_step(data, 0.1, (2 / 3, 1))
    assert least < 0 and run.least_opt_score.min() < 0.4999
    # and the loss falls as proved all the same
    assert (-run.log_loss >= outrun.proved_fall(outrun.outrun_sizes(data), *lengths)).all()


def test_the_proved_error_falls_by_the_power_that_part_five_says():
    sizes, late = outrun.outrun_sizes(ALIKE), 10**5
    for p, q in [(2 / 3, 0), (0.9, 0.5), (0.5, 0.5)]:
        lengths = outrun.eq10_steps(0.5, (p, q), late)
        ratio = outrun.allowed_ratio(ALIKE, sizes, lengths[0])
        error = outrun.proved_error(ALIKE, sizes, *lengths, ratio)
        power = np.log10(error[late // 10] / error[late])
        # the logarithm of r and the 1 in log(1 + A) still cost some hundredths
        assert abs(power - (p - q)) < 0.1


@pytest.mark.parametrize("q, falls", [(1, True), (0.8, True), (0.3, False)])  # border: 2/3
def test_the_proved_loss_needs_a_power_of_W_above_its_border(q, falls):
    sizes, steps = outrun.outrun_sizes(ALIKE), 10**5
    lengths = outrun.eq10_steps(0.2, (2 / 3, q), steps)
    share = outrun.proved_fall(sizes, *lengths)[1:] / outrun.path(lengths[0])[1:] / sizes.hull
    assert (share[-1] > share[steps // 10]) == falls == (share[-1] > 0.8)
