"""An extract of MiniLM, a small BERT, that comes with attnbias: real embeddings of real text.

Static word-piece embeddings for a few hundred texts, and what two attention heads see of forty
sentences. Enough to hold Assumption 1 and W_mm against real tokens without a download.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import (
    as_float_tensor,
    as_tensor,
    require_choice,
    require_finite,
    require_flag,
    require_number,
    require_shape,
    short,
)
from ...data._source import bundled
from ...dataset import Dataset
from ...errors import DtypeError, RangeError
from .text import NLI, TOXIC

FILE, VOCABULARY = "minilm_sample.npz", "bert_vocab.txt.gz"
TEXTS = {"premises": NLI, "hypotheses": NLI, "training hypotheses": NLI, "comments": TOXIC}
HEADS = ((2, 10), (5, 8))  # layer and head, from 0
CLS = 101  # number of [CLS], the token that BERT puts first


@dataclass(frozen=True, eq=False)
class TokenTexts:
    """Texts as rows of a table of embeddings.

    Attributes
    ----------
    rows : tuple of (T_i,) int64 arrays
        The word pieces of each text in order, without special tokens.
    labels : (m,) int64
        Positions in `classes`.
    classes : tuple of str
    """

    rows: tuple[np.ndarray, ...]
    labels: np.ndarray
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class MiniLMSample:
    """Static embeddings of MiniLM for the word pieces of some texts.

    Attributes
    ----------
    vectors : (P, d) float64
        One word piece a row.
    words : tuple of str
        The pieces.
    texts : dict of str to TokenTexts
        "premises" and "hypotheses" of 200 pairs of SNLI, "training hypotheses" of others,
        and "comments", toxic or not. No text of the last is meant to be printed.
    cls : int
        Row of [CLS].
    """

    vectors: torch.Tensor
    words: tuple[str, ...]
    texts: dict[str, TokenTexts]
    cls: int


def load_minilm_sample() -> MiniLMSample:
    """The static embeddings that come with attnbias.

    Returns
    -------
    MiniLMSample

    Raises
    ------
    MissingFileError, ChecksumError

    Notes
    -----
    all-MiniLM-L6-v2 (Apache-2.0): rows of its word-embedding matrix, rounded to half
    precision, before position embeddings and layer normalisation are added.

    Examples
    --------
    >>> from attnbias.nets.data.minilm import load_minilm_sample
    >>> sample = load_minilm_sample()
    >>> sample.vectors.shape[1], len(sample.texts["premises"])
    (384, 200)
    """
    arrays = read_arrays()
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float64))
    texts = {name: _texts(arrays, name, classes) for name, classes in TEXTS.items()}
    cls = int(np.searchsorted(arrays["pieces"], CLS))
    return MiniLMSample(vectors, piece_names(arrays["pieces"]), texts, cls)


def read_arrays() -> dict[str, np.ndarray]:
    """Everything in the bundled file.

    Raises
    ------
    MissingFileError, ChecksumError
    """
    with np.load(io.BytesIO(bundled(FILE)), allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def piece_names(pieces) -> tuple[str, ...]:
    """Word pieces of the uncased BERT vocabulary by number."""
    words = gzip.decompress(bundled(VOCABULARY)).decode().splitlines()
    return tuple(words[piece] for piece in pieces)


def split_rows(flat: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Stretches of these lengths, one after another."""
    return np.split(flat, np.cumsum(lengths)[:-1])


def _texts(arrays: dict, name: str, classes: tuple[str, ...]) -> TokenTexts:
    key = name.replace(" ", "_")
    flat = np.searchsorted(arrays["pieces"], arrays[f"{key}_pieces"]).astype(np.int64)
    rows = split_rows(flat, arrays[f"{key}_lengths"])
    return TokenTexts(tuple(rows), arrays[f"{key}_labels"].astype(np.int64), classes)


