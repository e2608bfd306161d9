"""Heads of any model: its own attention, whatever its positions, masks, groups and wrappers."""

import dataclasses

import numpy as np
import pytest
import torch
from foreign import BERT, GPT2, VIT, made
from refusals import refuses
from torch import nn

from attnbias import diagnose, optimal_tokens, token_scores
from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.nets import head_from_qk, head_from_weights, random_head, record_heads
from attnbias.nets.heads import record
from attnbias.nets.heads.stream import _turn

FLOAT32 = 2e-6  # probabilities of logits of size 10, computed in float32 by other routines
SIZES = BERT | dict(bos_token_id=1, eos_token_id=2)
GROUPED = SIZES | dict(num_key_value_heads=2)
WIDE = GROUPED | dict(head_dim=8)
# Model, configuration, and where its heads are taken.
MODELS = {
    "Bert": (SIZES, "residual stream"),
    "Roberta": (SIZES, "residual stream"),
    "DistilBert": (
        dict(dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=50),
        "residual stream",
    ),
    "ModernBert": (
        SIZES
        | dict(local_attention=4, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2),
        "residual stream with positions",
    ),
    "GPT2": (
        GPT2 | dict(bos_token_id=1, eos_token_id=2),
        "residual stream",
    ),
    "GPTNeoX": (SIZES, "residual stream with positions"),
    "Llama": (WIDE, "residual stream with positions"),
    "Qwen2": (GROUPED, "residual stream with positions"),
    "Qwen3": (WIDE, "keys"),
    "Gemma3Text": (
        WIDE | dict(sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
        "keys",
    ),
    "Mistral": (WIDE | dict(sliding_window=4), "residual stream with positions"),
    "OPT": (
        dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            vocab_size=50,
            ffn_dim=48,
            max_position_embeddings=64,
            word_embed_proj_dim=32,
        ),
        "residual stream",
    ),
    "ViT": (VIT, "residual stream"),
}
LENGTHS = [9, 6, 9, 7, 9]


def tiny(name, config=None, kind="Model"):
    """A model of `transformers` with random weights."""
    pytest.importorskip("transformers")
    return made(name, kind, **(MODELS[name][0] if config is None else config))


def inputs_for(name):
    generator = torch.Generator().manual_seed(1)
    if name == "ViT":
        return {"pixel_values": torch.randn(5, 3, 16, 16, generator=generator)}
    mask = (torch.arange(9) < torch.tensor(LENGTHS)[:, None]).long()
    return {"input_ids": torch.randint(3, 50, (5, 9), generator=generator), "attention_mask": mask}


def close(a, b, atol=FLOAT32):
    torch.testing.assert_close(a, b, rtol=0, atol=atol, check_dtype=False)


def rows_of(weights, head):
    """The model's own attention in the order of the head's X, from its row (n, T) of all tokens."""
    real = weights > 0
    place = torch.arange(weights.shape[1])
    if head.query < 0:  # of the last real token
        own = real.long().cumsum(1).argmax(1)
    else:
        own = torch.full((len(weights),), head.query)
    rank = torch.where(place == own[:, None], 0, torch.where(real, 1, 2))
    order = rank.argsort(dim=1, stable=True)[:, : head.X.shape[1]]
    return weights.gather(1, order)


@pytest.mark.parametrize("name", MODELS)
def test_heads_have_the_models_own_attention_and_its_outputs_are_eagers(name):
    model, inputs, outputs = tiny(name), inputs_for(name), []
    kind = model.config._attn_implementation
    model.train()
    hook = model.register_forward_hook(lambda module, _, out: outputs.append(out[0]))
    found = record_heads(model, inputs)
    hook.remove()
    assert model.training and model.config._attn_implementation == kind == "sdpa"
    assert not any(part._forward_pre_hooks for part in model.modules())
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        out = model(**inputs, output_attentions=True)
    real = torch.arange(out[0].shape[1]) < torch.tensor(LENGTHS)[:, None]
    close(outputs[0][real], out[0][real], 2e-5)  # float32 in another order, of entries up to 20
    assert len(found) == 8 and {head.space for head in found} == {MODELS[name][1]}
    for head in found:
        ends = torch.tensor([9 if name == "ViT" else n for n in LENGTHS]) + head.query
        place = ends if head.query < 0 else torch.zeros(5, dtype=torch.long)
        weights = out.attentions[head.layer][torch.arange(5), head.head, place]
        close(head.attention, rows_of(weights, head))
        close(head.logits.softmax(dim=1), rows_of(weights, head))


