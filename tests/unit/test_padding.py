"""What stands past a sequence's length, NaN and infinity too, reaches no output and no gradient."""

import math

import pytest
import torch

from attnbias import (
    Dataset,
    SelfAttention,
    attention_gradient,
    attention_loss,
    optimal_tokens,
    solve_w_svm,
    token_scores,
)
from attnbias.model import attention_logits, attention_map, predict
from attnbias.nets import head_from_qk, head_from_weights
from attnbias.nets.heads.stream import gathered

DOUBLE = torch.float64
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(3, 4, 5, generator=GENERATOR, dtype=DOUBLE)
W = torch.randn(5, 5, generator=GENERATOR, dtype=DOUBLE)
u = torch.randn(5, generator=GENERATOR, dtype=DOUBLE)
y, LENGTHS = torch.tensor([1.0, -1.0, 1.0], dtype=DOUBLE), torch.tensor([4, 2, 3])
REAL = (torch.arange(4) < LENGTHS[:, None])[..., None]
FILLS = [math.nan, math.inf, -math.inf, 1e300]


def layer(X, W, u):
    """`SelfAttention` with these parameters, so that it can be differentiated in them."""
    module = SelfAttention(5, train_u=True)
    return torch.func.functional_call(module, {"W": W, "u": u}, (X, LENGTHS))


# Every function of tokens, key-query matrix and decoder that takes lengths.
OUTPUTS = {
    "predict": lambda X, W, u: predict(X, W, u, LENGTHS),
    "map": lambda X, W, u: attention_map(X, W, LENGTHS),
    "map with queries": lambda X, W, u: attention_map(X, W, LENGTHS, query=X[:, 0]),
    "logits": lambda X, W, u: attention_logits(X, W, LENGTHS)[REAL[..., 0]],
    "layer": layer,
    "loss": lambda X, W, u: attention_loss(X, y, u, W, lengths=LENGTHS),
    "logistic loss": lambda X, W, u: attention_loss(X, y, u, W, "logistic", LENGTHS),
}


@pytest.mark.parametrize("fill", FILLS, ids=str)
@pytest.mark.parametrize("name", OUTPUTS)
def test_padding_reaches_no_output_and_no_gradient(name, fill):
    results = []
    for tokens in (X.where(REAL, 0.0), X.where(REAL, fill)):
        given = [each.clone().requires_grad_() for each in (tokens, W, u)]
        out = OUTPUTS[name](*given)
        weights = torch.arange(1.0, out.numel() + 1, dtype=DOUBLE).reshape(out.shape)
        gradients = torch.autograd.grad((weights * out).sum(), given, materialize_grads=True)
        results.append([out, *gradients])
    for clean, found in zip(*results, strict=True):
        assert torch.equal(clean, found)
    assert not results[1][1][~REAL[..., 0]].any()


@pytest.mark.parametrize("name", ["predict", "layer", "loss"])
def test_in_transforms_of_torch(name):
    clean, spoilt = X.where(REAL, 0.0), X.where(REAL, math.nan)
    several = torch.stack([W, 2 * W])
    for transform in (
        lambda tokens: torch.func.vmap(lambda W: OUTPUTS[name](tokens, W, u))(several),
        lambda tokens: torch.func.jacrev(lambda W: OUTPUTS[name](tokens, W, u))(W),
        lambda tokens: torch.func.jvp(lambda W: OUTPUTS[name](tokens, W, u), (W,), (W,))[1],
    ):
        assert torch.equal(transform(clean), transform(spoilt))


@pytest.mark.parametrize("mode", ["train", "eval", "float32", "attention"])
def test_the_layer_in_every_mode(mode):
    dtype = torch.float32 if mode == "float32" else DOUBLE
    module = SelfAttention(5, W=W.to(dtype), u=u.to(dtype), dtype=dtype).train(mode != "eval")
    call = module.attention if mode == "attention" else module
    clean, spoilt = (X.where(REAL, fill).to(dtype) for fill in (0.0, math.nan))
    assert torch.equal(call(spoilt, LENGTHS), call(clean, LENGTHS))
    call(spoilt, LENGTHS).sum().backward()
    assert bool(module.W.grad.isfinite().all())


@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_gradients_data_sets_and_heads(fill):
    clean, spoilt = X.where(REAL, 0.0), X.where(REAL, fill)
    for find in (
        lambda X: attention_gradient(X, y, u, W, lengths=LENGTHS).W,
        lambda X: token_scores(Dataset(X, y, u, lengths=LENGTHS)),
        lambda X: optimal_tokens(Dataset(X, y, lengths=LENGTHS), u),
        lambda X: solve_w_svm(Dataset(X, y, u, lengths=LENGTHS)).weights,
        lambda X: head_from_qk(X, 2 * X, lengths=LENGTHS, query=-1).attention,
        lambda X: head_from_weights(X, W, W, lengths=LENGTHS).X,
        lambda X: gathered(X, torch.arange(4).expand(3, 4), LENGTHS),
    ):
        assert torch.equal(find(spoilt), find(clean))
