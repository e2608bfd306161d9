"""Several heads: gradients, symmetry, the invariant, each head's own SVM, and bad input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from room_tests import assert_gradient, assert_unit_steps, normal, refusals
from tolerances import ALIGNMENT_FLOOR, ASYMPTOTIC, CLOSED_FORM

from attnbias import GD, NGD, Dataset, Polyak, make_separation_pair, solve_w_svm, train
from attnbias.beyond.heads.checks import (
    check_heads,
    gap_invariant,
    growth_of_difference,
    invert_gap_invariant,
)
from attnbias.beyond.heads.decoders import interpolating_decoder
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.heads.plots import plot_heads
from attnbias.data.degenerate import make_two_sample_trap
from attnbias.errors import DtypeError, InfeasibleError, RangeError, ShapeError, TiedTokensError
from book.ledger.beyond.heads import two_heads

PAIR = make_separation_pair()
SAME = torch.stack([PAIR.u, PAIR.u])


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_gradients_against_autograd(loss):
    data, u, _ = two_heads(0)
    u, W0 = u + 0.05 * normal(*u.shape, seed=1), normal(2, 40, 40, seed=2)

    def plain(W):
        s = torch.softmax(torch.einsum("ntd,hde,ne->hnt", data.X, W, data.X[:, 0]), 2)
        margin = data.y * torch.einsum("hd,ntd,hnt->n", u, data.X, s)
        value = torch.exp if loss == "exponential" else torch.nn.functional.softplus
        return value(-margin).mean()

    def run_of(rule, W=W0):
        return train_heads(data, u, rule, 1, W0=W, loss=loss)

    assert_gradient(lambda W: run_of(GD(0.1), W), W0, plain)
    assert_unit_steps(run_of)


def test_one_head_is_train():
    data, u, _ = two_heads(1)
    many = train_heads(data, u[:1], NGD(0.2), 50)
    one = train(data.with_decoder(u[0]), NGD(0.2), 50, record=[50])
    assert float((many.W[-1, 0] - one.W).abs().max()) < CLOSED_FORM * 100


def test_equal_heads_stay_equal_and_are_one_with_twice_the_decoder():
    data, u, _ = two_heads(2)
    equal, one = torch.stack([u[0], u[0]]), train_heads(data, 2 * u[:1], GD(0.25), 100)
    for rule in (NGD(0.2), NGD(0.2, normalise="shared"), GD(0.5)):
        two = train_heads(data, equal, rule, 100).W
        assert float((two[:, 0] - two[:, 1]).abs().max()) < CLOSED_FORM
    assert float((two[:, 0] - one.W[:, 0]).abs().max()) < CLOSED_FORM


def invariant_along(start, scale, rule, steps):
    W0 = torch.zeros(2, 2, 2).double()
    W0[:, 0, 0] = torch.tensor(start)
    u = torch.stack([PAIR.u, scale * PAIR.u])
    w = train_heads(PAIR, u, rule, steps, W0=W0).W.numpy()[:, :, 0, 0]
    return gap_invariant(w[:, 0]) - gap_invariant(w[:, 1]) / scale


@settings(max_examples=10, deadline=None)
@given(first=st.floats(-5, 5), second=st.floats(-5, 5), scale=st.sampled_from([1.0, 3.0]))
def test_the_invariant_is_kept_by_small_steps(first, second, scale):
    value = invariant_along([first, second], scale, GD(3e-3), 100)
    assert np.abs(value - value[0]).max() < 1e-3
    assert abs(invert_gap_invariant(gap_invariant(first)) - first) < CLOSED_FORM


def test_the_invariant_is_broken_by_separate_norms():
    value = invariant_along([-3.0, -2.0], 1.0, NGD(0.01), 300)
    assert abs(value[-1] / value[0] - 1) > 0.1


def test_growth_is_the_ratio_of_softmax_products():
    for start in (-4.0, -0.5):
        p = 1 / (1 + math.exp(-start))
        assert growth_of_difference(start) == pytest.approx(1 / (4 * p * (1 - p)))
    assert growth_of_difference(0.5) == 1.0


def test_each_head_turns_to_its_own_svm_and_not_to_the_others():
    data, u, opts = two_heads(3)
    run = train_heads(data, u, NGD(0.4), 300)
    svms = [solve_w_svm(data, opt).weights for opt in opts]
    for h in (0, 1):
        assert run.alignment_error(svms[h], h)[-1] < ASYMPTOTIC
        assert run.alignment_error(svms[1 - h], h)[-1] > 0.5
    assert check_heads(data, u, run).all_hold
    assert check_heads(data, u, train_heads(data, u, NGD(0.4), 10))[0].vacuous
    bold = train_heads(data, u, NGD(200.0), 300)
    assert check_heads(data, u, bold).all_hold and not check_heads(data, u, bold)[0].vacuous
    assert not any(check.holds for check in check_heads(data, u.flip(0), bold))


def test_reweighting_is_that_of_the_other_heads_score():
    data, u, _ = two_heads(0)
    run = train_heads(data, u, NGD(0.4), 50)
    # at W = 0 each head's score is the mean of its scores, 1/3, and exp(-1/3) the factor
    assert np.abs(run.log_reweighting[0] + 1 / 3).max() < CLOSED_FORM
    late = train_heads(data, u, NGD(1.0), 400).log_reweighting[-1]
    assert np.abs(late + 1).max() < ALIGNMENT_FLOOR**0.25


def test_check_needs_assumption_2_and_says_nothing_in_the_trap():
    data, u, _ = two_heads(0)
    loose = u + 0.05 * normal(*u.shape, seed=1)
    assert not check_heads(data, loose, train_heads(data, loose, NGD(0.1), 20))[0].applicable
    trap = make_two_sample_trap()
    both = torch.stack([trap.u, trap.u])
    check = check_heads(trap, both, train_heads(trap, both, NGD(0.2), 200))[0]
    assert check.bounds[-1] > 2 and check.values[-1] > 0.5  # 1 - cosine is at most 2


RAGGED = Dataset(torch.ones(2, 3, 2).double(), [1, -1], lengths=[2, 3])
REPEATED = Dataset(torch.ones(1, 2, 2).double(), [1])


test_bad_input_is_refused = refusals(
    (ShapeError, lambda: train_heads(RAGGED, SAME, NGD(0.1), 5)),
    (ShapeError, lambda: train_heads(PAIR, PAIR.u, NGD(0.1), 5)),
    (ShapeError, lambda: train_heads(PAIR, SAME, NGD(0.1), 5, W0=torch.zeros(2, 2))),
    (TiedTokensError, lambda: train_heads(PAIR, 0 * SAME, NGD(0.1), 5)),
    (RangeError, lambda: train_heads(PAIR, SAME, Polyak(), 5)),
    (RangeError, lambda: train_heads(PAIR, SAME, NGD(0.1, momentum=0.5), 5)),
    (DtypeError, lambda: train_heads(PAIR, SAME, 0.1, 5)),
    (DtypeError, lambda: train_heads("data", SAME, NGD(0.1), 5)),
    (DtypeError, lambda: check_heads(PAIR, SAME, None)),
    (InfeasibleError, lambda: interpolating_decoder(REPEATED, [0])),
    (RangeError, lambda: interpolating_decoder(PAIR, [2])),
    (DtypeError, lambda: plot_heads({}, {})),
)
