"""Losses with other tails: their logs, what they change with u fixed, and where they send u."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from room_tests import refusals
from tolerances import ASYMPTOTIC, CLOSED_FORM, FORMS, FUNCTION, NEAR_A_CORNER, SETTLED

from attnbias import (
    NGD,
    Dataset,
    make_dm,
    make_example1,
    solve_u_svm,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.beyond.losses.checks import check_any_loss
from attnbias.beyond.losses.constants import alignment_limit, slope_constants
from attnbias.beyond.losses.data import rescale_tokens, set_scores
from attnbias.beyond.losses.geometry import tail_direction
from attnbias.beyond.losses.losses import polynomial_loss, smooth_hinge, squared_hinge
from attnbias.errors import AttnBiasError, RangeError
from attnbias.geometry.constants import limit_offset, token_constants

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def exact(kind, parameter, z):
    if kind is polynomial_loss:
        return (1 + z) ** -mpf(parameter) if z > 0 else 1 - mpf(parameter) * z
    if kind is smooth_hinge:
        return mp.log(1 + mp.exp(mpf(parameter) * (1 - z))) / mpf(parameter)
    return max(mpf(0), 1 - z) ** 2 / 2


KINDS = [(polynomial_loss, 0.5), (polynomial_loss, 3.0), (smooth_hinge, 4.0), (squared_hinge, None)]


@pytest.mark.parametrize(("kind", "parameter"), KINDS)
@PROPERTY
@given(z=st.floats(-50, 50), log_S=st.floats(-60, 5))
def test_value_slope_and_gap(kind, parameter, z, log_S):
    loss = kind() if parameter is None else kind(parameter)
    at, shift = (torch.tensor(x, dtype=torch.float64) for x in (z, log_S))
    # 1 - z loses the digits that it shares with 1
    tolerance = NEAR_A_CORNER if abs(z - 1) < 1 else 1e3 * FUNCTION
    with mp.workdps(250):
        value, h = exact(kind, parameter, mpf(z)), mpf(10) ** -40
        gap = exact(kind, parameter, mpf(z) - mp.exp(mpf(log_S))) - value
        slope = (exact(kind, parameter, mpf(z) - h) - exact(kind, parameter, mpf(z) + h)) / (2 * h)
        found = (loss.log_value(at), loss.gap(at, shift), loss.log_slope(at))
        for log, wanted in zip(found, (value, gap, slope), strict=True):
            if wanted > mpf(10) ** -200:
                expected = float(mp.log(wanted))
                assert abs(float(log) - expected) <= tolerance * max(1.0, abs(expected))


TOKENS = make_dm(3, d=9)
test_bad_parameters = refusals(
    lambda: polynomial_loss(0.0),
    lambda: smooth_hinge(-1.0),
    lambda: polynomial_loss("2"),
    lambda: alignment_limit(-1.0),
    lambda: squared_hinge(math.nan),
    lambda: squared_hinge("1"),
    lambda: set_scores(Dataset([[[1.0, 0], [1.0, 0]]], [1], opt=[0]), [1.0], [0.0]),  # no decoder
    lambda: set_scores(TOKENS, [1.0, 1.0, 1.0], [0.0, 0.0, 2.0]),
    lambda: set_scores(TOKENS, [1.0], [0.0]),
    lambda: rescale_tokens(TOKENS, 0.0, 1.0),
)


def uneven(seed, T=3):
    tops = 1 + 2 * torch.rand(4, generator=torch.Generator().manual_seed(seed)).double()
    data = make_dm(4, T=T, d=100, alpha=1.5, seed=seed)
    return set_scores(data, tops, torch.zeros(4).double())


def test_scores_and_sizes_as_asked():
    data = set_scores(make_dm(3, T=3, d=40), [1.0, 2.0, 3.0], [0.0, -1.0, 0.5])
    scores = token_scores(data)
    assert torch.allclose(scores.amax(1), torch.tensor([1.0, 2, 3]).double(), atol=1e-9)
    assert torch.allclose(scores.amin(1), torch.tensor([0.0, -1, 0.5]).double(), atol=1e-9)
    sizes = rescale_tokens(TOKENS, 0.5, 2.0).X.norm(dim=2) / TOKENS.X.norm(dim=2)
    assert torch.allclose(sizes, torch.tensor([0.5, 1.25, 2.0]).double()[:, None])


def test_slope_constants_of_the_exponential_loss_are_the_plain_ones():
    data = uneven(0)
    plain, sloped = token_constants(data), slope_constants(data)
    assert abs(plain.log_kappa - sloped.log_kappa) < CLOSED_FORM
    assert limit_offset(data, solve_w_svm(data), loss=squared_hinge()) is None  # a flat loss
    with pytest.raises(AttnBiasError, match="slope below zero"):
        slope_constants(data, squared_hinge())
    # equal optimal scores leave the loss without effect on the limit
    data = make_example1(4, 3, 60, seed=1)
    svm = solve_w_svm(data)
    limits = [limit_offset(data, svm, loss=loss) for loss in ("exponential", polynomial_loss(2))]
    assert abs(limits[0] - limits[1]) < FORMS * limits[0]


@pytest.mark.parametrize("loss", ["logistic", polynomial_loss(1), smooth_hinge(4)])
def test_the_offset_settles_where_the_slopes_say(loss):
    data = uneven(1)
    svm = solve_w_svm(data)
    run = train(data, NGD(0.3), 400, loss=loss, svm=svm, record=2)
    found = run.W_norm[-1] ** 2 * run.W_alignment_error[-1]
    assert abs(found / alignment_limit(limit_offset(data, svm, loss=loss)) - 1) < SETTLED
    other = alignment_limit(limit_offset(data, svm))
    assert abs(found / other - 1) > 10 * SETTLED  # the broken case: another loss's limit


def test_one_sequence_takes_the_same_path_under_every_loss():
    data = make_example1(1, 4, 30, seed=0)
    one, *others = (
        train(data, NGD(0.2), 100, loss=loss, record=2, engine="torch").W
        for loss in ("exponential", "logistic", polynomial_loss(1))
    )
    assert all(float((W - one).abs().max()) < FORMS for W in others)
    plain = train(data, NGD(0.21), 100, record=2)  # the broken case
    assert float((plain.W - one).abs().max()) > 0.1


def test_check_any_loss_and_what_it_refuses(monkeypatch):
    data, loss = uneven(0, T=2), polynomial_loss(2)
    run = train(data, NGD(0.2), 200, loss=loss, record=30)
    assert check_any_loss(data, run, loss).all_hold
    wrong = check_any_loss(data, run, "logistic")
    assert not wrong.all_hold and "not 'logistic'" in wrong[0].reason
    flat = train(data, NGD(0.2), 20, loss=squared_hinge(), record=5)
    assert "vanishes" in check_any_loss(data, flat, squared_hinge())[0].reason
    even = dataclasses.replace(slope_constants(data, loss, svm=solve_w_svm(data)), log_Upsilon=0.0)
    even = dataclasses.replace(even, log_upsilon=0.0)  # as if no weight ever differed
    monkeypatch.setattr("attnbias.beyond.losses.checks.slope_constants", lambda *a, **k: even)
    assert check_any_loss(data, run, loss)[0].verdict == "fails"


@pytest.mark.parametrize("power", [0.5, 1, 4])
def test_tail_direction_of_orthogonal_tokens(power):
    X = torch.diag(torch.tensor([1.0, 1.0, 3.0, 1.0])).double().reshape(2, 2, 4)
    u = tail_direction(Dataset(X, [1, -1], opt=[0, 0]), power)
    assert abs(float(-u[2] / u[0]) - 3 ** (-power / (power + 2))) < FORMS
    assert abs(float(u.norm()) - 1) < CLOSED_FORM


@PROPERTY
@example(seed=507, power=1.0)  # a last Newton step that gains less than the rounding of a sum
@given(seed=st.integers(0, 1000), power=st.floats(0.2, 20))
def test_tail_direction_is_least(seed, power):
    """Against nearby unit vectors, and with the largest powers it nears u_mm."""
    data = make_dm(3, d=20, seed=seed)
    rows = data.y[:, None] * data.X[torch.arange(3), data.opt]
    u = tail_direction(data, power)
    value = ((rows @ u) ** -power).sum()
    for k in range(5):
        v = u + 1e-3 * torch.randn(20, generator=torch.Generator().manual_seed(k)).double()
        assert ((rows @ (v / v.norm())) ** -power).sum() >= value * (1 - 1e-12)
    svm = solve_u_svm(data)
    assert 1 - float(tail_direction(data, 100) @ svm.weights) / svm.norm < ASYMPTOTIC


def test_squared_hinge_stops():
    X = torch.eye(4).double().reshape(2, 2, 4)
    data = Dataset(X, [1, 1], torch.tensor([2.0, -1.5, 3.0, -1.5]).double())
    assert train(data, NGD(0.1), 100, loss=squared_hinge()).status == "zero gradient"
    data = Dataset(X, [1, 1], torch.tensor([0.5, -1.5, 2.0, -1.5]).double())
    run = train(data, NGD(0.1), 500, loss=squared_hinge(), record=2)
    assert abs(run.gaps[-1, 1] - math.log(2.5)) < 1e-4
    assert np.isclose(run.W_alignment_error[-1], 1 - 0.5**0.5, atol=0.02)


@pytest.mark.parametrize("off", [0.0, 1e-15, -1e-15, -0.1])
def test_a_target_at_an_optimal_score_has_no_constants_and_one_above_has(off):
    data = Dataset(torch.eye(4).double().reshape(2, 2, 4), [1, 1], [0.7, 0, 0.3, 0])
    with pytest.raises(RangeError, match="loss: expected a slope below zero"):
        slope_constants(data, squared_hinge(0.7 + off))
    # above: between 0 and 0.7 the slope falls from tau to tau - 0.7
    kappa = slope_constants(data, squared_hinge(0.7 + 1e-3)).kappa
    assert kappa == pytest.approx(0.701 / 1e-3, rel=1e-9)


def test_a_target_divides_the_sequences_by_their_optimal_score():
    tokens = torch.eye(4, dtype=torch.float64).reshape(2, 2, 4)
    data = Dataset(tokens, [1, 1], [1.0, 0, 0.5, 0])
    ends = {
        target: train(data, NGD(0.3), 300, loss=squared_hinge(target), record=2).gaps[-1]
        for target in (2.0, 1.0, 0.75)
    }
    assert abs(ends[2.0][1] / ends[2.0][0] - 1) < 0.02  # above all scores: the SVM
    assert abs(ends[1.0][1] / ends[1.0][0] - 2) < 0.05  # one's own optimal score: half the margin
    assert abs(ends[0.75][0] - math.log(3)) < 1e-2 < ends[0.75][1]  # below it: a finite gap


def test_a_run_to_the_optimal_score_goes_on_where_the_margin_rounds_to_it():
    data = Dataset(torch.eye(2, dtype=torch.float64)[None], [1], [1.0, 0])
    run = train(data, NGD(1.0), 100, loss=squared_hinge(1.0), record=3)
    gap = float(run.gaps[-1, 0])  # the slope is 1 - softmax, once more beside the softmax's own
    assert run.opt_score[-1] == 1 and abs(run.log_grad_norm[-1] + 2 * gap - math.log(2) / 2) < 1e-9
    blunt = dataclasses.replace(squared_hinge(1.0), log_slope_below=None)
    assert train(data, NGD(1.0), 100, loss=blunt, record=3).status == "zero gradient"
