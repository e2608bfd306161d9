"""Rules: a direction and a step length; gradient descent, normalised steps and Polyak steps.

`Descent` is any rule: it says where a step points and how long it is, and the torch loop runs
it. A `Rule` moves along the negative gradient and knows only two scalars, the loss gap L - L*
and the gradient norm; its step size is a power law in them, which the compiled loops run too:

    log eta_t = min(log_scale + gap_power log(L - L*) + norm_power log |grad L|, log_max_step)

GD has powers (0, 0), NGD (0, -1), Polyak (1, -2). In this form a rule is defined for as long
as the logarithms are, far below the smallest float.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from ._validate import (
    as_numbers,
    as_tensor,
    require_choice,
    require_number,
    require_shape,
    require_vectors,
    short,
)
from .errors import DtypeError, RangeError

__all__ = ["GD", "NGD", "Descent", "Gradient", "Polyak", "Rule", "Vector"]

Memory = dict[str, torch.Tensor]  # what a rule keeps from one iteration to the next
Number: TypeAlias = float | torch.Tensor

INFINITE = 1.7976931348623157e308
BLURRED = 2.0**32  # logarithms above it are off by 1e-6 or so, and what is left of two by as much


class Vector(NamedTuple):
    """A tensor like the iterate, of which each part is exp(log_scale) times that of `parts`.

    Attributes
    ----------
    parts : tensor
    log_scale, size : (P,)
        The factors' logarithms, and the norms of the parts before them.

    Examples
    --------
    >>> Vector(torch.ones(1, 2), log_scale=torch.zeros(1), size=torch.ones(1) * 2**0.5).parts
    tensor([[1., 1.]])
    """

    parts: torch.Tensor
    log_scale: torch.Tensor
    size: torch.Tensor


def _unknown() -> torch.Tensor:
    return torch.tensor(math.nan)


@dataclass(frozen=True, eq=False)
class Gradient:
    """What a problem says of an iterate, and a rule makes a step of.

    Attributes
    ----------
    descent : Vector
        The negative gradient.
    norms : callable
        (P,) norms of a tensor like the iterate.
    gap : callable
        log(L - L*) - common, computed when asked for; NaN where it is not known.
    common : float or tensor
        A part of log_scale which the loss shares: steps in which it drops out keep their digits.
    beside : (P,) tensor, optional
        log_scale - common.
    log_floor : float
        log L*, the infimum of the loss.
    least : tensor, optional
        Quantities of which the run keeps the smallest over all iterates.
    rest : tensor, optional
        A part of the negative gradient that is not in `descent`, for rules that take it apart.
    state : object
        What the problem wants to see again when it records.

    Examples
    --------
    >>> norms = lambda x: x.norm()[None]
    >>> x = torch.tensor([[3.0, 4.0]])
    >>> gradient = Gradient(Vector(-x, torch.zeros(1), norms(x)), norms)
    >>> gradient.log_norm.exp(), gradient.vector(x.sign()).size
    (tensor([5.]), tensor([1.4142]))
    """

    descent: Vector
    norms: Callable[[torch.Tensor], torch.Tensor]
    gap: Callable[[], torch.Tensor] = _unknown
    common: torch.Tensor | float = 0.0
    beside: torch.Tensor | None = None
    log_floor: float = -math.inf
    least: torch.Tensor | None = None
    rest: torch.Tensor | None = None
    state: Any = None

    @property
    def log_norm(self) -> torch.Tensor:
        """(P,) log of the norm of each part of the gradient."""
        return self.descent.log_scale + self.descent.size.log()

    def log_gap(self) -> torch.Tensor:
        """log(L - L*)."""
        return self.common + self.gap()

    def log_excess(
        self, loss_floor: float | None, less: torch.Tensor | None = None
    ) -> torch.Tensor:
        """log(L - floor), or that less `common` and less a part of `beside`; None is L* itself."""
        away = -self.common if less is None else less
        gap, below = self.gap() - away, log_floor_gap(self.log_floor, loss_floor)
        if below == -math.inf:
            return gap
        return torch.logaddexp(gap, torch.as_tensor(below - self.common - away).to(gap))

    def vector(self, parts: torch.Tensor) -> Vector:
        """A direction of a rule's own, of the shape of `descent.parts`, with its norms."""
        parts = as_tensor("parts", parts)
        require_shape("parts", parts, (*self.descent.parts.shape,), "that of descent.parts")
        size = self.norms(parts)
        return Vector(parts, torch.zeros_like(size), size)


