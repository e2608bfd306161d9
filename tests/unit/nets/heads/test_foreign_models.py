"""Models as others make them: what decides on a head's attention, and what is refused by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from foreign import BERT, GPT2, SENTENCES, VIT, bare_tokenizer, made, offload, save_model
from torch import nn

from attnbias import cli
from attnbias.errors import DtypeError, MissingFileError, PaddingWarning, RangeError
from attnbias.nets import HeadProbe, load_model, load_tokenizer, record_heads
from attnbias.nets.heads.agreement import agrees
from attnbias.nets.heads.calls import Call, roles_of

transformers = pytest.importorskip("transformers")
GPT = GPT2 | dict(vocab_size=300, n_positions=16, bos_token_id=0, eos_token_id=0)
IDS = torch.randint(3, 50, (3, 7), generator=torch.Generator().manual_seed(0))
FLOAT32 = 2e-6  # weights of logits of size 10, computed in float32 by another route


def same_heads(one, other, atol=0.0):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.attention.shape == b.attention.shape
        assert float((a.attention - b.attention).abs().max()) <= atol


class TestTokenizers:
    """Padding is added by hand, so none is asked for."""

    def test_one_without_padding_is_taken_everywhere(self, tmp_path, capsys):
        save_model(tmp_path / "model")
        model, tokenizer = load_model(tmp_path / "model")
        assert tokenizer.pad_token_id is None
        found = record_heads(model, SENTENCES, tokenizer=tokenizer, layers=3)
        alone = record_heads(model, SENTENCES[1:2], tokenizer=tokenizer, layers=3)
        size = int(found[0].lengths[1])
        for a, b in zip(found, alone, strict=True):
            assert (a.attention[1, :size] - b.attention[0]).abs().max() < FLOAT32
            assert a.tokens[1] == b.tokens[0]
        gpt = made("GPT2", **GPT)
        probe = HeadProbe(SENTENCES, tokenizer=bare_tokenizer(), layers=1)
        probe(gpt, 0)
        assert probe.trace().selected.shape == (1, 4, 3)
        text = tmp_path / "sentences.txt"
        text.write_text("\n".join(SENTENCES))
        small = tmp_path / "small"
        gpt.save_pretrained(small)
        bare_tokenizer().save_pretrained(small)
        wanted = ["heads", str(small), "--text", str(text), "--random", "1", "--query", "2"]
        assert cli.main([*wanted, "--out", str(tmp_path / "out"), "--json"]) == 0
        assert '"head": 3' in capsys.readouterr().out

    def test_a_folder_without_one_says_so(self, tmp_path):
        save_model(tmp_path, tokenizer=False)
        with pytest.raises(MissingFileError, match=r"no file of a tokenizer.*save_pretrained"):
            load_model(tmp_path)

    def test_a_message_leaves_the_names_of_code_as_they_are(self):
        for remedy, words in (
            ("load_tokenizer gives one", "load_tokenizer gives one."),
            ("numpy.savez(x)", "numpy.savez(x)."),
            ("add tokens", "Add tokens."),
            ("layers=0, then 1", "layers=0, then 1."),
        ):
            error = RangeError("x", expected="a", got="b", remedy=remedy)
            assert str(error).endswith(words)

    @pytest.mark.parametrize("kind", [np.array, pd.Series, pd.Index, tuple, iter])
    def test_sentences_come_in_any_container(self, kind):
        gpt, tokenizer = made("GPT2", **GPT), bare_tokenizer()
        right = record_heads(gpt, SENTENCES, tokenizer=tokenizer)
        same_heads(record_heads(gpt, kind(SENTENCES), tokenizer=tokenizer), right)

    def test_ids_come_as_arrays_and_lists(self):
        bert = made("Bert")
        right = record_heads(bert, {"input_ids": IDS})
        mask = [[1] * 7] * 3
        for ids in (
            IDS,
            IDS.numpy(),
            IDS.int().numpy(),
            IDS.tolist(),
            [*IDS],
            {"input_ids": IDS.numpy(), "attention_mask": mask},
        ):
            same_heads(record_heads(bert, ids), right, FLOAT32)
        ragged = record_heads(bert, [IDS[0].tolist(), IDS[1, :4].tolist()])
        assert ragged[0].lengths.tolist() == [7, 4]
        alone = record_heads(bert, IDS[1:, :4])
        assert (ragged[5].attention[1, :4] - alone[5].attention[0]).abs().max() < FLOAT32

    def test_what_is_neither_is_refused(self):
        gpt, tokenizer = made("GPT2", **GPT), bare_tokenizer()
        for inputs in (
            "A dog.",
            [1, 2],
            ["a", 3],
            pd.DataFrame({"text": SENTENCES}),
            pd.Series(["a", None]),
            [],
            [[0.5], [1.0, 2.0]],
        ):
            with pytest.raises(DtypeError, match="inputs: expected sentences"):
                record_heads(gpt, inputs, tokenizer=tokenizer)


class TestLengths:
    def test_sequences_of_nothing_but_padding_are_named(self):
        mask = torch.ones(3, 7, dtype=torch.long)
        mask[1] = 0
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1, enable_nested_tensor=False
        )
        gpt, tokenizer = made("GPT2", **GPT), bare_tokenizer()
        for call in (
            lambda: record_heads(made("Bert"), {"input_ids": IDS, "attention_mask": mask}),
            lambda: record_heads(
                encoder, {"src": torch.randn(3, 7, 8), "src_key_padding_mask": mask == 0}
            ),
            lambda: record_heads(gpt, ["A dog.", "", "Two."], tokenizer=tokenizer),
        ):
            with pytest.raises(RangeError, match=r"nothing but padding in \[1\]"):
                call()

    def test_sequences_longer_than_the_positions_are_named(self):
        gpt, tokenizer = made("GPT2", **GPT), bare_tokenizer()
        with pytest.raises(RangeError, match="at most 16 tokens.*got 20"):
            record_heads(gpt, torch.randint(3, 50, (2, 20)))
        with pytest.warns(UserWarning, match=r"sentences \[0\] are cut to 16 tokens"):
            found = record_heads(gpt, [SENTENCES[0] * 9, SENTENCES[1]], tokenizer=tokenizer)
        assert found[0].lengths.tolist()[0] == 16


def eager(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    bias=0.0,
    sink=None,
    top=None,
    sharper=1.0,
    **_,
):
    """Attention as an extension may have it."""
    logits = query @ key.transpose(2, 3) * (scaling * sharper) + bias
    if attention_mask is not None:
        logits = logits + attention_mask
    if top is not None:
        least = logits.topk(top, dim=3).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if sink is not None:
        logits = torch.cat([logits, torch.full_like(logits[..., :1], sink)], dim=3)
    weights = logits.softmax(dim=3)[..., : key.shape[2]]
    return (weights @ value).transpose(1, 2).contiguous(), weights


def own_attention(model, name, function):
    """Let a model attend by a function of one's own."""
    transformers.AttentionInterface.register(name, function)
    masks = transformers.masking_utils
    masks.AttentionMaskInterface.register(name, masks.eager_mask)
    model.set_attn_implementation(name)
    return model


