"""Losses with other tails: a power of the margin, a rounded hinge, and a hinge that ends.

What a loss does far out is its tail. These run wherever a `Loss` does, in the torch engine.
"""

from __future__ import annotations

import math

import torch

from ..._validate import require_number
from ...losses import LOGISTIC, Loss, log_expm1


def polynomial_loss(power: float) -> Loss:
    """A convex loss with the tail z^-power: (1 + z)^-power, and 1 - power z below zero.

    Parameters
    ----------
    power : float in [0.01, 100]
        Its slope at the margin z >= 0 is power (1 + z)^(-power - 1), and power below.

    Returns
    -------
    Loss
        Continuously differentiable, with a slope that vanishes nowhere.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: [d]; polynomially tailed losses as in Ji, Dudik, Schapire and Telgarsky (2020),
    who treat linear classifiers.

    Examples
    --------
    >>> import torch
    >>> from attnbias.beyond.losses.losses import polynomial_loss
    >>> polynomial_loss(2).log_value(torch.tensor([-1.0, 0.0, 1.0])).exp().tolist()
    [3.0, 1.0, 0.25]
    """
    k = require_number("power", power, low=0.01, high=100)

    def log_value(z):
        return torch.where(
            z > 0, -k * torch.log1p(z.clamp(min=0)), torch.log1p(-k * z.clamp(max=0))
        )

    def log_slope(z):
        return math.log(k) - (k + 1) * torch.log1p(z.clamp(min=0))

    def log_gap(z, log_S):
        # on the tail (1 + z)^-k (exp(w) - 1); across its end k (S - z) + 1 - (1 + z)^-k
        above, S = z.clamp(min=0), log_S.exp()
        log_x = log_S - torch.log1p(above)
        x = log_x.exp().clamp(max=0.999999999)
        bend = torch.where(x < 1e-8, log_x + x / 2, (-torch.log1p(-x)).log())
        tail = -k * torch.log1p(above) + log_expm1(math.log(k) + bend)
        across = (k * (S - above) - torch.expm1(-k * torch.log1p(above))).clamp(min=1e-300).log()
        return torch.where(z <= 0, math.log(k) + log_S, torch.where(above >= S, tail, across))

    return Loss(f"polynomial {k:g}", log_value, log_slope, log_gap)


def smooth_hinge(sharpness: float) -> Loss:
    """The hinge max(0, 1 - z) with its corner rounded: log(1 + exp(s (1 - z))) / s.

    Parameters
    ----------
    sharpness : float in [0.01, 1000]
        s; the logistic loss of z - 1 at s = 1, and the hinge as s grows.

    Returns
    -------
    Loss
        Its slope exp(-s (z - 1)) far beyond margin 1 is small, but vanishes nowhere.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: [d].

    Examples
    --------
    >>> import torch
    >>> from attnbias.beyond.losses.losses import smooth_hinge
    >>> loss = smooth_hinge(20.0)
    >>> [round(float(x), 4) for x in loss.log_value(torch.tensor([-1.0, 1.0, 3.0])).exp()]
    [2.0, 0.0347, 0.0]
    """
    s = require_number("sharpness", sharpness, low=0.01, high=1000)
    log_s = math.log(s)
    return Loss(
        f"smooth hinge {s:g}",
        log_value=lambda z: LOGISTIC.log_value(s * (z - 1)) - log_s,
        log_slope=lambda z: LOGISTIC.log_slope(s * (z - 1)),
        log_gap=lambda z, log_S: LOGISTIC.gap(s * (z - 1), log_S + log_s) - log_s,
    )


def squared_hinge(target: float = 1.0) -> Loss:
    """max(0, target - z)^2 / 2: the squared loss up to its target, and zero from there on.

    Parameters
    ----------
    target : float in [-1e6, 1e6]
        With u fixed a margin stays at or below the optimal score. So with a target at or above
        all of these it is the squared loss itself.

    Returns
    -------
    Loss

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: [d]. It breaks the hypothesis of a slope that vanishes nowhere. Below the optimal
    score: a sequence whose margin is the target drops out of the gradient, and when all have
    dropped out a run stops with the status "zero gradient". At the optimal score: the slope is
    the score that is lost to the other tokens, known by its logarithm, so that a run goes on.

    Examples
    --------
    >>> import torch
    >>> from attnbias.beyond.losses.losses import squared_hinge
    >>> squared_hinge().log_slope(torch.tensor([0.0, 1.0])).tolist()
    [0.0, -inf]
    """
    target = require_number("target", target, low=-1e6, high=1e6)

    def short(z):
        return (target - z).clamp(min=0)

    def log_slope_below(z, log_S):
        # where z is at most the target, nothing is rounded away: target - z + S
        return torch.where(
            z <= target, torch.logaddexp(short(z).log(), log_S), short(z - log_S.exp()).log()
        )

    def log_gap(z, log_S):
        # with a = (target - z)_+ and r the part of S below the target: a r + r^2 / 2
        a, beyond = short(z), (z - target).clamp(min=0)
        r = (log_S.exp() - beyond).clamp(min=0)
        within = log_S + torch.logaddexp(a.log(), log_S - math.log(2))
        return torch.where(z <= target, within, r.log() + (a + r / 2).log())

    return Loss(
        "squared hinge" if target == 1 else f"squared hinge to {target:g}",
        log_value=lambda z: 2 * short(z).log() - math.log(2),
        log_slope=lambda z: short(z).log(),
        log_gap=log_gap,
        log_slope_below=log_slope_below,
    )


def linear_loss(top: float) -> Loss:
    """top - z: a constant slope of -1, which with u fixed is the loss -z.

    Parameters
    ----------
    top : float in [-1e6, 1e6]
        Above all scores, so that the loss is positive and has a logarithm. It changes nothing
        else.

    Returns
    -------
    Loss

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: [d]. It decreases for ever and tends to no limit. With u fixed that is never seen.

    Examples
    --------
    >>> import torch
    >>> from attnbias.beyond.losses.losses import linear_loss
    >>> linear_loss(3.0).log_value(torch.tensor([1.0, 2.0])).exp().tolist()
    [2.0, 1.0]
    """
    top = require_number("top", top, low=-1e6, high=1e6)
    return Loss(
        f"linear below {top:g}",
        log_value=lambda z: (top - z).log(),
        log_slope=torch.zeros_like,
        log_gap=lambda z, log_S: log_S,
    )
