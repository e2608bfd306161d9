"""Scores, optimal tokens, gap rows and their Gram matrix."""

import copy
import gc
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_data, random_start
from tolerances import CLOSED_FORM

from attnbias import Dataset, make_example1, optimal_tokens, solve_w_svm, token_scores
from attnbias.errors import MissingDecoderError, TiedTokensError
from attnbias.geometry import tokens
from attnbias.geometry.tokens import Known, gap_rows, resolve_opt

PROPERTY = settings(max_examples=30, deadline=None, derandomize=True)


@st.composite
def data_sets(draw):
    n, T, d = draw(st.integers(1, 4)), draw(st.integers(2, 5)), draw(st.integers(2, 6))
    lengths = draw(st.lists(st.integers(2, T), min_size=n, max_size=n))
    return random_data(n, T, d, seed=draw(st.integers(0, 10**6)), lengths=lengths)


@PROPERTY
@given(data_sets())
def test_scores_are_y_X_u(data):
    scores, opt = token_scores(data), optimal_tokens(data)
    expected = (data.y[:, None] * (data.X @ data.u)).masked_fill(~data.mask, -math.inf)
    torch.testing.assert_close(scores, expected, rtol=CLOSED_FORM, atol=CLOSED_FORM)
    assert torch.equal(opt, scores.argmax(1)) and opt.dtype == torch.long


def test_another_decoder():
    data = random_data(2, 3, 4, seed=0)
    u = random_data(1, 2, 4, seed=9).u
    assert torch.equal(token_scores(data, u), token_scores(data.with_decoder(u)))
    assert torch.equal(token_scores(data, -data.u), -token_scores(data))


def test_scores_meant_equal_are_made_equal():
    """A decoder from a linear solve leaves a spread of 1e-16; Assumption 2 holds exactly."""
    data = make_example1(n=6, T=5, d=60, seed=3)
    raw, scores = data.y[:, None] * (data.X @ data.u), token_scores(data)
    others = data.mask.scatter(1, optimal_tokens(data)[:, None], False)
    assert raw[others].reshape(6, 4).std(dim=1).max() > 0
    assert (scores[others].reshape(6, 4).std(dim=1) == 0).all()
    assert torch.allclose(scores, raw, rtol=0, atol=1e-14)


def test_scores_that_differ_are_left_apart():
    """The broken case: 1e-9 is a difference, and the tokens stay distinct."""
    X = torch.tensor([[[1.0, 0.0], [0.5, 0.0], [0.5 + 1e-9, 1.0]]], dtype=torch.float64)
    scores = token_scores(Dataset(X, [1], u=[1.0, 0.0]))[0]
    assert scores[2] > scores[1]
    assert scores.tolist() == X[0, :, 0].tolist()


def test_float32_rounding_counts_as_equal():
    X = torch.tensor([[[1.0, 0.0], [0.1, 0.3], [0.3, 0.1]]], dtype=torch.float32)
    data = Dataset(X, [1], u=torch.tensor([0.7, 0.7]))
    assert token_scores(data)[0, 1] == token_scores(data)[0, 2]


