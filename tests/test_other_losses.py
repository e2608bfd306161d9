"""Losses with other tails: their logs, what they change with u fixed, and where they send u."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
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
from attnbias.beyond.exponents.transient import max_stable_step
from attnbias.beyond.losses.checks import check_any_loss
from attnbias.beyond.losses.constants import alignment_limit, slope_constants
from attnbias.beyond.losses.data import rescale_tokens, set_scores
from attnbias.beyond.losses.geometry import tail_direction
from attnbias.beyond.losses.losses import polynomial_loss, smooth_hinge, squared_hinge
from attnbias.errors import AttnBiasError
from attnbias.geometry.constants import limit_offset, token_constants

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def exact(kind, parameter, z):
    if kind is polynomial_loss:
        return (1 + z) ** -mpf(parameter) if z > 0 else 1 - mpf(parameter) * z
    if kind is smooth_hinge:
        return mp.log(1 + mp.exp(mpf(parameter) * (1 - z))) / mpf(parameter)
    return max(mpf(0), 1 - z) ** 2 / 2


def near(found, expected, tolerance):
    return abs(float(found) - float(expected)) <= tolerance * max(1.0, abs(float(expected)))


KINDS = [(polynomial_loss, 0.5), (polynomial_loss, 3.0), (smooth_hinge, 4.0), (squared_hinge, None)]


@pytest.mark.parametrize(("kind", "parameter"), KINDS)
@PROPERTY
@given(z=st.floats(-50, 50), log_S=st.floats(-60, 5))
def test_value_slope_and_gap(kind, parameter, z, log_S):
    loss = kind() if parameter is None else kind(parameter)
    at, shift = (torch.tensor(x, dtype=torch.float64) for x in (z, log_S))
    with mp.workdps(120):
        value = exact(kind, parameter, mpf(z))
        gap = exact(kind, parameter, mpf(z) - mp.exp(mpf(log_S))) - value
        h = mpf(10) ** -40
        slope = (exact(kind, parameter, mpf(z) - h) - exact(kind, parameter, mpf(z) + h)) / (2 * h)
        for found, wanted in (
            (loss.log_value(at), value),
            (loss.gap(at, shift), gap),
            (loss.log_slope(at), slope),
        ):
            if wanted > mpf(10) ** -200:
                # 1 - z loses the digits that it shares with 1
                tolerance = NEAR_A_CORNER if abs(z - 1) < 1 else 1e3 * FUNCTION
                assert near(found, mp.log(wanted), tolerance)


def test_bad_parameters():
    for bad in (
        lambda: polynomial_loss(0.0),
        lambda: smooth_hinge(-1.0),
        lambda: polynomial_loss("2"),
        lambda: alignment_limit(-1.0),
    ):
        with pytest.raises(AttnBiasError):
            bad()


def uneven(seed, T=3):
    tops = 1 + 2 * torch.rand(4, generator=torch.Generator().manual_seed(seed)).double()
    data = make_dm(4, T=T, d=100, alpha=1.5, seed=seed)
    return set_scores(data, tops, torch.zeros(4).double())


def test_scores_as_asked():
    data = set_scores(make_dm(3, T=3, d=40), [1.0, 2.0, 3.0], [0.0, -1.0, 0.5])
    scores = token_scores(data)
    assert torch.allclose(scores.amax(1), torch.tensor([1.0, 2, 3]).double(), atol=1e-9)
    assert torch.allclose(scores.amin(1), torch.tensor([0.0, -1, 0.5]).double(), atol=1e-9)


def test_scores_that_no_decoder_has():
    X = [[[1.0, 0], [1.0, 0]]]
    for bad in (
        lambda: set_scores(Dataset(X, [1], opt=[0]), [1.0], [0.0]),
        lambda: set_scores(make_dm(2, d=9), [1.0, 1.0], [0.0, 2.0]),
        lambda: set_scores(make_dm(2, d=9), [1.0], [0.0]),
    ):
        with pytest.raises(AttnBiasError):
            bad()


def test_slope_constants_of_the_exponential_loss_are_the_plain_ones():
    data = uneven(0)
    plain, sloped = token_constants(data), slope_constants(data)
    assert abs(plain.log_kappa - sloped.log_kappa) < CLOSED_FORM
    with pytest.raises(AttnBiasError, match="slope below zero"):
        slope_constants(data, squared_hinge())


@pytest.mark.parametrize("loss", ["logistic", polynomial_loss(1), smooth_hinge(4)])
def test_the_offset_settles_where_the_slopes_say(loss):
    data = uneven(1)
    svm = solve_w_svm(data)
    run = train(data, NGD(0.3), 400, loss=loss, svm=svm, record=2)
    found = run.W_norm[-1] ** 2 * run.W_alignment_error[-1]
    assert abs(found / alignment_limit(limit_offset(data, svm, loss=loss)) - 1) < SETTLED
    other = alignment_limit(limit_offset(data, svm))
    assert abs(found / other - 1) > 10 * SETTLED  # the broken case: another loss's limit


def test_no_limit_for_a_flat_loss():
    data = uneven(0)
    assert limit_offset(data, solve_w_svm(data), loss=squared_hinge()) is None


def test_equal_optimal_scores_leave_the_loss_without_effect_on_the_limit():
    data = make_example1(4, 3, 60, seed=1)
    svm = solve_w_svm(data)
    limits = [limit_offset(data, svm, loss=loss) for loss in ("exponential", polynomial_loss(2))]
    assert abs(limits[0] - limits[1]) < FORMS * limits[0]


def test_one_sequence_takes_the_same_path_under_every_loss():
    data = make_example1(1, 4, 30, seed=0)
    runs = [
        train(data, NGD(0.2), 100, loss=loss, record=2, engine="torch")
        for loss in ("exponential", "logistic", polynomial_loss(1))
    ]
    for run in runs[1:]:
        assert float((run.W - runs[0].W).abs().max()) < FORMS
    plain = train(data, NGD(0.21), 100, record=2)  # the broken case
    assert float((plain.W - runs[0].W).abs().max()) > 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_longest_step_that_settles(seed):
    data = uneven(seed)
    svm = solve_w_svm(data)
    step, limit = max_stable_step(svm), limit_offset(data, svm)
    offsets = {}
    for part in (0.9, 1.1):
        run = train(data, NGD(part * step), 3000, svm=svm, record=2)
        offsets[part] = run.W_norm[-1] * math.sqrt(2 * run.W_alignment_error[-1])
    assert abs(offsets[0.9] / limit - 1) < SETTLED < abs(offsets[1.1] / limit - 1)


def test_settling_step_in_closed_form():
    """Orthogonal rows of norms a, b: alpha = 1/a^2, 1/b^2, and the other eigenvalue is 1."""
    X = torch.diag(torch.tensor([2.0, 1.0, 3.0, 0.5])).double().reshape(2, 2, 4)
    svm = solve_w_svm(Dataset(X, [1, 1], opt=[0, 0]))
    assert abs(max_stable_step(svm) - 2 * svm.norm) < CLOSED_FORM
    single = Dataset(X[:1], [1], opt=[0])
    assert max_stable_step(solve_w_svm(single)) == math.inf


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


def test_joint_decoder_goes_where_the_tail_says():
    data = rescale_tokens(make_dm(3, d=60, seed=2))
    run = train(data, NGD(0.1), 800, loss=polynomial_loss(1), train_u=True, record=2)
    u = run.u / run.u.norm()
    assert 1 - float(u @ tail_direction(data, 1)) < 1e-4
    assert run.u_alignment_error[-1] > 1e-3  # and not to u_mm


def test_stretched():
    data = make_dm(3, d=9)
    sizes = rescale_tokens(data, 0.5, 2.0).X.norm(dim=2) / data.X.norm(dim=2)
    assert torch.allclose(sizes, torch.tensor([0.5, 1.25, 2.0]).double()[:, None])
    with pytest.raises(AttnBiasError):
        rescale_tokens(data, 0.0, 1.0)


def test_squared_hinge_stops():
    X = torch.eye(4).double().reshape(2, 2, 4)
    data = Dataset(X, [1, 1], torch.tensor([2.0, -1.5, 3.0, -1.5]).double())
    assert train(data, NGD(0.1), 100, loss=squared_hinge()).status == "zero gradient"
    data = Dataset(X, [1, 1], torch.tensor([0.5, -1.5, 2.0, -1.5]).double())
    run = train(data, NGD(0.1), 500, loss=squared_hinge(), record=2)
    assert abs(run.gaps[-1, 1] - math.log(2.5)) < 1e-4
    assert np.isclose(run.W_alignment_error[-1], 1 - 0.5**0.5, atol=0.02)
