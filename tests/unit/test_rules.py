"""Step-size rules: the power law against the definitions, caps, momentum, the Polyak floor."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import JOINT_ENGINES, random_data, random_start
from tolerances import AUTOGRAD, CLOSED_FORM, FLOOR_ROUNDING

from attnbias import GD, NGD, Polyak, train
from attnbias.rules import Rule

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)
positive = st.floats(1e-30, 1e30)


@PROPERTY
@given(positive, positive, positive)
def test_power_law_is_the_definition(eta, gap, norm):
    """eta; eta / |g|; (L - L*) / (2 |g|^2)."""
    logs = math.log(gap), math.log(norm)
    assert GD(eta).log_step_size(*logs) == pytest.approx(math.log(eta), abs=CLOSED_FORM)
    assert NGD(eta).log_step_size(*logs) == pytest.approx(
        math.log(eta) - math.log(norm), rel=CLOSED_FORM, abs=CLOSED_FORM
    )
    assert Polyak().log_step_size(*logs) == pytest.approx(
        math.log(gap) - math.log(2) - 2 * math.log(norm), rel=CLOSED_FORM, abs=CLOSED_FORM
    )


@PROPERTY
@given(positive, positive, positive)
def test_cap_is_a_minimum(cap, gap, norm):
    logs = math.log(gap), math.log(norm)
    for free, capped in ((NGD(0.1), NGD(0.1, max_step=cap)), (Polyak(), Polyak(cap))):
        expected = min(free.log_step_size(*logs), math.log(cap))
        assert capped.log_step_size(*logs) == expected
        tensors = [torch.tensor(x, dtype=torch.float64) for x in logs]
        assert float(capped.log_step_size(*tensors)) == pytest.approx(expected, rel=CLOSED_FORM)


def test_powers_of_zero_ignore_infinite_logarithms():
    assert GD(2.0).log_step_size(-math.inf, -math.inf) == math.log(2.0)
    assert NGD(1.0).log_step_size(-math.inf, -5e8) == 5e8
    assert Polyak(3.0).log_step_size(-math.inf, 1.0) == -math.inf
    assert NGD(0.1).log_step_size(-4200.0, -4201.0) == pytest.approx(math.log(0.1) + 4201)
    assert Polyak().log_step_size(-4200.0, -4201.0) == pytest.approx(4202 - math.log(2))


def test_names():
    for rule in (GD(0.1), NGD(1, 0.9, "shared", (0.5, 1), max_step=3), Polyak(), Polyak(10, 0.5)):
        assert eval(repr(rule)) == rule


def test_rules_are_frozen_values():
    assert NGD(0.1) != NGD(0.2) and isinstance(GD(1), Rule)
    with pytest.raises(AttributeError):
        GD(1.0).momentum = 0.5


@pytest.mark.parametrize("form", JOINT_ENGINES)
@pytest.mark.parametrize("rule", [GD(0.7), NGD(0.3), Polyak(), Polyak(2.0), NGD(0.3, max_step=5)])
def test_recorded_step_size_is_the_step_taken(rule, form):
    data = random_data(2, 3, 6, seed=0)
    start = random_start(data, 0.2, 1)
    options = {"engine": form[0], "coordinates": form[1], "W0": start, "svm": False}
    trace = train(data, rule, 0, W0=start, svm=False)
    moved = float((train(data, rule, 1, record=[1], **options).W - start).norm())
    assert moved == pytest.approx(float(trace.step_size[0] * trace.grad_norm[0]), rel=AUTOGRAD)
    assert trace.log_step_size[0] == pytest.approx(
        rule.log_step_size(trace.log_loss_gap[0], trace.log_grad_norm[0]), abs=CLOSED_FORM
    )


@pytest.mark.parametrize("form", JOINT_ENGINES)
def test_polyak_becomes_gd_once_its_cap_binds(form):
    """From the first step whose size is the cap, the trace is that of GD started there."""
    data, cap = random_data(3, 3, 8, seed=2), 40.0
    options = {"engine": form[0], "coordinates": form[1]}
    capped = train(data, Polyak(cap), 300, record=range(301), **options)
    binds = int(np.argmax(capped.log_step_size >= math.log(cap) - CLOSED_FORM))
    assert 0 < binds < 100
    np.testing.assert_allclose(capped.log_step_size[binds:], math.log(cap), rtol=CLOSED_FORM)
    W = train(data, Polyak(cap), binds, record=[binds], **options).W
    gd = train(data, GD(cap), 300 - binds, W0=W, record=range(301 - binds), **options)
    for name in ("log_loss_gap", "log_grad_norm", "W_norm", "W_alignment_error"):
        np.testing.assert_allclose(
            getattr(capped, name)[binds:], getattr(gd, name), rtol=AUTOGRAD, err_msg=name
        )


def test_uncapped_polyak_does_not_slow_down():
    """The broken case of the test above: without a cap W's norm grows linearly."""
    data = random_data(3, 3, 8, seed=2)
    free, capped = (train(data, rule, 2000).W_norm[-1] for rule in (Polyak(), Polyak(40.0)))
    assert free > 10 * capped


def test_polyak_floor_at_the_infimum_is_the_default_and_below_it_takes_longer_steps():
    data = random_data(2, 3, 6, seed=0)
    best = train(data, Polyak(), 0)
    infimum = float(best.loss[0] - best.loss_gap[0])
    lower = train(data, Polyak(loss_floor=infimum - 0.25), 0)
    expected = (best.loss_gap[0] + 0.25) / (2 * best.grad_norm[0] ** 2)
    assert lower.step_size[0] == pytest.approx(expected, rel=AUTOGRAD)
    one = train(data, Polyak(loss_floor=infimum * (1 - 1e-13)), 10, record=[10])
    two = train(data, Polyak(), 10, record=[10])
    assert one.W_norm[0] == pytest.approx(two.W_norm[0], rel=FLOOR_ROUNDING)
