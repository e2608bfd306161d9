"""SNGD and SPS as torch optimizers: stochastic steps whose sizes are those of `attnbias.NGD`
and `attnbias.Polyak`, for any torch module.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed as dist
from torch.optim import Optimizer

from .._validate import require_choice, require_number, short
from ..data._source import translated
from ..errors import AttnBiasError, DtypeError, NonFiniteError, RangeError
from ..rules import INFINITE, NGD, Polyak
from .batch_loss import Passes, averaged, given_loss, one_number
from .tensors import LIFT, advance, grad_norm, local

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

LARGEST_EXPONENT = 709.0
NORMALISED = NGD(1.0)  # 1 / |g|
POLYAK = dataclasses.replace(Polyak(), log_scale=0.0)  # (loss - floor) / |g|^2; c is a group's own
# What is stepped in place; anything narrower, such as float16, is stepped as a float32 copy.
IN_PLACE = (torch.float64, torch.float32, torch.bfloat16, torch.complex128, torch.complex64)

# What the numbers of a group must be; either class has some of them.
LIMITS: dict[str, dict] = {
    "lr": {"low": 0, "high": INFINITE},
    "momentum": {"low": 0, "high": 1, "open_high": True},
    "weight_decay": {"low": 0, "high": INFINITE},
    "max_step": {"low": 0, "open_low": True},
    "c": {"low": 0, "high": INFINITE, "open_low": True},
    "loss_floor": {"low": -INFINITE, "high": INFINITE},
    "smoothing": {"low": 1, "high": INFINITE, "open_low": True},
    "steps_per_epoch": {"low": 1, "high": INFINITE},
    "max_grad_norm": {"low": 0, "open_low": True},
}
MAY_BE_NONE = ("smoothing", "steps_per_epoch", "max_grad_norm")


class Steps(Optimizer):
    """What SNGD and SPS share: a step, given its size in each group.

    Attributes
    ----------
    shared : tuple of str
        Options of the step as a whole, which are the same in all groups.
    """

    limits = LIMITS
    shared: tuple[str, ...] = ("nonfinite",)
    # From step to step, beside the buffers, with their starts. In every group, since torch's
    # flattened states hold what a group has and no more.
    _handed_on: dict[str, float] = {"skipped": 0}

    def __init__(self, params, given: dict, process_group, **unknown):
        options = {name: given[name] for name in (*LIMITS, "nonfinite") if name in given}
        self._names = tuple(options)
        for name, value in unknown.items():
            raise self._foreign(name, value)
        self.process_group = process_group
        self.last_grad_norm, self.last_step_size = _pair(math.nan, math.nan)
        with _named_errors():
            super().__init__(params, self._checked(options))

    def __getstate__(self) -> dict:
        kept = ("process_group", "_names", "last_grad_norm", "last_step_size")
        return super().__getstate__() | {name: getattr(self, name) for name in kept}

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with numbers of their own.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
        """
        with _named_errors():
            for name in (*LIMITS, "process_group"):
                if name in param_group and name not in self._names:
                    raise self._foreign(name, param_group[name])
            group = self._checked(self.defaults | param_group)
            self._require_shared(self.defaults, group)
            super().add_param_group(param_group)
        first = self.param_groups[0]
        for name, start in self._handed_on.items():
            self.param_groups[-1][name] = first.get(name, start)

    @property
    def skipped(self) -> int:
        """Steps left out."""
        return self.param_groups[0]["skipped"]

    def _hand_on(self, name: str, value: float) -> None:
        for group in self.param_groups:
            group[name] = value

    def _foreign(self, name: str, value) -> DtypeError:
        """The error for an option that this optimizer, or a group of it, does not have."""
        kind = type(self).__name__
        remedy = f"{kind} has no such option here: leave it out"
        if name == "max_step":
            remedy = f"the cap of {kind} is its lr: write lr=... in its place"
        expected = f"one of {', '.join(self._names)}"
        return DtypeError(name, expected=expected, got=short(value), remedy=remedy)

    def _checked(self, options: dict) -> dict:
        """The options of a group, each number within its limits."""
        for name in self._names:
            if name == "nonfinite":
                require_choice(name, options[name], ("raise", "skip"))
            elif options[name] is not None or name not in MAY_BE_NONE:
                require_number(name, options[name], **self.limits[name])
        return options

    def _require_shared(self, *groups: dict) -> None:
        for name in self.shared:
            values = {group[name] for group in groups}
            if len(values) > 1:
                raise RangeError(
                    name,
                    expected="one value in all groups",
                    got=" and ".join(map(short, values)),
                    remedy=f"it belongs to the whole step: give it to {type(self).__name__} itself",
                )

    @torch._disable_dynamo  # type: ignore[attr-defined]  # a compiled step would keep no monitors; torch's own constructor has it
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None, *, loss: Any = None) -> Any:
        """Take one step.

        Parameters
        ----------
        closure : callable, optional
            Returns the loss; it may compute the gradients too.
        loss : tensor, float or list of them, optional
            The loss where the gradients were taken, instead of a closure; of several backward
            passes that add to one gradient all losses, whose sum SPS takes.

        Returns
        -------
        loss : what the closure returned, or `loss`

        Raises
        ------
        NonFiniteError
            The gradient norm, the loss or the step size is NaN or infinite, or a parameter can't
            hold the step: a step beyond 3.4e38 in float32 or bfloat16, or a weight or velocity
            that would be beyond 65504 in float16. Nothing has moved then, in any group.
        RangeError
            The loss lies below `loss_floor`, or a number of a group is out of its limits.
        DtypeError, ShapeError
            SPS has no loss though there is a gradient, or one that isn't a single number.
        """
        loss = given_loss(closure, loss)
        self._require_shared(*map(self._checked, self.param_groups))  # a schedule may have set them
        moving = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
        norm = grad_norm([p.grad for params in moving for p in params])
        value = self._loss(loss, norm)
        sizes = [size if norm > 0 else 0.0 for size in self._sizes(norm, value)]
        self.last_grad_norm, self.last_step_size = _pair(norm, sizes[0])
        groups = [*zip(self.param_groups, moving, sizes, strict=True)]
        if not self._is_fault(norm, value, max(self._reach(*group, norm) for group in groups)):
            self._taken()
            for group, params, size in groups:
                if params:
                    self._update(group, params, size)
        return loss

    def _sizes(self, norm: float, loss: float) -> list[float]:
        """eta of each group, unless the gradient is zero."""
        raise NotImplementedError

    def _loss(self, loss, norm: float) -> float:
        """The loss of the whole batch; SNGD needs none."""
        return 0.0

    def _taken(self) -> None:
        """Called when nothing is in the way of the step."""

    def _is_fault(self, norm: float, loss: float, size: float) -> bool:
        """Whether nothing may move; raises or counts it."""
        found = {"gradient norm": norm, "loss": loss, "step size": size}
        least = {"loss": self.param_groups[0].get("loss_floor", -math.inf)}
        what = next((w for w, x in found.items() if not least.get(w, 0) <= x < math.inf), None)
        if what is None:
            return False
        if self.param_groups[0]["nonfinite"] == "skip":
            self._hand_on("skipped", self.skipped + 1)
            return True
        low = math.isfinite(found[what])
        expected = "at least loss_floor" if low else "a finite number"
        remedy = "the parameters are those before this step: check the batch, lower lr"
        remedy += ", or pass nonfinite='skip'"
        error = RangeError if low else NonFiniteError
        raise error(what, expected=expected, got=f"{found[what]:g}", remedy=remedy)

    def _reach(self, group: dict, params: list, size: float, norm: float) -> float:
        """The largest number of a group's step, infinite where its parameters can't hold that."""
        largest = max(size / LIFT, size * norm)
        if group["weight_decay"]:
            largest = max(largest, float(group["lr"]) * group["weight_decay"])
        dtypes = {p.dtype if p.dtype in IN_PLACE else torch.float32 for p in params}
        if any(largest > torch.finfo(dtype).max for dtype in dtypes):
            return math.inf
        for p in params:
            held = torch.finfo(p.dtype).max
            if p.dtype not in IN_PLACE and not all(
                bool((moved.abs() <= held).all()) for moved in self._moved_copies(group, p, size)
            ):
                return math.inf
        return largest

    def _moved_copies(self, group: dict, p, size: float) -> list[torch.Tensor]:
        """A narrow parameter, and its buffer if it has one, as they are after the step."""
        wide = torch.complex64 if p.is_complex() else torch.float32
        parts = [[each[0].to(wide, copy=True)] for each in self._parts(group, [p])]
        advance(group, size, *parts)
        return [part[0] for part in parts[:1] + parts[2:]]

    def _parts(self, group: dict, params: list) -> list[list]:
        """What lies here of parameters, gradients and, with momentum, buffers."""
        parts = [params, [p.grad for p in params]]
        if group["momentum"]:
            buffers = [self.state.get(p, {}).get("momentum_buffer") for p in params]
            parts.append(
                [
                    torch.zeros_like(p) if buffer is None else buffer
                    for p, buffer in zip(params, buffers, strict=True)
                ]
            )
        return [local(part) for part in parts]

    def _update(self, group: dict, params: list, size: float) -> None:
        if group["momentum"]:
            for p in params:
                if not self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        if wide := [p for p in params if p.dtype in IN_PLACE]:
            advance(group, size, *self._parts(group, wide))
        for p in params:
            if p.dtype not in IN_PLACE:
                weights, _, *buffers = self._parts(group, [p])
                for own, moved in zip(
                    [weights, *buffers], self._moved_copies(group, p, size), strict=True
                ):
                    own[0].copy_(moved)

    def load_state_dict(self, state_dict: dict) -> None:
        """torch's; steps go on as if nothing had come between.

        Raises
        ------
        FileFormatError
            The state is another optimizer's, or one of other parameters.
        """
        name = type(self).__name__
        remedy = f"load it into an optimizer made like the one that saved it, here {name}"
        with translated("state_dict", f"what {name} gave for the same parameters", remedy):
            self._require_shared(*map(self._checked, state_dict["param_groups"]))
            for group in state_dict["param_groups"]:
                for each in self._handed_on:
                    require_number(each, group[each])
            # torch's flattened states have an empty dict in place of a buffer that is not made yet
            kept = {
                key: {name: value for name, value in state.items() if value != {}}
                for key, state in state_dict["state"].items()
            }
            if any(set(state) - {"momentum_buffer"} for state in kept.values()):
                raise ValueError("other entries for a parameter")
            super().load_state_dict(state_dict | {"state": kept})


