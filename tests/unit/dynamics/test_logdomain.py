"""The softmax in the log domain against multiprecision, over logit gaps of any size."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from tolerances import FUNCTION, LOG_SOFTMAX

from attnbias.dynamics.softmax import Scores, log_mean_loss, softmax_state
from attnbias.losses import EXPONENTIAL, LOGISTIC

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True)
gap = st.one_of(st.floats(-5, 5), st.floats(-900, 900))
delta = st.one_of(st.sampled_from([0.5, 1.0]), st.floats(1e-3, 10))
RISKS = {"exponential": lambda z: mp.exp(-z), "logistic": lambda z: mp.log1p(mp.exp(-z))}


@st.composite
def sequences(draw):
    """One sequence: top score, and (gap, delta) of each other token."""
    others = draw(st.lists(st.tuples(gap, delta), min_size=1, max_size=4))
    return draw(st.floats(-3, 3)), others


def exact_state(top, others, loss):
    """log(1 - softmax at opt), log S, and p of Eq. 14 in its general form, as mp numbers."""
    weights = [mpf(1)] + [mp.exp(-mpf(g)) for g, _ in others]
    phi = [weight / sum(weights) for weight in weights]
    scores = [mpf(top)] + [mpf(top) - mpf(d) for _, d in others]
    mean = sum(p * s for p, s in zip(phi, scores, strict=True))
    z = mean
    slope = mp.exp(-z) if loss is EXPONENTIAL else 1 / (1 + mp.exp(z))
    p = [slope * f * (mean - s) for f, s in zip(phi[1:], scores[1:], strict=True)]
    return 1 - phi[0], mpf(top) - mean, p, z


def padded(problems):
    """Gaps and scores of several sequences, padded as the engine pads them."""
    m = max(len(others) for _, others in problems)
    gaps = torch.full((len(problems), m), torch.inf, dtype=torch.float64)
    deltas = torch.zeros(len(problems), m, dtype=torch.float64)
    for i, (_, others) in enumerate(problems):
        for k, (g, d) in enumerate(others):
            gaps[i, k], deltas[i, k] = g, d
    tops = torch.tensor([top for top, _ in problems], dtype=torch.float64)
    return gaps, Scores(tops, deltas)


def close(found, expected) -> bool:
    expected = float(expected)
    return abs(float(found) - expected) <= LOG_SOFTMAX * max(1.0, abs(expected))


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC], ids=lambda loss: loss.name)
@PROPERTY
@given(problems=st.lists(sequences(), min_size=1, max_size=3))
def test_state_is_that_of_the_plain_softmax(loss, problems):
    gaps, scores = padded(problems)
    state = softmax_state(gaps, scores, loss)
    with mp.workdps(900):
        risks, excess = [], []
        for i, (top, others) in enumerate(problems):
            nonopt, lost, p, z = exact_state(top, others, loss)
            assert close(state.log_nonopt[i], mp.log(nonopt))
            assert close(state.log_S[i], mp.log(lost))
            sign, log_p = state.weights()
            for k, value in enumerate(p):
                if value == 0 or _cancels(others, k):
                    continue  # the weight itself is a difference of equals
                assert close(log_p[i, k], mp.log(abs(value)))
                assert float(sign[i, k]) == float(mp.sign(value))
            risk = RISKS[loss.name]
            risks.append(risk(z))
            excess.append(risk(z) - risk(mpf(top)))
        assert close(log_mean_loss(state), mp.log(sum(risks) / len(risks)))
        assert close(state.log_gap(), mp.log(sum(excess) / len(excess)))


def _cancels(others, k) -> bool:
    """Whether c_k is small against its own terms, so that no float64 formula can hold it."""
    terms = [mpf(others[k][1])] + [
        mp.exp(-mpf(g)) * (mpf(others[k][1]) - mpf(d)) for g, d in others
    ]
    return abs(sum(terms)) < mpf("0.01") * max(abs(term) for term in terms)


@pytest.mark.parametrize("size", [40.0, 800.0, 1e5, 1e12])
def test_saturated_on_the_optimal_token(size):
    """Gaps far beyond float64's exponents: the weights are exp(-gap), nothing is 0 or NaN."""
    gaps, scores = padded([(1.0, [(size, 1.0), (size + 2, 1.0)])])
    state = softmax_state(gaps, scores, EXPONENTIAL)
    tail = math.log1p(math.exp(-2))
    assert float(state.log_nonopt) == pytest.approx(-size + tail, rel=FUNCTION)
    assert float(state.log_S) == pytest.approx(-size + tail, rel=FUNCTION)
    log_p = state.weights()[1].flatten().tolist()
    assert log_p == pytest.approx([-size - 1, -size - 3], rel=FUNCTION)
    assert float(state.log_gap()) == pytest.approx(-size - 1 + tail, rel=FUNCTION)
    assert float(log_mean_loss(state)) == -1.0


@pytest.mark.parametrize("size", [40.0, 800.0, 1e5])
def test_saturated_on_a_wrong_token(size):
    """The plain difference (score gap - lost score) would cancel; the weight is exp(-size)."""
    gaps, scores = padded([(1.0, [(-size, 1.0), (0.0, 1.0)])])
    state = softmax_state(gaps, scores, EXPONENTIAL)
    assert float(state.log_nonopt) == pytest.approx(0.0, abs=LOG_SOFTMAX)
    # c = Delta phi_opt for both; phi = (1, exp(-size)); the loss is 1
    sign, log_p = (each.flatten().tolist() for each in state.weights())
    assert log_p == pytest.approx([-size, -2 * size], rel=LOG_SOFTMAX) and sign == [1, 1]
    # held by the worst token, the better of the other two gains: its weight is negative
    worst, scores = padded([(1.0, [(-30.0, 2.0), (0.0, 1.0)])])
    assert softmax_state(worst, scores, EXPONENTIAL).weights()[0].flatten().tolist() == [1, -1]


def test_equal_scores_never_cancel():
    """Assumption 2: c = Delta phi_opt for every token, whatever the gaps."""
    gaps, scores = padded([(1.0, [(-300.0, 0.7), (-299.0, 0.7), (5.0, 0.7)])])
    state = softmax_state(gaps, scores, EXPONENTIAL)
    log_opt = -torch.logsumexp(torch.cat([torch.zeros(1), -gaps[0]]), 0)
    expected = -(1.0 - state.log_S.exp()) - gaps[0] + math.log(0.7) + 2 * log_opt
    assert torch.allclose(state.weights()[1][0], expected, rtol=1e-13, atol=0)


def test_padding_carries_nothing():
    alone, scores = padded([(0.5, [(1.0, 0.5)])])
    beside, both = padded([(0.5, [(1.0, 0.5)]), (0.5, [(1.0, 0.5), (2.0, 0.3), (-1.0, 0.2)])])
    one, two = softmax_state(alone, scores, LOGISTIC), softmax_state(beside, both, LOGISTIC)
    for name in ("log_nonopt", "log_S"):
        assert getattr(two, name)[0] == getattr(one, name)[0]
    assert two.weights()[1][0, 0] == one.weights()[1][0, 0]
    assert (two.weights()[1][0, 1:] == -math.inf).all()
