"""Fitted exponents: exact powers, windows, and what the interval says."""

import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import make_locked
from tolerances import EXACT_POWER, FITTED_EXPONENT

from attnbias import NGD, RateFit, Trace, fit_rate, make_example1, train
from attnbias.errors import DtypeError, RangeError

STEP = np.unique(np.geomspace(1, 10**6, 200).round())


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(-3, 3), st.floats(1e-20, 1e20), st.integers(0, 10**6))
def test_exact_power_is_found_with_a_closed_interval(exponent, factor, seed):
    step = np.unique(np.random.default_rng(seed).integers(1, 10**6, size=40))
    fit = fit_rate(step, factor * step.astype(float) ** exponent)
    assert fit.exponent == pytest.approx(exponent, abs=EXACT_POWER)
    assert fit.interval == pytest.approx((exponent, exponent), abs=10 * EXACT_POWER)


def test_curvature_widens_the_interval():
    """log(t)^2 / t^2 has no exponent; the interval says so, and shrinks in a later window."""

    def width(value, window):
        fit = fit_rate(STEP, value, window)
        assert fit.interval[0] <= fit.exponent <= fit.interval[1]
        return fit.interval[1] - fit.interval[0]

    straight, bent = STEP**-2.0, np.log(STEP + 1) ** 2 / STEP**2
    assert width(straight, (10, 10**4)) < 1e-9
    assert width(bent, (10, 10**4)) > 0.1
    assert width(bent, (10**4, 10**6)) < width(bent, (10, 10**4)) / 2
    assert width(straight * (1 + 0.3 * np.sin(3 * np.log(STEP))), (10, 10**5)) > 0


def test_the_interval_is_that_of_five_windows_of_half_the_length():
    """Beside numpy's fit in each: from the first record, and an eighth further each time."""
    x, y = np.log(STEP), np.cumsum(np.random.default_rng(1).normal(size=len(STEP)))
    weight, length, slopes = np.gradient(x), x[-1] - x[0], []
    for low, size in [(0, 1), *((k / 8, 1 / 2) for k in range(5))]:
        inside = (x >= x[0] + low * length - 1e-9) & (x <= x[0] + (low + size) * length + 1e-9)
        w = np.sqrt(weight[inside])  # numpy squares it
        slopes.append(np.polyfit(x[inside], y[inside] / 30, 1, w=w)[0])
    for sign in (1, -1):
        exponent, interval = fit_rate(STEP, np.exp(sign * y / 30))
        assert exponent == pytest.approx(sign * slopes[0], abs=EXACT_POWER)
        assert interval == pytest.approx(sorted(sign * np.array([min(slopes), max(slopes)])))


def test_window_decides_what_is_fitted():
    value = np.where(STEP < 1000, STEP**-1.0, 1e6 * STEP**-3.0)
    assert fit_rate(STEP, value, (1, 900)).exponent == pytest.approx(-1, abs=EXACT_POWER)
    assert fit_rate(STEP, value, (1100, 10**6)).exponent == pytest.approx(-3, abs=EXACT_POWER)
    assert -3 < fit_rate(STEP, value).exponent < -1


def test_order_step_zero_and_the_kind_of_sequence_do_not_matter():
    value = STEP**-1.5 * (1 + 0.1 * np.cos(np.log(STEP)))
    order = np.random.default_rng(0).permutation(len(STEP))
    fit, again = fit_rate(STEP, value), fit_rate(STEP[order], value[order])
    assert again.exponent == pytest.approx(fit.exponent, abs=EXACT_POWER)
    assert fit_rate(np.append(0, STEP), np.append(math.nan, value)) == fit
    assert fit_rate(STEP.tolist(), tuple(value), window=[1, 10**6]) == fit


def test_each_stretch_of_log_step_counts_alike():
    """Recording the end a hundred times more densely leaves a curved fit where it was."""
    dense = np.unique(np.concatenate([STEP, np.arange(9 * 10**5, 10**6, 100)]))
    one, two = (fit_rate(step, np.log(step + 1) ** 2 / step**2).exponent for step in (STEP, dense))
    assert one == pytest.approx(two, abs=0.02)


def test_an_early_window_misleads():
    trace = train(make_example1(seed=0), NGD(0.1), 10**5)
    ends = (fit_rate(trace.step, trace.W_alignment_error, w) for w in ((10**4, 10**5), (10, 1000)))
    late, early = (fit.exponent for fit in ends)
    assert late == pytest.approx(-2, abs=FITTED_EXPONENT) and early > -1.9


