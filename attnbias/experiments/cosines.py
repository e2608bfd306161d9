"""Cosines between the token embeddings within a text: all of them, as a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import betainc

from .._validate import as_floats, require_flag, require_int, require_number
from ..errors import FileFormatError, RangeError
from ..nets.data._arrays import as_rows

BINS = 400  # of width 0.005 from -1 to 1, so that 0.1 and 0.2 are edges
_BLOCK = 2**22  # numbers gathered at a time: 16 MB of tokens


@dataclass(frozen=True, eq=False)
class Cosines:
    """A histogram of cosines with the exact sums beside it.

    Attributes
    ----------
    counts : (BINS,) int64
        Pairs in each bin of equal width from -1 to 1.
    sums : (3,) float64
        Sums of the cosines, of their absolute values and of their squares.
    """

    counts: np.ndarray
    sums: np.ndarray

    @property
    def pairs(self) -> int:
        """How many cosines."""
        return int(self.counts.sum())

    @property
    def edges(self) -> np.ndarray:
        """(BINS + 1,) edges of the bins."""
        return np.linspace(-1, 1, len(self.counts) + 1)

    @property
    def density(self) -> np.ndarray:
        """(BINS,) share of the pairs by unit of cosine."""
        return self.counts / self.pairs * (len(self.counts) / 2)

    @property
    def mean(self) -> float:
        """Mean cosine."""
        return float(self.sums[0] / self.pairs)

    @property
    def mean_abs(self) -> float:
        """Mean absolute cosine."""
        return float(self.sums[1] / self.pairs)

    @property
    def deviation(self) -> float:
        """Standard deviation of the cosines."""
        return math.sqrt(max(self.sums[2] / self.pairs - self.mean**2, 0.0))

    def within(self, bound: float) -> float:
        """Share of the pairs with |cosine| below a bound, linear inside a bin.

        Raises
        ------
        RangeError, DtypeError, NonFiniteError
        """
        bound = require_number("bound", bound, low=0, high=1)
        below = np.interp([-bound, bound], self.edges, self._cumulated())
        return float(below[1] - below[0])

    def quantile(self, share: float) -> float:
        """The cosine that this share of the pairs is below, linear inside a bin.

        Raises
        ------
        RangeError, DtypeError, NonFiniteError
        """
        share = require_number("share", share, low=0, high=1)
        cumulated = self._cumulated()
        inside = np.flatnonzero(self.counts)
        kept = np.unique([*inside, *(inside + 1)])
        return float(np.interp(share, cumulated[kept], self.edges[kept]))

    def _cumulated(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.counts) / self.pairs])

    def __add__(self, other: Cosines) -> Cosines:
        return Cosines(self.counts + other.counts, self.sums + other.sums)

    def to_json(self) -> dict:
        """Plain lists and numbers; the bins from the first to the last that holds a pair."""
        inside = np.flatnonzero(self.counts)
        counts = self.counts[inside[0] : inside[-1] + 1].tolist()
        return {"first_bin": int(inside[0]), "counts": counts, "sums": self.sums.tolist()}

    @classmethod
    def from_json(cls, stored: dict) -> Cosines:
        """What `to_json` gave.

        Raises
        ------
        FileFormatError
        """
        counts = np.zeros(BINS, np.int64)
        low, found = stored["first_bin"], stored["counts"]
        if not 0 <= low <= BINS - len(found) or sum(found) < 1 or min(found) < 0:
            raise FileFormatError(
                "histogram",
                expected=f"counts of pairs in at most {BINS} bins",
                got=f"{len(found)} bins from {low}",
                remedy="run the experiment again and save",
            )
        counts[low : low + len(found)] = found
        return cls(counts, np.array(stored["sums"], dtype=float).reshape(3))


def pair_cosines(texts: Sequence, embeddings, *, positions: bool = False) -> Cosines:
    """Cosines between the tokens of each text, over all texts.

    Parameters
    ----------
    texts : sequence of integer arrays
        Rows of the embeddings that each text has, in any order. A text of a single token has
        no pair.
    embeddings : (V, d) float
        One vector a word piece; only directions matter, and a zero vector has cosine 0.
    positions : bool
        False takes every pair of different word pieces of a text, each once; True every pair
        of positions, so that a word piece that stands there twice is a pair of cosine 1.

    Returns
    -------
    Cosines

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, RangeError

    Examples
    --------
    >>> from attnbias.experiments.cosines import pair_cosines
    >>> table = [[2.0, 0.0], [1.0, 1.0]]
    >>> round(pair_cosines([[0, 1, 0]], table).mean, 4)
    0.7071
    >>> round(pair_cosines([[0, 1, 0]], table, positions=True).mean, 4)
    0.8047
    """
    require_flag("positions", positions)
    units = unit_rows(embeddings)
    sizes: dict[int, list] = {}
    for text in filter(np.size, texts):
        pieces, repeats = np.unique(as_rows("texts", text, len(units)), return_counts=True)
        sizes.setdefault(len(pieces), []).append((pieces, repeats))
    found = _counted(np.zeros(0), np.zeros(0))
    for size, group in sorted(sizes.items()):
        i, j = np.triu_indices(size, 1)
        step = max(1, _BLOCK // max(size * units.shape[1], 1))
        for start in range(0, len(group), step):
            pieces, repeats = map(np.stack, zip(*group[start : start + step], strict=True))
            tokens = units[pieces]
            cosines = np.matmul(tokens, tokens.transpose(0, 2, 1))[:, i, j].ravel()
            times = (repeats[:, i] * repeats[:, j]).ravel() if positions else np.ones(len(cosines))
            found += _counted(cosines, times)
            if positions:
                again = (repeats * (repeats - 1) // 2).sum()
                found += _counted(np.ones(1), np.array([again]))
    if not found.pairs:
        raise RangeError(
            "texts",
            expected="one with two tokens at least",
            got="none",
            remedy="pass longer texts",
        )
    return found


def _counted(cosines: np.ndarray, times: np.ndarray) -> Cosines:
    """Cosines, each counted so many times."""
    bins = ((cosines + 1) * (BINS / 2)).astype(np.int32).clip(0, BINS - 1)
    counts = np.bincount(bins, times, minlength=BINS).astype(np.int64)
    powers = (cosines, np.abs(cosines), cosines * cosines)
    return Cosines(counts, np.array([(values * times).sum() for values in powers]))


def unit_rows(embeddings) -> np.ndarray:
    """(V, d) float32 rows of length 1; a zero row stays."""
    table = as_floats("embeddings", embeddings, (None, None), "(V, d)").double()
    norms = torch.linalg.norm(table, dim=1, keepdim=True)
    return (table / norms.where(norms > 0, 1.0)).float().cpu().numpy()


def random_density(cosine, d: int) -> np.ndarray:
    """Density of the cosine of two random directions in d dimensions.

    Parameters
    ----------
    cosine : array
    d : int
        At least 3.

    Returns
    -------
    ndarray
        (1 - c^2)^((d - 3) / 2), normalised: mean 0, standard deviation d^-1/2.

    Examples
    --------
    >>> from attnbias.experiments.cosines import random_density
    >>> random_density([0.0, 0.9], 3).round(12).tolist()
    [0.5, 0.5]
    """
    d = require_int("d", d, low=3)
    scale = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)
    return scale * (1 - np.square(np.asarray(cosine, dtype=float))) ** ((d - 3) / 2)


def random_within(bound: float, d: int) -> float:
    """Chance that two random directions in d dimensions have |cosine| below a bound.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> from attnbias.experiments.cosines import random_within
    >>> round(random_within(0.2, 3), 12)
    0.2
    """
    bound = require_number("bound", bound, low=0, high=1)
    return float(betainc(0.5, (require_int("d", d, low=2) - 1) / 2, bound**2))


def random_mean_abs(d: int) -> float:
    """Mean absolute cosine of two random directions in d dimensions.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias.experiments.cosines import random_mean_abs
    >>> round(random_mean_abs(3), 12)
    0.5
    """
    d = require_int("d", d, low=2)
    return math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
