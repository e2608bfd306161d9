"""Two layers: gradients, the pair's invariant and separatrix, leads, cues, and bad input."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from room_tests import RISK, assert_gradient, assert_unit_steps, normal, refusals
from tolerances import ASYMPTOTIC, CLOSED_FORM, SVM_CLOSED_FORM

from attnbias import (
    GD,
    NGD,
    Dataset,
    Polyak,
    make_separation_pair,
    optimal_tokens,
    solve_u_svm,
    solve_w_svm,
)
from attnbias.beyond.depth.checks import check_longest_leads, check_pair_invariant, check_two_layers
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
    with_queries,
)
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.errors import InfeasibleError, ShapeError

SHARED = {"normalise": "shared"}


@pytest.mark.parametrize("loss", RISK)
def test_gradients_against_autograd(loss):
    data = Dataset(normal(4, 3, 15), [1, -1, 1, -1], normal(15, seed=1))
    W0 = 0.3 * normal(2, 15, 15, seed=2)

    def plain(W):
        a = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W[0], data.X[:, 0]), 1)
        q = torch.einsum("nt,ntd->nd", a, data.X)
        b = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W[1], q), 1)
        return RISK[loss](data.y * torch.einsum("nt,ntd,d->n", b, data.X, data.u))

    def run_of(rule, W=W0):
        return train_two_layers(data, rule, 1, W0=W, loss=loss)

    assert_gradient(lambda W: run_of(GD(0.1), W), W0, plain)
    assert_unit_steps(run_of)


def test_directions_stay_exact_where_both_softmaxes_have_saturated():
    """Far out the gradient's direction is that of one row in each layer."""
    data = make_token_pairs(1, 2.0, 0.3)
    first, second = data.X[0]
    rows = torch.stack([torch.outer(second - first, x) for x in (first, second)])
    W0 = 100 * torch.stack([rows[0], torch.outer(second - first, second - first)])
    run = train_two_layers(data, NGD(1.0), 3, W0=W0)
    unit = rows / rows.norm(dim=(1, 2), keepdim=True)
    assert float((run.W[1:] - run.W[:-1] - unit).abs().max()) < CLOSED_FORM
    assert run.log_grad_norm[0].max() < -100 and np.isfinite(run.log_grad_norm).all()


def test_a_frozen_first_layer_leaves_the_papers_layer():
    """Layer one at zero asks with the mean token: the one layer of data with that first token."""
    data = make_two_hop(seed=1)
    two = train_two_layers(data, NGD(0.5), 400, frozen=1)
    assert float(two.W[:, 0].abs().max()) == 0
    svm = solve_w_svm(dataclasses.replace(data, query=data.X.mean(dim=1)))
    assert two.alignment_with(svm.weights, 1)[-1] < ASYMPTOTIC
    assert two.alignment_with(solve_w_svm(data).weights, 1)[-1] > 0.05
    # where layer one has saturated on the first token, this is one head
    pair = make_token_pairs(1, 2.0)
    W0 = torch.stack([1e3 * torch.outer(pair.X[0, 0] - pair.X[0, 1], pair.X[0, 0]), 0 * pair.X[0]])
    one = train_heads(pair, pair.u[None], NGD(0.2), 50).W[-1, 0]
    run = train_two_layers(pair, NGD(0.2), 50, W0=W0, frozen=1).W[-1, 1]
    assert float((run - one).abs().max()) < CLOSED_FORM * 100


