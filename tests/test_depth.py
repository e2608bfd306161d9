"""Two layers: gradients, the pair's invariant and separatrix, leads, cues, and bad input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import ASYMPTOTIC, CLOSED_FORM, INTERPOLATION, SVM_CLOSED_FORM

from attnbias import (
    GD,
    NGD,
    Dataset,
    Polyak,
    make_separation_pair,
    optimal_tokens,
    solve_w_svm,
    token_scores,
)
from attnbias.beyond.depth.checks import (
    check_longest_leads,
    check_pair_invariant,
    check_two_layers,
)
from attnbias.beyond.depth.data import make_cue_pair, make_token_pairs, make_two_hop
from attnbias.beyond.depth.dynamics import train_two_layers
from attnbias.beyond.depth.geometry import (
    expected_gap,
    layer_potential,
    pair_coordinates,
    predicted_selection,
    separatrix,
)
from attnbias.beyond.depth.plots import plot_depth
from attnbias.beyond.depth.queries import (
    contrary_pairs,
    query_margins,
    query_selections,
    selected_queries,
    solve_query_svm,
)
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.errors import (
    AttnBiasError,
    DtypeError,
    InfeasibleError,
    NonFiniteError,
    RangeError,
    ShapeError,
)

SHARED = {"normalise": "shared"}


def gaussian(size, seed):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain_loss(data, W, loss="exponential"):
    """The same model in plain torch, for autograd."""
    a = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W[0], data.X[:, 0]), 1)
    q = torch.einsum("nt,ntd->nd", a, data.X)
    b = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W[1], q), 1)
    margin = data.y * torch.einsum("nt,ntd,d->n", b, data.X, data.u)
    values = {"exponential": torch.exp(-margin), "logistic": torch.nn.functional.softplus(-margin)}
    return values[loss].mean()


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_gradients_against_autograd(loss):
    data = Dataset(gaussian((4, 3, 15), 0), [1, -1, 1, -1], gaussian(15, 1))
    W0 = 0.3 * gaussian((2, 15, 15), 2)
    W = W0.clone().requires_grad_()
    value = plain_loss(data, W, loss)
    (gradient,) = torch.autograd.grad(value, W)
    run = train_two_layers(data, GD(0.1), 1, W0=W0, loss=loss)
    assert np.abs((run.W[0] - run.W[1]) / 0.1 - gradient.numpy()).max() < CLOSED_FORM
    assert abs(run.loss[0] - float(value.detach())) < CLOSED_FORM
    sizes = np.linalg.norm(gradient.numpy(), axis=(1, 2))
    assert np.abs(np.exp(run.log_grad_norm[0]) / sizes - 1).max() < CLOSED_FORM
    whole = train_two_layers(data, NGD(0.1, **SHARED), 1, W0=W0, loss=loss)
    assert np.linalg.norm(whole.W[1] - whole.W[0]) == pytest.approx(0.1)
    own = train_two_layers(data, NGD(0.1), 1, W0=W0, loss=loss)
    assert np.linalg.norm(own.W[1] - own.W[0], axis=(1, 2)) == pytest.approx([0.1, 0.1])


def test_directions_stay_exact_where_both_softmaxes_have_saturated():
    """Far out the gradient's direction is that of one row in each layer."""
    data = make_token_pairs(1, 2.0, 0.3)
    apart = data.X[0, 1] - data.X[0, 0]
    W0 = torch.stack([100 * torch.outer(apart, data.X[0, 0]), 100 * torch.outer(apart, apart)])
    run = train_two_layers(data, NGD(1.0), 3, W0=W0)
    steps = run.W[1:] - run.W[:-1]
    first = torch.outer(apart, data.X[0, 0]).numpy()
    second = torch.outer(apart, data.X[0, 1]).numpy()
    for step in steps:
        assert np.abs(step[0] - first / np.linalg.norm(first)).max() < CLOSED_FORM
        assert np.abs(step[1] - second / np.linalg.norm(second)).max() < CLOSED_FORM
    assert run.log_grad_norm[0].max() < -100 and np.isfinite(run.log_grad_norm).all()


