"""How long a run feels an idle constraint: closed forms, the law, and runs."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from tolerances import (
    ASYMPTOTIC,
    CLOSED_FORM,
    PRINTED_TWO_RELATIVE,
    SVM_CLOSED_FORM,
)

from attnbias import (
    GD,
    NGD,
    Dataset,
    make_example1,
    solve_w_svm,
    train,
)
from attnbias.beyond.exponents.geometry import slack_law, triple_bracket, triple_offset
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import AttnBiasError
from attnbias.geometry.constants import limit_offset
from attnbias.geometry.slack import (
    least_slack,
    plant_slack,
)


def one_idle_row(slack):
    """All rows of the tokens before planting support W_mm, so the planted one alone is idle."""
    return plant_slack(make_example1(5, 4, 60, sigma=0.1, seed=2), slack, seed=2)


def across(trace):
    error = trace.W_alignment_error
    return trace.W_norm * np.sqrt(error * (2 - error))


@pytest.mark.parametrize("slack", [1.0, 0.1, 0.01])
def test_frozen_offset_of_the_triple(slack):
    """Small steps end at the closed form, with an error in proportion to their length."""
    data, ends = make_degenerate(-slack), {}
    for eta in (0.1, 0.01):
        ends[eta] = across(train(data, NGD(eta), int(40 / slack / eta), record=2))[-1]
        low, high = triple_bracket(slack, eta)
        assert low < ends[eta] < high
    coarse, fine = (ends[eta] - triple_offset(slack) for eta in (0.1, 0.01))
    assert 0 < fine < ASYMPTOTIC and abs(coarse / fine / 10 - 1) < 0.2


def test_the_triple_follows_its_curve():
    """(1 - exp(-delta q)) / delta = (exp(k P) - 1) / k along a run of small steps, GD's too."""
    slack, k = 0.1, 1 + 0.1 + 0.01
    for rule, steps in ((NGD(1e-3), 20000), (GD(1e-2), 10**5)):
        gaps = train(make_degenerate(-slack), rule, steps, record=30).gaps[1:]
        c, P = gaps[:, 0], gaps[:, 1] - (1 + slack) * gaps[:, 0]
        left = -np.expm1(-slack * (c - (1 + slack) * P)) / slack
        np.testing.assert_allclose(left, np.expm1(k * P) / k, rtol=ASYMPTOTIC)


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0])
def test_bracket_of_the_triple(eta):
    for slack in (3.0, 0.3, 0.02):
        end = across(train(make_degenerate(-slack), NGD(eta), int(60 / slack / eta), record=2))[-1]
        low, high = triple_bracket(slack, eta)
        assert low < end < high


def test_bracket_refuses_the_degenerate_triple():
    """The broken case: without slack the offset outgrows the bracket of a slack, and stays so."""
    end = across(train(make_degenerate(), NGD(0.5), 10**5, record=2))[-1]
    assert end > triple_bracket(0.02, 0.5)[1]


def test_law_of_the_triple():
    law = slack_law(make_degenerate(-0.01))
    assert (law.settled, law.margin, law.n) == (0.0, 1.0, 1)
    assert abs(law.spread - 1) <= SVM_CLOSED_FORM
    assert abs(law.slack - 0.01) <= SVM_CLOSED_FORM
    assert abs(law.log_push) <= CLOSED_FORM and abs(law.log_factor + 1) <= CLOSED_FORM
    assert abs(law.limit - math.log1p(100)) <= CLOSED_FORM
    assert slack_law(make_degenerate()).limit == math.inf
    assert slack_law(make_degenerate(0.2)) is None  # no idle row
    for slack in (1e-3, 1e-5):
        neglected = slack * math.log(1 / slack)
        assert abs(slack_law(make_degenerate(-slack)).limit - triple_offset(slack)) < 2 * neglected


