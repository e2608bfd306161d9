"""Runs on two descriptions of the same tokens, and the broken cases that must differ."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, assert_same_run, problems, random_data, random_start, seeds
from tolerances import INVARIANCE, ROTATED

from attnbias import GD, NGD, Dataset, Polyak, train


def compare(data, start, other, other_start, rule, loss, other_rule=None):
    """Runs on two descriptions of the same tokens record the same numbers."""
    options = {"loss": loss, "record": [0, 1, 10, 100]}
    one = train(data, rule, 100, W0=start, **options)
    two = train(other, other_rule or rule, 100, W0=other_start, **options)
    assert_same_run(one, two, INVARIANCE)
    return one, two


@FEW
@given(problems(), seeds)
def test_order_of_sequences_does_not_matter(problem, seed):
    data, start, rule, loss = problem
    order = torch.randperm(data.n, generator=torch.Generator().manual_seed(seed))
    other = Dataset(data.X[order], data.y[order], data.u, data.lengths[order])
    one, two = compare(data, start, other, start, rule, loss)
    assert torch.allclose(one.W, two.W, rtol=INVARIANCE, atol=INVARIANCE)


@FEW
@given(problems(), seeds)
def test_order_of_tokens_after_the_query_does_not_matter(problem, seed):
    data, start, rule, loss = problem
    generator, X = torch.Generator().manual_seed(seed), data.X.clone()
    for i, length in enumerate(data.lengths.tolist()):
        X[i, 1:length] = X[i, 1 + torch.randperm(length - 1, generator=generator)]
    compare(data, start, Dataset(X, data.y, data.u, data.lengths), start, rule, loss)


def test_which_token_is_the_query_does_matter():
    """The broken case of the property above."""
    data = random_data(2, 3, 6, seed=0)
    other = Dataset(data.X.flip(1), data.y, data.u)
    one, two = (train(each, NGD(0.1), 100, record=[100]) for each in (data, other))
    assert abs(one.log_nonopt_score - two.log_nonopt_score)[0] > 1e-3


@FEW
@given(problems(), seeds)
def test_rotated_features_give_the_rotated_run(problem, seed):
    data, start, rule, loss = problem
    Q, _ = torch.linalg.qr(random_start(data, 1.0, seed))
    other = Dataset(data.X @ Q, data.y, Q.T @ data.u, data.lengths)
    one, two = compare(data, start, other, Q.T @ start @ Q, rule, loss)
    assert torch.allclose(Q.T @ one.W @ Q, two.W, rtol=ROTATED, atol=ROTATED)


@FEW
@given(problems(), st.floats(0.2, 5.0))
def test_rescaled_tokens_and_decoder(problem, s):
    """x -> s x, u -> u/s, W -> W/s^2: NGD's step shrinks by s^2, GD's and every cap by s^4."""
    data, start, rule, loss = problem
    other = Dataset(s * data.X, data.y, data.u / s, data.lengths)
    eta = math.exp(rule.log_scale)
    cap = math.exp(rule.log_max_step) / s**4 if rule.log_max_step < math.inf else math.inf
    if rule.name.startswith("GD"):
        scaled = GD(eta / s**4)
    elif rule.name.startswith("NGD"):
        scaled = NGD(eta / s**2, momentum=rule.momentum, max_step=cap)
    else:
        scaled = Polyak(max_step=cap)
    options = {"loss": loss, "record": [0, 1, 10, 100]}
    one = train(data, rule, 100, W0=start, **options)
    two = train(other, scaled, 100, W0=start / s**2, **options)
    same = ("log_loss", "log_loss_gap", "log_nonopt_score", "W_alignment_error")
    assert_same_run(one, two, INVARIANCE, names=same)
    np.testing.assert_allclose(two.W_norm * s**2, one.W_norm, rtol=INVARIANCE)
    np.testing.assert_allclose(
        two.log_grad_norm, one.log_grad_norm + 2 * math.log(s), rtol=INVARIANCE, atol=INVARIANCE
    )


@FEW
@given(st.integers(2, 4), seeds, st.floats(0.1, 8.0))
def test_scale_of_the_decoder_leaves_ngd_on_one_sequence_alone(T, seed, a):
    """u -> a u multiplies every weight of a sequence by one factor: the direction stays."""
    data = random_data(1, T, T + 1, seed=seed)
    start, options = random_start(data, 0.5, seed), {"record": [0, 1, 10, 100]}
    one = train(data, NGD(0.2), 100, W0=start, **options)
    two = train(data.with_decoder(a * data.u), NGD(0.2), 100, W0=start, **options)
    geometric = ("log_nonopt_score", "W_norm", "W_alignment_error")
    assert_same_run(one, two, INVARIANCE, names=geometric)


def test_scale_of_the_decoder_matters_between_sequences():
    """The broken case: with two sequences the loss weighs them against each other."""
    data = random_data(2, 3, 6, seed=1)
    one, two = (
        train(each, NGD(0.2), 100, record=[100]) for each in (data, data.with_decoder(4 * data.u))
    )
    assert abs(one.W_alignment_error - two.W_alignment_error)[0] > 1e-6


@FEW
@given(problems())
def test_flipped_labels_and_decoder(problem):
    data, start, rule, loss = problem
    compare(data, start, Dataset(data.X, -data.y, -data.u, data.lengths), start, rule, loss)


@FEW
@given(problems(), st.sampled_from([1.0, 1e6, float("nan"), float("inf")]))
def test_what_the_padding_holds_does_not_matter(problem, garbage):
    data, start, rule, loss = problem
    X = torch.where(data.mask[..., None], data.X, torch.tensor(garbage, dtype=torch.float64))
    one, two = compare(data, start, Dataset(X, data.y, data.u, data.lengths), start, rule, loss)
    assert torch.equal(one.W, two.W)
