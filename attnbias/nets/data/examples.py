"""Mini-batches of real examples as tensors: images normalised, sentences as BERT's word pieces.

An examples object turns row numbers into `(inputs, labels)` on the CPU, the same for the same
rows; the loop draws the rows and moves the tensors.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from ..._validate import TensorLike, as_floats, require_flag, require_int, require_type
from ...errors import DtypeError, RangeError
from ._arrays import as_rows
from .images import ImageSet
from .text import TextSet

LOADERS = "the loaders of attnbias.nets.data give one"


class _Labelled:
    """The labels of a set, as tensors."""

    def __init__(self, given: ImageSet | TextSet) -> None:
        self.labels = torch.tensor(np.asarray(given.labels), dtype=torch.long)
        self.classes = given.classes

    def __len__(self) -> int:
        return len(self.labels)


class ImageExamples(_Labelled):
    """Images with pixel values in [0, 1], less each channel's mean, over its deviation.

    Parameters
    ----------
    images : ImageSet
        From `attnbias.nets.data.images`.
    mean, std : array-like of shape (C,), optional
        By channel; None computes them from `images`. Give the test set those of the training set.

    Attributes
    ----------
    mean, std : torch.Tensor, shape (C,), float64

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, RangeError

    Notes
    -----
    Source: [d]. No augmentation, since the paper names none.

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.nets.data.images import ImageSet
    >>> from attnbias.nets.data.examples import ImageExamples
    >>> pixels = np.array([0, 255], np.uint8).reshape(2, 1, 1, 1)
    >>> examples = ImageExamples(ImageSet(pixels, np.array([0, 1]), ("black", "white")))
    >>> inputs, labels = examples.batch([1, 0])
    >>> inputs["images"].flatten().tolist(), labels.tolist()
    ([1.0, -1.0], [1, 0])
    """

    def __init__(
        self, images: ImageSet, *, mean: TensorLike | None = None, std: TensorLike | None = None
    ) -> None:
        require_type("images", images, ImageSet, "an ImageSet", LOADERS)
        super().__init__(images)
        self.pixels = torch.tensor(images.images).movedim(-1, 1).contiguous()
        own = (mean, std) if mean is not None and std is not None else _moments(self.pixels)
        mean, std = own[0] if mean is None else mean, own[1] if std is None else std
        shape = self.pixels.shape[1:2]
        self.mean = as_floats("mean", mean, shape, "(C,)").double()
        self.std = as_floats("std", std, shape, "(C,)").double()
        if bool((self.std <= 0).any()):
            raise RangeError(
                "std",
                expected="a positive deviation in each channel",
                got=str(self.std.tolist()),
                remedy="give std, or drop the channel in which all pixels are equal",
            )

    def batch(self, indices: TensorLike) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Images (b, C, H, W) float32 under "images", and labels (b,), of the given rows."""
        rows = torch.from_numpy(as_rows("indices", indices, len(self), least=1))
        scale = (1.0 / (255.0 * self.std)).to(torch.float32)[:, None, None]
        shift = (self.mean / self.std).to(torch.float32)[:, None, None]
        return {"images": self.pixels[rows] * scale - shift}, self.labels[rows]


class TextExamples(_Labelled):
    """Texts or pairs of texts as BERT's word pieces, cut to `max_length` of them.

    Parameters
    ----------
    texts : TextSet
        From `attnbias.nets.data.text`; a second sentence makes pairs.
    tokenizer : transformers.PreTrainedTokenizerBase
        From `attnbias.nets.text.load_tokenizer`.
    max_length : int
        Most word pieces of a row, the special ones counted. A longer pair loses word pieces from
        the end of whichever sentence is longer.
    progress : bool
        Show a bar while the texts are cut into word pieces, once, when this object is made.

    Attributes
    ----------
    lengths : np.ndarray, shape (m,)
        Word pieces of each row.
    at_limit : int
        Rows of `max_length` word pieces: those that were cut, and those that just fit.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: [d].

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.nets.data.text import TextSet
    >>> from attnbias.nets.data.examples import TextExamples
    >>> from attnbias.nets.text import load_tokenizer
    >>> texts = TextSet(("A bias.", "None"), None, np.array([0, 1]), ("short", "shorter"))
    >>> inputs, labels = TextExamples(texts, load_tokenizer("tiny")).batch([0, 1])
    >>> inputs["input_ids"].tolist()
    [[101, 1037, 13827, 1012, 102], [101, 3904, 102, 0, 0]]
    """

    CHUNK = 4096  # texts cut at a time: bounds the memory of the tokenizer's own records

    def __init__(
        self, texts: Any, tokenizer: Any, max_length: int = 128, *, progress: bool = False
    ) -> None:
        require_type("texts", texts, TextSet, "a TextSet", LOADERS)
        require_tokenizer(tokenizer)
        require_flag("progress", progress)
        low = 3 if texts.second is None else 5  # room for a word piece of each text
        longest = min(int(tokenizer.model_max_length), 2**20)
        self.max_length = require_int("max_length", max_length, low=low, high=longest)
        super().__init__(texts)
        self.pad = tokenizer.pad_token_id
        ids, types = [], []
        lengths: list[int] = []
        starts = range(0, len(self.labels), self.CHUNK)
        for start in tqdm(starts, "word pieces", disable=not progress, leave=False):
            some = slice(start, start + self.CHUNK)
            rows = tokenizer(
                list(texts.first[some]),
                None if texts.second is None else list(texts.second[some]),
                truncation="longest_first",
                max_length=self.max_length,
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=True,
            )
            lengths += map(len, rows["input_ids"])
            ids.append(_flat(rows["input_ids"], np.int32))
            types.append(_flat(rows["token_type_ids"], np.int8))
        self.lengths = np.array(lengths, dtype=np.int64)
        self.at_limit = int((self.lengths == self.max_length).sum())
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.ids, self.types = np.concatenate(ids), np.concatenate(types)

    def batch(self, indices: TensorLike) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """The three inputs of BERT, (b, T) long with T the longest row, and labels (b,)."""
        rows = as_rows("indices", indices, len(self), least=1)
        column = np.arange(self.lengths[rows].max())
        real = column < self.lengths[rows, None]
        places = np.where(real, self.starts[rows, None] + column, 0)
        arrays = {
            "input_ids": np.where(real, self.ids[places], self.pad),
            "attention_mask": real,
            "token_type_ids": np.where(real, self.types[places], 0),
        }
        inputs = {k: torch.from_numpy(x.astype(np.int64)) for k, x in arrays.items()}
        return inputs, self.labels[rows]


def _flat(rows: list, dtype) -> np.ndarray:
    return np.fromiter((x for row in rows for x in row), dtype)


def require_tokenizer(tokenizer) -> None:
    """A tokenizer that can pad."""
    if not callable(tokenizer) or getattr(tokenizer, "pad_token_id", None) is None:
        raise DtypeError(
            "tokenizer",
            expected="a tokenizer of transformers with a padding token",
            got=type(tokenizer).__name__,
            remedy="load_tokenizer gives one",
        )


def _moments(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation of each channel, rounded once, so that they are the same on any CPU."""
    found = []
    for channel in pixels.unbind(1):
        counts = torch.bincount(channel.flatten(), minlength=256).tolist()
        n, first, second = (sum(k * v**p for v, k in enumerate(counts)) for p in range(3))
        spread = Fraction(n * second - first**2, (255 * n) ** 2)
        found.append((float(Fraction(first, 255 * n)), math.sqrt(spread)))
    mean, std = torch.tensor(found, dtype=torch.float64).unbind(1)
    return mean, std
