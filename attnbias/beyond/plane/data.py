"""A pair in the plane, and starts, drawn as Tarzanagh et al. (2023) draw theirs."""

from __future__ import annotations

import math

import torch

from ..._validate import require_choice, require_int, require_number
from ...dataset import Dataset
from ..common.arguments import seeded
from ..ranks.data import normal_draws, unit


def make_plane_pair(tokens: int = 3) -> Dataset:
    """Two sequences in the plane, each with a free unit query, whose paths can be drawn.

    Parameters
    ----------
    tokens : {3, 5}
        Tokens a sequence.

    Returns
    -------
    Dataset
        n = 2, T = tokens, d = 2, all labels 1, a decoder of norm 1.

    Raises
    ------
    RangeError

    Notes
    -----
    Source: the sets of tokens of two figures of Tarzanagh, Li, Thrampoulidis and Oymak (2023),
    "Transformers as support vector machines", by their recipe and seeds [b]: Gaussian tokens
    of deviation 0.3 about (-1, 0) and (1, 0); or of deviation 0.5 about (-1, 0), the first
    tokens (1, 0.5) and (1, -0.5).

    Examples
    --------
    >>> from attnbias.beyond.plane.data import make_plane_pair
    >>> make_plane_pair().queries.norm(dim=1).round(decimals=6).tolist()
    [1.0, 1.0]
    """
    require_choice("tokens", tokens, (3, 5))
    draw = normal_draws(1 if tokens == 3 else 3)
    u = unit(draw(2))
    if tokens == 3:
        X = 0.3 * draw(2, 3, 2) + torch.tensor([[[-1.0, 0.0]], [[1.0, 0.0]]])
    else:
        X = 0.5 * draw(2, 5, 2)
        X[:, 0] = torch.tensor([[1.0, 0.5], [1.0, -0.5]])
        X[:, 1:] += torch.tensor([-1.0, 0.0])
    query = unit(draw(2, 2))
    return Dataset(
        X.double(),
        torch.ones(2, dtype=torch.float64),
        u=u.double(),
        query=query.double(),
        name=f"pair in the plane, T = {tokens}",
    )


def free_starts(d: int = 10, *, seed: int = 0, scale: float = 1.0):
    """Starts W_0 and (K_0, Q_0), (d, d) each, as linear layers of torch begin.

    Entries are uniform in +-scale / sqrt(d), and drawn in float32 in the order in which a
    layer of W with a decoder, and then one of Q and K, would draw them.

    Parameters
    ----------
    d : int
    seed : int
    scale : float

    Returns
    -------
    (W0, K0, Q0) : (d, d) float64 tensors

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: the default of torch.nn.Linear [b].

    Examples
    --------
    >>> from attnbias.beyond.plane.data import free_starts
    >>> W0, K0, Q0 = free_starts(4)
    >>> bool(W0.abs().max() <= 0.5)
    True
    """
    d = require_int("d", d, low=1)
    scale = require_number("scale", scale, low=0, high=1e100)
    generator = seeded(seed)
    bound = math.sqrt(3.0) * (math.sqrt(2.0 / 6.0) / math.sqrt(d))  # 1 / sqrt(d), rounded as there

    def layer() -> torch.Tensor:
        values = torch.empty(d, d).uniform_(-bound, bound, generator=generator)
        return scale * values.double().T.contiguous()

    W0 = layer()
    torch.randn(d, generator=generator)
    Q0 = layer()
    return W0, layer(), Q0
