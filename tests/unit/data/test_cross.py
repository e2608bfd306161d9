"""Queries and keys from elsewhere."""

import dataclasses

import pytest
import torch
from instances import cross_data, dm_with_decoder
from tolerances import AUTOGRAD, SVM_GAP

from attnbias import (
    NGD,
    Dataset,
    check_assumption1,
    check_lemma3,
    diagnose,
    solve_w_svm,
    train,
)
from attnbias.errors import QueryError
from attnbias.geometry.constants import token_constants
from attnbias.geometry.tokens import selected_tokens
from attnbias.model import empirical_risk, risk_gradient

N = T = 3


def by_autograd(data: Dataset, steps: int, size: float, W: torch.Tensor, normed: bool):
    """W after plain steps on the loss written out, apart from the library's model."""
    query = data.X[:, 0] if data.query is None else data.query
    key = data.X if data.key is None else data.key
    for _ in range(steps):
        W = W.detach().requires_grad_()
        phi = torch.softmax(torch.einsum("ntd,de,ne->nt", key, W, query), dim=1)
        loss = torch.exp(-data.y * torch.einsum("nt,ntd,d->n", phi, data.X, data.u)).mean()
        (gradient,) = torch.autograd.grad(loss, W)
        W = W - size * gradient / (gradient.norm() if normed else 1)
    return W.detach()


@pytest.mark.parametrize("engine", ["compiled", "torch"])
@pytest.mark.parametrize("coordinates", ["span", "dense"])
def test_training_follows_the_gradient_of_the_cross_layer(engine, coordinates):
    data = cross_data()
    run = train(data, NGD(0.05), 20, engine=engine, coordinates=coordinates)
    expected = by_autograd(data, 20, 0.05, torch.zeros(30, 30).double(), normed=True)
    assert torch.allclose(run.W.cpu(), expected, rtol=0, atol=AUTOGRAD)
    # without its keys, or without its queries, the run is another
    for part in ("key", "query"):
        other = train(dataclasses.replace(data, **{part: None}), NGD(0.05), 20).W
        assert not torch.allclose(other, expected, rtol=0, atol=1e-3)


def test_risk_and_gradient_of_the_cross_layer():
    data, W = cross_data(), torch.full((30, 30), 0.01, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(empirical_risk(data, W), W)
    assert torch.allclose(risk_gradient(data, W.detach()), gradient, rtol=0, atol=AUTOGRAD)
    moved = by_autograd(data, 1, 1.0, W.detach(), normed=False)
    assert torch.allclose(W.detach() - gradient, moved, rtol=0, atol=AUTOGRAD)


def test_svm_of_cross_rows_is_certified_on_the_rows_written_out():
    data = cross_data()
    svm = solve_w_svm(data)
    logits = torch.einsum("ntd,de,ne->nt", data.key, svm.weights, data.query)
    gaps = logits.gather(1, svm.rows.opt[:, None]) - logits
    gaps[torch.arange(N), svm.rows.opt] = torch.inf
    assert gaps.min() > 1 - SVM_GAP and svm.duality_gap < SVM_GAP
    assert selected_tokens(data, svm.weights).tolist() == svm.rows.opt.tolist()


def test_joint_training_separates_keys_from_values():
    data = dataclasses.replace(cross_data(), u=None, opt=torch.zeros(N, dtype=torch.long))
    rule = NGD(0.1)
    runs = [train(data, rule, 30, train_u=True, engine=engine) for engine in ("compiled", "torch")]
    assert torch.allclose(runs[0].W, runs[1].W, rtol=0, atol=AUTOGRAD)
    # before the first step u is 0, so its first step is along the mean of y times the values
    first = train(data, rule, 1, train_u=True)
    mean = (data.y[:, None] * data.X.mean(dim=1)).mean(dim=0)
    assert torch.allclose(first.u, 0.1 * mean / mean.norm(), rtol=0, atol=AUTOGRAD)


def test_keys_and_queries_are_kept_by_copies_and_files(tmp_path):
    data = cross_data()
    for again in (
        Dataset.load(data.save(tmp_path / "cross.npz")),
        data.to(dtype=torch.float64),
        data.with_decoder(2 * data.u),
    ):
        assert torch.equal(again.query, data.query) and torch.equal(again.key, data.key)
    assert "queries given, keys given" in repr(data)
    assert data.to(dtype=torch.float32).key.dtype == torch.float32
    assert "given" not in repr(dm_with_decoder()).replace("decoder given", "")


def test_padding_of_keys_is_zeroed():
    data = cross_data()
    short = dataclasses.replace(data, lengths=[T, T, T - 1], opt=None, u=data.u)
    assert bool((short.key[2, -1] == 0).all()) and bool((short.key[1, -1] != 0).any())


@pytest.mark.parametrize(
    "check",
    [
        token_constants,
        check_assumption1,
        diagnose,
        lambda data: check_lemma3(data, train(data, NGD(0.1), 3)),
    ],
)
def test_statements_on_self_attention_refuse_cross_data(check):
    check(dm_with_decoder())  # what the refusal is not about
    with pytest.raises(QueryError, match="self-attention"):
        check(cross_data())
