"""The data sets on which a hypothesis fails, and the rate without strict complementarity."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW
from orthonormal import decades, tampered
from tolerances import CLOSED_FORM, SVM_CLOSED_FORM

from attnbias import (
    GD,
    NGD,
    Dataset,
    check_assumption1,
    check_assumption2,
    fit_rate,
    make_bad_start,
    optimal_tokens,
    solve_w_svm,
    token_scores,
    train,
)
from attnbias.data.degenerate import make_degenerate, make_two_sample_trap
from attnbias.geometry.constants import token_constants
from attnbias.geometry.tokens import gap_rows
from attnbias.theorems.run import TraceView
from attnbias.theorems.sharper.fast_rate import TRIPLE, check_degenerate_rate


def degenerate_run(steps=10**6, **settings):
    return train(make_degenerate(), NGD(0.5), steps, **settings)


@pytest.fixture(scope="module")
def long_run():
    return degenerate_run()


# the data


@pytest.mark.parametrize(
    "slope, dual, strict",
    [(0.0, (1, 0), False), (0.2, (0.84, 0.2), True), (-0.2, (1, 0), True), (2.0, (3, 2), True)],
)
def test_duals_in_closed_form(slope, dual, strict):
    """K = ((1, 1 - s), (1 - s, (1 - s)^2 + 1)) has determinant 1."""
    data = make_degenerate(slope)
    svm = solve_w_svm(data)
    np.testing.assert_allclose(svm.dual, dual, atol=SVM_CLOSED_FORM)
    assert svm.strictly_complementary is strict
    assert check_assumption2(data).all_hold


def test_trap_has_the_printed_constants():
    data = make_two_sample_trap()
    svm = solve_w_svm(data)
    constants = token_constants(data, svm=svm)
    assert svm.rows.gram().tolist() == [[20, -12], [-12, 8]]
    np.testing.assert_allclose(svm.dual, [1.25, 2], rtol=CLOSED_FORM)
    assert constants.Xi == pytest.approx(1 / math.sqrt(3.25), rel=CLOSED_FORM)
    assert constants.log_kappa == pytest.approx(4, rel=CLOSED_FORM)
    assert check_assumption2(data).all_hold and not check_assumption1(data).all_hold


@pytest.mark.parametrize(
    "rule, scores, cosine",
    [
        (NGD(0.1), {1: 0.399, 10: 0.0260, 100: 1.2e-18, 1000: 1.7e-184}, 0.1964),
        (GD(0.1), {1: 0.347, 20000: 1.1e-6}, 0.346),
    ],
    ids=repr,
)
def test_training_in_the_trap_never_turns(rule, scores, cosine):
    trace = train(make_two_sample_trap(), rule, 20000, record=[0, *scores, 10**4, 20000])
    found = dict(zip(trace.step.tolist(), trace.least_opt_score, strict=True))
    assert found[0] == 0.5
    for step, score in scores.items():
        # two digits are printed, and half of the last of 1.1e-6 is 5%
        assert found[step] == pytest.approx(score, rel=0.05)
    assert 1 - trace.W_alignment_error[-1] == pytest.approx(cosine, abs=6e-4)
    assert 1 - trace.W_alignment_error[-2] == pytest.approx(cosine, abs=0.02)


# the triple


def test_printed_offsets():
    trace = degenerate_run(record=decades(6))
    run = TraceView(make_degenerate(), trace)
    printed = [1.5024, 3.8626, 6.2062, 8.5160, 10.8196, 13.1223]
    np.testing.assert_allclose(run.across[2:], printed, atol=6e-5)
    lag = run.across[2:] - np.log(0.5 * trace.step[2:])
    np.testing.assert_allclose(lag, [-0.107, -0.049, -8e-3, -1.2e-3, -1.5e-4, -1.9e-5], rtol=0.07)


def test_brackets_hold_over_six_decades(long_run):
    table = check_degenerate_rate(make_degenerate(), long_run)
    assert table.all_hold and len(table) == len(TRIPLE)
    assert all(check.step[-1] == 10**6 for check in table)
    # the limit (log t)^2 / (2 eta^2 t^2), to the last five digits shown
    assert "at the end 1" in table[4].reason
    # the exponent is 2 - 2 / log(eta t): the logarithm shows over any window
    fit = fit_rate(long_run.step, long_run.W_alignment_error, (10**4, 10**6))
    assert fit.exponent == pytest.approx(-2 + 2 / math.log(0.5 * 10**5), abs=5e-3)
    assert fit.interval[0] > -1.85


@FEW
@given(eta=st.floats(0.01, 5), angle=st.floats(0, 6.28))
def test_brackets_hold_for_any_step_in_any_rotation(eta, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
    plain = make_degenerate()
    data = Dataset(plain.X @ turn, plain.y, plain.u @ turn)
    assert check_degenerate_rate(data, train(data, NGD(eta), 3000)).all_hold


def test_first_step_attains_the_lower_side_and_any_step_size_will_do():
    """From P = 0: c_1 = 2 eta / sqrt 5 and P_1 = eta / sqrt 5."""
    run = TraceView(make_degenerate(), degenerate_run(1))
    assert run.along[1] == pytest.approx(1 / math.sqrt(5), rel=CLOSED_FORM)
    assert run.across[1] == pytest.approx(0.5 / math.sqrt(5), rel=1e-9)
    # the upper bracket's e^eta is kept as a logarithm
    assert check_degenerate_rate(run.data, train(run.data, NGD(1e4), 100)).all_hold


def test_tampered_runs_are_refused(long_run):
    def failing(**changes):
        table = check_degenerate_rate(make_degenerate(), tampered(long_run, **changes))
        return [j for j, check in enumerate(table) if not check.holds]

    assert failing() == []
    assert failing(W_alignment_error=0.5) == [0, 4]
    assert failing(W_alignment_error=1.5) == [1, 5]
    assert failing(gaps=0.8) == [2]
    assert failing(gaps=1.01) == [3]


def test_a_step_size_whose_exponential_overflows():
    """The upper bracket's e^eta is kept as a logarithm."""
    data = make_degenerate()
    assert check_degenerate_rate(data, train(data, NGD(1e4), 100)).all_hold


