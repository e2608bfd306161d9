"""Figure 8's instance: a start that looks at the wrong token of one sequence."""

from __future__ import annotations

import torch

from .._validate import require_number
from ..dataset import Dataset


def make_bad_start(scale: float = 1.0) -> tuple[Dataset, torch.Tensor]:
    """Two sequences in the plane, and a start whose attention is on a wrong token.

    X_1 = (e_1, e_2) and X_2 = ((0.2, 1), (1, -0.2)), labels 1 and -1, u = (1, -1); the first
    token of each is the query and optimal. The start is

        W_0 = scale ((0, 0), (1, 1)) / sqrt(2),

    so |W_0| = scale. Its logit gaps are -scale / sqrt(2) in sequence 1, whose optimal token
    therefore has less than half of the attention, and 1.2^2 scale / sqrt(2) in sequence 2.

    Parameters
    ----------
    scale : float
        Norm of W_0, from 0 to 1e100. The larger it is, the nearer the start is to a
        stationary point at infinity with all attention on the wrong token.

    Returns
    -------
    data : Dataset
        n = T = d = 2.
    W0 : (2, 2) float64 tensor

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Figure 8, Appendix C.1 [a]: that W_0 violates the constraint of sequence 1 and
    satisfies that of sequence 2; the sizes, the labels and the numbers are [d].

    Examples
    --------
    >>> from attnbias import make_bad_start
    >>> data, W0 = make_bad_start(2.0)
    >>> [round(float((x[0] - x[1]) @ W0 @ x[0]), 3) for x in data.X]
    [-1.414, 2.036]
    """
    scale = require_number("scale", scale, low=0, high=1e100)
    X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 1.0], [1.0, -0.2]]]
    meta = {"maker": "make_bad_start", "scale": scale}
    data = Dataset(
        torch.tensor(X, dtype=torch.float64), [1, -1], [1.0, -1.0], None, "bad start", meta
    )
    direction = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    return data, scale * direction