def log_floor_gap(log_floor: float, loss_floor: float | None) -> float:
    """log(L* - loss_floor), -inf where a rule uses L* itself."""
    if loss_floor is None:
        return -math.inf
    if loss_floor <= 0:
        return float(np.logaddexp(log_floor, _log(-loss_floor)))
    return log_floor + _log(-math.expm1(math.log(loss_floor) - log_floor))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


class Descent:
    """A rule: where a step points, and how long it is. Write your own and pass it to `train`.

    An iterate may have several parts, the decoder and W in joint training or the matrices of
    several heads; a length is one number or one a part.

    Attributes
    ----------
    name : str
    momentum : float
        Not 0 where a step is not `length` times `direction`: the path is then not measured.
    averaging : bool
        Whether steps average all past ones.
    decay, normalise, loss_floor
        As in `Rule`, for rules with one step size for each part.

    Examples
    --------
    >>> from attnbias import make_separation_pair, train
    >>> class SignDescent(Descent):
    ...     name = "sign descent"
    ...
    ...     def length(self, gradient, step):
    ...         return math.log(0.5)
    ...
    ...     def direction(self, gradient, step, memory):
    ...         return gradient.vector(gradient.descent.parts.sign())
    >>> train(make_separation_pair(), SignDescent(), 10, coordinates="dense").W.tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """

    name: str = "a rule of one's own"
    momentum: float = 0.0
    averaging = False
    normalise: str = "separate"
    decay: tuple[float, float] = (0.0, 0.0)
    loss_floor: float | None = None

    def memory(self, start: torch.Tensor) -> Memory:
        """Tensors that the rule keeps from one iteration to the next, by name; none here."""
        return {}

    def length(self, gradient: Gradient, step: int) -> Number:
        """log of the step size: a number, or a tensor with one a part."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `length`")

    def direction(self, gradient: Gradient, step: int, memory: Memory) -> Vector:
        """What the step size multiplies; the negative gradient unless a rule says otherwise."""
        return gradient.descent

    def log_factor(self, gradient: Gradient, step: int, along: Vector) -> torch.Tensor:
        """log of what the direction's parts are multiplied by: step size times their scale.

        A rule whose length has the gradient's norm in it may form this without either, as a
        difference of two large logarithms has no digits.

        Raises
        ------
        RangeError
            Where these cancel to a step of fewer than six digits.
        """
        log_size = self.length(gradient, step) + along.log_scale
        blurred = (along.log_scale.abs() > BLURRED) & (log_size.exp() > 0) & log_size.isfinite()
        if bool(blurred.any()):
            raise RangeError(
                f"step {step} of {self.name}",
                expected="a step size and a gradient whose "
                f"logarithms are at most {BLURRED:.0e}, or do not cancel",
                got=f"logarithms of about {float(along.log_scale.abs().max()):.0e}, which leave "
                "the step no digits",
                remedy="scale the tokens down, or give the rule a log_factor without them: "
                "log(eta) - along.size.log() for steps of length eta",
            )
        return log_size

    def carry(
        self, move: torch.Tensor, gradient: Gradient, step: int, memory: Memory
    ) -> torch.Tensor:
        """The move of the iterate, given step size times direction; that itself here."""
        return move

    def parameters(self) -> dict[str, Any]:
        """What json holds of the rule: no powers, which tells it from a `Rule`."""
        plain = str | int | float | bool | None
        held = {name: value for name, value in vars(self).items() if isinstance(value, plain)}
        held |= {"log_scale": None, "gap_power": None, "norm_power": None, "log_max_step": math.inf}
        names = ("name", "momentum", "normalise", "loss_floor")
        return held | {name: getattr(self, name) for name in names} | {"decay": list(self.decay)}

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Rule(Descent):
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

    name: str = dataclasses.field()  # required here
    log_scale: float
    gap_power: float
    norm_power: float
    log_max_step: float = math.inf
    momentum: float = 0.0
    normalise: str = "separate"
    decay: tuple[float, float] = (0.0, 0.0)
    loss_floor: float | None = None

    def _power_law(self, log_gap: Number, log_norm: Number) -> Number:
        """log eta_t before the cap, from log(L - L*) and log |grad L|."""
        # a power of zero must not meet an infinite logarithm: 0 * inf is NaN
        value: Number = self.log_scale
        value = value + self.gap_power * log_gap if self.gap_power else value
        return value + self.norm_power * log_norm if self.norm_power else value

    def log_step_size(self, log_gap: Number, log_norm: Number) -> Number:
        """log eta_t from log(L - L*) and log |grad L|, as floats or as tensors."""
        value = self._power_law(_as_log("log_gap", log_gap), _as_log("log_norm", log_norm))
        if isinstance(value, torch.Tensor):
            return value.clamp(max=self.log_max_step)
        return min(value, self.log_max_step)

    @property
    def common_step(self) -> bool:
        """Whether joint training takes one norm, that of the whole gradient, for u and W."""
        return self.norm_power != -1.0 or self.normalise == "shared"

    def length(self, gradient: Gradient, step: int) -> torch.Tensor:
        """log eta_t of each part, from its own gradient norm or from that of the whole.

        A gradient of zero that is to be divided by its own norm gives no step: 0/0 = 0.
        """
        own = gradient.log_norm
        norm = torch.logsumexp(2 * own, dim=0) / 2 if self.common_step else own
        gap = gradient.log_excess(self.loss_floor) if self.gap_power else 0.0
        return self._later(self._power_law(gap, norm), own, step).clamp(max=self.log_max_step)

    def log_factor(self, gradient: Gradient, step: int, along: Vector) -> torch.Tensor:
        """log eta_t plus the logarithm taken out of the gradient, which drops out of both."""
        common, own = gradient.common, gradient.descent.size.log()
        beside = gradient.beside
        beside = gradient.descent.log_scale - common if beside is None else beside
        less = beside.amax() if self.common_step else beside
        rest = beside - less  # 0, or below
        norm = torch.logsumexp(2 * (rest + own), dim=0) / 2 if self.common_step else own
        gap = gradient.log_excess(self.loss_floor, less) if self.gap_power else 0.0
        size = self._power_law(gap, norm)
        if degree := 1 + self.gap_power + self.norm_power:
            size = size + degree * (common + less)
        size = self._later(size + rest, own, step)
        return torch.minimum(size, self.log_max_step + gradient.descent.log_scale)

    def _later(self, size: Number, own: torch.Tensor, step: int) -> torch.Tensor:
        """The logs of sizes, one a part, with the decay; -inf beside a norm of zero of its own."""
        size = torch.as_tensor(size, dtype=own.dtype).to(own.device).expand(own.shape)
        if any(self.decay):
            size = size - torch.tensor(self.decay, dtype=own.dtype).to(own) * math.log(step + 1)
        return size if self.common_step else size.masked_fill(own == -torch.inf, -torch.inf)

    def memory(self, start: torch.Tensor) -> Memory:
        """The velocity, with momentum."""
        return {"speed": torch.zeros_like(start)} if self.momentum else {}

    def carry(
        self, move: torch.Tensor, gradient: Gradient, step: int, memory: Memory
    ) -> torch.Tensor:
        """v <- momentum v + move, which is the step."""
        if self.momentum:
            memory["speed"] = move = self.momentum * memory["speed"] + move
        return move

    def parameters(self) -> dict[str, Any]:
        """The fields as json holds them."""
        return dataclasses.asdict(self) | {"decay": list(self.decay)}


def _as_log(name: str, value: Number) -> Number:
    if isinstance(value, torch.Tensor):
        require_vectors(**{name: value})
        return value
    return float(as_numbers(name, value, ()))


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