def test_leads_are_derivatives_of_the_norm():
    data, h = make_two_hop(seed=2), 1e-5
    tokens = torch.tensor([0, 2, 1])
    queries, svm = selected_queries(data, tokens), solve_w_svm(with_queries(data, tokens))
    leads = query_margins(data, svm, tokens)
    for i, t in ((0, 1), (1, 0), (2, 2)):
        halves = []
        for sign in (-1, 1):
            moved = queries.clone()
            moved[i] += sign * h * (data.X[i, t] - queries[i])
            halves.append(solve_w_svm(dataclasses.replace(data, query=moved)).norm ** 2 / 2)
        assert (halves[0] - halves[1]) / (2 * h) == pytest.approx(float(leads[i, t]), rel=1e-4)
    with pytest.raises(ShapeError):
        query_margins(data, svm, [1, 1, 1])


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0])
def test_cue_pair_in_closed_form(length):
    data, square = make_cue_pair(length), length**2
    assert optimal_tokens(data).tolist() == [1, 0] and contrary_pairs(data) == [(0, 1)]
    with pytest.raises(InfeasibleError) as caught:
        solve_w_svm(data)
    expected = torch.tensor([0, 0, 0.5, 0.5]).double()
    assert (caught.value.certificate.sort().values - expected).abs().max() < SVM_CLOSED_FORM
    expected = 2 * (1 + square) / (square * (1 + 2 * square))
    svm = solve_w_svm(with_queries(data, [2, 2]))
    assert abs(svm.norm**2 / expected - 1) < 100 * SVM_CLOSED_FORM
    found = query_selections(data)
    assert len(found) == 7  # the two with equal queries are infeasible in layer two
    assert all(each.first is None or 2 in each.tokens for each in found)


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
    W0 = torch.stack([0.5 * normal(2, 2, seed=3), normal(2, 2, seed=4)])
    for rule in (NGD(0.005, **SHARED), GD(0.02)):
        assert check_pair_invariant(data, train_two_layers(data, rule, 400, W0=W0)).all_hold
    assert not check_pair_invariant(data, train_two_layers(data, NGD(0.02), 400, W0=W0)).all_hold


@pytest.mark.parametrize(("other", "cosine"), [(1.3, 0.0), (1.5, 0.8), (0.7, -0.3)])
def test_every_start_ends_where_the_separatrix_says(other, cosine):
    data = make_token_pairs(12, other, cosine)
    W0 = normal(2, 24, 24, seed=5) * torch.tensor([1.0, 2.0])[:, None, None]
    run = train_two_layers(data, NGD(0.8, **SHARED), 500, W0=W0)
    w, _ = pair_coordinates(data, W0)
    assert (predicted_selection(data, W0) == run.selected).all()
    assert run.attention[-1].max(axis=1).min() > 0.95
    # the broken case: the rule that looks at layer one's start alone
    assert cosine or ((w < 0) != run.selected.numpy()).any()
    assert cosine != 0.8 or ((run.selected == 1).all() and w.max() > 0)


def test_layer_one_grows_like_twice_the_logarithm():
    data = make_token_pairs(1, 2.0, 0.3)
    run = train_two_layers(data, NGD(0.5, **SHARED), 1500)
    S, w = run.W_norm[:, 1], pair_coordinates(data, run.W.numpy())[0][:, 0]
    slope = -(w[-1] - w[-10]) / math.log(S[-1] / S[-10])
    assert slope == pytest.approx(2, rel=ASYMPTOTIC)
    assert expected_gap(data, 1, S[-1]) == pytest.approx(-w[-1], rel=ASYMPTOTIC)
    assert abs(expected_gap(data, 0, S[-1]) + w[-1]) > 0.5  # the other token's
    direct = np.log1p(-np.exp(run.log_attention[20].max(axis=1)))
    assert run.log_unselected[20] == pytest.approx(direct, rel=1e-9)
    own = train_two_layers(data, NGD(0.5), 500).W_norm[-1]
    assert own[0] / own[1] == pytest.approx(1, rel=ASYMPTOTIC)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), normalise=st.sampled_from(["separate", "shared"]))
def test_the_longest_of_orthogonal_tokens_leads_from_zero(seed, normalise):
    lengths = 0.5 + torch.rand(6, generator=torch.Generator().manual_seed(seed)).double()
    u = torch.zeros(6).double()
    u[seed % 3], u[3] = 1 / lengths[seed % 3], -1 / lengths[3]
    data = Dataset(torch.diag(lengths).reshape(2, 3, 6), [1, -1], u)
    for step_size in (0.3, 20.0):
        run = train_two_layers(data, NGD(step_size, normalise=normalise), 30)
        assert check_longest_leads(data, run).all_hold
        assert query_selections(data)[0].tokens.tolist() == run.selected.tolist()


