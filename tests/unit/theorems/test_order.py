"""check_order: what keeps pace with its rate holds, what stalls or falls too slowly fails."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemma_instances import tampered
from orthonormal import run_O

from attnbias import GD, NGD, check_order
from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError

STEP = np.unique(np.geomspace(1, 10**6, 200).round()).astype(int)


def squared_log_over_t(t):
    return np.log(t) ** 2 / t


def over_squared_log(t):
    return 1 / np.log(t) ** 2


RATES = [squared_log_over_t, lambda t: 1 / np.log(t), over_squared_log, lambda t: 1 / t**2]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("level", [1e-9, 0.5, 2.0])
def test_a_value_that_stalls_at_any_level_fails_and_one_at_the_rate_holds(rate, level):
    assert check_order(STEP, np.full(len(STEP), level), rate).verdict == "fails"
    values = level * np.where(STEP > 1, rate(np.maximum(STEP, 2)), 1.0)
    check = check_order(STEP, values, rate)
    # the ratio is 1: the bound is the allowance alone, a quarter of the rate's change
    assert check.holds and check.value == pytest.approx(level, rel=1e-12)
    last = STEP[STEP <= 10**5][-1]
    change = math.log(rate(np.array(float(last))) / rate(np.array(1e6)))
    assert check.bound == pytest.approx(level * math.exp(change / 4), rel=1e-12)


@given(st.floats(0.1, 3.0), st.floats(0.0, 0.9))
def test_the_power_of_the_rate_that_is_still_taken(power, tolerance):
    """Values rate^power keep pace as far as power is at least 1 - tolerance; the smallest likewise
    as far as it is at most 1 + tolerance."""
    rate = 1 / STEP.astype(float)
    if min(abs(power - 1 + tolerance), abs(power - 1 - tolerance)) < 1e-6:
        return  # a tie that rounding decides
    above = check_order(STEP, rate**power, rate, tolerance=tolerance)
    below = check_order(STEP, rate**power, rate, ">=", tolerance=tolerance)
    # the largest ratio of a decade is at its end if power < 1 and at its beginning if power > 1,
    # and the records on both sides of a tenth of the run lie close together
    assert above.holds == (power >= 1 - tolerance)
    assert below.holds == (power <= 1 + tolerance)


def test_growth_can_be_claimed_too():
    norm = np.log(STEP + 1.0)
    assert check_order(STEP, norm, lambda t: np.log(t), ">=").holds
    assert not check_order(STEP, np.full(len(STEP), 3.0), lambda t: np.log(t), ">=").holds
    assert not check_order(STEP, norm, lambda t: t, ">=").holds


def test_only_the_last_two_decades_count_and_one_bad_record_is_enough():
    values = 1 / STEP.astype(float)
    early = np.where(STEP <= 10**4, 100.0, values)
    assert check_order(STEP, early, squared_log_over_t).holds
    late = values.copy()
    late[-3] = 0.1
    check = check_order(STEP, late, squared_log_over_t)
    assert not check.holds and check.step[check.values.argmax()] == STEP[-3]


def test_runs_and_their_tampered_twins():
    ngd, gd = run_O(NGD(0.5), 10**4), run_O(GD(0.5))
    assert check_order(ngd.step, ngd.W_alignment_error, squared_log_over_t).holds
    for sense in ("<=", ">="):
        assert check_order(gd.step, gd.W_alignment_error, over_squared_log, sense).holds
    for trace, rate, level in ((ngd, squared_log_over_t, 0.5), (gd, over_squared_log, 0.9)):
        stalled = tampered(trace, W_alignment_error=np.full(len(trace.step), level))
        assert check_order(stalled.step, stalled.W_alignment_error, rate).verdict == "fails"
    # NGD is too fast for GD's lower side, and GD too slow for NGD's rate
    assert not check_order(ngd.step, ngd.W_alignment_error, over_squared_log, ">=").holds
    assert not check_order(gd.step, gd.W_alignment_error, squared_log_over_t).holds


def test_a_nan_never_holds_and_rounding_is_allowed_for():
    values = 1 / STEP.astype(float)
    for place in (-1, np.searchsorted(STEP, 5 * 10**4)):
        broken = values.copy()
        broken[place] = math.nan
        assert check_order(STEP, broken, lambda t: 1 / t).verdict == "fails"
    early = values.copy()
    early[0] = math.nan  # the start has no direction
    assert check_order(STEP, early, lambda t: 1 / t).holds
    zero = np.where(STEP <= 10**5, 0.0, 1e-30)
    assert not check_order(STEP, zero, lambda t: 1 / t).holds
    assert check_order(STEP, zero, lambda t: 1 / t, rounding=1e-29).holds


def test_a_run_of_less_than_two_decades_is_not_judged():
    short = check_order([0, 50, 100], [1.0, 1.0, 1.0], [1.0, 0.5, 0.1])
    assert not short.applicable and "two decades" in short.reason


ONES = np.ones(len(STEP))
BAD = [
    (ShapeError, "one value a step", (STEP, ONES[:-1], ONES), {}),
    (ShapeError, "rate", (STEP, ONES, ONES[:-1]), {}),
    (RangeError, "increasing", (STEP[::-1], ONES, ONES), {}),
    (RangeError, "absolute", (STEP, -ONES, ONES), {}),
    (RangeError, "rate", (STEP, ONES, 0 * ONES), {}),
    (RangeError, "tolerance", (STEP, ONES, ONES), {"tolerance": 1.0}),
    (NonFiniteError, "tolerance", (STEP, ONES, ONES), {"tolerance": math.nan}),
]


@pytest.mark.parametrize("error, words, given, options", BAD)
def test_what_is_no_series_is_refused(error, words, given, options):
    with pytest.raises(error, match=words):
        check_order(*given, **options)


@pytest.mark.parametrize("name", ["step", "values", "rate", "rounding"])
@pytest.mark.parametrize("junk", [None, "word", 10**400, {1}, [[1], [1, 2]], np.array([1j]), int])
def test_junk_in_the_place_of_a_series_is_refused(name, junk):
    given = {"step": STEP, "values": 1 / STEP, "rate": 1 / STEP} | {name: junk}
    with pytest.raises(DtypeError, match=f"{name}: expected"):
        check_order(**given)


def test_a_rate_that_changes_by_more_than_float64_holds():
    rate = np.where(STEP > 10**5, 1e-300, 1e300)
    assert not check_order(STEP, np.full(len(STEP), 1.0), rate, tolerance=0.0).holds
    assert check_order(STEP, rate, rate, tolerance=0.9).holds
