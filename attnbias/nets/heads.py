"""One attention head of a BERT encoder as the paper's single-layer attention.

A head scores token t against query s by (K h_t + b_K)'(Q h_s + b_Q) / sqrt(head width). With a
constant 1 appended to each hidden state, x = (h, 1), that is exactly x_t' W x_s of Eq. 1 with
W = (K b_K)'(Q b_Q) / sqrt(head width): the biases need no term of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch

from .._validate import require_int, short
from ..data import Dataset
from ..errors import DtypeError, RangeError, TiedTokensError
from .data.examples import require_tokenizer
from .head_margin import Comparison, compare

CHUNK = 32  # sentences a forward pass: the encoder returns the attention of all its layers


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """A head's key-query matrix and the tokens it sees; `attention_head` makes one.

    Attributes
    ----------
    W : (d + 1, d + 1) float64
        Logit of token t: x_t' W x_1.
    X : (n, T, d + 1) float64
        Hidden states at the layer's input with a 1 appended, the query's first; padding is 0.
    lengths : (n,) long
        Tokens of each sentence.
    tokens : list of list of str
        Word pieces, in the order of X.
    attention : (n, T) float32
        The query's attention as the encoder itself computes it, in the order of X.
    layer, head, query : int
        Which head it is, and the query's position in the sentence.

    Examples
    --------
    >>> from attnbias.nets import attention_head, load_encoder, load_tokenizer
    >>> words = ["Attention has a bias.", "It is implicit."]
    >>> head = attention_head(load_encoder("tiny"), load_tokenizer("tiny"), words, 1, 0)
    >>> head.X.shape, head.lengths.tolist()
    (torch.Size([2, 7, 65]), [7, 6])
    """

    W: torch.Tensor
    X: torch.Tensor
    lengths: torch.Tensor
    tokens: list
    attention: torch.Tensor
    layer: int
    head: int
    query: int

    @cached_property
    def logits(self) -> torch.Tensor:
        """(n, T) float64: x_t' W x_1, -inf at padding."""
        logits = torch.einsum("ntd,nd->nt", self.X, self.X[:, 0] @ self.W.T)
        column = torch.arange(self.X.shape[1])
        return logits.masked_fill(column >= self.lengths[:, None], -math.inf)

    @cached_property
    def selected(self) -> torch.Tensor:
        """(n,) long: the token that gets the most attention in each sentence.

        Raises
        ------
        TiedTokensError
        """
        top = self.logits.topk(2, dim=1).values
        tied = (top[:, 0] == top[:, 1]).nonzero().flatten()
        if len(tied):
            raise TiedTokensError(
                "sentences", expected="one token with the most attention in each",
                got=f"{len(tied)} with a tie, first {int(tied[0])}", remedy="drop these sentences",
            )  # fmt: skip
        return self.logits.argmax(dim=1)

    def dataset(self, y=None, u=None) -> Dataset:
        """The tokens as a data set.

        Parameters
        ----------
        y : (n,), optional
            Labels in {-1, +1}; +1 by default, since the W-SVM uses none.
        u : (d + 1,), optional
            A decoder, which decides the optimal tokens; by default they are those that the
            head selects.

        Returns
        -------
        Dataset

        Raises
        ------
        TiedTokensError, and the errors of Dataset
        """
        labels = torch.ones(len(self.X)) if y is None else y
        opt = self.selected if u is None else None
        name = f"layer {self.layer}, head {self.head}"
        return Dataset(self.X, labels, u, self.lengths, name=name, opt=opt)

    def compare(self) -> Comparison:
        """The head's W against the max-margin matrix that selects the same tokens.

        That one exists: W itself, rescaled, satisfies its constraints.

        Raises
        ------
        TiedTokensError, SolverError
        """
        return compare(self.W, self.dataset())

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        return (
            f"Head(layer {self.layer}, head {self.head}: n={n}, T={T}, d={d}, query {self.query})"
        )