def test_a_frozen_first_layer_leaves_the_papers_layer():
    """Layer one at zero asks with the mean token: the one layer of data with that first token."""
    data = make_two_hop(seed=1)
    mean = data.X.mean(dim=1)
    two = train_two_layers(data, NGD(0.5), 400, frozen=1)
    assert np.abs(two.W[:, 0]).max() == 0
    svm = solve_query_svm(data, mean)
    assert two.alignment_error(2, svm.weights)[-1] < ASYMPTOTIC
    other = solve_w_svm(data)
    assert two.alignment_error(2, other.weights)[-1] > 0.05
    # where layer one has saturated on the first token, this is one head
    pair = make_token_pairs(1, 2.0)
    W0 = torch.stack([1e3 * torch.outer(pair.X[0, 0] - pair.X[0, 1], pair.X[0, 0]), 0 * pair.X[0]])
    one = train_heads(pair, pair.u[None], NGD(0.2), 50)
    run = train_two_layers(pair, NGD(0.2), 50, W0=W0, frozen=1)
    assert np.abs(run.W[-1, 1] - one.W[-1, 0]).max() < CLOSED_FORM * 100


def test_query_svm_with_first_tokens_is_the_papers():
    data = make_two_hop(seed=0)
    same = solve_query_svm(data, data.X[:, 0])
    assert (same.weights - solve_w_svm(data).weights).abs().max() < INTERPOLATION


def test_leads_are_derivatives_of_the_norm():
    data, h = make_two_hop(seed=2), 1e-5
    tokens = torch.tensor([0, 2, 1])
    queries = selected_queries(data, tokens)
    leads = query_margins(data, solve_query_svm(data, queries), tokens)
    for i, t in ((0, 1), (1, 0), (2, 2)):
        moved = [queries.clone(), queries.clone()]
        for sign, each in zip((-1, 1), moved, strict=True):
            each[i] += sign * h * (data.X[i, t] - queries[i])
        low, high = (solve_query_svm(data, each).norm ** 2 / 2 for each in moved)
        assert -(high - low) / (2 * h) == pytest.approx(float(leads[i, t]), rel=1e-4)
    with pytest.raises(ShapeError):
        query_margins(data, solve_query_svm(data, queries), [1, 1, 1])


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0])
def test_cue_pair_in_closed_form(length):
    data = make_cue_pair(length)
    assert optimal_tokens(data).tolist() == [1, 0] and contrary_pairs(data) == [(0, 1)]
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(data)
    expected = torch.tensor([0, 0, 0.5, 0.5]).double()
    assert (caught.value.certificate.sort().values - expected).abs().max() < SVM_CLOSED_FORM
    square = length**2
    expected = 2 * (1 + square) / (square * (1 + 2 * square))
    svm = solve_query_svm(data, selected_queries(data, [2, 2]))
    assert abs(svm.norm**2 / expected - 1) < 100 * SVM_CLOSED_FORM
    found = query_selections(data)
    assert len(found) == 7  # the two with equal queries are infeasible in layer two
    assert all(each.first is None or 2 in each.tokens for each in found)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), size=st.sampled_from([0.1, 3.0, 30.0]))
def test_one_layer_stays_above_the_loss_at_zero_on_the_cue_pair(seed, size):
    data = make_cue_pair()
    logits = data.X @ (size * gaussian((4, 4), seed)) @ data.X[0, 0]
    scores = (torch.softmax(logits, dim=1) * token_scores(data)).sum(dim=1)
    assert scores.sum() < CLOSED_FORM and torch.exp(-scores).mean() > 1 - CLOSED_FORM


def test_two_layers_serve_the_cue_pair():
    data = make_cue_pair()
    run = train_two_layers(data, NGD(0.3), 300)
    assert run.loss[-1] == pytest.approx((1 + math.exp(-1)) / 2)
    assert run.selected.tolist() == [2, 2] and check_two_layers(data, run).all_hold
    one = train_two_layers(data, NGD(0.3), 300, frozen=1)  # layer one averages: still a cue
    assert one.loss[-1] == pytest.approx((1 + math.exp(-1)) / 2)


