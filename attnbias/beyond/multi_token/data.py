"""Tokens for heads that keep several of them, the peers' random ones, and read-outs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from ..._validate import as_float_tensor, as_numbers, require_int, require_number, require_type
from ...dataset import Dataset
from ...errors import DtypeError, ShapeError
from ..common.arguments import as_finite, seeded
from ..ranks.data import unit


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
    generator = seeded(seed)
    draw = torch.randn(n, d, T, generator=generator, dtype=torch.float64)
    X = torch.linalg.qr(draw).Q.mT
    rest = unit(torch.randn(n + 1, d, generator=generator, dtype=torch.float64))
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
    g = seeded(seed)
    V = torch.randn(d, d, generator=g)
    V = V / V.norm()
    X = unit(torch.randn(n, T, d, generator=g))
    y = 2.0 * torch.randn(n, generator=g).gt(0) - 1
    Z = unit(torch.randn(n, d, generator=g))
    W0 = (2 * torch.rand(d, d, generator=g, dtype=torch.float64) - 1) / math.sqrt(d)
    data = Dataset(X.double(), y, query=Z.double(), name=f"relu tokens {seed}")
    return data, V.double().T.contiguous(), W0


class Readout:
    """h(o) and its gradient, for o of shape (..., n, d); parameters may have a leading axis.

    Examples
    --------
    >>> isinstance(QuadraticHead([1.0, 0.0], 0.5), Readout)
    True
    """

    width: int | None = None  # d, where the parameters decide it

    def value(self, o: np.ndarray) -> np.ndarray:
        """The head's value for each sequence, (..., n)."""
        raise NotImplementedError

    def gradient(self, o: np.ndarray) -> np.ndarray:
        """(..., n, d) gradients in o."""
        raise NotImplementedError

    def points(self, o) -> np.ndarray:
        """o in float64, whose last axis is as long as the parameters of the head ask for."""
        if type(o) is not np.ndarray or o.dtype != np.float64 or not o.flags.c_contiguous:
            o = as_numbers("o", o, dtype=float)
        if o.ndim < 1 or not o.shape[-1] or self.width not in (None, o.shape[-1]):
            raise ShapeError(
                "o",
                expected=f"shape (..., n, d), d = {self.width or 'any'}",
                got=f"shape {o.shape}",
                remedy="pass attended vectors, with the head of these data",
            )
        return o


class ReluHead(Readout):
    """h(o) = sum over j of relu(V_j'o); the derivative of relu at 0 is 0.

    Parameters
    ----------
    units : (k, d), or (B, k, d) for B data sets trained at once

    Examples
    --------
    >>> ReluHead([[1.0, 0.0], [0.0, 1.0]]).value(np.array([[2.0, -1.0]])).tolist()
    [2.0]
    """

    def __init__(self, units):
        units = as_float_tensor("units", units)
        shape = (None,) * (3 if units.ndim == 3 else 2)
        self.units = as_finite("units", units, shape, "(k, d) or (B, k, d)").numpy()
        self.width = self.units.shape[-1]

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        return np.maximum(self.points(o) @ self.units.swapaxes(-1, -2), 0.0).sum(axis=-1)

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        return (self.points(o) @ self.units.swapaxes(-1, -2) > 0).astype(float) @ self.units


class QuadraticHead(Readout):
    """h(o) = v'o - strength |o|^2, concave for strength > 0.

    Examples
    --------
    >>> QuadraticHead([1.0, 0.0], 0.5).value(np.array([[1.0, 1.0]])).tolist()
    [0.0]
    """

    def __init__(self, v, strength: float):
        self.v = as_finite("v", v, (None,), "(d,)").numpy()
        self.strength, self.width = require_number("strength", strength), len(self.v)

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        o = self.points(o)
        return o @ self.v - self.strength * (o * o).sum(axis=-1)

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        return self.v - 2 * self.strength * self.points(o)


class TorchHead(Readout):
    """Any torch function from (m, d) to (m,), differentiated by torch.

    Examples
    --------
    >>> TorchHead(lambda o: torch.tanh(o).sum(-1)).gradient(np.zeros((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]):
        wanted, remedy = "a torch function of (m, d)", "lambda o: torch.tanh(o).sum(-1), say"
        self.function = require_type("function", function, Callable, wanted, remedy)

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        return self._call(torch.from_numpy(self.points(o))).detach().numpy()

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        point = torch.from_numpy(self.points(o)).requires_grad_()
        value = self._call(point)
        if not value.requires_grad:
            raise DtypeError(
                "function",
                expected="a function that torch differentiates",
                got="values without a gradient",
                remedy="keep to torch, without detach or no_grad",
            )
        return torch.autograd.grad(value.sum(), point)[0].numpy()

    def _call(self, o: torch.Tensor) -> torch.Tensor:
        value = self.function(o.reshape(-1, o.shape[-1]))
        if not isinstance(value, torch.Tensor) or value.shape != (o[..., 0].numel(),):
            raise ShapeError(
                "function",
                expected="one value a row of (m, d)",
                got=str(tuple(getattr(value, "shape", ()))),
                remedy="sum over the last axis",
            )
        return value.reshape(o.shape[:-1])
