"""Move every token of a data set in its last bits, so that exact equalities survive.

The last three bits of a number are replaced by others, which its leading bits and a seed decide: a
move of at most 7 units in the last place. So equal entries stay equal, opposite ones opposite,
those in the ratio of a power of two stay in it, and a second shake changes nothing: a data set made
from another's tokens has them as they are. Numbers of at most 12 significant bits, such as 0, 1 and
0.75, keep their value, as sets built from them rest on exact sums. Where scores that were tied
would not be so any more, or the other way round, the data set is left as it was, and listed.
"""

import functools
from collections import Counter

import numpy as np
import torch

REPLACED = 3
SIGNIFICANT = 12
FORMATS = {torch.float32: (np.uint32, 23), torch.float64: (np.uint64, 52)}
TOKENS = ("X", "query", "key")


def shake(values: torch.Tensor, seed: int) -> torch.Tensor:
    """The values, each moved by less than 2**REPLACED units in the last place."""
    word, digits = FORMATS[values.dtype]
    x = values.detach().cpu().contiguous().clone().numpy()
    bits = x.reshape(-1).view(word)
    leading = (bits >> word(REPLACED)) << word(REPLACED)
    fraction = (leading & word(2**digits - 1)).astype(np.uint64)
    exact = fraction % np.uint64(2 ** (digits - SIGNIFICANT + 1)) == 0
    last = scramble(fraction, seed) >> np.uint64(64 - REPLACED)
    bits[:] = np.where(exact, bits, leading | last.astype(word))
    return torch.from_numpy(x).to(values.device)


def scramble(numbers: np.ndarray, seed: int) -> np.ndarray:
    """64 bits that look random, a function of each number and the seed (splitmix64)."""
    mixed = numbers + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def order(data) -> list | None:
    """How each sequence's scores are ordered, ties included; None where there are no scores."""
    from attnbias import token_scores
    from attnbias.errors import MissingDecoderError, QueryError, RangeError

    try:
        scores = token_scores(data)
    except (MissingDecoderError, QueryError, RangeError):
        return None
    return [torch.unique(each, return_inverse=True)[1].tolist() for each in scores]


def install(cls: type, seed: int) -> Counter:
    """Let every data set that is made from now on hold shaken tokens.

    Returns a count that grows: how many were shaken ("shaken"), and how many of each name were not.
    """
    make, count = cls.__init__, Counter()

    @functools.wraps(make)
    def __init__(self, *args, **named) -> None:
        make(self, *args, **named)
        as_made = {name: getattr(self, name) for name in TOKENS if getattr(self, name) is not None}
        before = order(self)
        for name, values in as_made.items():
            object.__setattr__(self, name, shake(values, seed))
        if order(self) == before:
            count["shaken"] += 1
            return
        for name, values in as_made.items():
            object.__setattr__(self, name, values)
        count[self.name or "no name"] += 1

    cls.__init__ = __init__
    return count