def test_sliding_windows_hide_what_they_hide():
    found = record_heads(tiny("Mistral"), inputs_for("Mistral"))
    assert found[0, 0].lengths.tolist() == [4] * 5
    both = record_heads(tiny("Gemma3Text"), inputs_for("Gemma3Text"))
    assert both[0, 0].lengths.tolist() == [4] * 5 and both[1, 0].lengths.tolist() == LENGTHS


def test_rotary_features_are_the_explicit_ones():
    """x (x) (cos, sin), written out, with W from the weights: the same W_mm and comparison."""
    model, inputs = tiny("Llama").double(), inputs_for("Llama")
    states = []
    layer = model.layers[1].self_attn
    hook = layer.register_forward_pre_hook(
        lambda module, _, named: states.append(named["hidden_states"]), with_kwargs=True
    )
    head = record_heads(model, inputs)[1, 2]
    hook.remove()
    x, w = states[0], model.rotary_emb.inv_freq.double()
    angle = torch.arange(9)[:, None] * w
    waves = torch.stack([angle.cos(), angle.sin()], dim=2).flatten(1) / len(w) ** 0.5
    features = torch.einsum("ntd,tf->ntdf", x, waves).flatten(2)
    Q, K = layer.q_proj.weight[16:24], layer.k_proj.weight[8:16]  # heads 2 and 3 share keys
    maps = []
    for each in (Q, K):
        first, second = each[:4], each[4:]
        full = x.new_zeros(8, 32, 4, 2)
        for j in range(4):
            full[j, :, j, 0], full[j, :, j, 1] = first[j], -second[j]
            full[j + 4, :, j, 0], full[j + 4, :, j, 1] = second[j], first[j]
        maps.append(full.flatten(1) * len(w) ** 0.5)
    W = (maps[1].T @ maps[0] / 8**0.5).detach()
    lengths = torch.tensor(LENGTHS)
    order = torch.stack([torch.tensor([n - 1, *range(n - 1), *range(n, 9)]) for n in LENGTHS])
    X = features[torch.arange(5)[:, None], order]
    explicit = dataclasses.replace(head, W=W, X=X.detach(), lengths=lengths)
    inside = torch.isfinite(head.logits)
    close(explicit.logits[inside], head.logits[inside], 1e-10)
    ours, theirs = head.compare(), explicit.compare()
    assert ours.svm.margin == pytest.approx(theirs.svm.margin, rel=1e-8)
    assert ours.cosine_span == pytest.approx(theirs.cosine_span, rel=1e-6)
    assert ours.margin == pytest.approx(theirs.margin, rel=1e-6)
    assert ours.dimension == theirs.dimension and ours.share >= theirs.share  # W's seen part


