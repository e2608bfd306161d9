"""Decreasing losses, by their value and the logarithm of their slope.

The dynamics need three things of a loss l: log l(z), log(-l'(z)), and the loss gap
l(z - S) - l(z) for S >= 0 in the log domain, exact however small S is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ._validate import require_type, require_vectors, short
from .errors import DtypeError, RangeError

__all__ = ["Loss"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)  # exact to rounding for S up to about 20


@dataclass(frozen=True)
class Loss:
    """A decreasing, continuously differentiable loss of the margin z = y Phi(X).

    Parameters
    ----------
    name : str
    log_value : callable
        Tensor z to log l(z).
    log_slope : callable
        Tensor z to log(-l'(z)).
    log_gap : callable, optional
        (z, log S) to log(l(z - S) - l(z)). None integrates the slope by Gauss-Legendre.
    log_slope_below : callable, optional
        (z, log S) to log(-l'(z - S)), for a slope that vanishes at a target z, where z - S
        would round to z. None takes the slope at z - S.

    Raises
    ------
    DtypeError

    Notes
    -----
    Source: the risk of Section 2; the main results use the exponential loss, and the text
    extends them to continuously differentiable decreasing losses.

    Examples
    --------
    >>> loss = Loss("squared exponential", lambda z: -2 * z, lambda z: -2 * z + np.log(2))
    >>> float(loss.log_value(torch.tensor(1.0)))
    -2.0
    """

    name: str
    log_value: Callable[[torch.Tensor], torch.Tensor]
    log_slope: Callable[[torch.Tensor], torch.Tensor]
    log_gap: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    log_slope_below: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None

    def __post_init__(self) -> None:
        parts: list[Callable[..., torch.Tensor]] = [self.log_value, self.log_slope]
        parts += [part for part in (self.log_gap, self.log_slope_below) if part is not None]
        if not isinstance(self.name, str) or not all(callable(part) for part in parts):
            raise DtypeError(
                "loss",
                expected="a name, and functions of a tensor for its value, slope and gap",
                got=", ".join(type(part).__name__ for part in (self.name, *parts)),
                remedy="for example Loss('mine', log_value=lambda z: -z, log_slope=lambda z: -z)",
            )

    @property
    def compiled(self) -> int | None:
        """Its number in the compiled loops; None for a loss of your own, which runs in torch."""
        known = list(LOSSES.values())
        return known.index(self) if self in known else None

    def gap(self, z: torch.Tensor, log_S: torch.Tensor) -> torch.Tensor:
        """log(l(z - S) - l(z)), elementwise."""
        require_vectors(z=z, log_S=log_S)
        if self.log_gap is not None:
            return self.log_gap(z, log_S)
        nodes = torch.as_tensor((_NODES + 1) / 2, dtype=z.dtype, device=z.device)
        log_weights = torch.as_tensor(np.log(_WEIGHTS / 2), dtype=z.dtype, device=z.device)
        slopes = self.log_slope(z[..., None] - log_S.exp()[..., None] * nodes)
        return log_S + torch.logsumexp(slopes + log_weights, dim=-1)

    def fade(self, z: torch.Tensor, log_S: torch.Tensor) -> torch.Tensor:
        """log of the mean slope from z - S to z over that at z - S, elementwise.

        Of the two named losses without a difference of large numbers.
        """
        require_vectors(z=z, log_S=log_S)
        if self.compiled is not None:
            return FADES[self.name](z, log_S)
        if self.log_slope_below is None:
            steepest = self.log_slope(z - log_S.exp())
        else:
            steepest = self.log_slope_below(z, log_S)
        fade = self.gap(z, log_S) - log_S - steepest
        # 0 where S underflows, so that both are one; and where the loss is flat, its gap is 0 too
        return fade.masked_fill((log_S < -745) | (steepest == -torch.inf), 0.0)


def log_expm1(log_S: torch.Tensor) -> torch.Tensor:
    """log(exp(S) - 1) from log S, for any S.

    Below 1e-8 the next term S/2 is below rounding; above 40 the 1 is.
    """
    S = log_S.exp()
    middle = torch.expm1(S.clamp(max=40)).log()
    return torch.where(S < 1e-8, log_S + S / 2, torch.where(S > 40, S, middle))


def _logistic_log_value(z: torch.Tensor) -> torch.Tensor:
    # log(log(1 + e^-z)); past z = 40 the logarithm of log1p(x) = x (1 - x/2) is -z - x/2.
    # Both branches are kept finite: a NaN in the unused one would reach the derivative.
    softplus = -torch.nn.functional.logsigmoid(z)
    tail = -z - (-z.clamp(min=40)).exp() / 2
    return torch.where(z > 40, tail, softplus.clamp(min=1e-300).log())


def _logistic_log_gap(z: torch.Tensor, log_S: torch.Tensor) -> torch.Tensor:
    # log(1 + e^{-z+S}) - log(1 + e^{-z}) = log1p(x), x = sigmoid(-z) (e^S - 1)
    log_x = torch.nn.functional.logsigmoid(-z) + log_expm1(log_S)
    x = log_x.clamp(max=40).exp()
    middle = torch.where(log_x > 40, log_x, torch.log1p(x)).log()
    return torch.where(x < 1e-8, log_x - x / 2, middle)


def _exponential_fade(z: torch.Tensor, log_S: torch.Tensor) -> torch.Tensor:
    # log((1 - e^-S) / S)
    S = log_S.exp()
    return torch.where(S < 1e-8, -S / 2, (-torch.expm1(-S)).log() - log_S)


def _logistic_fade(z: torch.Tensor, log_S: torch.Tensor) -> torch.Tensor:
    # log1p(x) / S over the slope, log_x as in the gap
    softplus = torch.nn.functional.softplus
    low = z - log_S.exp()
    linear = _exponential_fade(z, log_S) + softplus(-low) - softplus(-z)
    log_x = linear + log_S - softplus(low)
    x = log_x.clamp(max=30).exp()
    middle = linear + torch.where(x < 1e-8, -x / 2, torch.log1p(x).log() - log_x)
    return torch.where(log_x > 30, log_x.clamp(min=1).log() - log_S + softplus(low), middle)


FADES = {"exponential": _exponential_fade, "logistic": _logistic_fade}
EXPONENTIAL = Loss(
    "exponential",
    log_value=lambda z: -z,
    log_slope=lambda z: -z,
    log_gap=lambda z, log_S: -z + log_expm1(log_S),
)
LOGISTIC = Loss(
    "logistic",
    log_value=_logistic_log_value,
    log_slope=lambda z: torch.nn.functional.logsigmoid(-z),
    log_gap=_logistic_log_gap,
)
# The compiled loops number them in this order.
LOSSES = {loss.name: loss for loss in (EXPONENTIAL, LOGISTIC)}


def as_loss(loss: str | Loss) -> Loss:
    """A loss by its name, or a `Loss` of the caller's own."""
    if isinstance(loss, Loss):
        return loss
    own = "for a loss of your own build Loss(name, log_value, log_slope)"
    if require_type("loss", loss, str, "a name or a Loss", own) not in LOSSES:
        known = ", ".join(map(repr, LOSSES))
        raise RangeError("loss", expected=f"one of {known}, or a Loss", got=short(loss), remedy=own)
    return LOSSES[loss]
