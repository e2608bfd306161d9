"""Smooth or piecewise smooth functions of the attended token: what a nonlinear head computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ..._validate import as_float_tensor, require_finite, require_number
from ...errors import DtypeError, ShapeError


class Head:
    """h(o) and its gradient, for o of shape (..., n, d); parameters may have a leading axis."""

    def value(self, o: np.ndarray) -> np.ndarray:
        """The head's value for each sequence, (..., n)."""
        raise NotImplementedError

    def gradient(self, o: np.ndarray) -> np.ndarray:
        """(..., n, d) gradients in o."""
        raise NotImplementedError


class ReluHead(Head):
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
        V = as_float_tensor("units", units).detach().double()
        require_finite("units", V)
        if V.ndim not in (2, 3):
            raise ShapeError(
                "units", expected="(k, d) or (B, k, d)", got=str(tuple(V.shape)),
                remedy="one row a unit",
            )  # fmt: skip
        self.units = V.numpy()

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        return np.maximum(o @ self.units.swapaxes(-1, -2), 0.0).sum(axis=-1)

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        return (o @ self.units.swapaxes(-1, -2) > 0).astype(float) @ self.units


class QuadraticHead(Head):
    """h(o) = v'o - strength |o|^2, concave for strength > 0.

    Examples
    --------
    >>> QuadraticHead([1.0, 0.0], 0.5).value(np.array([[1.0, 1.0]])).tolist()
    [0.0]
    """

    def __init__(self, v, strength: float):
        v = as_float_tensor("v", v).detach().double()
        require_finite("v", v)
        if v.ndim != 1:
            raise ShapeError("v", expected="(d,)", got=str(tuple(v.shape)), remedy="one vector")
        self.v, self.strength = v.numpy(), require_number("strength", strength)

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        return o @ self.v - self.strength * (o * o).sum(axis=-1)

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        return self.v - 2 * self.strength * o


class TorchHead(Head):
    """Any torch function from (m, d) to (m,), differentiated by torch.

    Examples
    --------
    >>> TorchHead(lambda o: torch.tanh(o).sum(-1)).gradient(np.zeros((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]):
        if not callable(function):
            raise DtypeError(
                "function", expected="a torch function of (m, d)", got=type(function).__name__,
                remedy="for example lambda o: torch.tanh(o).sum(-1)",
            )  # fmt: skip
        self.function = function

    def value(self, o):
        """The head's value for each sequence, (..., n)."""
        return self._call(torch.from_numpy(o)).detach().numpy()

    def gradient(self, o):
        """The gradient in the attended vector of each sequence, (..., n, d)."""
        point = torch.from_numpy(o).requires_grad_()
        return torch.autograd.grad(self._call(point).sum(), point)[0].numpy()

    def _call(self, o: torch.Tensor) -> torch.Tensor:
        value = self.function(o.reshape(-1, o.shape[-1]))
        if not isinstance(value, torch.Tensor) or value.shape != (o[..., 0].numel(),):
            raise ShapeError(
                "function", expected="one value a row of (m, d)",
                got=str(tuple(getattr(value, "shape", ()))), remedy="sum over the last axis",
            )  # fmt: skip
        return value.reshape(o.shape[:-1])