@settings(max_examples=30, deadline=None)
@given(w=st.floats(-6, 6), A=st.floats(0.1, 5), B=st.floats(0.1, 5), query=st.floats(0.2, 3))
def test_separatrix_is_a_level_through_the_saddle(w, A, B, query):
    delta = separatrix(w, A, B, query)
    saddle = math.log(B / A)
    level = query**2 * delta**2 / 2 - layer_potential(w, A, B)
    assert level == pytest.approx(-layer_potential(saddle, A, B), rel=1e-9, abs=1e-9)
    assert delta * (w - saddle) <= 0
    # two tokens exchanged
    assert separatrix(-w, B, A, query) == pytest.approx(-delta, abs=1e-6)


def test_invariant_is_kept_by_small_steps_with_one_norm_alone():
    data = make_token_pairs(1, 1.5, 0.4)
    W0 = torch.stack([0.5 * gaussian((2, 2), 3), gaussian((2, 2), 4)])
    for rule in (NGD(0.005, **SHARED), GD(0.02)):
        assert check_pair_invariant(data, train_two_layers(data, rule, 400, W0=W0)).all_hold
    assert not check_pair_invariant(data, train_two_layers(data, NGD(0.02), 400, W0=W0)).all_hold


@pytest.mark.parametrize(("other", "cosine"), [(1.3, 0.0), (1.5, 0.8), (0.7, -0.3)])
def test_every_start_ends_where_the_separatrix_says(other, cosine):
    data = make_token_pairs(12, other, cosine)
    W0 = gaussian((2, 24, 24), 5) * torch.tensor([1.0, 2.0])[:, None, None]
    run = train_two_layers(data, NGD(0.8, **SHARED), 500, W0=W0)
    w, delta = pair_coordinates(data, run.W)
    assert (predicted_selection(data, W0) == run.selected).all()
    assert run.attention[-1].min() > 0.95
    # the broken case: the rule that looks at layer one's start alone
    if cosine == 0:
        assert ((w[0] < 0) != run.selected.numpy()).any()
    if cosine == 0.8:
        assert (run.selected == 1).all() and w[0].max() > 0


def test_layer_one_grows_like_twice_the_logarithm():
    data = make_token_pairs(1, 2.0, 0.3)
    run = train_two_layers(data, NGD(0.5, **SHARED), 2000)
    S, w = run.W_norm[:, 1], pair_coordinates(data, run.W)[0][:, 0]
    slope = -(w[-1] - w[-10]) / math.log(S[-1] / S[-10])
    assert slope == pytest.approx(2, rel=ASYMPTOTIC)
    assert expected_gap(data, 1, S[-1]) == pytest.approx(-w[-1], rel=ASYMPTOTIC)
    assert abs(expected_gap(data, 0, S[-1]) + w[-1]) > 0.5  # the other token's
    direct = np.log1p(-np.exp(run.log_attention[20].max(axis=1)))
    assert run.log_unselected[20] == pytest.approx(direct, rel=1e-9)
    own = train_two_layers(data, NGD(0.5), 500)
    assert own.W_norm[-1, 0] / own.W_norm[-1, 1] == pytest.approx(1, rel=ASYMPTOTIC)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), normalise=st.sampled_from(["separate", "shared"]))
def test_the_longest_of_orthogonal_tokens_leads_from_zero(seed, normalise):
    lengths = 0.5 + torch.rand(6, generator=torch.Generator().manual_seed(seed)).double()
    X = torch.diag(lengths).reshape(2, 3, 6)
    u = torch.zeros(6).double()
    u[seed % 3], u[3] = 1 / lengths[seed % 3], -1 / lengths[3]
    data = Dataset(X, [1, -1], u)
    for step_size in (0.3, 20.0):
        run = train_two_layers(data, NGD(step_size, normalise=normalise), 30)
        assert check_longest_leads(data, run).all_hold
        assert query_selections(data)[0].tokens.tolist() == run.selected.tolist()