class SNGD(Steps):
    """Stochastic normalised gradient descent: W <- W - min(lr / |g|, max_step) g.

    Parameters
    ----------
    params : iterable of parameters or of groups
        As torch's optimizers take them. |g| is the norm of the gradient of all groups together;
        lr, momentum, weight_decay and max_step may differ between groups.
    lr : float
        Length of a step, >= 0. Schedulers may change it.
    momentum : float
        beta in [0, 1): v <- beta v - eta g, W <- W + v, as in `attnbias.NGD`.
    weight_decay : float
        Decoupled: W shrinks by 1 - lr weight_decay in each step, whatever the norm is.
    max_step : float
        Cap a on eta = lr / |g|. With it SNGD is SGD(lr=a) on gradients clipped at the norm lr / a.
        Infinite by default, since lr itself bounds how far a step goes; where the gradient is
        mere rounding, a step is as long as any other.
    nonfinite : {"raise", "skip"}
        What a norm that is NaN or infinite does, and a step that a parameter's dtype can't hold:
        beyond 3.4e38 in float32, or to a weight beyond 65504 in float16. "raise": an error, with
        the parameters as they were before the step. "skip": the step is left out and counted in
        `skipped`.
    process_group : ProcessGroup, None or False
        For `SPS`; here nothing is exchanged, since gradients that DistributedDataParallel has
        averaged have the norm of the whole batch.

    Attributes
    ----------
    last_step_size, last_grad_norm : torch.Tensor
        eta of the first group and |g| of the last step, 0-dim.
    skipped : int
        Steps left out.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: Section 2 for the rule; momentum and decay are [d]. A gradient of zero gives no
    step. Parameters without a gradient stay, as with torch's optimizers. Of sharded gradients
    those of fully_shard (DTensor) give the global norm, flat shards do not. A GradScaler unscales
    the gradients before the step, and leaves out and counts one that overflowed. The norm is read
    on the host, so a step waits for a GPU once (not run on one yet).

    A loss that is divided by k or multiplied by a scale, and gradients that were clipped, give the
    same steps, because only the direction counts; with max_step they count as for SGD.

    To begin with [d]: lr=0.1 and momentum=0.9, or lr=0.5 without, and a schedule that lowers lr;
    since lr is the length of a step of all parameters together, it is far larger than Adam's. The
    book's chapter on normalised and Polyak steps for any network has the measurement.

    Examples
    --------
    >>> import torch
    >>> from attnbias.optim import SNGD
    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = SNGD([w], lr=0.5)
    >>> (w @ w).backward()
    >>> optimizer.step()
    >>> w.detach().norm().item()
    4.5
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        *,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        max_step: float = math.inf,
        nonfinite: Literal["raise", "skip"] = "raise",
        process_group: dist.ProcessGroup | Literal[False] | None = None,
    ) -> None:
        super().__init__(params, dict(locals()), process_group)

    def _sizes(self, norm, loss):
        inverse = float(NORMALISED.log_step_size(0.0, log(norm)))
        return [
            min(exp(log(float(group["lr"])) + inverse), float(group["max_step"]))
            for group in self.param_groups
        ]


class SPS(Steps):
    """Stochastic Polyak steps: eta = min(lr, (loss - loss_floor) / (c |g|^2)).

    Parameters
    ----------
    params : iterable of parameters or of groups
        As for `SNGD`; here lr, momentum, weight_decay and c may differ between groups.
    lr : float
        The cap, >= 0, as in ALI-G and MoMo, so that a warm-up or a schedule acts on it. inf is
        none: on a plateau, where the gradient is small and the loss is not, such a step can throw
        a network away.
    c : float
        > 0. 2 is the factor that we recall of this paper's Polyak steps [b]; Loizou et al. take
        1/2 in their experiments and at least 1/2 in theory, which reaches the cap four times as
        soon.
    smoothing : float, optional
        tau > 1: the quotient above is at most tau^(1 / steps_per_epoch) times the last.
    steps_per_epoch : float, optional
        Batches in an epoch, n / b; needed with smoothing.
    loss_floor : float
        What stands for the infimum of a batch's loss.
    max_grad_norm : float, optional
        Clip the gradient at this norm: eta is multiplied by min(1, max_grad_norm / |g|), and the
        quotient knows the true |g|.
    momentum : float
        As for `SNGD`.
    weight_decay : float
        As for `SNGD`: W shrinks by 1 - lr weight_decay with lr the cap, whatever the quotient is.
    nonfinite : {"raise", "skip"}
        As for `SNGD`, and also for a loss that is NaN, infinite or below loss_floor.
    process_group : ProcessGroup, None or False
        Processes over which the loss is averaged; None takes all once torch.distributed is
        initialised, False none.

    Attributes
    ----------
    last_step_size, last_grad_norm, skipped
        As for `SNGD`.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: Section 2 and Theorem 7 for the rule, after Loizou et al. (2021), whose are the cap
    and the smoothing [b]; momentum, decay and clipping are [d]. A gradient of zero or a loss at its
    floor gives no step, and smoothing then keeps the quotient before [d]: it could not grow from
    zero.

    The loss and the gradient must be of one and the same function, since eta divides the one by the
    square of the other:

    1. Of k backward passes, pass all k numbers that they began with, losses divided by k say:
    `step(loss=[l1 / k, ..., lk / k])` adds them up, and a closure may return such a list. With the
    last one alone eta is k times too small. SPS counts the calls of backward() that add to the
    first parameter's gradient, unless they create a graph, and warns where several have one loss.
    Accelerate's accumulate() divides too, so divide what you pass.
    2. In place of clip_grad_norm_ before the step take max_grad_norm. If a gradient is shortened
    k times before the step, the quotient is k^2 times too large.
    3. With a GradScaler, pass the loss before it was scaled: `scaler.step(optimizer, loss=loss)`.
    A scale S makes the quotient S times too large.
    4. transformers' Trainer gives step() no loss, and clips at norm 1 unless told max_grad_norm=0.
    Accelerate's step takes a closure only. The book's page on one's own training loop has both.

    lr=0.3 [d]: of the caps that each recorded search of this project tried, the one whose loss is
    never far from the best. c=2 reaches a cap later than c=1/2, so that one too large does less
    harm. The measurements are in the chapter that `SNGD` names.

    Examples
    --------
    >>> import torch
    >>> from attnbias.optim import SPS
    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = SPS([w], lr=10.0, c=0.5)
    >>> loss = w @ w / 2
    >>> loss.backward()
    >>> optimizer.step(loss=loss).item(), w.tolist()
    (12.5, [0.0, 0.0])
    """

    limits = LIMITS | {"lr": {"low": 0}}
    shared = (*Steps.shared, "loss_floor", "smoothing", "steps_per_epoch", "max_grad_norm")
    _handed_on = Steps._handed_on | {"_log_quotient": math.inf}
    _passes: Passes | None = None  # a copy of an optimizer has none

    def __init__(
        self,
        params: ParamsT,
        lr: float = 0.3,
        *,
        c: float = 2.0,
        smoothing: float | None = None,
        steps_per_epoch: int | None = None,
        loss_floor: float = 0.0,
        max_grad_norm: float | None = None,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nonfinite: Literal["raise", "skip"] = "raise",
        process_group: dist.ProcessGroup | Literal[False] | None = None,
        **unknown: Any,
    ) -> None:
        self._next = math.inf
        super().__init__(params, dict(locals()), process_group, **unknown)
        self._passes = Passes.of(p for group in self.param_groups for p in group["params"])

    def _checked(self, options):
        tau, steps = options["smoothing"], options["steps_per_epoch"]
        if (tau is None) != (steps is None):
            raise DtypeError(
                "smoothing, steps_per_epoch",
                expected="both or neither",
                got=f"{short(tau)}, {short(steps)}",
                remedy="smoothing=2 and steps_per_epoch=len(loader) are usual",
            )
        return super()._checked(options)

    def _sizes(self, norm, loss):
        first = self.param_groups[0]
        quotient = float(POLYAK.log_step_size(log(loss - first["loss_floor"]), log(norm)))
        if first["smoothing"] is not None:
            growth = math.log(first["smoothing"]) / first["steps_per_epoch"]
            quotient = min(quotient, first["_log_quotient"] + growth)
        # a quotient of zero could not grow again
        self._next = quotient if norm > 0 and quotient > -math.inf else first["_log_quotient"]
        clip = min(1.0, (first["max_grad_norm"] or math.inf) / norm) if norm > 0 else 1.0
        return [
            clip * min(exp(quotient - log(float(group["c"]))), float(group["lr"]))
            for group in self.param_groups
        ]

    def _taken(self):
        self._hand_on("_log_quotient", self._next)

    def _loss(self, loss, norm) -> float:
        if loss is None and norm == 0:  # torch.distributed.checkpoint makes such a step
            return self.param_groups[0]["loss_floor"]
        if isinstance(loss, list | tuple) and loss:
            value = sum(map(one_number, loss))
        else:
            value = one_number(loss)
            if self._passes:
                self._passes.warn_if_several()
        first = next(p for group in self.param_groups for p in group["params"])
        return averaged(value, self.process_group, first.device)


def _pair(norm: float, size: float) -> torch.Tensor:
    return torch.tensor([norm, size], dtype=torch.float64)


def log(x: float) -> float:
    """-inf at 0 and NaN below."""
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def exp(x: float) -> float:
    """inf where a float can't hold it."""
    return math.inf if x > LARGEST_EXPONENT else math.exp(x)


@contextlib.contextmanager
def _named_errors():
    """Turn what torch raises about parameters into a named error."""
    try:
        yield
    except AttnBiasError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        raise DtypeError(
            "params",
            expected="leaf tensors, or groups of them, each tensor once",
            got=str(error),
            remedy="pass model.parameters(), or dicts with 'params'",
        ) from None
