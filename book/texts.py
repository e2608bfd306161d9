"""Texts as words and as data sets, decoders from labelled texts, and two heads of MiniLM."""

import math

import numpy as np
import torch

from attnbias import Dataset
from attnbias._validate import (
    as_float_tensor,
    as_tensor,
    require_choice,
    require_finite,
    require_flag,
    require_shape,
)
from attnbias.data._source import bundled_arrays
from attnbias.errors import RangeError
from attnbias.nets import Head
from attnbias.nets.data._arrays import as_rows
from attnbias.nets.data.minilm import FILE, HEADS, vocabulary

RIDGE = 0.1


def whole_words(pieces, weights) -> tuple[list[str], np.ndarray]:
    """Word pieces joined to words, each with the sum of its pieces' weights.

    Parameters
    ----------
    pieces : sequence of str
        As BERT has them: what goes on with a word begins with ##.
    weights : (T,) array
        One a piece; what is behind the last one, padding, is left out.

    Returns
    -------
    list of str, (W,) float64

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> from book.texts import whole_words
    >>> words, weights = whole_words(["un", "##icy", "##cles", "."], [0.25, 0.25, 0.5, 0])
    >>> words, weights.tolist()
    (['unicycles', '.'], [1.0, 0.0])
    """
    weights = as_float_tensor("weights", weights).double()[: len(pieces)]
    require_shape("weights", weights, (len(pieces),), "(T,), one a piece")
    require_finite("weights", weights)
    goes_on = [k > 0 and piece.startswith("##") for k, piece in enumerate(pieces)]
    begins = np.flatnonzero(~np.array(goes_on, dtype=bool))
    ends = [*begins[1:].tolist(), len(pieces)]
    words = [
        pieces[a] + "".join(piece.removeprefix("##") for piece in pieces[a + 1 : b])
        for a, b in zip(begins.tolist(), ends, strict=True)
    ]
    return words, np.add.reduceat(weights.numpy(), begins)


def new_words(words) -> np.ndarray:
    """Which words of a pair's second sentence its first does not have; no signs.

    Parameters
    ----------
    words : sequence of str
        [CLS], the first sentence, [SEP], the second, [SEP].

    Returns
    -------
    (W,) bool

    Raises
    ------
    RangeError
        No [SEP] ends the first sentence.

    Examples
    --------
    >>> from book.texts import new_words
    >>> new_words("[CLS] a dog . [SEP] a cat . [SEP]".split()).nonzero()[0].tolist()
    [6]
    """
    words = list(words)
    if "[SEP]" not in words:
        raise RangeError(
            "words", expected="a [SEP] between two sentences", got="none", remedy="pass a pair"
        )
    middle = words.index("[SEP]")
    seen = set(words[:middle])
    return np.array([k > middle and w.isalnum() and w not in seen for k, w in enumerate(words)])


def embed(texts, vectors, y, u=None, *, repeats: bool = True) -> Dataset:
    """Texts as a data set: one embedding a token; the first token of a text is its query.

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
    repeats : bool
        False keeps only the first of equal tokens of a text; two of them tie for the best.

    Returns
    -------
    Dataset
        Padded to the longest text.

    Raises
    ------
    DtypeError, RangeError, and the errors of Dataset

    Examples
    --------
    >>> from book.texts import embed
    >>> table = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> embed([[0, 1, 2], [2, 0, 2]], table, [1, -1], repeats=False)
    Dataset(n=2 sequences, T=3 tokens (ragged), d=2 features, decoder none)
    """
    vectors = as_float_tensor("vectors", vectors).detach()
    require_shape("vectors", vectors, (None, None), "(V, d)")
    require_flag("repeats", repeats)
    rows = _sequences(texts, repeats, len(vectors))
    lengths = torch.tensor([len(row) for row in rows])
    X = torch.nn.utils.rnn.pad_sequence([vectors[row] for row in rows], batch_first=True)
    return Dataset(X, y, u, lengths)


