"""Which token each sequence selects, and logit gaps seen from other tokens."""

from __future__ import annotations

import torch

from .._validate import TensorLike, as_floats
from ..dataset import Dataset, require_dataset
from .tokens import gap_rows, places


def selected_tokens(data: Dataset, W: TensorLike) -> torch.Tensor:
    """The token with the largest logit of each sequence: where attention goes as W grows.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor

    Returns
    -------
    (n,) long tensor
        The first of them where logits tie.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.geometry.selection import selected_tokens
    >>> data = make_score_trap(0.3)
    >>> selected_tokens(data, -solve_w_svm(data).weights).tolist()
    [2]
    """
    require_dataset(data, cross=True)
    W = as_floats("W", W, (data.d, data.d), "(d, d)", data.X.device).double()
    first = torch.zeros_like(data.lengths)
    return logits_of(gap_rows(data, first).gaps(W), first, data.mask).argmax(dim=1)


def logits_of(gaps: torch.Tensor, opt: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """(..., n, T) logits less that of the token `opt`, from gaps (..., N'); -inf at padding."""
    logits = gaps.new_full((*gaps.shape[:-1], *mask.shape), -torch.inf)
    logits[(..., *places(mask, opt))] = -gaps
    logits[..., torch.arange(len(opt), device=opt.device), opt] = 0.0
    return logits


def gaps_of(logits: torch.Tensor, opt: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """(..., N') gaps of the rows of the W-SVM of `opt`, from logits (..., n, T)."""
    sequence, token = places(mask, opt)
    return logits[..., sequence, opt[sequence]] - logits[..., sequence, token]