def embed(
    texts, vectors, y, u=None, *, query: int | None = None, repeats: bool = True, name: str = ""
) -> Dataset:
    """Texts as a data set: one embedding a token.

    Parameters
    ----------
    texts : sequence of integer arrays
        Rows of the vectors, in the order of the text.
    vectors : (V, d) float
        The embeddings.
    y : (n,)
        Labels in {-1, +1}.
    u : (d,), optional
        The decoder.
    query : int, optional
        A row put in front of each text, such as that of [CLS]; by default the first token of
        a text is its query.
    repeats : bool
        False keeps only the first of equal tokens of a text; two of them tie for the best.
    name : str

    Returns
    -------
    Dataset
        Padded to the longest text.

    Raises
    ------
    DtypeError, RangeError, and the errors of Dataset

    Examples
    --------
    >>> from attnbias.nets.data.minilm import embed
    >>> table = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> embed([[0, 1], [2, 0, 2]], table, [1, -1], query=1, repeats=False)
    Dataset(n=2 sequences, T=3 tokens (ragged), d=2 features, decoder none)
    """
    vectors = as_float_tensor("vectors", vectors).detach()
    require_shape("vectors", vectors, (None, None), "(V, d)")
    require_flag("repeats", repeats)
    rows = [_sequence(text, query, repeats, len(vectors)) for text in texts]
    if not rows:
        raise RangeError("texts", expected="at least one", got="none", remedy="pass some texts")
    lengths = torch.tensor([len(row) for row in rows])
    X = torch.nn.utils.rnn.pad_sequence([vectors[row] for row in rows], batch_first=True)
    return Dataset(X, y, u, lengths, name=name)


def _sequence(text, query, repeats: bool, size: int) -> torch.Tensor:
    row = np.asarray(text)
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise DtypeError(
            "texts", expected="one-dimensional arrays of integers", got=short(text),
            remedy="pass the rows of the tokens of each text",
        )  # fmt: skip
    row = row if query is None else np.concatenate([[query], row])
    if row.size and not 0 <= row.min() <= row.max() < size:
        raise RangeError(
            "texts", expected=f"rows of the vectors, 0 to {size - 1}",
            got=f"{row.min()} to {row.max()}", remedy="use the tokenizer of these embeddings",
        )  # fmt: skip
    if not repeats:
        row = row[np.sort(np.unique(row, return_index=True)[1])]
    return torch.from_numpy(row.astype(np.int64))


def linear_probe(texts, vectors, y, *, ridge: float = 0.1) -> torch.Tensor:
    """A decoder from labelled texts: ridge regression of the label on the mean embedding.

    Parameters
    ----------
    texts : sequence of integer arrays
        Rows of the vectors; each text has one at least.
    vectors : (V, d) float
    y : (n,)
        Labels in {-1, +1}.
    ridge : float
        Weight of |u|^2 beside the sum of squared errors.

    Returns
    -------
    (d,) float64
        Fitted with an intercept, which is left out: Eq. 1 has none.

    Raises
    ------
    DtypeError, ShapeError, RangeError, NonFiniteError

    Examples
    --------
    >>> from attnbias.nets.data.minilm import linear_probe
    >>> linear_probe([[0], [1]], [[1.0, 0.0], [-1.0, 0.0]], [1, -1], ridge=2.0).tolist()
    [0.5, 0.0]
    """
    vectors = as_float_tensor("vectors", vectors, dtype=torch.float64).detach()
    require_shape("vectors", vectors, (None, None), "(V, d)")
    ridge = require_number("ridge", ridge, low=0, open_low=True, high=1e100)
    rows = [_sequence(text, None, True, len(vectors)) for text in texts]
    if not rows or not all(map(len, rows)):
        raise RangeError(
            "texts", expected="texts of one token at least", got="none, or an empty one",
            remedy="drop the empty ones",
        )  # fmt: skip
    means = torch.stack([vectors[row].mean(dim=0) for row in rows])
    require_finite("vectors", means)
    y = as_tensor("y", y).double()
    require_shape("y", y, (len(means),), "(n,)")
    means = means - means.mean(dim=0)
    gram = means.T @ means + ridge * torch.eye(means.shape[1], dtype=torch.float64)
    return torch.linalg.solve(gram, means.T @ y)


def head_arrays(layer: int, head: int) -> dict[str, np.ndarray]:
    """What comes with attnbias of one head: see `attnbias.nets.bundled_head`.

    Raises
    ------
    RangeError, MissingFileError, ChecksumError
    """
    names = {f"{a}, {b}": (a, b) for a, b in HEADS}
    chosen = names[require_choice("layer, head", f"{layer}, {head}", tuple(names))]
    arrays = read_arrays()
    key = "{}_{}".format(*chosen)
    return {
        "hidden": arrays[f"hidden_{layer}"],
        "pieces": arrays["head_pieces"],
        "lengths": arrays["head_lengths"],
        **{part: arrays[f"{part}_{key}"] for part in ("query", "key", "attention")},
    }
