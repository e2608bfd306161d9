"""Losses in the log domain against multiprecision, and a loss of one's own."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from tolerances import FUNCTION, QUADRATURE

from attnbias import Loss
from attnbias.losses import EXPONENTIAL, LOGISTIC, as_loss, log_expm1

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)
margins = st.floats(-3000, 3000)
log_shifts = st.one_of(st.floats(-900, -12), st.floats(-30, math.log(3000)))


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def exact(loss, z):
    return mp.exp(-z) if loss is EXPONENTIAL else mp.log(1 + mp.exp(-z))


def exact_slope(loss, z):
    return mp.exp(-z) if loss is EXPONENTIAL else 1 / (1 + mp.exp(z))


@pytest.fixture(autouse=True)
def digits():
    """Enough for 1 + exp(-3000 - 900) minus 1."""
    with mp.workdps(1800):
        yield


def close(found, expected, tolerance=FUNCTION):
    """Relative, or absolute near a logarithm's zero."""
    return abs(float(found) - float(expected)) <= tolerance * max(1.0, abs(float(expected)))


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC], ids=lambda loss: loss.name)
@PROPERTY
@given(z=st.one_of(margins, st.floats(20, 60)))
def test_value_and_slope(loss, z):
    assert close(loss.log_value(tensor(z)), mp.log(exact(loss, mpf(z))))
    assert close(loss.log_slope(tensor(z)), mp.log(exact_slope(loss, mpf(z))))


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC], ids=lambda loss: loss.name)
@PROPERTY
@given(z=margins, log_S=log_shifts)
def test_gap(loss, z, log_S):
    S = mp.exp(mpf(log_S))
    expected = mp.log(exact(loss, mpf(z) - S) - exact(loss, mpf(z)))
    assert close(loss.gap(tensor(z), tensor(log_S)), expected, 10 * FUNCTION)


@pytest.mark.parametrize(
    "S", [1e-300, 1e-30, 1e-17, 0.99e-8, 1.01e-8, 1e-4, 1.0, 30.0, 39.0, 41.0, 700.0, 800.0, 1e6]
)
def test_log_expm1_on_both_sides_of_its_switch(S):
    expected = mp.log(mp.expm1(mpf(S)))
    assert close(log_expm1(tensor(math.log(S))), expected)


@pytest.mark.parametrize("z", [-50.0, -1.0, 0.0, 1.0, 36.0, 50.0])
@pytest.mark.parametrize("S", [1e-300, 1e-20, 1e-9, 1e-7])
def test_logistic_gap_for_tiny_shifts(z, S):
    """A plain difference gives 0 here: the gap is l'(z) S to first order."""
    found = float(LOGISTIC.gap(tensor(z), tensor(math.log(S))))
    shift = mp.exp(mpf(math.log(S)))
    assert close(found, mp.log(exact(LOGISTIC, mpf(z) - shift) - exact(LOGISTIC, mpf(z))))
    if S < 1e-17:
        plain = LOGISTIC.log_value(tensor(z - S)).exp() - LOGISTIC.log_value(tensor(z)).exp()
        assert plain == 0  # the broken case


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC], ids=lambda loss: loss.name)
@PROPERTY
@given(z=st.floats(-20, 50), log_S=st.one_of(st.floats(-900, 0), st.floats(0, math.log(5))))
def test_quadrature_agrees_with_the_closed_form(loss, z, log_S):
    mine = Loss("mine", loss.log_value, loss.log_slope)
    arguments = tensor(z), tensor(log_S)
    assert close(mine.gap(*arguments), loss.gap(*arguments), QUADRATURE)


def test_quadrature_of_a_polynomial_tail():
    """l(z) = 1/(1 + z): a loss that is neither, right of -1."""
    mine = Loss("tail", lambda z: -torch.log1p(z), lambda z: -2 * torch.log1p(z))
    for z, S in ((3.0, 2.0), (10.0, 1e-40), (0.5, 1.0)):
        expected = mp.log(1 / (1 + mpf(z) - mpf(S)) - 1 / (1 + mpf(z)))
        assert close(mine.gap(tensor(z), tensor(math.log(S))), expected, QUADRATURE)


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC], ids=lambda loss: loss.name)
def test_slope_is_the_derivative_of_the_value(loss):
    z = torch.linspace(-30, 60, 181, dtype=torch.float64, requires_grad=True)
    (derivative,) = torch.autograd.grad(loss.log_value(z).exp().sum(), z)
    assert torch.allclose(derivative, -loss.log_slope(z).exp(), rtol=1e-12, atol=0)


def test_logistic_derivative_far_out():
    """Where exp(-z) overflows or underflows; a NaN of an unused branch would show here."""
    z = torch.tensor([-5000.0, -800.0, -21.0, 800.0], dtype=torch.float64, requires_grad=True)
    value = LOGISTIC.log_value(z)
    (derivative,) = torch.autograd.grad(value.exp().clamp(max=1e300).sum(), z)
    assert value[:3].tolist() == pytest.approx([math.log(5000), math.log(800), math.log(21)])
    assert derivative.tolist() == pytest.approx([-1, -1, -1, 0])


def test_as_loss():
    assert as_loss("exponential") is EXPONENTIAL
    assert as_loss("logistic") is as_loss(LOGISTIC) is LOGISTIC