@pytest.mark.parametrize(
    "arguments, error",
    [
        ((STEP, "falling"), DtypeError),
        ((STEP, [[1], [1, 2]]), DtypeError),
        ((STEP, 1 / STEP, 100), DtypeError),
        ((STEP, 1 / STEP, (1, 2, 3)), DtypeError),
        (([], []), RangeError),
        ((np.full(20, 7.0), np.arange(1.0, 21.0)), RangeError),
    ],
)
def test_bad_arguments_are_refused(arguments, error):
    with pytest.raises(error, match="expected .*; got "):
        fit_rate(*arguments)


@pytest.mark.parametrize("tail", [0.0, 1e-3, -1e-3, 1.0], ids=str)
@pytest.mark.parametrize("decay", [0.5, 1.0, 2.0])
def test_a_curve_that_goes_level_is_called_flat(tail, decay):
    """0.03 and a rest that dies: no exponent, also where the whole window has a steep start."""
    value = 0.03 * (1 + tail * STEP**-decay)
    fit = fit_rate(STEP, value)
    exponent, interval = fit
    assert fit.flat and "flat" in repr(fit) and interval[0] <= exponent <= interval[1]


@pytest.mark.parametrize("power", [-2.0, -0.5, -0.03, -0.001, 0.01])
def test_a_slow_power_law_is_not_called_flat(power):
    """One slope all along, with a transient and with roundings of 1e-6; nor is 1 / log t flat."""
    noise = 1 + 1e-6 * np.random.default_rng(0).standard_normal(len(STEP))
    for value in (STEP**power, STEP**power * (1 + 1e-4 / STEP), STEP**power * noise):
        fit = fit_rate(STEP, value)
        assert not fit.flat and "flat" not in repr(fit)
        assert fit.exponent == pytest.approx(power, abs=1e-4)
    assert not fit_rate(STEP, 1 / np.log(STEP + 1)).flat
    assert not fit_rate(STEP, 1 / (STEP + 100)).flat  # level at the start alone


@pytest.mark.parametrize(("late", "flat"), [(0.048, True), (0.052, False)])
def test_a_slope_of_a_twentieth_in_the_second_half_is_the_limit_of_flat(late, flat):
    """A steep first half and then one slope; and half of the exponent is the other limit."""
    kink = np.log(STEP[-1]) / 2
    for sign in (1, -1):
        value = np.exp(sign * (np.maximum(kink - np.log(STEP), 0) - late * np.log(STEP)))
        assert fit_rate(STEP, value).flat == flat


def test_a_flat_fit_is_still_a_pair():
    fit = fit_rate(STEP, np.full(len(STEP), 0.03))
    exponent, interval = fit
    assert abs(exponent) < EXACT_POWER and fit.flat and fit == (exponent, interval)
    again = pickle.loads(pickle.dumps(fit))
    assert again == fit and again.flat and not RateFit(-2.0, (-2.0, -2.0)).flat


def test_a_run_that_stays_away_from_W_mm_is_flat():
    """It locks on the second best token, and its alignment error tends to another limit."""
    data, start = make_locked()
    trace = train(data, NGD(0.1), 10_000, W0=start)
    assert fit_rate(trace.step, trace.W_alignment_error, (100, 10_000)).flat
    right = train(data, NGD(0.1), 10_000)
    assert not fit_rate(right.step, right.W_alignment_error, (100, 10_000)).flat


def test_a_trace_gives_its_steps_and_where_none_is_named_its_alignment_error():
    trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 1000)
    window = (10, 1000)
    assert fit_rate(trace) == fit_rate(trace.step, trace.W_alignment_error)
    assert fit_rate(trace, window=window) == fit_rate(trace.step, trace.W_alignment_error, window)
    assert fit_rate(trace, trace.loss_gap, window) == fit_rate(trace.step, trace.loss_gap, window)
    own = Trace(STEP, torch.eye(2), series={"loss": 1.0 / STEP})
    assert fit_rate(own, own.loss).exponent == pytest.approx(-1)
    for call in (lambda: fit_rate(own), lambda: fit_rate(STEP), lambda: fit_rate(None)):
        with pytest.raises(DtypeError, match=r"a Trace with .*; got none\..* fit_rate\(trace, "):
            call()
