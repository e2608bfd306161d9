"""Eq. 1 as a Module and as functions; its gradient in three forms and by autograd."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_data, random_start
from tolerances import AUTOGRAD, CLOSED_FORM

from attnbias import Loss, SelfAttention, make_example1, make_separation_pair
from attnbias.dynamics.problem import Problem
from attnbias.dynamics.softmax import softmax_state
from attnbias.geometry.tokens import gap_rows, optimal_tokens, token_scores
from attnbias.losses import LOGISTIC, as_loss
from attnbias.model import attention_logits, attention_map, empirical_risk, predict, risk_gradient

PROPERTY = settings(max_examples=25, deadline=None, derandomize=True)


def by_hand(data, W):
    """Eq. 1 with Python loops."""
    outputs = []
    for tokens, length in zip(data.X, data.lengths.tolist(), strict=True):
        logits = [float(x @ W @ tokens[0]) for x in tokens[:length]]
        powers = [math.exp(a) for a in logits]
        mixed = sum(p / sum(powers) * x for p, x in zip(powers, tokens[:length], strict=True))
        outputs.append(float(data.u @ mixed))
    return outputs


@st.composite
def problems(draw):
    n, T, d = (draw(st.integers(low, 4)) for low in (1, 2, 2))
    lengths = draw(st.lists(st.integers(2, T), min_size=n, max_size=n))
    data = random_data(n, T, d, seed=draw(st.integers(0, 10**6)), lengths=lengths)
    return data, random_start(data, draw(st.sampled_from([0.0, 0.5, 3.0])), 1)


@PROPERTY
@given(problems())
def test_equation_1_by_hand(problem):
    data, W = problem
    layer = SelfAttention(data.d, W=W, u=data.u)
    expected = pytest.approx(by_hand(data, W), rel=CLOSED_FORM, abs=CLOSED_FORM)
    assert predict(data.X, W, data.u, data.lengths).tolist() == expected
    assert layer(data.X, data.lengths).tolist() == expected
    maps = layer.attention(data.X, data.lengths)
    assert torch.allclose(maps.sum(1), torch.ones(data.n).double())
    assert (maps[~data.mask] == 0).all()
    assert (attention_logits(data.X, W, data.lengths)[~data.mask] == -math.inf).all()


def test_single_precision_data_take_the_matrix_of_a_double_precision_run():
    data = random_data(3, 3, 4, seed=1, lengths=[3, 2, 3])
    W, low = random_start(data, 0.5, 1), data.to(dtype=torch.float32)
    for function in (empirical_risk, risk_gradient, lambda d, W: attention_map(d.X, W, d.lengths)):
        found = function(low, W)
        assert found.dtype == torch.float64
        assert torch.allclose(found, function(data, W), atol=1e-6)
        assert function(low, W.float()).dtype == torch.float32


def test_padding_changes_nothing():
    short = random_data(2, 3, 4, seed=1)
    X = torch.cat([short.X, torch.full((2, 2, 4), 7.0).double()], dim=1)
    layer = SelfAttention(4, W=random_start(short, 1.0, 0), u=short.u)
    assert torch.equal(layer(short.X), layer(X, torch.tensor([3, 3])))


TAIL = Loss("tail", lambda z: -torch.log1p(z + 9), lambda z: -2 * torch.log1p(z + 9))


@pytest.mark.parametrize("loss", ["exponential", "logistic", TAIL])
def test_gradcheck_of_the_risk(loss):
    data = random_data(2, 3, 3, seed=0, lengths=[3, 2])
    W = random_start(data, 0.5, 0).requires_grad_()
    u = data.u.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda W, u: empirical_risk(data, W, u, loss), (W, u))


def weighted_sum(data, W, loss):
    """-grad L = mean over sequences of sum p z, with p from the log domain."""
    problem = Problem.of(data, as_loss(loss), W)
    gaps = torch.full_like(problem.scores.delta, torch.inf)
    gaps[problem.place] = problem.W.rows.gaps(W)
    state = softmax_state(gaps, problem.scores, problem.loss)
    p = (state.weights()[0] * state.weights()[1].exp())[problem.place]
    return -problem.W.rows.combine(p) / data.n


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@PROPERTY
@given(problem=problems())
def test_gradient_in_three_forms(problem, loss):
    """Autograd, the softmax's Jacobian, and the weighted sum of Eq. 14 without Assumption 2."""
    data, W = problem
    W = W.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(empirical_risk(data, W, loss=loss), W)
    scale = float(gradient.abs().max())
    for other in (risk_gradient(data, W.detach(), loss=loss), weighted_sum(data, W.detach(), loss)):
        assert torch.allclose(other, gradient, rtol=AUTOGRAD, atol=AUTOGRAD * max(scale, 1e-2))


def closed_form(data, W):
    """p = C_i exp(-gap) with C_i = l_i Delta_i softmax_i^2, right under Assumption 2."""
    rows, opt, scores = gap_rows(data), optimal_tokens(data), token_scores(data)
    phi = attention_map(data.X, W).gather(1, opt[:, None]).flatten()
    loss = torch.exp(-data.y * predict(data.X, W, data.u))
    Delta = scores.amax(1) - scores.amin(1)
    return rows.combine((loss * Delta * phi**2)[rows.sequence] * torch.exp(-rows.gaps(W))) / data.n


@pytest.mark.parametrize("equal", [True, False])
def test_closed_form_of_equation_14(equal):
    """The broken case: with unequal scores the same formula gives another number."""
    data = (
        make_example1(n=4, T=3, d=20, sigma=0.3, seed=1) if equal else random_data(2, 3, 6, seed=0)
    )
    W = random_start(data, 0.5, 0)
    closed, plain = closed_form(data, W), -risk_gradient(data, W)
    error = float((closed - plain).norm() / plain.norm())
    assert error < AUTOGRAD if equal else error > 0.01


def test_jacobian_form_fails_where_the_weighted_sum_does_not():
    """The broken case of float64: at gaps of 40 the plain gradient has lost the direction."""
    data, W = make_separation_pair(), torch.tensor([[40.0, 0.0], [0.0, 0.0]]).double()
    exact = -math.exp(-1 - 40)  # to 1e-17
    assert float(weighted_sum(data, W, "exponential")[0, 0]) == pytest.approx(
        exact, rel=CLOSED_FORM, abs=0
    )
    assert float(risk_gradient(data, W)[0, 0]) != pytest.approx(exact, rel=0.5, abs=0)


def test_module_parameters():
    assert SelfAttention(3).W.abs().max() == 0
    u = torch.ones(3, dtype=torch.float64)
    layer = SelfAttention(3, u=u)
    u += 1  # the layer has copied it
    assert layer.u.tolist() == [1, 1, 1]
    assert [name for name, p in layer.named_parameters() if p.requires_grad] == ["W"]
    assert SelfAttention(3, train_u=True).u.requires_grad
    assert layer.u.dtype == torch.float64
    assert SelfAttention(3, dtype=torch.float32).W.dtype == torch.float32
    assert repr(layer) == "SelfAttention(d=3, train_u=False)"
    again = SelfAttention(3)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again.u, layer.u)


def test_margin_and_loss():
    data = make_separation_pair()
    W = torch.zeros(2, 2).double()
    assert float(empirical_risk(data, W)) == pytest.approx(math.exp(-0.5), rel=CLOSED_FORM)
    assert float(empirical_risk(data, W, loss=LOGISTIC)) == pytest.approx(
        math.log1p(math.exp(-0.5)), rel=CLOSED_FORM
    )
    assert float(empirical_risk(data, W, u=2 * data.u)) == pytest.approx(math.exp(-1))
