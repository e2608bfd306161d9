"""Runs on two descriptions of the same tokens, and the broken cases that must differ."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, SERIES, assert_same_run, problems, random_data, random_start, seeds
from tolerances import INVARIANCE, ROTATED

from attnbias import GD, NGD, Dataset, Polyak, train


def compare(data, start, other, other_start, rule, loss, names=SERIES, other_rule=None):
    """Runs on two descriptions of the same tokens record the same numbers."""
    options = {"loss": loss, "record": [0, 1, 10, 100]}
    one = train(data, rule, 100, W0=start, **options)
    two = train(other, other_rule or rule, 100, W0=other_start, **options)
    assert_same_run(one, two, INVARIANCE, names)
    return one, two


def reordered(data, generator, seed):
    return data[torch.randperm(data.n, generator=generator)]


def other_order_of_tokens(data, generator, seed):
    """All but the query, which stands first."""
    X = data.X.clone()
    for i, length in enumerate(data.lengths.tolist()):
        X[i, 1:length] = X[i, 1 + torch.randperm(length - 1, generator=generator)]
    return Dataset(X, data.y, data.u, data.lengths)


def flipped(data, generator, seed):
    return Dataset(data.X, -data.y, -data.u, data.lengths)


def other_padding(data, generator, seed):
    garbage = torch.tensor([1.0, 1e6, math.nan, math.inf][seed % 4], dtype=torch.float64)
    X = torch.where(data.mask[..., None], data.X, garbage)
    return Dataset(X, data.y, data.u, data.lengths)


@pytest.mark.parametrize("describe", [reordered, other_order_of_tokens, flipped, other_padding])
@FEW
@given(problem=problems(), seed=seeds)
def test_the_same_tokens_described_otherwise(describe, problem, seed):
    data, start, rule, loss = problem
    other = describe(data, torch.Generator().manual_seed(seed), seed)
    one, two = compare(data, start, other, start, rule, loss)
    tolerance = 0.0 if describe is other_padding else INVARIANCE
    assert torch.allclose(one.W, two.W, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("change", ["query", "scale"])
def test_what_does_matter(change):
    """The broken cases: another query, and a decoder that weighs two sequences otherwise."""
    data = random_data(2, 3, 6, seed=1)
    turned = Dataset(data.X.flip(1), data.y, data.u)
    other = turned if change == "query" else data.with_decoder(4 * data.u)
    one, two = (train(each, NGD(0.2), 100, record=[100]) for each in (data, other))
    assert abs(one.W_alignment_error - two.W_alignment_error)[0] > 1e-6
    assert change == "scale" or abs(one.log_nonopt_score - two.log_nonopt_score)[0] > 1e-3


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
    same = ("log_loss", "log_loss_gap", "log_nonopt_score", "W_alignment_error")
    one, two = compare(data, start, other, start / s**2, rule, loss, same, scaled)
    np.testing.assert_allclose(two.W_norm * s**2, one.W_norm, rtol=INVARIANCE)
    np.testing.assert_allclose(
        two.log_grad_norm, one.log_grad_norm + 2 * math.log(s), rtol=INVARIANCE, atol=INVARIANCE
    )


@FEW
@given(st.integers(2, 4), seeds, st.floats(0.1, 8.0))
def test_scale_of_the_decoder_leaves_ngd_on_one_sequence_alone(T, seed, a):
    """u -> a u multiplies every weight of a sequence by one factor: the direction stays."""
    data = random_data(1, T, T + 1, seed=seed)
    start, geometric = random_start(data, 0.5, seed), ("log_nonopt_score", "W_norm")
    geometric += ("W_alignment_error",)
    other = data.with_decoder(a * data.u)
    compare(data, start, other, start, NGD(0.2), "exponential", geometric)
