"""Two attention heads of MiniLM that come with attnbias, rebuilt without its encoder."""

from __future__ import annotations

import math

import numpy as np
import torch

from .._validate import require_choice
from .data.minilm import HEADS, piece_names, read_arrays, split_rows
from .heads import Head


def load_bundled_head(layer: int = 5, head: int = 8) -> Head:
    """One of two heads of MiniLM on forty sentences of SNLI, with [CLS] as the query.

    Parameters
    ----------
    layer, head : int
        5 and 8, a head that looks for people, or 2 and 10, one that looks at [CLS] itself.

    Returns
    -------
    Head
        That of `attention_head` on the same sentences, but for hidden states rounded to half
        precision; `attention` is the encoder's own, before the rounding.

    Raises
    ------
    RangeError, MissingFileError, ChecksumError

    Examples
    --------
    >>> from attnbias.nets.bundled_head import load_bundled_head
    >>> head = load_bundled_head()
    >>> head
    Head(layer 5, head 8: n=40, T=32, d=385, query 0)
    >>> own = head.logits.softmax(dim=1)
    >>> bool((own - head.attention).abs().max() < 0.01)
    True
    """
    names = tuple(f"{a}, {b}" for a, b in HEADS)
    name = require_choice("layer, head", f"{layer}, {head}", names).replace(", ", "_")
    arrays = read_arrays()
    lengths = torch.from_numpy(arrays["head_lengths"].astype(np.int64))
    hidden = _padded(arrays[f"hidden_{layer}"].astype(np.float64), lengths)
    ones = _padded(np.ones((int(lengths.sum()), 1)), lengths)
    key, query = (torch.from_numpy(arrays[f"{part}_{name}"]).double() for part in ("key", "query"))
    pieces = split_rows(arrays["head_pieces"], lengths.numpy())
    tokens = [list(piece_names(row)) for row in pieces]
    attention = _padded(arrays[f"attention_{name}"].astype(np.float32), lengths)
    W, X = key.T @ query / math.sqrt(len(key)), torch.cat([hidden, ones], dim=2)
    return Head(W, X, lengths, tokens, attention, layer, head, query=0)


def _padded(flat: np.ndarray, lengths: torch.Tensor) -> torch.Tensor:
    """(n, T, ...) from the tokens of all sentences one after another; padding is 0."""
    rows = torch.from_numpy(flat).split(lengths.tolist())
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
