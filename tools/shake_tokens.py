"""Move every token of a data set in its last bits, so that exact equalities survive.

An entry x becomes x (1 + k eps) with k between -4 and 4, a function of |x| and a seed. Equal
entries stay equal, opposite ones opposite and zeros zero: repeated rows, ties between repeated
tokens and tokens on different axes stay what they are. Sums are not kept.
"""

from __future__ import annotations

import numpy as np
import torch

ULPS = 4


def shake(values: torch.Tensor, seed: int) -> torch.Tensor:
    """The values, each moved by up to ULPS units in the last place."""
    x = values.detach().cpu().numpy()
    bits = np.abs(x).astype(np.float64).view(np.uint64)
    mixed = (bits ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    k = (mixed >> np.uint64(40)) % np.uint64(2 * ULPS + 1)
    factor = 1 + (k.astype(np.float64) - ULPS) * np.finfo(x.dtype).eps
    moved = torch.from_numpy((x * factor).astype(x.dtype))
    # a power of two keeps its value: sets built from 0, 1, -1 and 2 rest on exact sums
    exact = torch.from_numpy(np.frexp(np.abs(x))[0] == 0.5)
    return torch.where(exact, values.detach().cpu(), moved).to(values.device)


def install(cls: type, seed: int) -> None:
    """Let every data set that is made from now on hold shaken tokens."""
    check = cls.__post_init__

    def __post_init__(self) -> None:
        check(self)
        if not getattr(self.X, "_shaken", False):
            X = shake(self.X, seed)
            X._shaken = True  # a data set made from another's tokens is not shaken again
            object.__setattr__(self, "X", X)

    cls.__post_init__ = __post_init__
