"""An extract of MiniLM, a small BERT, that comes with attnbias: real embeddings of real text.

Static word-piece embeddings for a few hundred texts, and what two attention heads see of forty
sentences. Enough to hold Assumption 1 and W_mm against real tokens without a download.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass

import numpy as np
import torch

from ...data._source import bundled, bundled_arrays
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
    arrays = bundled_arrays(FILE)
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float64))
    texts = {name: _texts(arrays, name, classes) for name, classes in TEXTS.items()}
    cls, words = int(np.searchsorted(arrays["pieces"], CLS)), vocabulary()
    return MiniLMSample(vectors, tuple(words[piece] for piece in arrays["pieces"]), texts, cls)


def vocabulary() -> list[str]:
    """The uncased word pieces of BERT by number."""
    return gzip.decompress(bundled(VOCABULARY)).decode().splitlines()


def _texts(arrays: dict, name: str, classes: tuple[str, ...]) -> TokenTexts:
    key = name.replace(" ", "_")
    flat = np.searchsorted(arrays["pieces"], arrays[f"{key}_pieces"]).astype(np.int64)
    rows = np.split(flat, np.cumsum(arrays[f"{key}_lengths"])[:-1])
    return TokenTexts(tuple(rows), arrays[f"{key}_labels"].astype(np.int64), classes)
