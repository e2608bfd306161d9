"""Heads watched while they train: what is recorded, and that the run is none the wiser."""

import numpy as np
import pytest
import torch
from networks import same_curves, training
from torch import nn

from attnbias.errors import ChecksumError, DtypeError, FileFormatError, RangeError
from attnbias.nets import HeadProbe, HeadTrace, ViTSmall, record_heads
from attnbias.nets.heads.head_trace import SERIES

IMAGES = torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Images:
    """Images that are bright above or below."""

    def __len__(self):
        return len(IMAGES)

    def batch(self, rows):
        x = IMAGES[rows]
        return {"images": x}, (x[:, 0, :4].sum((1, 2)) > x[:, 0, 4:].sum((1, 2))).long()


def vit(dropout: float = 0.1) -> ViTSmall:
    sizes = dict(dim=16, depth=2, heads=2, mlp_dim=16, channels=1, head_dim=8)
    return ViTSmall(8, 4, 2, dropout=dropout, **sizes)


def watched(probe, *, steps: int = 6, **options):
    sgd = lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9)  # noqa: E731
    sets = {"train": Images(), "test": Images()}
    return training(sgd, model=vit(), **sets, steps=steps, record_every=2, probe=probe, **options)


def same_traces(one: HeadTrace, other: HeadTrace) -> bool:
    pairs = [(one.step, other.step), (one.selected, other.selected)]
    pairs += [(one[name], other[name]) for name in SERIES]
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


class TestViT:
    def test_its_heads_collect_what_the_layer_does(self):
        """The recorded attention and values, put through the layer's output map."""
        model = vit().eval()
        for number, block in enumerate(model.blocks):
            seen = {}
            hook = block.attention.register_forward_hook(
                lambda _, __, out, seen=seen: seen.update(out=out[:, 0])
            )
            model(IMAGES)
            hook.remove()
            heads = record_heads(model, IMAGES, layers=number)
            assert {head.space for head in heads} == {"residual stream"}
            each = [torch.einsum("nt,ntm->nm", h.logits.softmax(1), h.values) for h in heads]
            out = torch.cat(each, dim=1).float() @ block.attention.out.weight.T
            # float32 sums of 16 numbers of order 1
            assert (out + block.attention.out.bias - seen["out"]).abs().max() < 1e-5

    def test_the_query_gets_nothing_from_itself(self):
        head = record_heads(vit(), IMAGES, query=2)[0, 1]
        assert head.lengths.tolist() == [4] * len(IMAGES)
        assert head.positions[0].tolist() == [0, 1, 3, 4] and head.queries is not None
        assert head.compare().margin > 0


class TestInTheLoop:
    def test_a_probe_changes_no_digit(self):
        assert same_curves(watched(None), watched(HeadProbe(IMAGES[:5])))

    def test_a_resumed_run_has_the_whole_record(self, tmp_path, monkeypatch):
        whole, file = HeadProbe(IMAGES[:5]), tmp_path / "run.npz"
        log = watched(whole)
        called = HeadProbe.__call__

        def broken(self, model, step):
            if step == 4:
                raise KeyboardInterrupt
            called(self, model, step)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(HeadProbe, "__call__", broken)
            watched(HeadProbe(IMAGES[:5]), checkpoint=file)
        with pytest.raises(FileFormatError, match="probe = none"):
            watched(None, checkpoint=file)
        again = HeadProbe(IMAGES[:5])
        assert same_curves(log, watched(again, checkpoint=file))
        assert same_traces(whole.trace(), again.trace())

    def test_a_plain_function_is_called_with_the_model(self):
        found = []
        watched(lambda model, step: found.append((type(model), step)))
        assert found == [(ViTSmall, step) for step in (0, 2, 4, 6)]

    def test_what_is_no_function_is_refused(self):
        with pytest.raises(DtypeError, match="probe"):
            watched(3)


