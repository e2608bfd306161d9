"""BERT encoders, their tokenizers, and a classifier with a new head on top.

Weights come from safetensors files alone, code from `transformers` alone. Three sources:
"huggingface" (bert-base-uncased), "tiny" (random weights, real vocabulary, no file to fetch), or a
folder with config.json, model.safetensors and a tokenizer.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from .._extras import need
from .._files import as_path
from .._validate import (
    PathLike,
    require_choice,
    require_int,
    require_number,
    require_seed,
    require_shape,
    require_type,
)
from ..errors import DtypeError, MissingExtraError, MissingFileError, RangeError, ShapeError
from ._bert_files import (
    CONFIG,
    WEIGHTS,
    WORDS,
    name_or_folder,
    pooling_of,
    quiet,
    require_complete,
    require_tokenizer_files,
)
from .data.minilm import vocabulary

TINY = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
PIECES = "TextExamples gives them, and so do tokenizers with return_tensors='pt'"


class TextClassifier(nn.Module):
    """A BERT encoder, dropout, and one linear map from its pooled tokens to the classes.

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
    pooling : {"first", "mean"}
        What the head reads: the encoder's pooling layer on the first token, which makes the model
        the same function as `BertForSequenceClassification` of `transformers`, or the mean of the
        last layer's tokens, padding left out; the encoder's pooling layer is then taken away.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Examples
    --------
    >>> from attnbias.nets import load_encoder
    >>> model = TextClassifier(load_encoder("tiny"), 2, dropout=0.1, seed=0)
    >>> model(torch.zeros(3, 5, dtype=torch.long)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, encoder: Any, classes: int, *, dropout: float, seed: int, pooling: str = "first"
    ) -> None:
        super().__init__()
        kind = nn.Module if hasattr(encoder, "config") else ()
        require_type("encoder", encoder, kind, "a BertModel", "load_encoder gives one")
        classes = require_int("classes", classes, low=1)
        dropout = require_number("dropout", dropout, low=0, high=1)
        seed = require_seed(seed)
        self.pooling = require_choice("pooling", pooling, ("first", "mean"))
        if pooling == "mean":
            encoder.pooler = None  # a layer without gradients would stop several processes
        self.encoder, self.dropout = encoder, nn.Dropout(dropout)
        self.head = nn.utils.skip_init(nn.Linear, encoder.config.hidden_size, classes)
        generator = torch.Generator().manual_seed(seed)
        deviation = encoder.config.initializer_range
        nn.init.normal_(self.head.weight, std=deviation, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(b, T) word pieces to (b, classes) scores.

        Raises
        ------
        DtypeError, ShapeError, RangeError
        """
        config: Any = self.encoder.config
        shape: tuple = (None, None)
        longest = config.max_position_embeddings
        for name, value, size in (
            ("input_ids", input_ids, config.vocab_size),
            ("attention_mask", attention_mask, None),
            ("token_type_ids", token_type_ids, config.type_vocab_size),
        ):
            if value is not None or name == "input_ids":
                shape = _require_pieces(name, value, shape, size)
        if input_ids.shape[-1] > longest:
            raise ShapeError(
                "input_ids",
                expected=f"at most {longest} word pieces, the positions this encoder has",
                got=str(input_ids.shape[-1]),
                remedy="give TextExamples a smaller max_length",
            )
        found = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        pooled = found.pooler_output
        if self.pooling == "mean":
            tokens = found.last_hidden_state
            seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
            weights = seen.to(tokens.dtype)[:, None]
            pooled = (weights @ tokens)[:, 0] / weights.sum(dim=2).clamp(min=1)
        return self.head(self.dropout(pooled))


def _require_pieces(name: str, value, shape: tuple, size: int | None) -> tuple:
    """The shape of integers below `size`, if one is given."""
    require_type(name, value, torch.Tensor, "a tensor of integers", PIECES)
    require_shape(name, value, shape, "(b, T)", "one row of word pieces a text, padded")
    if size is None:
        return tuple(value.shape)
    if value.dtype not in (torch.int64, torch.int32):
        raise DtypeError(name, expected="integers", got=str(value.dtype), remedy=PIECES)
    # on a GPU this would wait for it
    if value.device.type == "cpu" and not 0 <= int(value.min()) <= int(value.max()) < size:
        raise RangeError(
            name,
            expected=f"numbers from 0 to {size - 1}",
            got=f"{int(value.min())} to {int(value.max())}",
            remedy="take the tokenizer of this encoder",
        )
    return tuple(value.shape)


def load_classifier(
    classes: int, source: PathLike = "huggingface", *, seed: int = 0, dropout: float | None = None
) -> TextClassifier:
    """An encoder of the source with a new head, which reads the tokens as the encoder was trained.

    That is by the first token, unless a folder says otherwise in 1_Pooling/config.json, as those of
    sentence-transformers do: MiniLM was trained by the mean of its tokens.

    Parameters
    ----------
    classes : int
        Number of scores, at least 2.
    source : {"huggingface", "tiny"} or path
        Where the encoder comes from.
    seed : int
        Of the head's weights, and of all weights of "tiny".
    dropout : float, optional
        In [0, 1), throughout; None keeps the encoder's own, 0.1 for both words.

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
    encoder = load_encoder(source, seed=seed, dropout=dropout)
    own = getattr(encoder.config, "classifier_dropout", None) if dropout is None else float(dropout)
    rate = encoder.config.hidden_dropout_prob if own is None else own
    return TextClassifier(encoder, classes, dropout=rate, seed=seed, pooling=pooling_of(source))


def load_encoder(
    source: PathLike = "huggingface", *, seed: int = 0, dropout: float | None = None
) -> Any:
    """The BERT encoder of a source, in float32 on the CPU.

    Parameters
    ----------
    source, seed, dropout
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
    seed = require_seed(seed)
    rates = {}
    if dropout is not None:
        dropout = require_number("dropout", dropout, low=0, high=1, open_high=True)
        rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    if isinstance(source, str) and source == "tiny":
        transformers = need("transformers")
        config = transformers.BertConfig(**TINY, **rates)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.default_generator.manual_seed(seed)
            return transformers.BertModel(config).train()
    name, options = name_or_folder(source, (CONFIG, WEIGHTS))
    options |= rates | {"use_safetensors": True, "dtype": torch.float32}
    with quiet(name) as transformers:
        encoder, report = transformers.BertModel.from_pretrained(
            name, output_loading_info=True, **options
        )
    require_complete(name, report["missing_keys"])
    return encoder.train()


def load_tokenizer(source: PathLike = "huggingface") -> Any:
    """The tokenizer of a source.

    Parameters
    ----------
    source
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
    if isinstance(source, str) and source == "tiny":
        words = {word: number for number, word in enumerate(vocabulary())}
        return need("transformers").BertTokenizer(words, do_lower_case=True, model_max_length=512)
    name, options = name_or_folder(source, (CONFIG, WORDS))
    with quiet(name) as transformers:
        return transformers.AutoTokenizer.from_pretrained(
            name, trust_remote_code=False, use_fast=True, **options
        )


def load_model(source: PathLike = "huggingface") -> tuple[Any, Any]:
    """A model of `transformers`, any that has attention, and its tokenizer.

    Parameters
    ----------
    source : {"huggingface", "tiny"} or path or str
        As in `load_classifier`; or a folder or a file of weights (.gguf, by the package gguf); or
        a name on the Hugging Face hub, such as "HuggingFaceTB/SmolLM2-135M".

    Returns
    -------
    transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase
        Without its task's head, in float32 on the CPU; no code but that of `transformers` is run.

    Raises
    ------
    DtypeError, RangeError, MissingFileError, FileFormatError, MissingExtraError

    Examples
    --------
    >>> from attnbias.nets import load_model
    >>> model, tokenizer = load_model("tiny")
    >>> model.config.model_type, tokenizer.tokenize("Softmax attention")
    ('bert', ['soft', '##max', 'attention'])
    """
    if isinstance(source, str) and source in ("huggingface", "tiny"):
        return load_encoder(source), load_tokenizer(source)
    path = as_path(source)
    name, here, file = str(source), os.path.exists(path), path.suffix == ".gguf"
    local = file or not isinstance(source, str) or name.count("/") != 1 or name[0] in "./~"
    if local and not here:
        raise MissingFileError(
            name[:80],
            expected="a folder or a file of weights, or OWNER/NAME on the hub",
            got="none there",
            remedy="check the path, or name the owner",
        )
    if path.is_dir():
        require_tokenizer_files(path)
    options: dict[str, Any] = {"local_files_only": here, "trust_remote_code": False}
    weights = {"use_safetensors": True}
    if file:
        if find_spec("gguf") is None:
            raise MissingExtraError(
                name, expected="the package gguf", got="none", remedy="run pip install gguf"
            )
        name, options["gguf_file"], weights = str(path.parent), path.name, {}
    with quiet(name) as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
        model = transformers.AutoModel.from_pretrained(
            name, dtype=torch.float32, **weights, **options
        )
    return model, tokenizer
