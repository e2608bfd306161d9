"""BERT from safetensors: the classifier against that of transformers, sources, damaged files."""

import contextlib
import json
import logging
import shutil
import sys
from pathlib import Path

import pytest
import torch
from refusals import refuses

from attnbias.errors import (
    DtypeError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    NonFiniteError,
    RangeError,
    ShapeError,
)
from attnbias.nets import record_heads
from attnbias.nets.text import load_classifier, load_encoder, load_model, load_tokenizer

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

SENTENCES = ["Attention has a bias.", "It is implicit, and it selects one token."]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a tiny encoder of seed 5 and its tokenizer."""
    folder = tmp_path_factory.mktemp("bert")
    load_encoder("tiny", seed=5).save_pretrained(folder)
    load_tokenizer("tiny").save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "model"))


def words(tokenizer=None):
    tokenizer = tokenizer or load_tokenizer("tiny")
    return dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))


def same_weights(a, b):
    pairs = zip(a.state_dict().items(), b.state_dict().items(), strict=True)
    return all(x[0] == y[0] and torch.equal(x[1], y[1]) for x, y in pairs)


def test_it_is_the_classifier_of_transformers():
    model = load_classifier(3, "tiny", seed=2).eval()
    config = model.encoder.config
    config.num_labels = 3
    theirs = transformers.BertForSequenceClassification(config).eval()
    theirs.bert.load_state_dict(model.encoder.state_dict())
    theirs.classifier.load_state_dict(model.head.state_dict())
    alone = load_tokenizer("tiny")(SENTENCES[:1], return_tensors="pt")
    with torch.no_grad():
        own = model(**words())
        assert torch.equal(own, theirs(**words()).logits)
        moved = words() | {"token_type_ids": torch.ones_like(words()["token_type_ids"])}
        assert not torch.equal(model(**moved), own)
        torch.testing.assert_close(own[:1], model(**alone), rtol=0, atol=1e-6)  # without padding


def test_seeds_decide_the_weights_and_the_global_generator_rests(folder):
    before = torch.get_rng_state()
    first, again, other = (load_classifier(2, "tiny", seed=seed) for seed in (1, 1, 2))
    assert same_weights(first, again) and not same_weights(first.encoder, other.encoder)
    one, two = (load_classifier(2, folder, seed=seed) for seed in (1, 2))
    assert same_weights(one.encoder, two.encoder)  # only the head is new
    assert not torch.equal(one.head.weight, two.head.weight)
    assert torch.equal(torch.get_rng_state(), before)
    head = load_classifier(500, "tiny").head  # 32,000 draws: a deviation off by 0.4% on average
    assert head.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert not head.bias.any()


@pytest.mark.parametrize("dropout", [None, 0.0, 0.25])
def test_dropout_is_set_throughout(folder, dropout):
    for source in ("tiny", folder):
        model = load_classifier(2, source, dropout=dropout)
        rates = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
        assert rates == {0.1 if dropout is None else dropout} and model.training
    out = [load_classifier(2, "tiny", dropout=dropout)(**words()) for _ in range(2)]
    assert torch.equal(*out) == (dropout == 0)


def test_folders_give_back_what_was_saved(saved, tmp_path):
    """Also one that holds a folder minilm."""
    shutil.copytree(saved, tmp_path / "minilm")
    for source in (saved, str(saved), tmp_path):
        assert same_weights(load_encoder(source), load_encoder("tiny", seed=5))
        assert words(load_tokenizer(source))["input_ids"].equal(words()["input_ids"])


def test_the_vocabulary_is_that_of_bert_base_uncased():
    tokenizer = load_tokenizer("tiny")
    assert len(tokenizer) == 30522 and tokenizer.model_max_length == 512
    ids = (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.cls_token_id)
    assert ids + (tokenizer.sep_token_id, tokenizer.mask_token_id) == (0, 100, 101, 102, 103)
    assert tokenizer("Hello world!")["input_ids"] == [101, 7592, 2088, 999, 102]


@pytest.mark.parametrize(
    ("said", "pooling"),
    [
        (None, "first"),
        ({"pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({}, "refused"),
        ([], "refused"),
    ],
)
def test_a_folder_says_how_its_sentences_are_read(said, pooling, saved, tmp_path):
    """As a folder of sentence-transformers does."""
    folder = shutil.copytree(saved, tmp_path / "mine")
    if said is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    if pooling == "refused":
        with pytest.raises(FileFormatError, match="sentence-transformers"):
            load_classifier(2, folder)
    else:
        assert load_classifier(2, folder).pooling == pooling


def test_a_hub_out_of_reach_is_named(monkeypatch):
    def fail(*args, **options):
        assert options["use_safetensors"] and not options["local_files_only"]
        raise OSError("no route\nand more")

    monkeypatch.setattr(transformers.BertModel, "from_pretrained", fail)
    with pytest.raises(MissingFileError, match="no route. .*folder of your own"):
        load_encoder()


def test_transformers_is_quiet_and_left_as_it_was(folder, capfd):
    log = transformers.logging
    log.set_verbosity(logging.INFO)
    try:
        load_classifier(2, folder)
        assert log.get_verbosity() == logging.INFO and log.is_progress_bar_enabled()
        (folder / "model.safetensors").write_bytes(b"")
        with contextlib.suppress(FileFormatError):
            load_encoder(folder)
        assert log.get_verbosity() == logging.INFO and log.is_progress_bar_enabled()
    finally:
        log.set_verbosity_warning()
    assert capfd.readouterr() == ("", "")


def test_bad_arguments_are_refused_by_name():
    refuses(
        load_classifier,
        {"classes": 2, "source": "tiny"},
        {
            RangeError: [{"classes": 1}, {"source": "berta"}, {"seed": -1}, {"dropout": 1.0}],
            DtypeError: [{"classes": "3"}, {"source": 7}],
            NonFiniteError: [{"dropout": float("nan")}],
        },
    )
    with pytest.raises(ShapeError, match="at most 512"):
        load_classifier(2, "tiny")(torch.zeros(1, 513, dtype=torch.long))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for load in (load_encoder, load_tokenizer):
        with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
            load("tiny")


def test_missing_files_are_named_and_pickled_weights_are_not_read(folder):
    weights = folder / "model.safetensors"
    torch.save(safetensors.load_file(weights), folder / "pytorch_model.bin")
    for path in (*folder.glob("*tok*"), weights):
        path.unlink()
    with pytest.raises(MissingFileError, match="no tokenizer.json and no vocab.txt"):
        load_tokenizer(folder)
    with pytest.raises(MissingFileError, match="model.safetensors"):
        load_encoder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MissingFileError, match="config.json"):
        load_encoder(folder)


def test_cut_weights_are_refused(folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for keep in (-1, 1000, 5, 0):
        weights.write_bytes(whole[:keep])
        with pytest.raises(FileFormatError, match="get them again"):
            load_encoder(folder)


def test_incomplete_or_foreign_weights_are_refused(folder):
    weights = safetensors.load_file(folder / "model.safetensors")
    lacking = {name: x for name, x in weights.items() if name != "pooler.dense.bias"}
    safetensors.save_file(lacking, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(FileFormatError, match="1 missing, such as pooler.dense.bias"):
        load_encoder(folder)
    wide = weights | {"pooler.dense.bias": torch.zeros(65)}
    safetensors.save_file(wide, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(FileFormatError, match="fit the config"):
        load_encoder(folder)


def test_a_foreign_config_and_a_damaged_tokenizer_are_refused(folder):
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(FileFormatError):
        load_tokenizer(folder)
    for text in ("{", "[]", "{}", '{"model_type": "gpt2"}'):
        (folder / "config.json").write_text(text)
        for load in (load_encoder, load_tokenizer):
            with pytest.raises(FileFormatError, match="model_type"):
                load(folder)


def test_code_in_the_folder_is_not_run(folder, tmp_path):
    mark = tmp_path / "mark"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    for name, entry in (
        ("config.json", {"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}),
    ):
        settings = json.loads((folder / name).read_text()) | {"auto_map": entry}
        (folder / name).write_text(json.dumps(settings))
    load_encoder(folder)
    with contextlib.suppress(FileFormatError):
        load_tokenizer(folder)
    assert not mark.exists()


def test_any_model_is_loaded_from_a_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=30522)
    own = transformers.GPT2LMHeadModel(config)
    own.save_pretrained(tmp_path)
    load_tokenizer("tiny").save_pretrained(tmp_path)
    model, tokenizer = load_model(tmp_path)
    assert type(model).__name__ == "GPT2Model" and tokenizer.tokenize("A dog") == ["a", "dog"]
    assert torch.equal(model.wte.weight, own.transformer.wte.weight)
    assert len(record_heads(model, ["A dog.", "A man runs."], tokenizer=tokenizer)) == 2
    for source in ("./none", tmp_path / "none", "none.gguf", "none"):
        with pytest.raises(MissingFileError, match="none"):
            load_model(source)