def test_ties_at_the_top_are_refused():
    data = Dataset([[[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]], [1], u=[1.0, 0.0])
    with pytest.raises(TiedTokensError, match="1 sequences with a tie, first 0"):
        optimal_tokens(data)
    assert optimal_tokens(data, u=torch.tensor([1.0, 0.1]).double()).tolist() == [1]
    with pytest.raises(TiedTokensError):
        optimal_tokens(data.with_decoder([0.0, 0.0]))


def test_padding_is_never_optimal():
    data = Dataset([[[-1.0], [-2.0], [9.0]]], [1], u=[1.0], lengths=[2])
    assert token_scores(data)[0].tolist() == [-1, -2, -math.inf]
    assert optimal_tokens(data).tolist() == [0]


def rows_by_hand(data, opt):
    places = [(i, t) for i, t in data.mask.nonzero().tolist() if t != opt[i]]
    rows = [torch.outer(data.X[i, opt[i]] - data.X[i, t], data.X[i, 0]) for i, t in places]
    return torch.stack(rows)


@PROPERTY
@given(data_sets())
def test_gap_rows_are_the_matrices_z(data):
    rows, Z = gap_rows(data), rows_by_hand(data, optimal_tokens(data))
    flat, W = Z.flatten(1), random_start(data, 1.0, 0)
    weights = torch.linspace(-1, 1, len(Z)).double()
    combined = (weights[:, None, None] * Z).sum(0)
    for got, expected in (
        (rows.gram(), flat @ flat.T),
        (rows.gaps(W), flat @ W.flatten()),
        (rows.combine(weights), combined),
        (rows.norms(), flat.norm(dim=1)),
    ):
        assert torch.allclose(got, expected, rtol=CLOSED_FORM, atol=CLOSED_FORM)


def test_gap_rows_come_by_sequence_then_token():
    data = random_data(3, 4, 3, seed=0, lengths=[4, 2, 3])
    rows = gap_rows(data, [1, 0, 2])
    assert rows.sequence.tolist() == [0, 0, 0, 1, 2, 2]
    assert rows.token.tolist() == [0, 2, 3, 1, 0, 1]
    assert rows.opt.tolist() == [1, 0, 2]


def test_resolve_opt():
    data = random_data(3, 4, 3, seed=0, lengths=[4, 2, 3])
    assert torch.equal(resolve_opt(data), optimal_tokens(data))
    for given_ in ([3, 1, 2], torch.tensor([3, 1, 2], dtype=torch.int32)):
        assert torch.equal(resolve_opt(data, given_), torch.tensor([3, 1, 2]))


# What is known of a data set is kept: never wrongly, and for nobody else.


def answers(data):
    """All that is kept, as a caller gets it."""
    rows, svm = gap_rows(data), solve_w_svm(data)
    given = [token_scores(data), optimal_tokens(data), resolve_opt(data)]
    for held in (rows, svm.rows):
        given += [held.differences, held.queries, held.sequence, held.token, held.opt]
    return [*given, svm.dual, svm.weights, svm.margins]


def same(one, other):
    return all(map(torch.equal, one, other))


def cross_data():
    plain = random_data(3, 3, 20, seed=1)
    return Dataset(plain.X, plain.y, plain.u, query=plain.X[:, 1], key=plain.X.flip(2))


CHANGES = {
    "X": lambda data: data.X[0, 1:].mul_(1.5),
    "u": lambda data: data.u.mul_(2.0),
    "y": lambda data: data.y[0].neg_(),
    "query": lambda data: data.query[0].mul_(2.0),
    "key": lambda data: data.key[0, 0].mul_(2.0),
    "lengths": lambda data: data.lengths[0].neg_().add_(5),
    "a numpy array on its memory": lambda data: data.X.numpy().__imul__(1.5),
    "past torch's version counter": lambda data: data.u.data.mul_(2.0),
}


@pytest.mark.parametrize("large", [2**15, 1])
@pytest.mark.parametrize("change", CHANGES.values(), ids=[*CHANGES])
def test_a_change_in_place_makes_what_is_kept_anew(change, large, monkeypatch):
    monkeypatch.setattr(tokens, "LARGE", large)
    data, fresh = cross_data(), cross_data()
    before = answers(data)
    change(data), change(fresh)
    assert same(answers(data), answers(fresh)) and not same(answers(data), before)
    monkeypatch.setattr(tokens, "_same", lambda *_: True)  # one that looks at nothing
    change(data), change(fresh)
    tokens._known.pop(fresh)
    assert not same(answers(data), answers(fresh))


def test_what_is_returned_is_the_callers_own(monkeypatch):
    data = cross_data()
    before = [value.clone() for value in answers(data)]
    for value in answers(data):
        value.zero_()
    assert same(answers(data), before)
    monkeypatch.setattr(Known, "own_rows", lambda here, *_: here.rows())
    gap_rows(data).differences.mul_(2)
    assert not same(answers(data), before)


def test_what_is_known_is_found_anew_in_another_dtype_and_without_a_tensor():
    """Scores that round to a tie in float32 are none in float64."""
    X = torch.zeros(2, 3, 4)
    X[..., 0] = torch.linspace(0, 1, 3)
    X[:, -2, 0] = 1 - 2e-7
    data = Dataset(X, [1, 1], u=torch.eye(4)[0])
    assert (token_scores(data)[:, 1] == token_scores(data)[:, 2]).all()
    for tensor in (data.X, data.u, data.y):
        tensor.data = tensor.data.double()
    assert optimal_tokens(data).tolist() == [2, 2]
    vars(data)["u"] = None
    with pytest.raises(MissingDecoderError):
        token_scores(data)


def test_copies_and_parts_begin_anew():
    data = cross_data()
    size, found = len(pickle.dumps(data)), answers(data)
    assert data in tokens._known and len(pickle.dumps(data)) == size
    whole = [copy.copy(data), copy.deepcopy(data), pickle.loads(pickle.dumps(data)), data[:]]
    whole += [data.to(dtype=torch.float64), data.with_decoder(data.u)]
    for each in [*whole, data[:2], data.with_decoder(-data.u), data.to(dtype=torch.float32)]:
        assert each not in tokens._known
    assert all(same(answers(each), found) for each in whole)
    assert torch.equal(token_scores(data.with_decoder(-data.u)), -token_scores(data))


def test_what_is_kept_goes_with_its_data_and_is_no_more_than_fits(monkeypatch):
    gc.collect()  # what tests before this one have left
    data, count = cross_data(), len(tokens._known)
    answers(data)
    assert len(tokens._known) == count + 1
    del data
    gc.collect()
    assert len(tokens._known) == count
    monkeypatch.setattr(tokens, "KEPT", 10)
    data, fresh = cross_data(), cross_data()
    answers(data)
    for each in (data, fresh):
        each.X[0] *= 1.5
    assert data not in tokens._known and same(answers(data), answers(fresh))


def test_threads_that_ask_at_once_get_one_answer():
    data, expected = cross_data(), answers(cross_data())
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: answers(data), range(32))]
    assert all(same(each, expected) for each in found)


def test_scores_are_made_once(monkeypatch):
    made, scores = [], tokens._scores
    monkeypatch.setattr(tokens, "_scores", lambda *args: made.append(1) or scores(*args))
    data = cross_data()
    answers(data), answers(data)
    assert len(made) == 1