def test_a_rotary_head_is_no_matter_of_how_keys_and_queries_share_a_factor():
    model, inputs = tiny("Llama").double(), inputs_for("Llama")
    other = tiny("Llama").double()
    layer = other.layers[0].self_attn
    with torch.no_grad():  # pair j of keys times a complex number, of queries over its conjugate
        size = torch.tensor([3.0, 0.2, 1.0, 7.0]).double()
        for part, factor in ((layer.q_proj, 1 / size), (layer.k_proj, size)):
            weight = part.weight.unflatten(0, (-1, 2, 4))
            part.weight.copy_((weight * factor[:, None]).flatten(0, 2))
    one, two = (record_heads(each, inputs)[0, 1] for each in (model, other))
    close(one.logits.softmax(1), two.logits.softmax(1), 1e-10)
    assert one.compare().cosine_span == pytest.approx(two.compare().cosine_span, rel=1e-6)
    assert one.compare().svm.margin == pytest.approx(two.compare().svm.margin, rel=1e-6)
    keys = [in_key_space(each, inputs).compare().svm.margin for each in (model, other)]
    assert abs(keys[0] / keys[1] - 1) > 0.1  # in key space it is


def in_key_space(model, inputs):
    head = record_heads(model, inputs)._records[0]
    k = head.call.k[:, 0]
    q = torch.zeros_like(k)
    last = head.position[:, 0]
    q[torch.arange(5), last] = head.call.q[:, 1, 0]
    return head_from_qk(q, k, query=-1, lengths=LENGTHS)


def test_a_turn_by_pairs_is_a_product_of_complex_numbers():
    z = torch.randn(1, 1, 5, 6, 2, dtype=torch.float64)
    w = torch.rand(6, dtype=torch.float64)
    turned = torch.view_as_complex(z) * torch.exp(1j * torch.arange(5)[:, None] * w)
    pairs = torch.view_as_real(turned)
    close(_turn(z.flatten(3), w, False), pairs.flatten(3), 1e-12)
    halves = z.transpose(3, 4).flatten(3)
    close(_turn(halves, w, True), pairs.transpose(3, 4).flatten(3), 1e-12)


def test_queries_are_asked_for_by_position():
    model, inputs = tiny("Bert"), inputs_for("Bert")
    every = record_heads(model, inputs, query="all", layers=[1], heads=[2, 3])
    assert every.queries == tuple(range(6)) and len(every) == 12
    assert [head.query for head in every[:7]] == [0, 1, 2, 3, 4, 5, 0]
    last = record_heads(model, inputs, query=-1)[1, 3]
    assert torch.equal(last.X[1, 0], every[1, 3, 5].X[1, 0])  # the second has six tokens
    causal = record_heads(tiny("GPT2"), inputs, query="all")
    assert causal.queries == (1, 2, 3, 4, 5)  # the first token sees itself alone
    assert causal[0, 0, 3].lengths.tolist() == [4] * 5
    assert record_heads(tiny("GPT2"), inputs).queries == (-1,)
    with pytest.raises(RangeError, match="at least 2 tokens"):
        record_heads(tiny("GPT2"), inputs, query=0)[0, 0]