class Scaled(nn.Module):
    """One layer whose key-query matrices are multiplied by a number."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(1)
            self.layer = nn.MultiheadAttention(8, 2, batch_first=True, bias=False)
        self.start = self.layer.in_proj_weight.detach().clone()

    def times(self, factor: float):
        with torch.no_grad():  # keys and queries by its root each, values not
            self.layer.in_proj_weight[:16] = self.start[:16] * factor**0.5
        return self

    def forward(self, x):
        return self.layer(x, x, x)


class Widths(Scaled):
    """A second layer, of twice the width, behind the first."""

    def __init__(self):
        super().__init__()
        self.wide = nn.MultiheadAttention(16, 2, batch_first=True, bias=False)

    def forward(self, x):
        x = super().forward(x)[0].repeat(1, 1, 2)
        return self.wide(x, x, x)


TOKENS = torch.randn(5, 4, 8, generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module")
def grown() -> HeadTrace:
    """W at 1, 3, 9 and 5 times its start: what each number is can be said beforehand."""
    model, probe = Scaled(), HeadProbe(TOKENS)
    for step, factor in enumerate((1.0, 3.0, 9.0, 5.0)):
        probe(model.times(factor), 10 * step)
    return probe.trace()


FLOAT32_STEP = 1e-6  # W is kept in float32, and its factors are made in it


class TestWhatIsRecorded:
    def test_a_matrix_that_grows_goes_its_length(self, grown):
        size = grown["norm"][0]
        assert grown.step.tolist() == [0, 10, 20, 30] and grown.head.tolist() == [0, 1]
        assert grown["norm"] == pytest.approx(np.outer([1, 3, 9, 5], size), rel=FLOAT32_STEP)
        assert grown["path"] == pytest.approx(np.outer([0, 2, 8, 12], size), rel=FLOAT32_STEP)

    def test_its_direction_and_selection_stay(self, grown):
        assert (grown["kept"] == 1).all() and (grown.selected == grown.selected[0]).all()
        for name in ("margin", "cosine", "cosine_span", "cosine_end"):
            wanted = np.broadcast_to(grown[name][0], grown[name].shape)
            assert grown[name] == pytest.approx(wanted, rel=1e-4)  # two W-SVMs of one selection
        assert grown["cosine_end"][-1] == pytest.approx(grown["cosine"][-1], rel=FLOAT32_STEP)

    def test_entropy_and_saturation_are_those_of_the_softmax(self, grown):
        model = Scaled().times(3.0)
        _, weights = model.layer(TOKENS, TOKENS, TOKENS, average_attn_weights=False)
        p = weights[:, :, 0].detach().double()  # the query is the first token
        entropy = -(p * p.log()).sum(dim=2).mean(dim=0)
        assert grown["entropy"][1] == pytest.approx(entropy.numpy(), rel=1e-5)  # float32 softmax
        assert grown["saturation"][1] == pytest.approx(p.amax(2).mean(0).numpy(), rel=1e-5)
        assert (grown.selected[1] == p.argmax(2).T.numpy()).all()
        assert (np.diff(grown["saturation"][:3], axis=0) > 0).all()

    def test_a_selection_that_changes_is_counted(self):
        model, probe = Scaled(), HeadProbe(TOKENS)
        probe(model.times(1.0), 0)
        with torch.no_grad():
            model.layer.in_proj_weight[:8] *= -1  # the logits change their sign
        probe(model, 1)
        trace = probe.trace()
        share = (trace.selected[0] == trace.selected[1]).mean(axis=1)
        assert (trace["kept"] == np.stack([share, np.ones(2)])).all() and share.max() < 1
        # -W is for no head what selects as W does
        assert (trace["cosine_end"][0] == -trace["cosine_end"][1]).all()

    def test_where_no_token_leads_there_is_no_margin(self):
        probe = HeadProbe(TOKENS)
        probe(Scaled().times(0.0), 0)
        trace = probe.trace()
        assert np.isnan(trace["margin"]).all() and np.isnan(trace["cosine_end"]).all()
        assert trace["entropy"] == pytest.approx(np.full((1, 2), np.log(4)))

    def test_the_table_has_a_row_a_record_and_head(self, grown):
        table = grown.to_dataframe()
        assert len(table) == 8 and list(table["head"][:3]) == [0, 1, 0]
        assert (table.loc[table["step"] == 20, "norm"].to_numpy() == grown["norm"][2]).all()


class TestRefused:
    def test_a_step_before_the_last(self):
        probe, model = HeadProbe(TOKENS), Scaled()
        probe(model, 5)
        with pytest.raises(RangeError, match="more than 5"):
            probe(model, 5)

    @pytest.mark.parametrize(
        "change", [{"inputs": 3}, {"layers": "all"}, {"heads": 0.5}, {"tokenizer": 1}]
    )
    def test_what_no_model_could_be_asked_before_there_is_one(self, change):
        with pytest.raises(DtypeError, match=next(iter(change))):
            HeadProbe(**{"inputs": TOKENS} | change)

    def test_a_trace_of_nothing(self):
        with pytest.raises(RangeError, match="at least one record"):
            HeadProbe(TOKENS).trace()

    def test_heads_without_a_matrix_of_their_own(self):
        transformers = pytest.importorskip("transformers")
        sizes = dict(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            vocab_size=20,
            intermediate_size=16,
            num_key_value_heads=2,
        )
        model = transformers.LlamaModel(transformers.LlamaConfig(**sizes))
        words = {"input_ids": torch.arange(12).reshape(2, 6)}
        with pytest.raises(RangeError, match="residual stream"):
            HeadProbe(words)(model, 0)

    def test_a_state_of_something_else(self):
        with pytest.raises(FileFormatError, match="state"):
            HeadProbe(TOKENS).load_state_dict({"weight": 1})

    @pytest.mark.parametrize("other", [{"inputs": TOKENS + 1}, {"heads": 1}, {"query": 2}])
    def test_a_state_of_other_inputs_or_heads(self, other):
        asked = {"inputs": TOKENS, "heads": 0, "query": 1}
        probe = HeadProbe(**asked)
        probe(Scaled(), 0)
        HeadProbe(**asked).load_state_dict(probe.state_dict())
        with pytest.raises(FileFormatError, match="a probe of other inputs"):
            HeadProbe(**asked | other).load_state_dict(probe.state_dict())

    def test_layers_of_several_widths(self):
        model = Widths()
        with pytest.raises(RangeError, match=r"layers: .* W \(16, 16\) and .* W \(8, 8\)"):
            HeadProbe(TOKENS)(model, 0)
        for layer in (0, 1):
            HeadProbe(TOKENS, layers=layer)(model, 0)


class TestFile:
    def test_comes_back(self, grown, tmp_path):
        back = HeadTrace.load(grown.save(tmp_path / "heads.npz"))
        assert same_traces(grown, back) and back.meta == grown.meta
        assert "commit" in back.meta["provenance"] and (back.query == grown.query).all()

    def test_a_changed_number_is_found(self, grown, tmp_path):
        file = grown.save(tmp_path / "heads.npz")
        data = bytearray(file.read_bytes())
        at = data.index(grown["entropy"].tobytes())
        data[at] ^= 1
        file.write_bytes(data)
        with pytest.raises((ChecksumError, FileFormatError)):  # zip has a checksum of its own
            HeadTrace.load(file)
