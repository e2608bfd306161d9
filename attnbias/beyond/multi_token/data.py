"""Tokens for heads that keep several of them: orthonormal ones, and the peers' random ones."""

from __future__ import annotations

import math

import torch

from ..._validate import require_int
from ...dataset import Dataset
from ...errors import ShapeError


def make_orthogonal(n: int, T: int, d: int, seed: int = 0) -> Dataset:
    """n sequences of T orthonormal tokens with random unit queries of their own, labels +1.

    Parameters
    ----------
    n, T, d : int
        T at most d.
    seed : int

    Returns
    -------
    Dataset
        float64. Its decoder u is a random unit vector, to serve as v of a quadratic head.

    Raises
    ------
    ShapeError, RangeError, DtypeError

    Notes
    -----
    Source: the "lambda" setting of the code of Tarzanagh et al. 2023 [b], tokens drawn anew [d].

    Examples
    --------
    >>> data = make_orthogonal(2, 3, 5)
    >>> bool(((data.X @ data.X.mT) - torch.eye(3).double()).abs().max() < 1e-12)
    True
    """
    n, T, d = require_int("n", n, low=1), require_int("T", T, low=2), require_int("d", d, low=2)
    if d < T:
        raise ShapeError(
            "T", expected=f"at most d = {d} orthonormal tokens", got=str(T), remedy="raise d"
        )
    generator = _generator(seed)
    draw = torch.randn(n, d, T, generator=generator, dtype=torch.float64)
    X = torch.linalg.qr(draw).Q.mT
    rest = torch.randn(n + 1, d, generator=generator, dtype=torch.float64)
    rest = rest / rest.norm(dim=1, keepdim=True)
    return Dataset(X, torch.ones(n), u=rest[0], query=rest[1:], name=f"orthogonal {seed}")


def make_relu_tokens(d: int, seed: int, n: int = 3, T: int = 4):
    """Random unit tokens, queries and labels, units for a relu head, and a random start.

    Parameters
    ----------
    d : int
    seed : int
    n, T : int

    Returns
    -------
    data : Dataset
        float64, with queries of its own and no decoder.
    units : (d, d) float64
        Rows V_j of the head sum over j of relu(V_j'o); |V| = 1.
    W0 : (d, d) float64
        Uniform on +-1/sqrt(d).

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: the recipe of the code of Tarzanagh et al. 2023 for their relu head, draw by draw, in
    float32 lifted to float64 [b], so that equal seeds give their tokens. Their starts have this
    distribution but no seed; ours has one [d].

    Examples
    --------
    >>> data, units, W0 = make_relu_tokens(4, seed=1)
    >>> data.X.shape, round(float(units.norm()), 6)
    (torch.Size([3, 4, 4]), 1.0)
    """
    d, n, T = require_int("d", d, low=1), require_int("n", n, low=1), require_int("T", T, low=2)
    g = _generator(seed)
    V = torch.randn(d, d, generator=g)
    V = V / V.norm()
    X = torch.randn(n, T, d, generator=g)
    X = X / X.norm(dim=-1, keepdim=True)
    y = 2.0 * torch.randn(n, generator=g).gt(0) - 1
    Z = torch.randn(n, d, generator=g)
    Z = Z / Z.norm(dim=-1, keepdim=True)
    W0 = (2 * torch.rand(d, d, generator=g, dtype=torch.float64) - 1) / math.sqrt(d)
    data = Dataset(X.double(), y, query=Z.double(), name=f"relu tokens {seed}")
    return data, V.double().T.contiguous(), W0


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(require_int("seed", seed, low=0, high=2**63 - 1))
