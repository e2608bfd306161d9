"""Step-size rules: gradient descent, normalised gradient descent and Polyak steps.

A rule knows only two scalars, the loss gap L - L* and the gradient norm, and its step size
is a power law in them:

    log eta_t = min(log_scale + gap_power log(L - L*) + norm_power log |grad L|, log_max_step)

GD has powers (0, 0), NGD (0, -1), Polyak (1, -2). In this form a rule is defined for as long
as the logarithms are, far below the smallest float.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import torch

from ._validate import require_choice, require_number, short
from .errors import DtypeError, RangeError

INFINITE = 1.7976931348623157e308


@dataclass(frozen=True)
class Rule:
    """A step-size rule as a power law; make one with `GD`, `NGD` or `Polyak`.

    Attributes
    ----------
    name : str
    log_scale : float
        Logarithm of the constant factor: eta of GD and NGD.
    gap_power, norm_power : float
        Powers of L - L* and of |grad L|: 0 and 0 for GD, 0 and -1 for NGD, 1 and -2 for Polyak.
    log_max_step : float
        Logarithm of the cap on the step size.
    momentum : float
    normalise : {"separate", "shared"}
        Whether u and W are normalised apart in joint training.
    decay : (p, q)
        Exponents of the decay of u's and of W's step in joint training.
    loss_floor : float or None
        L* as Polyak takes it; None for the true one.

    Examples
    --------
    >>> isinstance(GD(0.1), Rule), NGD(0.1).name
    (True, 'NGD(0.1)')
    """

    name: str
    log_scale: float
    gap_power: float
    norm_power: float
    log_max_step: float = math.inf
    momentum: float = 0.0
    normalise: str = "separate"
    decay: tuple[float, float] = (0.0, 0.0)
    loss_floor: float | None = None

    def power_law(self, log_gap: float, log_norm: float) -> float:
        """log eta_t before the cap, from log(L - L*) and log |grad L|."""
        # a power of zero must not meet an infinite logarithm: 0 * inf is NaN
        value = self.log_scale
        value += self.gap_power * log_gap if self.gap_power else 0.0
        value += self.norm_power * log_norm if self.norm_power else 0.0
        return value

    def log_step_size(self, log_gap: float, log_norm: float) -> float:
        """log eta_t from log(L - L*) and log |grad L|, as floats or as tensors."""
        value = self.power_law(log_gap, log_norm)
        if isinstance(value, torch.Tensor):
            return value.clamp(max=self.log_max_step)
        return min(value, self.log_max_step)

    @property
    def common_step(self) -> bool:
        """Whether joint training takes one norm, that of the whole gradient, for u and W."""
        return self.norm_power != -1.0 or self.normalise == "shared"

    def joint_log_step_sizes(
        self, step: int, log_gap: float, log_u: float, log_W: float
    ) -> tuple[float, float]:
        """log step sizes of u and W from log L and the logs of both gradients' norms.

        A gradient of zero that is to be divided by its own norm gives no step: 0/0 = 0.
        """
        whole, sizes = float(np.logaddexp(2 * log_u, 2 * log_W)) / 2, []
        for own, power in zip((log_u, log_W), self.decay, strict=True):
            size = self.power_law(log_gap, whole if self.common_step else own)
            if not self.common_step and own == -math.inf:
                size = -math.inf
            sizes.append(min(size - power * math.log(step + 1), self.log_max_step))
        return sizes[0], sizes[1]

    def parameters(self) -> dict:
        """The fields as json holds them."""
        return dataclasses.asdict(self) | {"decay": list(self.decay)}

    def __repr__(self) -> str:
        return self.name


def _cap(max_step) -> tuple[float, str]:
    max_step = require_number("max_step", max_step, low=0, open_low=True)
    return math.log(max_step), "" if math.isinf(max_step) else f", max_step={max_step:g}"


def GD(step_size: float) -> Rule:
    """Gradient descent: W <- W - step_size grad L(W).

    Parameters
    ----------
    step_size : float
        eta > 0.

    Returns
    -------
    Rule

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Section 2; Theorem 6 and Section 3.3 speak of it.

    Examples
    --------
    >>> from attnbias import GD
    >>> GD(0.1)
    GD(0.1)
    """
    eta = require_number("step_size", step_size, low=0, open_low=True, high=INFINITE)
    return Rule(f"GD({eta:g})", math.log(eta), 0.0, 0.0)


def NGD(
    step_size: float,
    momentum: float = 0.0,
    normalise: str = "separate",
    decay: tuple[float, float] = (0.0, 0.0),
    max_step: float = math.inf,
) -> Rule:
    """Normalised gradient descent: eta_t = step_size / |grad L|, so each step has length step_size.

    Parameters
    ----------
    step_size : float
        Length of a step, > 0.
    momentum : float
        beta in [0, 1): v <- beta v - eta_t grad L, W <- W + v (heavy ball on normalised
        gradients).
    normalise : {"separate", "shared"}
        Joint training alone: normalise the gradients of W and u each by its own norm
        (Eq. 10), or by their common norm (joint-NGD). A zero gradient divided by its own
        norm counts as zero: from u_0 = 0 the first step leaves W where it is.
    decay : (p, q)
        Joint training alone: factors (t + 1)^-p for u and (t + 1)^-q for W, (2/3, 1) in
        Eq. 10; (0, 0) is none.
    max_step : float
        Cap on eta_t, as the paper's figures use; in joint training on either step size, after
        the factors.

    Returns
    -------
    Rule

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Section 2, Eq. 2 and Eq. 10. The form of the momentum is [d].

    Examples
    --------
    >>> from attnbias import NGD
    >>> NGD(0.1, momentum=0.9)
    NGD(0.1, momentum=0.9)
    """
    eta = require_number("step_size", step_size, low=0, open_low=True, high=INFINITE)
    beta = require_number("momentum", momentum, low=0.0)
    if beta >= 1:
        raise RangeError(
            "momentum",
            expected="a number in [0, 1)",
            got=f"{beta:g}",
            remedy="0.9 is usual; at 1 the velocity never decays",
        )
    normalise = require_choice("normalise", normalise, ("separate", "shared"))
    decay = _decay(decay)
    log_cap, cap_text = _cap(max_step)
    name = f"NGD({eta:g}" + (f", momentum={beta:g}" if beta else "")
    name += ", normalise='shared'" if normalise == "shared" else ""
    name += f", decay=({decay[0]:.4g}, {decay[1]:.4g})" if any(decay) else ""
    name += cap_text + ")"
    return Rule(name, math.log(eta), 0.0, -1.0, log_cap, beta, normalise, decay)


def _decay(decay) -> tuple[float, float]:
    try:
        p, q = decay
    except (TypeError, ValueError):
        raise DtypeError(
            "decay",
            expected="two numbers (p, q)",
            got=short(decay),
            remedy="(2 / 3, 1) is the paper's choice, (0, 0) is none",
        ) from None
    return require_number("decay p", p, low=0, high=1), require_number("decay q", q, low=0, high=1)


def Polyak(max_step: float = math.inf, loss_floor: float | None = None) -> Rule:
    """Polyak steps: eta_t = min((L - L*) / (2 |grad L|^2), max_step).

    Parameters
    ----------
    max_step : float
        The cap; from the step at which it binds, the rule is GD with this step size.
    loss_floor : float, optional
        What stands for L*. None takes the true infimum, the loss when every softmax sits on
        its optimal token, and computes L - L* without cancellation; in joint training the
        infimum is 0. A number must not exceed it.

    Returns
    -------
    Rule

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Section 2 and Theorem 7, after Loizou et al. (2021) with c = 1/2; the factor 2 is [b].
    In joint training the norm is that of the whole gradient, and L* = 0 [c].

    Examples
    --------
    >>> from attnbias import Polyak
    >>> Polyak(max_step=10.0)
    Polyak(max_step=10)
    """
    log_cap, cap_text = _cap(max_step)
    if loss_floor is not None:
        loss_floor = require_number("loss_floor", loss_floor, low=-INFINITE, high=INFINITE)
    floor_text = "" if loss_floor is None else f", loss_floor={loss_floor:g}"
    name = f"Polyak({(cap_text + floor_text).removeprefix(', ')})"
    return Rule(name, -math.log(2.0), 1.0, -2.0, log_cap, loss_floor=loss_floor)
