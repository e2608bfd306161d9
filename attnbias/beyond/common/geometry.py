"""Selections of one token a sequence, and which of them some W brings about."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

from ..._validate import require_int
from ...data import Dataset
from ...errors import InfeasibleError, RangeError
from ...geometry.svm import SVMSolution, solve_w_svm


def selections(data: Dataset, most: int) -> Iterator[torch.Tensor]:
    """Every choice of a token a sequence, (n,) each, if there are at most so many."""
    lengths = data.lengths.tolist()
    count, most = math.prod(lengths), require_int("most", most, low=1)
    if count > most:
        raise RangeError(
            "data",
            expected=f"at most {most} selections",
            got=str(count),
            remedy="raise most, or look at fewer sequences",
        )
    every = itertools.product(*map(range, lengths))
    return (torch.tensor(tokens, device=data.X.device) for tokens in every)


def svm_if_any(data: Dataset, opt: torch.Tensor | None = None) -> SVMSolution | None:
    """The W-SVM of these tokens; None where no W selects them."""
    try:
        return solve_w_svm(data, opt)
    except InfeasibleError:
        return None