def attention_head(encoder, tokenizer, sentences, layer: int, head: int, *, query: int = 0) -> Head:
    """One head of a BERT encoder on some sentences.

    Parameters
    ----------
    encoder : transformers.BertModel
        Left as it was: its mode, its dtype, its attention implementation.
    tokenizer : transformers.PreTrainedTokenizerBase
    sentences : list or tuple of str
        Those longer than the encoder's positions are cut.
    layer, head : int
        From 0.
    query : int
        Position of the query, the same in each sentence; 0 is [CLS].

    Returns
    -------
    Head

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: Eq. 1, with the appended constant [c].

    Examples
    --------
    >>> from attnbias.nets.heads import attention_head
    >>> from attnbias.nets.text import load_encoder, load_tokenizer
    >>> words = ["Attention has a bias.", "It is implicit."]
    >>> head = attention_head(load_encoder("tiny"), load_tokenizer("tiny"), words, 1, 0)
    >>> head
    Head(layer 1, head 0: n=2, T=7, d=65, query 0)
    >>> own = head.logits.softmax(dim=1)
    >>> bool((own - head.attention).abs().max() < 1e-5)
    True
    """
    _require_encoder(encoder)
    require_tokenizer(tokenizer)
    layer = require_int("layer", layer, low=0, high=encoder.config.num_hidden_layers - 1)
    head = require_int("head", head, low=0, high=encoder.config.num_attention_heads - 1)
    words = _words(tokenizer, sentences, encoder.config.max_position_embeddings)
    lengths = words["attention_mask"].sum(dim=1)
    query = require_int("query", query, low=0, high=int(lengths.min()) - 1)
    order = [query] + [t for t in range(int(lengths.max())) if t != query]
    hidden, attention = _run(encoder, words, layer, head, query)
    X = torch.cat([hidden.double(), torch.ones(*hidden.shape[:2], 1)], dim=2)
    X = X * words["attention_mask"][..., None]
    tokens = [
        tokenizer.convert_ids_to_tokens(row[order[:length]].tolist())
        for row, length in zip(words["input_ids"], lengths.tolist(), strict=True)
    ]
    W = _key_query(encoder.encoder.layer[layer].attention.self, head)
    return Head(W, X[:, order], lengths, tokens, attention[:, order], layer, head, query)


def _require_encoder(encoder) -> None:
    config = getattr(encoder, "config", None)
    plain = getattr(config, "position_embedding_type", "absolute") == "absolute"
    if getattr(config, "model_type", "") != "bert" or not plain or config.is_decoder:
        raise DtypeError(
            "encoder", expected="a BertModel with absolute positions that attends both ways",
            got=type(encoder).__name__,
            remedy="load_encoder gives one; of a TextClassifier pass its .encoder",
        )  # fmt: skip


def _words(tokenizer, sentences, longest: int) -> dict:
    strings = isinstance(sentences, list | tuple) and all(isinstance(s, str) for s in sentences)
    if not strings or not sentences:
        error, remedy = RangeError if strings else DtypeError, "pass a list of str"
        got = short(sentences)
        raise error("sentences", expected="strings, at least one", got=got, remedy=remedy)
    return tokenizer(
        list(sentences), padding=True, truncation=True, max_length=longest, return_tensors="pt"
    )


@torch.no_grad()
def _run(encoder, words, layer: int, head: int, query: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states that enter the layer (n, T, d), and the query's attention (n, T)."""
    training, kind = encoder.training, encoder.config._attn_implementation
    hidden, attention = [], []
    encoder.eval().set_attn_implementation("eager")  # the others don't return the attention
    try:
        for start in range(0, len(words["input_ids"]), CHUNK):
            part = {k: v[start : start + CHUNK].to(encoder.device) for k, v in words.items()}
            out = encoder(**part, output_attentions=True, output_hidden_states=True)
            hidden.append(out.hidden_states[layer].cpu())
            attention.append(out.attentions[layer][:, head, query].cpu())
    finally:
        encoder.train(training).set_attn_implementation(kind)
    return torch.cat(hidden), torch.cat(attention)


@torch.no_grad()
def _key_query(layer, head: int) -> torch.Tensor:
    """W = (K b_K)'(Q b_Q) / sqrt(width) of one head, (d + 1, d + 1) float64."""
    width = layer.attention_head_size
    rows = slice(head * width, (head + 1) * width)
    key, query = (
        torch.cat([part.weight[rows], part.bias[rows, None]], dim=1).double().cpu()
        for part in (layer.key, layer.query)
    )
    return key.T @ query / math.sqrt(width)