# Figure 8's start


@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0, 1e10])
def test_start_violates_the_first_constraint_only(scale):
    data, W0 = make_bad_start(scale)
    assert (data.n, data.T, data.d) == (2, 2, 2)
    assert data.y.tolist() == [1, -1]
    assert float(W0.norm()) == pytest.approx(scale, rel=CLOSED_FORM)
    gaps = gap_rows(data).gaps(W0)
    assert gaps.tolist() == pytest.approx([-scale / 2**0.5, 1.44 * scale / 2**0.5], rel=CLOSED_FORM)


def test_first_token_is_query_and_optimal():
    data, _ = make_bad_start()
    assert optimal_tokens(data).tolist() == [0, 0]
    assert token_scores(data).flatten().tolist() == pytest.approx([1, -1, 0.8, -1.2])
    assert float(solve_w_svm(data).margin) > 0.9  # feasible, so that the start can be mended


def mended(rule, scale):
    """First step at which sequence 1 looks at its optimal token."""
    data, W0 = make_bad_start(scale)
    trace = train(data, rule, 100, W0=W0, record=range(101))
    return int(trace.step[(trace.gaps[:, 0] > 0).argmax()])


def test_steps_until_the_right_token_has_half_the_attention():
    """GD waits exponentially long in the scale, NGD linearly."""
    scales = (0.1, 1, 2, 4, 8)
    assert [mended(GD(1.0), scale) for scale in scales] == [1, 2, 3, 7, 60]
    assert [mended(NGD(0.1), scale) for scale in scales] == [1, 6, 11, 21, 41]


def test_both_rules_end_right():
    data, W0 = make_bad_start(8.0)
    for rule in (GD(1.0), NGD(0.1)):
        trace = train(data, rule, 3000, W0=W0)
        assert (trace.gaps[-1] > 0).all()
        assert trace.W_alignment_error[-1] < trace.W_alignment_error[0] / 2