def test_the_longest_may_lose_from_elsewhere_and_the_check_says_so():
    data = make_token_pairs(2, 2.0)
    run = train_two_layers(data, NGD(0.3), 50, W0=gaussian((2, 4, 4), 0))
    assert not check_longest_leads(data, run)[0].applicable
    kindred = make_two_hop(seed=0)
    assert not check_longest_leads(kindred, train_two_layers(kindred, NGD(0.3), 5))[0].applicable
    run = train_two_layers(data, NGD(0.3), 50)
    backwards = type(run)(**{**vars(run), "log_attention": run.log_attention[:, :, ::-1].copy()})
    check = check_longest_leads(data, backwards)
    assert check[0].applicable and not check.all_hold


def test_runs_end_at_stationary_selections_and_a_wrong_selection_is_refused():
    share = 0
    for seed in range(3):
        data = make_two_hop(seed=seed)
        run = train_two_layers(data, NGD(0.5), 300)
        assert check_two_layers(data, run).all_hold
        first = solve_w_svm(data, run.selected)
        assert run.alignment_error(1, first.weights)[-1] < ASYMPTOTIC
        found = query_selections(data)
        share += sum(each.stationary for each in found) / len(found) / 3
        least = next(each for each in found[::-1] if not each.stationary)
        turned = run.log_attention.copy()
        turned[-1] = torch.nn.functional.one_hot(least.tokens, 3).double().numpy()
        wrong = type(run)(**{**vars(run), "log_attention": turned})
        assert not any(check.holds for check in check_two_layers(data, wrong))
    assert 0.2 < share < 0.8


PAIR = make_separation_pair()
TWO = make_two_hop(3, 2, seed=0)
RAGGED = Dataset(torch.eye(6).double().reshape(2, 3, 6), [1, -1], torch.arange(6.0).double(),
                 lengths=[2, 3])  # fmt: skip
NAN = torch.full((2, 2, 2), math.nan).double()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ShapeError, lambda: train_two_layers(RAGGED, NGD(0.1), 5)),
        (ShapeError, lambda: train_two_layers(PAIR, NGD(0.1), 5, W0=torch.zeros(2, 2))),
        (NonFiniteError, lambda: train_two_layers(PAIR, NGD(0.1), 5, W0=NAN)),
        (RangeError, lambda: train_two_layers(PAIR, Polyak(), 5)),
        (RangeError, lambda: train_two_layers(PAIR, NGD(0.1), 5, frozen=3)),
        (DtypeError, lambda: train_two_layers(PAIR, 0.1, 5)),
        (DtypeError, lambda: train_two_layers("data", NGD(0.1), 5)),
        (ShapeError, lambda: solve_query_svm(PAIR, torch.zeros(2))),
        (InfeasibleError, lambda: solve_query_svm(PAIR, torch.zeros(1, 2))),
        (RangeError, lambda: selected_queries(PAIR, [2])),
        (RangeError, lambda: query_selections(make_two_hop(seed=0), most=26)),
        (RangeError, lambda: separatrix(0.0, -1.0, 1.0)),
        (RangeError, lambda: predicted_selection(TWO, torch.zeros(2, 20, 20))),
        (RangeError, lambda: pair_coordinates(make_cue_pair(), torch.zeros(2, 4, 4))),
        (RangeError, lambda: expected_gap(make_token_pairs(1, 1.5, 0.8), 0, 1.0)),
        (DtypeError, lambda: check_two_layers(PAIR, None)),
        (RangeError, lambda: make_cue_pair(0.0)),
        (RangeError, lambda: make_token_pairs(1, 1.0, 1.0)),
        (RangeError, lambda: make_two_hop(3, 3, 11, seed=0)),
        (DtypeError, lambda: plot_depth(([], [], []), ([], []), {}, ([], []))),
        (ShapeError, lambda: plot_depth(([1], [], []), ([], []), {"a": ([], [])}, ([], []))),
    ],
)
def test_bad_input_is_refused(error, call):
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, AttnBiasError)