def test_padding_on_the_left_and_passes_in_parts_change_nothing(monkeypatch):
    model, inputs = tiny("Bert"), inputs_for("Bert")
    inputs = {key: value.roll(-2, 0) for key, value in inputs.items()}  # the shortest comes last
    whole = record_heads(model, inputs, query="all")
    monkeypatch.setattr(record, "CHUNK", 2)
    parts = record_heads(model, inputs, query="all")
    assert parts.queries == whole.queries
    for one, two in zip(whole, parts, strict=True):
        close(one.attention, two.attention)
    rope, inputs = (
        tiny("Llama"),
        inputs_for("Bert"),
    )  # relative positions, so that the side of the padding is none of its
    rolled = {
        key: torch.stack([row.roll(9 - n) for row, n in zip(value, LENGTHS, strict=True)])
        for key, value in inputs.items()
    }
    for one, two in zip(record_heads(rope, inputs), record_heads(rope, rolled), strict=True):
        close(one.attention, two.attention)
        inside = torch.arange(9) < one.lengths[:, None]
        assert torch.equal(one.positions[inside], two.positions[inside])
        assert one.positions[1, :6].tolist() == [5, 0, 1, 2, 3, 4]  # its last token is the query


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("hidden", ["nothing", "padding", "causal", "each head", "minus infinity"])
def test_multihead_attention(batch_first, hidden):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(16, 4, batch_first=batch_first, dropout=0.5).train()
    nn.init.normal_(module.in_proj_bias)
    x, masks = torch.randn(3, 6, 16), {}
    late = torch.ones(6, 6).triu(1).bool()
    if hidden == "padding":
        masks["key_padding_mask"] = torch.arange(6) >= torch.tensor([6, 4, 5])[:, None]
    elif hidden == "causal":
        masks["attn_mask"] = late
    elif hidden == "minus infinity":
        masks["attn_mask"] = torch.zeros(6, 6).masked_fill(late, -torch.inf)
    elif hidden == "each head":
        masks["attn_mask"] = torch.rand(12, 6, 6) > 0.7
        masks["attn_mask"] &= ~torch.eye(6).bool()
        masks["attn_mask"][:, [0, -1], [1, 0]] = masks["attn_mask"][:, 2, 0] = False
    given = x if batch_first else x.transpose(0, 1)
    inputs = dict(query=given, key=given, value=given, **masks)
    found = record_heads(module, inputs, query=[2, -1] if hidden != "padding" else [2])
    if not masks:  # one tensor is enough
        assert torch.equal(record_heads(module, given, query=[2, -1])[0].W, found[0].W)
    assert module.training and torch.backends.mha.get_fastpath_enabled()
    module.eval()
    weights = module(**inputs, average_attn_weights=False)[1]
    for head in found:
        assert head.space == "residual stream" and head.X.shape[2] == 17
        row = weights[:, head.head, head.query]
        order = torch.where(torch.arange(6) == head.query % 6, 0, torch.where(row > 0, 1, 2))
        row = row.gather(1, order.argsort(dim=1, stable=True)[:, : head.X.shape[1]])
        close(head.attention, row)
        close(head.logits.softmax(1), row)


def test_an_encoder_of_torch_is_recorded_though_it_has_a_fast_path():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    x = torch.randn(4, 5, 16)
    found = record_heads(model, x, layers=[0, 2])
    assert found.layers == (0, 2) and len(found) == 4
    own = layer.self_attn.in_proj_weight
    first = head_from_weights(x, own[:8], own[16:24], *[torch.zeros(8)] * 2)
    close(found[0, 0].logits, first.logits, 1e-5)  # float32 against float64, logits of size 1
    assert torch.equal(found[0, 0].X, first.X)


def test_weights_and_recorded_queries_and_keys_make_the_same_head():
    torch.manual_seed(0)
    hidden = torch.randn(4, 6, 5, dtype=torch.float64)
    Wq, Wk = torch.randn(2, 3, 5, dtype=torch.float64)
    bq, bk = torch.randn(2, 3, dtype=torch.float64)
    lengths = torch.tensor([6, 3, 4, 6])
    for query in (0, 2, -1):
        one = head_from_weights(hidden, Wq, Wk, bq, bk, query=query, lengths=lengths)
        two = head_from_qk(hidden @ Wq.T + bq, hidden @ Wk.T + bk, query=query, lengths=lengths)
        close(one.logits.softmax(1), two.logits.softmax(1), 1e-12)
        assert (one.space, two.space) == ("residual stream", "keys")
        i, place = 1, query % 3
        logits = (Wk @ hidden[i, :3].T + bk[:, None]).T @ (Wq @ hidden[i, place] + bq) / 3**0.5
        own = logits[[place, *(t for t in range(3) if t != place)]]
        close(one.logits[i, :3], own, 1e-12)
        for head in (one, two):
            found = head.compare()
            assert 0 < found.margin <= found.svm.margin * (1 + 1e-9)
            assert random_head(head, 2, torch.Generator().manual_seed(0)).compare().margin > 0
    plain = head_from_weights(hidden, Wq, Wk)
    assert plain.W.shape == (5, 5) and torch.equal(plain.X[0], hidden[0])
    close(head_from_weights(hidden, Wq, Wk, scale=2.0).W, Wk.T @ Wq * 2, 1e-12)


