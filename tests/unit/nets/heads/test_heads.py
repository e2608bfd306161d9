"""A BERT head as Eq. 1: its own attention, invariances, and W held against W_mm."""

import dataclasses
import math

import pytest
import torch

from attnbias import Dataset, make_separation_pair, solve_w_svm
from attnbias.errors import (
    DtypeError,
    InfeasibleError,
    MissingDecoderError,
    NonFiniteError,
    RangeError,
    ShapeError,
    TiedTokensError,
)
from attnbias.geometry.tokens import gap_rows
from attnbias.nets.heads import record
from attnbias.nets.heads.margin import compare
from attnbias.nets.heads.record import record_heads

pytest.importorskip("transformers")
from attnbias.nets.text import load_encoder, load_tokenizer  # noqa: E402

SENTENCES = [
    "Attention has a bias.",
    "It is implicit, and gradient descent finds it.",
    "Tokens compete for the query",
    "One of them wins in the end, they say.",
]
FLOAT32 = 1e-5  # the encoder's own rounding in logits of size 1
BILINEAR = 1e-10  # float64 sums of 65^2 terms of size at most 10


@pytest.fixture(scope="module")
def encoder():
    """A tiny encoder with large, biased key and query maps, as training makes them."""
    encoder = load_encoder("tiny", seed=1)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer in encoder.encoder.layer:
            for part in (layer.attention.self.query, layer.attention.self.key):
                part.weight += 0.2 * torch.randn(part.weight.shape, generator=generator)
                part.bias += torch.randn(part.bias.shape, generator=generator)
    return encoder


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("tiny")


def attention_head(encoder, tokenizer, sentences, layer, head, query=0):
    found = record_heads(encoder, sentences, tokenizer=tokenizer, layers=[layer], query=query)
    return found[layer, head]


@pytest.fixture(scope="module")
def head(encoder, tokenizer):
    return attention_head(encoder, tokenizer, SENTENCES, 1, 1)


def random_data(seed=0, n=3, T=4, d=5):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, dtype=torch.float64, generator=generator)
    W = torch.randn(d, d, dtype=torch.float64, generator=generator)
    opt = torch.einsum("ntd,de,ne->nt", X, W, X[:, 0]).argmax(1)
    return Dataset(X, torch.ones(n), opt=opt), W


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("query", [0, 3])
def test_the_bilinear_form_is_the_encoders_attention(encoder, tokenizer, layer, number, query):
    head = attention_head(encoder, tokenizer, SENTENCES, layer, number, query=query)
    own = head.logits.softmax(dim=1)
    assert float((own - head.attention).abs().max()) < FLOAT32
    assert torch.equal(head.selected, head.attention.argmax(dim=1))
    flat = head.X.clone()
    flat[..., -1] = 0  # without the constant the biases are lost
    unbiased = torch.einsum("ntd,de,ne->nt", flat, head.W, flat[:, 0])
    unbiased = unbiased.where(torch.isfinite(head.logits), -math.inf).softmax(dim=1)
    assert float((unbiased - head.attention).abs().max()) > 1e-2


def test_attention_is_what_the_encoder_returns(encoder, tokenizer, head):
    words = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    eager = load_encoder("tiny", seed=1).eval()
    eager.load_state_dict(encoder.state_dict())
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        out = eager(**words, output_attentions=True, output_hidden_states=True)
    assert float((head.attention - out.attentions[1][:, 1, 0]).abs().max()) < FLOAT32
    real = words["attention_mask"].bool()
    apart = head.X[..., :-1][real] - out.hidden_states[1][real]
    assert float(apart.abs().max()) < FLOAT32
    assert bool((head.X[..., -1][real] == 1).all()) and not bool(head.X[~real].any())


def test_the_query_comes_first_and_the_others_keep_their_order(encoder, tokenizer):
    first, third = (
        attention_head(encoder, tokenizer, SENTENCES[:1], 0, 0, query=q) for q in (0, 2)
    )
    assert first.tokens == [["[CLS]", "attention", "has", "a", "bias", ".", "[SEP]"]]
    assert third.tokens == [["has", "[CLS]", "attention", "a", "bias", ".", "[SEP]"]]
    assert torch.equal(third.X, first.X[:, [2, 0, 1, 3, 4, 5, 6]])
    assert torch.equal(third.W, first.W)


def test_padding_and_chunks_change_nothing(encoder, tokenizer, head, monkeypatch):
    monkeypatch.setattr(record, "CHUNK", 3)
    parts = attention_head(encoder, tokenizer, SENTENCES, 1, 1)
    for i, sentence in enumerate(SENTENCES):
        alone = attention_head(encoder, tokenizer, [sentence], 1, 1)
        length = int(head.lengths[i])
        assert alone.tokens[0] == head.tokens[i] and len(head.tokens[i]) == length
        for other in (parts.logits[i, :length], alone.logits[0]):
            assert float((other - head.logits[i, :length]).abs().max()) < 10 * FLOAT32


