"""Prompt attention as a case of queries and keys from elsewhere."""

import pytest
import torch
from instances import cross_data, dm_with_decoder
from tolerances import AUTOGRAD, SVM_GAP

from attnbias import GD, Polyak, solve_w_svm, train
from attnbias.beyond.joint.geometry import with_selected_tokens
from attnbias.beyond.prompt.data import prompt_keys, prompt_of, prompt_queries
from attnbias.errors import QueryError


def test_training_a_prompt_is_training_the_first_column():
    data = dm_with_decoder()
    W = torch.randn(30, 30, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    keyed = prompt_keys(data, W)
    run = train(keyed, GD(0.3), 15)
    p = torch.zeros(30, dtype=torch.float64)
    for _ in range(15):
        p = p.detach().requires_grad_()
        phi = torch.softmax(data.X @ W @ p, dim=1)
        loss = torch.exp(-data.y * torch.einsum("nt,ntd,d->n", phi, data.X, data.u)).mean()
        (gradient,) = torch.autograd.grad(loss, p)
        p = p - 0.3 * gradient
    assert torch.allclose(prompt_of(run.W), p.detach(), rtol=0, atol=AUTOGRAD)
    assert bool((run.W[:, 1:] == 0).all())


def test_prompt_as_a_query_gives_a_matrix_of_rank_one():
    data, p = dm_with_decoder(), torch.ones(30, dtype=torch.float64)
    svm = solve_w_svm(prompt_queries(data, p))
    singular = torch.linalg.svdvals(svm.weights)
    assert singular[1] < SVM_GAP * singular[0]
    # on rows d p' the least norm is that of the vector on the rows d, over |p|
    assert float(svm.weights.norm()) * float(p.norm()) == pytest.approx(
        float(solve_w_svm(prompt_keys(data)).weights.norm()), rel=SVM_GAP
    )


def test_keys_and_queries_are_kept_with_selected_tokens():
    data = cross_data()
    again = with_selected_tokens(data, torch.zeros(30, 30))
    assert torch.equal(again.query, data.query) and torch.equal(again.key, data.key)


@pytest.mark.parametrize(
    "make",
    [
        prompt_keys,
        lambda data: train(data, Polyak(), 1) and prompt_queries(data, torch.ones(30)),
    ],
)
def test_prompts_are_of_self_attention(make):
    make(dm_with_decoder())  # what the refusal is not about
    with pytest.raises(QueryError, match="self-attention"):
        make(cross_data())