def _sequences(texts, repeats: bool, size: int) -> list[torch.Tensor]:
    """The rows of each text in order."""
    rows = [as_rows("texts", text, size) for text in texts]
    if not rows:
        raise RangeError("texts", expected="at least one", got="none", remedy="pass some texts")
    if not repeats:
        rows = [row[np.sort(np.unique(row, return_index=True)[1])] for row in rows]
    return [torch.from_numpy(row) for row in rows]


def linear_probe(texts, vectors, y) -> torch.Tensor:
    """A decoder from labelled texts: ridge regression of the label on the mean embedding.

    Parameters
    ----------
    texts : sequence of integer arrays
        Rows of the vectors; each text has one at least.
    vectors : (V, d) float
    y : (n,)
        Labels in {-1, +1}.

    Returns
    -------
    (d,) float64
        Fitted with an intercept, which is left out: Eq. 1 has none. `RIDGE` is the weight of
        |u|^2 beside the sum of squared errors.

    Raises
    ------
    DtypeError, ShapeError, RangeError, NonFiniteError

    Examples
    --------
    >>> from book.texts import linear_probe
    >>> linear_probe([[0], [1]], [[3.0, 0.0], [-3.0, 0.0]], [1, -1]).round(decimals=2).tolist()
    [0.33, 0.0]
    """
    vectors = as_float_tensor("vectors", vectors).detach().double()
    require_shape("vectors", vectors, (None, None), "(V, d)")
    rows = _sequences(texts, True, len(vectors))
    if not all(map(len, rows)):
        raise RangeError(
            "texts",
            expected="texts of one token at least",
            got="an empty one",
            remedy="drop the empty ones",
        )
    means = torch.stack([vectors[row].mean(dim=0) for row in rows])
    require_finite("vectors", means)
    y = as_tensor("y", y).double()
    require_shape("y", y, (len(means),), "(n,)")
    require_finite("y", y)
    means = means - means.mean(dim=0)
    gram = means.T @ means + RIDGE * torch.eye(means.shape[1], dtype=torch.float64)
    return torch.linalg.solve(gram, means.T @ y)


def load_bundled_head(layer: int = 5, head: int = 8) -> Head:
    """One of two heads of MiniLM on forty sentences of SNLI, with [CLS] as the query.

    Parameters
    ----------
    layer, head : int
        5 and 8, a head that looks for people, or 2 and 10, one that looks at [CLS] itself.

    Returns
    -------
    Head
        That of `record_heads` on the same sentences, but for hidden states rounded to half
        precision; `attention` is the encoder's own, before the rounding.

    Raises
    ------
    RangeError, MissingFileError, ChecksumError

    Examples
    --------
    >>> from book.texts import load_bundled_head
    >>> head = load_bundled_head()
    >>> head
    Head(layer 5, head 8: n=40, T=32, d=385, query 0)
    >>> own = head.logits.softmax(dim=1)
    >>> bool((own - head.attention).abs().max() < 0.01)
    True
    """
    names = tuple(f"{a}, {b}" for a, b in HEADS)
    name = require_choice("layer, head", f"{layer}, {head}", names).replace(", ", "_")
    arrays = bundled_arrays(FILE)
    lengths = torch.from_numpy(arrays["head_lengths"].astype(np.int64))
    hidden = _padded(arrays[f"hidden_{layer}"].astype(np.float64), lengths)
    ones = _padded(np.ones((int(lengths.sum()), 1)), lengths)
    key, query = (torch.from_numpy(arrays[f"{part}_{name}"]).double() for part in ("key", "query"))
    words = vocabulary()
    pieces = np.split(arrays["head_pieces"], np.cumsum(arrays["head_lengths"])[:-1])
    tokens = [[words[piece] for piece in row] for row in pieces]
    attention = _padded(arrays[f"attention_{name}"].astype(np.float32), lengths)
    W, X = key.T @ query / math.sqrt(len(key)), torch.cat([hidden, ones], dim=2)
    positions = torch.arange(X.shape[1]).expand(len(X), -1)
    return Head(W, X, lengths, tokens, attention, layer, head, query=0, positions=positions)


def _padded(flat: np.ndarray, lengths: torch.Tensor) -> torch.Tensor:
    """(n, T, ...) from the tokens of all sentences one after another; padding is 0."""
    rows = torch.from_numpy(flat).split(lengths.tolist())
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
