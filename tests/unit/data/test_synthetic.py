"""Example 1, the pair of Section 3.3, and the data model (DM)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import FEW, seeds
from tolerances import CLOSED_FORM, INTERPOLATION, SAMPLED

from attnbias import (
    Dataset,
    InfeasibleError,
    load_binary_mnist,
    make_dm,
    make_example1,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
    token_scores,
)
from attnbias.geometry.tokens import resolve_opt

SEEDED = pytest.mark.parametrize("make", [make_example1, make_dm, load_binary_mnist])


@SEEDED
def test_the_seed_decides_everything_and_nothing_global_does(make):
    torch.manual_seed(1)
    one = make(seed=7)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    two, three = make(seed=7), make(seed=8)
    assert torch.equal(torch.get_rng_state(), state)
    for name in ("X", "y", "u", "opt"):
        a, b = getattr(one, name), getattr(two, name)
        assert a is b is None or torch.equal(a, b)
    assert not torch.equal(one.X, three.X)


@SEEDED
def test_position_of_the_optimal_token(make):
    for position, place in (("first", 0), ("last", 4)):
        assert resolve_opt(make(n=6, T=5, position=position)).tolist() == [place] * 6
    places = torch.bincount(resolve_opt(make(n=45, T=5)), minlength=5)
    assert places.min() >= 2  # 9 are expected


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


def test_decoder_is_the_smallest_interpolant():
    """u lies in the span of the tokens: anything across it would only add norm."""
    data = make_example1(n=3, T=3, d=40, seed=0)
    rows = data.X.reshape(-1, 40)
    inside = torch.linalg.lstsq(rows.T, data.u[:, None], driver="gelsd").solution
    assert torch.allclose(rows.T @ inside, data.u[:, None], rtol=0, atol=INTERPOLATION)


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


def split(data):
    """(n, d) optimal tokens and (n (T - 1), d) others."""
    is_opt = torch.nn.functional.one_hot(data.opt, data.T).bool()
    return data.X[is_opt], data.X[~is_opt]


def test_defaults_are_figure_3():
    data = make_dm()
    assert (data.n, data.T, data.d) == (10, 2, 100)
    assert dict(data.meta) == {
        "alpha": 3.0,
        "sigma": 0.1,
        "position": "random",
        "seed": 0,
        "d": 100,
        "span": False,
        "maker": "make_dm",
    }
    assert data.u is None and data.opt is not None


@FEW
@given(n=st.integers(1, 6), T=st.integers(2, 4), extra=st.integers(0, 20), seed=seeds)
def test_both_svms_can_be_solved(n, T, extra, seed):
    """With n T features the tokens are independent, so that every label and order is feasible."""
    data = make_dm(n, T, n * T + extra, seed=seed)
    assert float(solve_w_svm(data).margin) > 0
    assert float(solve_u_svm(data).margin) > 0
    assert resolve_opt(data).tolist() == data.opt.tolist()


@FEW
@given(n=st.integers(1, 5), T=st.integers(2, 4), seed=seeds, sigma=st.sampled_from([1e-3, 1, 50]))
def test_scale_of_all_tokens(n, T, seed, sigma):
    base, scaled = make_dm(n, T, 9, sigma=1.0, seed=seed), make_dm(n, T, 9, sigma=sigma, seed=seed)
    assert torch.allclose(scaled.X, sigma * base.X, rtol=CLOSED_FORM, atol=0)
    assert torch.equal(scaled.y, base.y) and torch.equal(scaled.opt, base.opt)


def test_deviation_of_each_kind():
    optimal, others = split(make_dm(n=180, T=3, d=400, alpha=2.5, sigma=0.3, seed=4))
    assert float(optimal.std()) == pytest.approx(0.75, rel=SAMPLED)
    assert float(others.std()) == pytest.approx(0.3, rel=SAMPLED)
    assert abs(float(optimal.mean())) < 0.01 and abs(float(others.mean())) < 0.005
    assert optimal.norm(dim=1).min() > others.norm(dim=1).max()


def test_one_seed_has_one_hyperplane():
    """Labels of two data sets of one seed are split by one u; those of two seeds are not."""

    def together(a, b):
        X = torch.cat([split(a)[0], split(b)[0]])[:, None].repeat(1, 2, 1)
        return Dataset(X, torch.cat([a.y, b.y]), opt=torch.zeros(len(X), dtype=torch.long))

    few = make_dm(n=300, T=2, d=3, seed=1)
    many = make_dm(n=200, T=4, d=3, seed=1)
    assert set(few.y.tolist()) == {-1.0, 1.0}
    assert float(solve_u_svm(together(few, many)).margin) > 0
    with pytest.raises(InfeasibleError):
        solve_u_svm(together(few, make_dm(n=200, T=4, d=3, seed=2)))


def gram_of_draws(span, d=12, draws=1000):
    """(6,) means and root mean squares of the products of a sequence's tokens, over 3 a draw."""
    values = []
    for seed in range(draws):
        X = make_dm(3, 3, d, alpha=2.0, sigma=1.0, position="first", span=span, seed=seed).X
        values.append((X @ X.mT)[:, torch.ones(3, 3).triu().bool()])
    values = torch.cat(values)
    return values.mean(0), values.square().mean(0).sqrt()


@pytest.mark.slow
def test_span_coordinates_have_the_law_of_the_tokens():
    d, sizes = 12, torch.tensor([4.0, 2, 2, 1, 1, 1])  # of the products, optimal token first
    norms = torch.tensor([1, 0, 0, 1, 0, 1]).bool()
    for span in (False, True):
        mean, root = gram_of_draws(span)
        exact = torch.where(norms, (d * (d + 2)) ** 0.5, d**0.5)  # of |x|^2 and <x, x'>
        assert torch.allclose(root / sizes, exact.double(), rtol=0.05)  # 3000 draws
        assert torch.allclose(mean / sizes, torch.where(norms, float(d), 0.0).double(), atol=0.4)


def test_span_coordinates_keep_the_label():
    data = make_dm(n=400, T=2, d=2000, span=True, seed=1)
    assert data.d == 801 and data.meta["d"] == 2000
    assert torch.equal(data.y, torch.where(split(data)[0][:, 0] >= 0, 1.0, -1.0).double())
    assert 150 < int((data.y > 0).sum()) < 250


def test_span_reaches_any_dimension():
    optimal, others = split(make_dm(n=5, d=10**15, alpha=2.0, sigma=1e-7, span=True))
    assert torch.allclose(optimal.norm(dim=1), torch.tensor(2e-7 * 1e15**0.5).double(), rtol=1e-5)
    assert torch.allclose(others.norm(dim=1), torch.tensor(1e-7 * 1e15**0.5).double(), rtol=1e-5)