def test_wrappers_are_unwrapped_and_halves_of_translators_are_asked_for():
    pytest.importorskip("transformers")
    inputs = inputs_for("Bert")
    for name, kind in (("Bert", "ForSequenceClassification"), ("Llama", "ForCausalLM")):
        wrapped = tiny(name, kind=kind)
        assert len(record_heads(wrapped, inputs)) == 8
        inside = record_heads(nn.Sequential(wrapped), inputs["input_ids"])
        assert len(inside) == 8
    sizes = dict(
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        vocab_size=50,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    both = tiny("Bart", sizes)
    with pytest.raises(RangeError, match="get_encoder"):
        record_heads(both, inputs)
    assert len(record_heads(both.get_encoder(), inputs)) == 4


class Broken(nn.Module):
    """Attention, and an error behind it."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.drop = nn.Dropout().eval()

    def forward(self, x):
        self.attention(x, x, x)
        raise KeyError("behind")


class Pooled(nn.Module):
    """A second layer over pairs of tokens."""

    def __init__(self):
        super().__init__()
        self.first = nn.MultiheadAttention(8, 2, batch_first=True)
        self.second = nn.MultiheadAttention(8, 4, batch_first=True)

    def forward(self, x):
        x = self.first(x, x, x)[0].unflatten(1, (-1, 2)).mean(dim=2)
        return self.second(x, x, x)


def test_layers_of_other_tokens_or_heads_are_recorded_one_by_one():
    model, x = Pooled(), torch.randn(3, 6, 8)
    with pytest.raises(RangeError, match=r"layers: .* \(3, 2, 6\) and \(3, 4, 3\)"):
        record_heads(model, x)
    for layer, heads, T in ((0, 2, 6), (1, 4, 3)):
        found = record_heads(model, x, layers=layer)
        assert found.heads == tuple(range(heads)) and found[layer, 0].X.shape[:2] == (3, T)


def test_a_model_is_left_as_it_was_after_an_error():
    broken = Broken()
    with pytest.raises(KeyError, match="behind"):
        record_heads(broken, torch.randn(2, 3, 8))
    assert broken.training and broken.attention.training and not broken.drop.training
    assert not broken.attention._forward_pre_hooks
    gemma = tiny("Gemma2", WIDE)  # caps its logits
    with pytest.raises(RangeError, match="softcap"):
        record_heads(gemma, inputs_for("Gemma2"))
    assert gemma.config._attn_implementation != "attnbias_tape"
    assert gemma(**inputs_for("Gemma2"))[0].isfinite().all()


def test_what_is_no_softmax_of_products_is_refused():
    x = torch.randn(2, 4, 8)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    biased = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True)
    given = dict(query=x, key=x, value=x)
    for model, inputs, words in (
        (biased, given, "bias_k"),
        (nn.Linear(8, 8), x, "none in a pass"),
        (attention, given | {"attn_mask": torch.randn(4, 4)}, "adds to their logits"),
        (attention, given | {"key": x[:, :3], "value": x[:, :3]}, "cross-attention"),
    ):
        with pytest.raises(RangeError, match=words):
            record_heads(model, inputs)


@pytest.mark.parametrize("name", ["Bert", "Llama", "Qwen3"])
def test_a_readout_scores_the_values(name):
    head = record_heads(tiny(name), inputs_for(name))[1, 3]
    r = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    data = head.dataset([1, -1, 1, -1, 1], readout=r)
    assert data.cross == (name == "Qwen3") and torch.equal(data.keys, head.X)
    scores = ((head.values @ r) * data.y[:, None]).masked_fill(~data.mask, -torch.inf)
    close(token_scores(data), scores, 1e-4)  # of values in float32
    assert torch.equal(optimal_tokens(data), scores.argmax(dim=1))
    for wrong in (torch.ones(7), r * torch.nan, "best"):
        with pytest.raises((ShapeError, NonFiniteError, RangeError), match="u|readout"):
            head.dataset(readout=wrong)
    with pytest.raises(RangeError, match="both"):
        head.dataset(u=r, readout=r)
    with pytest.raises(RangeError, match="no values"):
        head_from_qk(torch.randn(2, 3, 4), torch.randn(2, 3, 4)).dataset(readout=r)


def test_a_head_is_diagnosed_with_a_readout_or_by_its_selection():
    inputs = {key: value[:3] for key, value in inputs_for("Llama").items()}
    head = record_heads(tiny("Llama"), inputs)[1, 3]
    own = diagnose(head.dataset(readout=torch.ones(8, dtype=torch.float64)))
    assert own.separation["feasible"] and own.summary["sequences"] == 3
    data = head.dataset([1, -1, 1], readout="selection")
    report = diagnose(data)
    assert report.hypotheses["assumption2"].holds
    assert report.separation["margin"] == pytest.approx(head.compare().svm.margin, rel=1e-6)
    assert torch.equal(optimal_tokens(data), head.selected)
    few = head_from_weights(torch.randn(9, 5, 3), *torch.randn(2, 4, 3))
    with pytest.raises(RangeError, match="45 tokens in 3 features"):
        few.dataset(readout="selection")


def test_indices():
    found = record_heads(tiny("Bert"), inputs_for("Bert"), layers=[1], query=[0, 3])
    assert [(h.head, h.query) for h in found] == [(i, q) for i in range(4) for q in (0, 3)]
    assert repr(found[-1]) == repr(found[1, 3, 3]) == repr(found[7])
    assert repr(found) == "Heads(1 layers x 4 heads, query 0, 3, n=5)"
    for index in ((0, 0), (1, 4), (1, 0, 2), "first"):
        with pytest.raises((RangeError, DtypeError)):
            found[index]
    for index in (8, (1,)):
        with pytest.raises(IndexError):
            found[index]


def test_bad_arguments_are_refused_by_name():
    model, inputs = tiny("Bert"), inputs_for("Bert")
    refuses(
        record_heads,
        dict(model=model, inputs=inputs),
        {
            RangeError: [
                {"layers": [2]},
                {"layers": []},
                {"heads": [4]},
                {"query": 6},
                {"query": -7},
                {"heads": -1},
            ],
            DtypeError: [
                {"model": "bert"},
                {"inputs": []},
                {"inputs": 3},
                {"inputs": ["A dog."]},
                {"inputs": [1]},
                {"layers": [0.5]},
                {"query": "last"},
                {"tokenizer": 4},
            ],
        },
    )
    for ragged in ([[1, 2, 3], [4, 5]], np.array([[1, 2, 3], [4, 5]], dtype=object)):
        with pytest.raises(DtypeError, match="tokenizer=, or .*padding=True"):
            record_heads(model, {"input_ids": ragged})
    x, W = torch.randn(2, 4, 3), torch.randn(5, 3)
    right = dict(hidden=x, Wq=W, Wk=W)
    refuses(
        head_from_weights,
        right,
        {
            ShapeError: [
                {"hidden": x[0]},
                {"Wq": W[:, :2]},
                {"Wk": W[:4]},
                {"bq": torch.ones(4)},
                {"lengths": [5, 4]},
                {"hidden": x[:, :1]},
            ],
            NonFiniteError: [{"Wk": W * torch.nan}],
            DtypeError: [{"Wq": "W"}],
            RangeError: [{"query": 4}, {"scale": 0}, {"query": 3, "lengths": [4, 3]}],
        },
    )
    refuses(
        head_from_qk,
        dict(q=x, k=x),
        {
            ShapeError: [{"q": x[:1]}, {"k": x[0]}],
            RangeError: [{"query": 4}],
            DtypeError: [{"q": None}],
        },
    )
