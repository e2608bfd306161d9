"""A decoder that makes chosen tokens optimal."""

from __future__ import annotations

import torch

from ..._validate import require_number
from ..._validate.sequences import as_token_indices
from ...data.synthetic import least_decoder
from ...dataset import Dataset, require_dataset
from ...errors import InfeasibleError


def interpolating_decoder(data: Dataset, opt, gap: float = 1.0) -> torch.Tensor:
    """The smallest u that scores each chosen token `gap` and all others 0: Assumption 2 exactly.

    Parameters
    ----------
    data : Dataset
    opt : (n,) integers
        The tokens to be optimal.
    gap : float in (0, 1e6]

    Returns
    -------
    (d,) float64

    Raises
    ------
    InfeasibleError
        When no u does that: the tokens depend on each other.
    RangeError, ShapeError, DtypeError

    Notes
    -----
    Source: the interpolant of Lemma 6 [c]. Linearly independent tokens are enough.

    Examples
    --------
    >>> from attnbias import Dataset, optimal_tokens
    >>> data = Dataset(torch.eye(4).double().reshape(2, 2, 4), [1, -1])
    >>> u = interpolating_decoder(data, [1, 0])
    >>> u.tolist(), optimal_tokens(data, u).tolist()
    ([0.0, 1.0, -1.0, 0.0], [1, 0])
    """
    require_dataset(data)
    opt = as_token_indices("opt", opt, data.lengths)
    gap = require_number("gap", gap, low=0, high=1e6, open_low=True)
    scores = torch.zeros(data.n, data.T, dtype=torch.float64)
    scores[torch.arange(data.n), opt] = gap
    u, off = least_decoder(data.X.double(), data.y.double(), scores)
    if not off <= 1e-10 * gap:
        raise InfeasibleError(
            "opt",
            expected="tokens whose scores can be chosen",
            got=f"scores off by {off:.1e}",
            remedy="use more features than tokens",
        )
    return u
