"""What a loss changes in the constants of a fixed decoder: how it weighs the sequences."""

from __future__ import annotations

import dataclasses

import torch

from ..._validate import require_number
from ...data import Dataset
from ...errors import RangeError
from ...geometry.constants import Constants, token_constants
from ...geometry.tokens import optimal_tokens, score_levels
from ...losses import as_loss

_GRID = 257  # margins at which the slope is looked at; a convex loss needs the two ends
_ROUNDING = 16 * torch.finfo(torch.float64).eps  # of scores, relative to the largest


def slope_constants(data: Dataset, loss="exponential", *, svm=None, phi=None) -> Constants:
    """`token_constants` with the degradation factors of another loss.

    With u fixed the margin of sequence i is a mean of its scores, so that -l' stays between
    its extremes over the scores' range. Times the least and the largest score gap they give
    Upsilon and upsilon, which is all that M1, M2 and Lemma 3 know of the loss.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    loss : str or Loss
    svm, phi
        As in `token_constants`.

    Returns
    -------
    Constants

    Raises
    ------
    RangeError
        For a loss whose slope vanishes on the scores' range, such as `squared_hinge` with its
        target at an optimal score, up to rounding; and the errors of `token_constants`.

    Notes
    -----
    Source: ours [c], the proof of M1 read for any loss. The extremes are taken over 257
    margins of each range, which is exact for convex losses.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.losses.constants import slope_constants
    >>> from attnbias.beyond.losses.losses import polynomial_loss
    >>> round(slope_constants(make_separation_pair(), polynomial_loss(1)).kappa, 6)
    4.0
    """
    plain = token_constants(data, svm=svm, phi=phi)
    low, high = slope_range(data, loss)
    return dataclasses.replace(plain, log_Upsilon=high, log_upsilon=low)


def slope_range(data: Dataset, loss="exponential") -> tuple[float, float]:
    """Logs of upsilon and Upsilon: what -l' times a score gap lies between, whatever W is.

    Parameters
    ----------
    data : Dataset
        With a decoder. Queries and keys of its own change nothing here.
    loss : str or Loss

    Returns
    -------
    (float, float)

    Raises
    ------
    RangeError
        For a loss whose slope vanishes on the scores' range; and the errors of
        `optimal_tokens`.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.losses.constants import slope_range
    >>> slope_range(make_separation_pair())
    (-1.0, 0.0)
    """
    loss = as_loss(loss)
    optimal_tokens(data)  # refuses ties
    top, second, last = score_levels(data)
    part = torch.linspace(0, 1, _GRID, dtype=top.dtype, device=top.device)
    slopes = loss.log_slope(torch.lerp(last[:, None], top[:, None], part))
    beyond = loss.log_slope(top + _ROUNDING * torch.maximum(top.abs(), last.abs()))
    if not bool(torch.isfinite(slopes).all() & torch.isfinite(beyond).all()):
        raise RangeError(
            "loss",
            expected="a slope below zero at every margin between the scores of a sequence",
            got=f"{loss.name}, flat or infinitely steep at some of them",
            remedy="use a loss that keeps falling, or a decoder with smaller scores",
        )
    high = float((slopes.amax(dim=1) + (top - last).log()).max())
    return float((slopes.amin(dim=1) + (top - second).log()).min()), high


def alignment_limit(offset: float, start_across: float = 0.0) -> float:
    """Limit of |W|^2 (1 - cosine) from the settled offset and what W_0 has across all rows.

    Parameters
    ----------
    offset : float
        Such as `limit_offset` gives.
    start_across : float
        Norm of the part of W_0 orthogonal to all rows, which no rule moves.

    Returns
    -------
    float

    Examples
    --------
    >>> from attnbias.beyond.losses.constants import alignment_limit
    >>> alignment_limit(3.0, 4.0)
    12.5
    """
    offset = require_number("offset", offset, low=0, high=1e150)
    across = require_number("start_across", start_across, low=0, high=1e150)
    return (offset**2 + across**2) / 2
