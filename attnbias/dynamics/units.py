"""Rows in units of their own: powers of two, taken out of tokens far from ordinary size.

Squares of a gradient are floats only where its rows are of moderate size. A power of two is exact,
and it is 1 for tokens between 2^-64 and 2^64, so that their runs are the same bit for bit.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import RangeError
from ..geometry.tokens import GapRows, VectorRows

STRIDE = 64  # between exponents of units


@dataclass(frozen=True, eq=False)
class Scaled:
    """Row k is size_k times row k of `rows`.

    Attributes
    ----------
    rows : GapRows or VectorRows
    size : (N',)
    log_size : (n,) log of the size, which the rows of a sequence share
    """

    rows: GapRows | VectorRows
    size: torch.Tensor
    log_size: torch.Tensor


def scaled(rows: GapRows | VectorRows, n: int) -> Scaled:
    """The rows of n sequences, those of each in one unit.

    Raises
    ------
    RangeError
        For tokens whose products are beyond floats.
    """
    names = {"differences": rows.sequence, "queries": torch.arange(n, device=rows.sequence.device)}
    names = names if isinstance(rows, GapRows) else {"rows": rows.sequence}
    units = {name: _unit(getattr(rows, name), each, n) for name, each in names.items()}
    size = torch.stack(list(units.values())).prod(dim=0)
    least = torch.finfo(size.dtype).tiny
    if not bool(((size >= least) & (size <= 1 / least)).all()):
        raise RangeError(
            "data.X",
            expected="tokens whose products with each other are floats",
            got=f"some of about {float(size.min()):.2g} to {float(size.max()):.2g}",
            remedy="scale them: logits of s X under W are those of X under s^2 W",
        )
    for name, each in names.items():
        if bool((units[name] != 1).any()):
            over = getattr(rows, name) / units[name][each, None]
            rows = dataclasses.replace(rows, **{name: over})
    return Scaled(rows, size[rows.sequence], size.log())


def _unit(vectors: torch.Tensor, sequence: torch.Tensor, n: int) -> torch.Tensor:
    """(n,) powers of two near the largest entry of each sequence's vectors; 1 for 0."""
    largest = vectors.abs().amax(dim=1)
    largest = largest.new_zeros(n).scatter_reduce(0, sequence, largest, "amax")
    exponents = STRIDE * np.trunc(np.frexp(largest.cpu().numpy())[1] / STRIDE)
    return torch.from_numpy(np.ldexp(1.0, exponents.astype(int))).to(largest)