class TestAgreement:
    """No list of names: what a layer returns is held against the softmax of what it was given."""

    @pytest.mark.parametrize(
        "changed",
        [
            {"bias": torch.linspace(0, 0.1, 7)},
            {"sink": -3.0},
            {"top": 3},
            {"sharper": 1.01},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_any_other_attention_is_refused(self, changed, dtype):
        model = own_attention(
            made("Bert").to(dtype), "another", lambda *a, **o: eager(*a, **o, **changed)
        )
        with pytest.raises(RangeError, match="BertSelfAttention: expected a softmax of q'k"):
            record_heads(model, IDS)
        assert model.config._attn_implementation == "another"

    def test_a_coarse_precision_hides_no_missing_tokens(self):
        model = own_attention(made("Bert").bfloat16(), "few", lambda *a, **o: eager(*a, **o, top=2))
        with pytest.raises(RangeError, match="softmax"):
            record_heads(model, IDS)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
    def test_ones_own_function_that_is_a_softmax_is_recorded(self, dtype):
        plain = record_heads(made("Bert").to(dtype), IDS)
        model = own_attention(made("Bert").to(dtype), "mine", eager)
        # bfloat16 rounds the states of the second layer otherwise
        same_heads(record_heads(model, IDS)[:4], plain[:4], FLOAT32)
        assert {head.space for head in plain} == {"residual stream"}

    def test_weights_that_are_returned_are_compared_too(self):
        def other(*args, **named):
            out, weights = eager(*args, **named)
            return out, weights.flip(3)

        with pytest.raises(RangeError, match="softmax"):
            record_heads(own_attention(made("Bert"), "flipped", other), IDS)

    def test_attention_that_is_sparse_under_its_own_name_has_its_own_tokens(self):
        sizes = dict(
            hidden_size=32,
            intermediate_size=32,
            moe_intermediate_size=16,
            vocab_size=50,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=1,
            topk_group=1,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=8,
            index_topk=3,
            index_head_dim=16,
            index_n_heads=2,
            first_k_dense_replace=1,
        )
        model = made("DeepseekV32", **sizes)
        for kind in ("eager", "sdpa"):
            model.set_attn_implementation(kind)
            found = record_heads(model, IDS)
            assert found[0].lengths.tolist() == [3, 3, 3]
        model.set_attn_implementation("eager")
        own = model(IDS, output_attentions=True).attentions[0][:, 0, -1]
        row = torch.zeros(3, 7, dtype=torch.float64).scatter(
            1, found[0].positions, found[0].attention
        )
        assert (row - own).abs().max() < FLOAT32

    def test_a_subclass_of_torchs_layer_that_attends_otherwise_is_refused(self):
        class Sharper(nn.MultiheadAttention):
            def forward(self, query, key, value, **named):
                return super().forward(3 * query, key, value, **named)

        x = torch.randn(3, 5, 8)
        layer = Sharper(8, 2, batch_first=True)
        with pytest.raises(RangeError, match="Sharper: expected a softmax"):
            record_heads(layer, x)
        nn.MultiheadAttention.forward(layer, x, x, x)

    def test_a_model_that_is_never_the_same_twice_is_recorded(self):
        class Noisy(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = made("Bert", "ForSequenceClassification")

            def forward(self, input_ids):
                states = self.inner.bert.embeddings(input_ids)
                return self.inner(inputs_embeds=states + torch.randn_like(states))

        assert len(record_heads(Noisy(), IDS)) == 8

    def test_a_model_that_is_compiled_or_run_in_another_precision_is_recorded(self):
        model = made("Qwen2", **BERT | dict(num_key_value_heads=2))
        right, compiled = record_heads(model, IDS), torch.compile(model, backend="eager")
        compiled(IDS)
        same_heads(record_heads(compiled, IDS), right)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert len(record_heads(model, IDS)) == 8

    def test_a_tenth_of_a_percent_is_seen(self):
        torch.manual_seed(0)
        q, k, v = torch.randn(3, 1, 2, 5, 8)
        mask = torch.ones(1, 1, 5, 5, dtype=torch.bool)
        out = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        call = Call(q, k, v, out, (mask,), 8**-0.5)
        assert agrees(call, mask, 0)
        call.out = out * 1.001
        assert not agrees(call, mask, 0)


class Outer(nn.Module):
    """Calls a model on something else than it was given."""

    def __init__(self, inner, change):
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, input_ids):
        return self.inner(self.change(input_ids))


CHANGES = [lambda ids: ids.flip(1), lambda ids: torch.cat([ids[:, :1], ids], 1)]


class TestWrappers:
    @pytest.mark.parametrize(
        "change",
        [
            *CHANGES,
            lambda ids: ids[:2],
        ],
    )
    def test_a_module_is_called_itself(self, change):
        inner = made("Bert")
        right = record_heads(inner, change(IDS))
        same_heads(record_heads(Outer(inner, change), {"input_ids": IDS}), right)
        same_heads(record_heads(nn.Sequential(Outer(inner, change)), IDS), right)

    @pytest.mark.parametrize(
        "change",
        [
            *CHANGES,
            lambda ids: ids[:, 1:],
            lambda ids: ids.where(ids < 9, 9),
        ],
    )
    def test_tokens_that_a_module_changes_are_not_named(self, change):
        inner, tokenizer = made("GPT2", **GPT), bare_tokenizer()
        ids = torch.tensor([tokenizer(each)["input_ids"][:3] for each in SENTENCES[:2]])
        named = record_heads(Outer(inner, lambda ids: ids), ids, tokenizer=tokenizer)
        assert named[0].tokens == record_heads(inner, ids, tokenizer=tokenizer)[0].tokens
        assert record_heads(Outer(inner, change), ids)[0].tokens is None
        with pytest.raises(RangeError, match="tokenizer: .*the tokens then have no names"):
            record_heads(Outer(inner, change), ids, tokenizer=tokenizer)

    def test_a_head_that_changes_the_inputs_is_called_itself(self):
        class Flipping(transformers.BertForSequenceClassification):
            def forward(self, input_ids):
                return super().forward(input_ids.flip(1))

        made_by_hand = Flipping(transformers.BertConfig(**BERT)).eval()
        same_heads(record_heads(made_by_hand, IDS), record_heads(made_by_hand.bert, IDS.flip(1)))
        several = made("Bert", "ForMultipleChoice")
        found = record_heads(several, {"input_ids": IDS[:, None].repeat(1, 2, 1)})
        same_heads(found, record_heads(several.bert, IDS.repeat_interleave(2, 0)))

    def test_a_tasks_head_is_left_out(self):
        model, calls = made("Llama", "ForCausalLM"), []
        model.lm_head.register_forward_hook(lambda *_: calls.append(1))
        record_heads(model, IDS.repeat(20, 1))
        assert len(calls) <= 1  # on one sequence, to see that it makes no difference

    def test_inputs_that_are_not_named_are_refused(self):
        bert = made("Bert")
        more = {"input_ids": IDS, "nonsense": torch.ones(3)}
        for model in (bert, Outer(bert, lambda ids: ids), nn.DataParallel(bert)):
            with pytest.raises(RangeError, match=r"forward names; got nonsense"):
                record_heads(model, more)
        with pytest.raises(RangeError, match="forward names; got 1, None"):
            record_heads(bert, {1: IDS, None: IDS})
        whole = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
        assert len(record_heads(nn.DataParallel(bert), whole)) == 8

    def test_an_inner_part_that_bears_the_models_name_is_not_taken_for_it(self):
        config = transformers.AutoConfig.for_model("dinov3_vit", **VIT)
        model = transformers.AutoModel.from_config(config)
        assert len(record_heads(model, {"pixel_values": torch.randn(2, 3, 16, 16)})) == 8


class Nameless(transformers.PreTrainedModel):
    """Attends by the interface of transformers, with maps of these names, or by weights alone."""

    config_class, _supports_sdpa = transformers.BertConfig, True

    def __init__(self, names):
        super().__init__(transformers.BertConfig())
        self.names = names
        for name in names:
            setattr(self, name, nn.Linear(32, 32))
        self.weights = nn.Parameter(torch.randn(3, 32, 32))
        self.eval()

    def forward(self, states, other):
        maps = [getattr(self, name) for name in self.names]
        maps = maps or [weight.__rmatmul__ for weight in self.weights]
        q, k, v = (
            each(x).unflatten(2, (4, 8)).transpose(1, 2)
            for each, x in zip(maps, (states, other, other), strict=True)
        )
        attend = transformers.AttentionInterface().get_interface("sdpa", None)
        return attend(self, q, k, v, None, scaling=8**-0.5, is_causal=False)[0]


class TestCrossAttention:
    """Told by what the maps to queries and keys are given, whatever the lengths."""

    STATES = torch.randn(3, 7, 32)

    def test_of_equal_length_takes_no_number(self):
        first = {"input_ids": IDS, "encoder_hidden_states": self.STATES}
        decoder = dict(is_decoder=True, add_cross_attention=True)
        for model in (
            made("Bert", **BERT | decoder),
            made("Roberta", **BERT | decoder),
            made("GPT2", **GPT2, add_cross_attention=True),
        ):
            found = record_heads(model, first)
            assert found.layers == (0, 1) and len(found) == 8
            other = record_heads(
                model, {"input_ids": IDS, "encoder_hidden_states": self.STATES * 2}
            )
            same_heads(found[:4], other[:4])  # the first layer comes before any of it
            assert (found[4].attention - other[4].attention).abs().max() > 1e-4
        layer = nn.TransformerDecoderLayer(32, 4, 32, batch_first=True)
        inputs = {"tgt": self.STATES, "memory": self.STATES.flip(0)}
        assert record_heads(nn.TransformerDecoder(layer, 2), inputs).layers == (0, 1)

    def test_a_pooling_head_takes_no_number(self):
        model = made("SiglipVision", **VIT)
        assert record_heads(model, torch.randn(2, 3, 16, 16)).layers == (0, 1)

    def test_alone_is_refused_and_keys_of_an_earlier_pass_have_a_message_of_their_own(self):
        layer, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)
        with pytest.raises(RangeError, match="cross-attention"):
            record_heads(layer, {"query": x, "key": x.flip(0), "value": x})
        llama = made("Llama")
        cache = llama(IDS, use_cache=True).past_key_values
        with pytest.raises(RangeError, match="earlier pass.*without past_key_values"):
            record_heads(llama, {"input_ids": IDS, "past_key_values": cache})

    @pytest.mark.parametrize(
        "names",
        [
            ("left", "right", "other"),
            ("query_map", "key_map", "value_map"),
            ("queries", "keys", "values"),
            (),
        ],
        ids=str,
    )
    def test_maps_that_no_name_tells_take_one_sequence(self, names):
        model = Nameless(names)
        assert len(record_heads(model, {"states": self.STATES, "other": self.STATES.clone()})) == 4
        with pytest.raises(RangeError, match="cross-attention"):
            record_heads(model, {"states": self.STATES, "other": self.STATES.flip(0)})

    def test_maps_are_told_by_their_names(self):
        assert roles_of("q_norm") == roles_of("o_proj") == roles_of("gate_proj") == frozenset()
        assert roles_of("query") == roles_of("q_a_proj") == roles_of("wq") == {"query"}
        assert roles_of("kv_a_proj_with_mqa") == {"key", "value", "query"} - {"query"}
        assert roles_of("to_queries") == {"query"} and roles_of("w_ks") == {"key"}
        assert len(roles_of("c_attn")) == len(roles_of("Wqkv")) == 3


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("kind", ["sdpa", "eager"])
    def test_logits_and_attention_are_of_float64(self, dtype, kind):
        torch.manual_seed(0)
        sizes = BERT | dict(num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
        model = transformers.Qwen2Model(transformers.Qwen2Config(**sizes))
        layer = model.layers[0].self_attn
        with torch.no_grad():  # as the model has it: beyond what float16 can multiply
            layer.k_proj.bias[7], layer.q_proj.bias[7::16] = 300, 400
        model = model.to(dtype).eval()
        model.set_attn_implementation(kind)
        for head in record_heads(model, IDS):
            assert head.attention.dtype == torch.float64
            assert head.attention.isfinite().all() and head.logits.isfinite().all()
            own = head.logits.softmax(dim=1)
            assert (own - head.attention).abs().max() < 1e-12

    @pytest.mark.parametrize("bias", [0.0, 10.0, 300.0])
    def test_a_matrix_that_rounding_has_made_another_is_not_given_out(self, bias):
        model = made("Qwen2", **BERT | dict(num_key_value_heads=2))
        with torch.no_grad():
            model.layers[0].self_attn.k_proj.bias[7::8] = bias
        model = model.bfloat16()
        for head in record_heads(model, IDS, layers=0):
            assert (head.space == "keys") == (bias == 300)
            # bfloat16 keeps three digits of the logits
            assert (head.logits.softmax(1) - head.attention).abs().max() < 0.05


class TestPaddingInFront:
    """A sequence has the heads that it has alone."""

    MASK = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 1, 1]])

    @pytest.mark.parametrize("name", ["GPT2", "Bert", "Roberta", "Llama", "ModernBert"])
    def test_positions_count_tokens(self, name):
        sizes = GPT2 if name == "GPT2" else BERT
        more = {"cls_token_id": 1, "sep_token_id": 2} if name == "ModernBert" else {}
        model = made(name, **sizes, **more)
        left = torch.cat([torch.zeros_like(IDS[:1, :3]), IDS[:1]], dim=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = record_heads(model, {"input_ids": left, "attention_mask": self.MASK})
        same_heads(found, record_heads(model, IDS[:1]), FLOAT32)

    def test_holes_are_passed_over(self):
        model = made("Bert")
        mask, ids = torch.tensor([[1, 1, 0, 0, 1, 1, 1, 1, 1]]), torch.zeros(1, 9).long()
        ids[mask.bool()] = IDS[0]
        found = record_heads(model, {"input_ids": ids, "attention_mask": mask})
        same_heads(found, record_heads(model, IDS[:1]), FLOAT32)

    def test_what_takes_no_positions_is_recorded_with_a_warning(self):
        class Plain(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = made("GPT2", **GPT2)

            def forward(self, input_ids, attention_mask):
                return self.inner(input_ids, attention_mask=attention_mask)

        left = torch.cat([torch.zeros_like(IDS[:1, :3]), IDS[:1]], dim=1)
        with pytest.warns(PaddingWarning, match="pad on the right"):
            assert len(record_heads(Plain(), {"input_ids": left, "attention_mask": self.MASK})) == 8


class Adapter(nn.Module):
    """A linear map with another of low rank beside it, and dropout that training needs."""

    def __init__(self, base):
        super().__init__()
        self.base, self.drop = base, nn.Dropout(0.5)
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(self.drop(x)))


class Lost(nn.Linear):
    """A map whose weights can't be read, and that is called in a pass alone."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        if x.shape[1] > 8:
            raise NotImplementedError("no such kernel")
        return nn.functional.linear(x, self._parameters["weight"], self._parameters["bias"])


class TestMaps:
    """A map is what it does, wherever its weights are."""

    def changed(self, change):
        model = made("Bert")
        with torch.no_grad():
            for layer in model.encoder.layer:
                attention = layer.attention.self
                attention.query, attention.key = map(change, (attention.query, attention.key))
        return model.train()

    @pytest.mark.parametrize(
        "change",
        [
            Adapter,
            nn.utils.parametrizations.weight_norm,
            lambda part: nn.Sequential(part, nn.Linear(32, 32)),
            nn.Sequential,
        ],
    )
    def test_affine_ones_are_found_by_calling_them(self, change):
        model = self.changed(change)
        for head in record_heads(model, IDS):
            assert head.space == "residual stream" and head.X.shape[2] == 33
            assert (head.logits.softmax(1) - head.attention).abs().max() < FLOAT32

    def test_a_large_bias_rounds_no_weight_away(self):
        model = self.changed(nn.Sequential)
        plain = made("Bert")
        with torch.no_grad():
            for each in (
                model.encoder.layer[0].attention.self.key[0],
                plain.encoder.layer[0].attention.self.key,
            ):
                each.bias += 3000.0
        W, right = (record_heads(each, IDS, layers=0)[0].W for each in (model, plain))
        assert (W - right).abs().max() < 1e-5 * right.abs().max()

    @pytest.mark.parametrize(
        "change",
        [
            lambda part: nn.Sequential(part, nn.Tanh()),
            lambda part: Lost(32, 32),
        ],
    )
    def test_others_leave_the_head_in_key_space(self, change):
        found = record_heads(self.changed(change), IDS)
        assert len(found) == 8 and {head.space for head in found} == {"keys"}
        assert (found[5].logits.softmax(1) - found[5].attention).abs().max() < 1e-12

    @pytest.mark.parametrize("several", [True, False])
    def test_fused_maps_of_another_layout(self, several):
        for head in record_heads(made("GPTBigCode", **GPT2, multi_query=several), IDS):
            assert head.space == "residual stream"
            assert (head.logits.softmax(1) - head.attention).abs().max() < FLOAT32

    @pytest.mark.parametrize("name", ["Bert", "Llama", "GPT2"])
    def test_weights_that_are_elsewhere_are_fetched(self, name):
        sizes = GPT2 if name == "GPT2" else BERT
        right = record_heads(made(name, **sizes), IDS)
        model = offload(made(name, **sizes))
        found = record_heads(model, IDS)
        same_heads(found, right)
        assert all(weight.is_meta for weight in model.parameters())
        for a, b in zip(found, right, strict=True):
            assert a.space == b.space and (a.logits.softmax(1) - b.attention).abs().max() < FLOAT32

    def test_quantised_ones(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch moves its quantisation elsewhere
            model = torch.ao.quantization.quantize_dynamic(made("Bert"), {nn.Linear})
        assert {head.space for head in record_heads(model, IDS)} == {"keys"}


def test_the_pairs_behind_w_mm_add_up_to_it():
    bert, tokenizer = load_model("tiny")
    head = record_heads(bert, SENTENCES, tokenizer=tokenizer)[1, 0]
    table, svm = head.support_pairs(), head.compare().svm
    assert table.weight.is_monotonic_decreasing and len(table) == len(svm.support)
    assert table.share.sum() == pytest.approx(1)
    W = torch.zeros_like(svm.weights)
    for row in table.itertuples():
        words = head.tokens[row.sequence]
        assert words.count(row.selected) == words.count(row.other) == 1
        x = head.X[row.sequence]
        difference = x[words.index(row.selected)] - x[words.index(row.other)]
        W += row.weight * torch.outer(difference, x[0])
    assert (W - svm.weights).abs().max() < 1e-9 * svm.weights.abs().max()
    assert load_tokenizer("tiny").pad_token_id is not None
