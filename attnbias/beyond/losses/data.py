"""Uneven sequences: scores as one asks for them, and tokens of uneven sizes."""

from __future__ import annotations

import torch

from ..._validate import require_number
from ...dataset import Dataset, require_dataset
from ...errors import RangeError
from ..common.arguments import as_finite

_EXACT = 1e-9  # of the largest score: what the least-squares solve may miss


def set_scores(data: Dataset, opt_score, other_score) -> Dataset:
    """The same tokens with the smallest decoder that has the given scores.

    Parameters
    ----------
    data : Dataset
        With optimal tokens, and as many features as independent tokens ask for.
    opt_score, other_score : (n,) tensors
        y_i u'x of the optimal token of each sequence, and of all its other tokens.

    Returns
    -------
    Dataset

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError
    RangeError
        For an optimal score that is not the largest, data without optimal tokens, or tokens
        that have no such decoder.

    Examples
    --------
    >>> from attnbias import make_dm, token_scores
    >>> from attnbias.beyond.losses.data import set_scores
    >>> data = set_scores(make_dm(n=2, d=50), [1.0, 3.0], [0.0, 1.0])
    >>> token_scores(data).amax(1).round(decimals=9).tolist()
    [1.0, 3.0]
    """
    require_dataset(data)
    high = as_finite("opt_score", opt_score, (data.n,), "(n,)").to(data.X.device)
    low = as_finite("other_score", other_score, (data.n,), "(n,)").to(data.X.device)
    if data.opt is None or not bool((high > low).all()):
        raise RangeError(
            "data, opt_score",
            expected="optimal tokens, and for each a score above that of the others",
            got="no optimal tokens" if data.opt is None else "a score that is not above",
            remedy="Dataset(X, y, opt=opt), and opt_score > other_score",
        )
    target = low[:, None].expand(data.n, data.T).clone()
    target[torch.arange(data.n), data.opt] = high
    target = (data.y.double()[:, None] * target)[data.mask][:, None]
    tokens = data.X.double()[data.mask]
    u = torch.linalg.lstsq(tokens.cpu(), target.cpu(), driver="gelsd").solution.to(tokens.device)
    error = float((tokens @ u - target).abs().max())
    if not error <= _EXACT * float(target.abs().max()):
        raise RangeError(
            "data",
            expected="tokens for which some decoder has these scores",
            got=f"scores off by {error:.1e}",
            remedy="use independent tokens: as many features as tokens, or more",
        )
    return data.with_decoder(u.flatten())


def rescale_tokens(data: Dataset, least: float = 0.7, most: float = 1.4) -> Dataset:
    """The same data with the tokens of sequence i times a factor from `least` to `most`.

    Parameters
    ----------
    data : Dataset
    least, most : float > 0
        Factors of the first and the last sequence; those between are evenly spaced.

    Returns
    -------
    Dataset
        With the optimal tokens of the data and no decoder.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Examples
    --------
    >>> from attnbias import make_dm
    >>> from attnbias.beyond.losses.data import rescale_tokens
    >>> rescale_tokens(make_dm(n=3, d=10)).u is None
    True
    """
    require_dataset(data)
    least = require_number("least", least, low=0, open_low=True)
    most = require_number("most", most, low=0, open_low=True)
    factors = torch.linspace(least, most, data.n, dtype=data.X.dtype, device=data.X.device)
    return Dataset(
        data.X * factors[:, None, None],
        data.y,
        lengths=data.lengths,
        opt=data.opt,
        name=f"{data.name}, stretched",
        meta=dict(data.meta),
    )