def test_the_longest_may_lose_from_elsewhere_and_the_check_says_so():
    data, kindred = make_token_pairs(2, 2.0), make_two_hop(seed=0)
    run = train_two_layers(data, NGD(0.3), 50, W0=normal(2, 4, 4))
    assert not check_longest_leads(data, run)[0].applicable
    assert not check_longest_leads(kindred, train_two_layers(kindred, NGD(0.3), 5))[0].applicable
    run = train_two_layers(data, NGD(0.3), 50)
    check = check_longest_leads(data, attending(run, run.log_attention[:, :, ::-1].copy()))
    assert check[0].applicable and not check.all_hold


def attending(run, log_attention):
    return dataclasses.replace(run, series=run.series | {"log_attention": log_attention})


def test_runs_end_at_stationary_selections_and_a_wrong_selection_is_refused():
    share = 0
    for seed in range(3):
        data = make_two_hop(seed=seed)
        run = train_two_layers(data, NGD(0.5), 300)
        assert check_two_layers(data, run).all_hold
        first = solve_w_svm(data, run.selected)
        assert run.alignment_with(first.weights, 0)[-1] < ASYMPTOTIC
        found = query_selections(data)
        share += sum(each.stationary for each in found) / len(found) / 3
        least = next(each for each in found[::-1] if not each.stationary)
        turned = run.log_attention.copy()
        turned[-1] = torch.nn.functional.one_hot(least.tokens, 3).double().numpy()
        wrong = check_two_layers(data, attending(run, turned))
        assert not any(check.holds for check in wrong)
    assert 0.2 < share < 0.8


PAIR = make_separation_pair()
TWO, TOKENS = make_two_hop(3, 2, seed=0), make_token_pairs(1, 2.0)
LAYERS = train_two_layers(TOKENS, NGD(0.5), 3)
RAGGED = Dataset(
    torch.eye(6).double().reshape(2, 3, 6), [1, -1], torch.arange(6.0).double(), lengths=[2, 3]
)
NAN = torch.full((2, 2, 2), math.nan).double()


test_bad_input_is_refused = refusals(
    ShapeError=[
        lambda: train_two_layers(RAGGED, NGD(0.1), 5),
        lambda: train_two_layers(PAIR, NGD(0.1), 5, W0=torch.zeros(2, 2)),
        lambda: with_queries(PAIR, [0, 0]),
        lambda: check_two_layers(make_token_pairs(2), LAYERS),
        lambda: check_longest_leads(make_two_hop(seed=0), LAYERS),
        lambda: plot_depth(([1], [], []), ([], []), {"a": ([], [])}, ([], [])),
    ],
    NonFiniteError=[
        lambda: train_two_layers(PAIR, NGD(0.1), 5, W0=NAN),
    ],
    RangeError=[
        lambda: train_two_layers(PAIR, Polyak(), 5),
        lambda: train_two_layers(PAIR, NGD(0.1), 5, frozen=3),
        lambda: selected_queries(PAIR, [2]),
        lambda: query_selections(make_two_hop(seed=0), most=26),
        lambda: separatrix(0.0, -1.0, 1.0),
        lambda: predicted_selection(TWO, torch.zeros(2, 20, 20)),
        lambda: pair_coordinates(make_cue_pair(), torch.zeros(2, 4, 4)),
        lambda: expected_gap(make_token_pairs(1, 1.5, 0.8), 0, 1.0),
        lambda: expected_gap(Dataset([[[0.0, 0], [0, 1]]], [1], u=[0.0, 1]), 1, 1.0),
        lambda: expected_gap(TOKENS, 1, 0.0),
        lambda: make_cue_pair(0.0),
        lambda: make_token_pairs(1, 1.0, 1.0),
        lambda: make_two_hop(3, 3, 11, seed=0),
    ],
    DtypeError=[
        lambda: train_two_layers(PAIR, 0.1, 5),
        lambda: train_two_layers("data", NGD(0.1), 5),
        lambda: check_two_layers(PAIR, None),
        lambda: check_two_layers(TOKENS, LAYERS, "x"),
        lambda: pair_coordinates(TOKENS, [[1], [1, 2]]),
        lambda: query_margins(TWO, None, [0, 0, 0]),
        lambda: query_margins(TWO, solve_u_svm(TWO), [0, 0, 0]),
        lambda: plot_depth(([], [], []), ([], []), {}, ([], [])),
    ],
)