def test_exponent_is_the_slope_of_the_offset():
    law = slack_law(one_idle_row(0.01))
    for height in (3.0, 70.0, 400.0):
        step = 1e-5
        pair = np.log(law.offset(height * np.exp([-step, step])) / height)
        slope = (pair[1] - pair[0]) / (2 * step)
        assert abs(law.exponent(height) - (2 * slope - 2)) < 1e-8
    settled = law.settled_height(0.05)
    later = law.exponent(np.geomspace(settled, 100 * settled, 500))
    assert (np.abs(later + 2) <= 0.05).all() and law.exponent(0.99 * settled) > -1.95
    assert dataclasses.replace(law, slack=0.0).settled_height() == math.inf
    assert dataclasses.replace(law, log_push=-30.0).settled_height() == 0.0
    assert 0 < dataclasses.replace(law, log_push=1e4).limit < math.inf  # beyond float range
    tiny = dataclasses.replace(law, slack=1e-14)
    assert abs(tiny.offset(50.0) - dataclasses.replace(law, slack=0.0).offset(50.0)) < 1e-10


@pytest.mark.parametrize("slack", [0.03, 0.01, 0.003])
def test_law_against_runs(slack):
    """Frozen offset, and the step from which the local exponent stays within 0.05 of -2."""
    data, eta = one_idle_row(slack), 0.1
    solution = solve_w_svm(data)
    law = slack_law(data, solution)
    scale = solution.norm / (slack * eta)  # where the idle row's weight is 1/e
    steps = int(20 * scale)
    trace = train(data, NGD(eta), steps, svm=solution, record=120)
    neglected = slack * math.log(1 / slack)
    assert abs(across(trace)[-1] - law.limit) < 2 * neglected
    assert abs(across(trace)[-1] - law.settled) > 1  # what the supporting rows leave is not it
    late = trace.step >= 100
    t, error = np.log(trace.step[late]), np.log(trace.W_alignment_error[late])
    middle, slope = (t[1:] + t[:-1]) / 2, np.diff(error) / np.diff(t)
    reached = math.exp(middle[np.flatnonzero(slope > -1.95)[-1]])
    assert abs(reached / law.ngd_step(eta) - 1) < 2 * PRINTED_TWO_RELATIVE
    assert 1 < reached / scale < 5


def test_gd_takes_exponentially_long():
    """Tenfold slack below one: ten times the logarithm, up to the law's slow factor."""
    laws = {slack: slack_law(make_degenerate(-slack)) for slack in (0.5, 0.05)}
    ratio = laws[0.05].log_gd_step(0.5) / laws[0.5].log_gd_step(0.5)
    assert 6 < ratio < 10
    data = make_degenerate(-1.0)
    trace = train(data, GD(0.5), 10**5, record=120)
    path = np.log(trace.path_length[trace.step > 20])
    slope = np.diff(np.log(trace.W_alignment_error[trace.step > 20])) / np.diff(path)
    step = trace.step[trace.step > 20][np.flatnonzero(slope > -1.95)[-1]]
    assert abs(math.log(step) - slack_law(data).log_gd_step(0.5)) < 1


def test_the_settled_part_is_limit_offset():
    """Which sees the supporting rows alone."""
    data = one_idle_row(0.01)
    assert abs(slack_law(data).settled / limit_offset(data, solve_w_svm(data)) - 1) <= CLOSED_FORM


def test_no_law_for_two_idle_rows_or_a_row_in_the_span():
    twice = make_degenerate(-0.1)
    tokens = torch.cat([twice.X, twice.X[:, 2:]], dim=1)
    assert slack_law(Dataset(tokens, twice.y, twice.u)) is None
    inside = Dataset([[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]], [1], u=[1.0, 0.0])
    assert least_slack(inside) == pytest.approx(1.0, rel=1e-15)  # the dual is solved, not given
    assert slack_law(inside) is None


@pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf, "x"])
def test_malformed_numbers(value):
    law = slack_law(make_degenerate(-0.1))
    for call in (
        lambda: law.ngd_step(value),
        lambda: law.log_gd_step(value),
        lambda: law.settled_height(value),
        lambda: triple_offset(value),
        lambda: triple_bracket(value, 0.1),
        lambda: triple_bracket(0.1, value),
    ):
        with pytest.raises(AttnBiasError):
            call()