def test_a_key_bias_moves_all_logits_alike_so_it_is_not_seen(head):
    moved = head.W.clone()
    moved[-1] += 3.0
    other = dataclasses.replace(head, W=moved)
    real = torch.isfinite(head.logits)
    assert float((other.logits - head.logits)[real].abs().max()) > 1
    own, shifted = head.logits.softmax(dim=1), other.logits.softmax(dim=1)
    torch.testing.assert_close(shifted, own, rtol=0, atol=BILINEAR)
    found = head.compare()
    assert found.svm.is_optimal() and not bool(found.svm.weights[-1].any())
    assert 0 < found.margin <= found.svm.margin and 0 < found.cosine < found.cosine_span < 1
    solved = dataclasses.replace(head, W=found.svm.weights)
    assert torch.equal(solved.selected, head.selected)


def test_the_encoder_is_left_as_it_was(encoder, tokenizer):
    before = {name: x.clone() for name, x in encoder.state_dict().items()}
    encoder.train()
    kind = encoder.config._attn_implementation
    attention_head(encoder, tokenizer, SENTENCES, 0, 0)
    assert encoder.training and encoder.config._attn_implementation == kind != "eager"
    assert all(torch.equal(x, before[name]) for name, x in encoder.state_dict().items())
    encoder.eval()
    attention_head(encoder, tokenizer, SENTENCES, 0, 0)
    assert not encoder.training


def test_data_sets(head):
    data = head.dataset()
    assert torch.equal(data.opt, head.selected) and torch.equal(data.lengths, head.lengths)
    assert data.u is None and bool((data.y == 1).all()) and data.d == 65
    u = torch.randn(65, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    decoded = head.dataset([1, -1, 1, -1], u)
    assert decoded.opt is None and torch.equal(decoded.u, u)
    assert decoded.y.tolist() == [1, -1, 1, -1]
    tied = dataclasses.replace(head, W=torch.zeros_like(head.W))
    with pytest.raises(TiedTokensError, match="4 with a tie, first 0"):
        tied.dataset()


@pytest.mark.parametrize("seed", range(5))
def test_a_comparison_is_that_of_explicit_projections(seed):
    data, W = random_data(seed)
    found, rows = compare(W, data), gap_rows(data)
    Z = (rows.differences[:, :, None] * rows.queries[rows.sequence][:, None]).flatten(1)
    part, W = Z.T @ torch.linalg.lstsq(Z.T, W.flatten()[:, None]).solution[:, 0], W.flatten()
    W_mm, cosine = found.svm.weights.flatten(), torch.nn.CosineSimilarity(dim=0)
    assert found.dimension == torch.linalg.matrix_rank(Z)
    assert found.share == pytest.approx(float(part.norm() / W.norm()), abs=1e-9)
    assert found.cosine == pytest.approx(float(cosine(W, W_mm)), abs=1e-12)
    assert found.cosine_span == pytest.approx(float(cosine(part, W_mm)), abs=1e-9)
    assert found.margin == pytest.approx(float((Z @ W).min() / part.norm()), abs=1e-9)
    assert 0 < found.margin <= found.svm.margin * (1 + 1e-12)


def test_w_mm_is_its_own_best():
    data, _ = random_data()
    svm = solve_w_svm(data)
    found, worst = compare(svm.weights, data), compare(-svm.weights, data)
    for value in (found.cosine, found.cosine_span, found.share, found.margin / svm.margin):
        assert value == pytest.approx(1, abs=1e-9)
    assert worst.cosine == pytest.approx(-1, abs=1e-9) and worst.margin < 0


def test_what_lies_outside_the_span_is_not_seen():
    # one row, e1 e1': the rest of W counts in the plain cosine alone
    data, W = make_separation_pair(), torch.tensor([[3.0, 0.0], [0.0, 0.0]])
    plain, more = compare(W, data), compare(W + torch.diag(torch.tensor([0.0, 4.0])), data)
    assert (plain.cosine, plain.cosine_span, plain.share, plain.dimension) == (1, 1, 1, 1)
    assert more.cosine == pytest.approx(0.6) and more.share == pytest.approx(0.6)
    assert (more.cosine_span, more.margin) == (1, plain.margin)


def test_bad_matrices_are_refused():
    data, W = random_data()
    on_a_line = Dataset([[[1.0], [2.0], [3.0]]], [1], opt=[1])  # the middle one of three
    for given, tokens, error, words in (
        (W[:, :-1], data, ShapeError, "W"),
        (W * math.nan, data, NonFiniteError, "W"),
        (torch.zeros(5, 5), data, RangeError, "see nothing"),
        ("W", data, DtypeError, "W"),
        (W, data.X, DtypeError, "data"),
        (W, Dataset(data.X, data.y), MissingDecoderError, "u"),
        (torch.eye(1), on_a_line, InfeasibleError, "expected"),
    ):
        with pytest.raises(error, match=words):
            compare(given, tokens)
