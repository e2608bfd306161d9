"""Example 1 and the pair of Section 3.3."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import CLOSED_FORM, INTERPOLATION, SAMPLED

from attnbias import make_example1, make_separation_pair, optimal_tokens, solve_w_svm, token_scores


@st.composite
def sizes(draw):
    n, T = draw(st.integers(1, 8)), draw(st.integers(2, 5))
    return n, T, n * (T - 1) + 2 + draw(st.integers(0, 30))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(sizes(), st.integers(0, 10**6), st.sampled_from([0.05, 1.0, 20.0]))
def test_example1_satisfies_assumption_2_exactly(size, seed, sigma):
    n, T, d = size
    data = make_example1(n, T, d, sigma=sigma, seed=seed)
    assert (data.n, data.T, data.d) == size
    scores, opt = token_scores(data), optimal_tokens(data)
    top = scores.gather(1, opt[:, None])
    others = scores.masked_fill(torch.nn.functional.one_hot(opt, T).bool(), 0.0)
    assert torch.allclose(top, torch.ones_like(top), rtol=INTERPOLATION)
    assert others.abs().max() < INTERPOLATION
    for row, best in zip(scores.tolist(), opt.tolist(), strict=True):
        assert len({value for t, value in enumerate(row) if t != best}) == 1


def test_example1_has_two_orthogonal_means():
    data = make_example1(n=9, T=4, d=100, sigma=0.3, seed=2)
    opt = data.X[torch.arange(9), optimal_tokens(data)]
    plus, minus = opt[data.y > 0], opt[data.y < 0]
    assert (plus == plus[0]).all() and (minus == minus[0]).all()
    signal = 0.3 * math.sqrt(100)
    assert float(plus[0].norm()) == pytest.approx(signal, rel=CLOSED_FORM)
    assert float(minus[0].norm()) == pytest.approx(signal, rel=CLOSED_FORM)
    assert abs(float(plus[0] @ minus[0])) < CLOSED_FORM
    assert sorted(data.y.tolist()) == [-1] * 4 + [1] * 5


def test_example1_noise_has_the_given_deviation():
    data = make_example1(n=20, T=10, d=400, sigma=0.3, seed=0)
    noise = torch.ones(20, 10, dtype=torch.bool).scatter(1, optimal_tokens(data)[:, None], False)
    values = data.X[noise]
    assert float(values.std()) == pytest.approx(0.3, rel=SAMPLED)
    assert abs(float(values.mean())) < 0.01


def test_position_of_the_optimal_token():
    for position, place in (("first", 0), ("last", 4)):
        data = make_example1(n=6, T=5, d=26, position=position, seed=0)  # the least d
        assert optimal_tokens(data).tolist() == [place] * 6
    assert len(set(optimal_tokens(make_example1(n=20, T=5, d=100, seed=0)).tolist())) == 5


def test_scores_as_asked():
    data = make_example1(n=4, T=3, d=30, opt_score=2.5, other_score=-1.0, seed=0)
    scores = token_scores(data)
    assert torch.allclose(scores.amax(1), torch.full((4,), 2.5).double(), rtol=INTERPOLATION)
    assert torch.allclose(scores.amin(1), torch.full((4,), -1.0).double(), rtol=INTERPOLATION)


def test_decoder_is_the_smallest_interpolant():
    """u lies in the span of the tokens: anything across it would only add norm."""
    data = make_example1(n=3, T=3, d=40, seed=0)
    rows = data.X.reshape(-1, 40)
    inside = torch.linalg.lstsq(rows.T, data.u[:, None], driver="gelsd").solution
    assert torch.allclose(rows.T @ inside, data.u[:, None], rtol=0, atol=INTERPOLATION)


def test_seed_decides_everything_and_nothing_global_does():
    torch.manual_seed(1)
    one = make_example1(seed=7)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    two, three = make_example1(seed=7), make_example1(seed=8)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.X, two.X) and torch.equal(one.u, two.u)
    assert not torch.equal(one.X, three.X)


def test_meta_makes_the_data_again():
    data = make_example1(n=4, T=3, d=20, sigma=0.2, signal=3.0, seed=5)
    kept = dict(data.meta)
    assert kept.pop("maker") == "make_example1"
    assert torch.equal(make_example1(4, 3, 20, **kept).X, data.X)


def test_separation_pair_is_that_of_section_3_3():
    data = make_separation_pair()
    assert data.X.tolist() == [[[1, 0], [0, 0]]]
    assert (data.y.tolist(), data.u.tolist()) == ([1], [1, 0])
    assert token_scores(data).tolist() == [[1, 0]]
    svm = solve_w_svm(data)
    assert torch.allclose(svm.weights, torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double())
    assert svm.margin == pytest.approx(1.0, rel=CLOSED_FORM)
