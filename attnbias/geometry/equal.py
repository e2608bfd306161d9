"""Equal rows, of a token that is said twice or a whole sequence: one constraint, not two."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from .certificate import ZERO
from .tokens import GapRows, VectorRows


def first_equal(rows: GapRows | VectorRows, chosen: torch.Tensor) -> torch.Tensor:
    """For each of the chosen rows the place among them of the first that is the same row.

    A token said twice, or a whole sequence, gives equal rows; they are compared bit by bit.

    Parameters
    ----------
    rows : GapRows or VectorRows
    chosen : (N',) bool

    Returns
    -------
    (m,) long

    Examples
    --------
    >>> from attnbias.geometry.tokens import VectorRows
    >>> rows = VectorRows(torch.tensor([[1.0], [2.0], [1.0]]), *torch.zeros(2, 3).long(), (1,))
    >>> first_equal(rows, torch.tensor([True, True, True])).tolist()
    [0, 1, 0]
    """
    first, *others = [(part[chosen] + 0.0).cpu().numpy() for part in rows.factors]  # -0.0 is 0.0
    known: dict = {}
    found = []
    for k, row in enumerate(first):
        alike = known.setdefault(hashlib.blake2b(row).digest(), [])
        same = (j for j in alike if all(np.array_equal(part[j], part[k]) for part in others))
        found.append(next(same, k))
        if found[-1] == k:
            alike.append(k)
    return torch.tensor(found, dtype=torch.long)


def shared(rows, dual: torch.Tensor, margins: torch.Tensor, right) -> torch.Tensor:
    """The dual weights with those of equal rows made equal, which leaves their sum of rows.

    A solver that asks for independent rows puts the whole weight on one of them, so that the
    other looks like an active constraint that supports nothing.
    """
    active = margins <= right + ZERO
    if not bool((dual[active] == 0).any()):
        return dual
    group = first_equal(rows, active)
    sums, counts = (
        torch.zeros_like(dual).index_add(0, group, part)
        for part in (dual[active], torch.ones_like(dual[active]))
    )
    dual = dual.clone()
    dual[active] = (sums / counts)[group]
    return dual
