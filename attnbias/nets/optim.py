"""SNGD and SPS as torch optimizers: stochastic steps whose sizes are those of `attnbias.NGD`
and `attnbias.Polyak`, for any torch module.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.distributed as dist

from .._validate import require_dense, short
from ..errors import DtypeError, ShapeError
from ..rules import NGD, Polyak
from ._steps import LIMITS, Steps, exp, log

if TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

NORMALISED = NGD(1.0)  # 1 / |g|
POLYAK = dataclasses.replace(Polyak(), log_scale=0.0)  # (loss - floor) / |g|^2; c is a group's own


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
    >>> from attnbias.nets.optim import SNGD
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
        options = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "max_step": max_step,
            "nonfinite": nonfinite,
        }
        super().__init__(params, options, process_group)

    def _sizes(self, norm, loss):
        inverse = NORMALISED.log_step_size(0.0, log(norm))
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
    Accelerate's step takes a closure only. The chapter that `SNGD` names has the lines for both.

    lr=0.3 [d]: of the caps that each recorded search of this project tried, the one whose loss is
    never far from the best. c=2 reaches a cap later than c=1/2, so that one too large does less
    harm. The measurements are in the chapter that `SNGD` names.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets.optim import SPS
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
    _passes: _Passes | None = None  # a copy of an optimizer has none

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
        options = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "c": c,
            "loss_floor": loss_floor,
            "smoothing": smoothing,
            "steps_per_epoch": steps_per_epoch,
            "max_grad_norm": max_grad_norm,
            "nonfinite": nonfinite,
        }
        self._next = math.inf
        super().__init__(params, options, process_group, **unknown)
        self._passes = _Passes.of(p for group in self.param_groups for p in group["params"])

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
        quotient = POLYAK.log_step_size(log(loss - first["loss_floor"]), log(norm))
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
            value = sum(map(_one_number, loss))
        else:
            value = _one_number(loss)
            if self._passes:
                self._passes.warn_if_several()
        if self.process_group is False or not (dist.is_available() and dist.is_initialized()):
            return value
        first = next(p for group in self.param_groups for p in group["params"])
        total = torch.tensor(value, dtype=torch.float64, device=first.device)
        dist.all_reduce(total, group=self.process_group)
        return float(total) / dist.get_world_size(self.process_group)


class _Passes:
    """How many backward passes have added to one and the same gradient, that of one parameter.

    Each adds in place, which torch counts as a version of the tensor; whatever else is done to it,
    such as setting it to zero, counts as well, and a new tensor is told by its id.
    """

    def __init__(self, leaf):
        self.leaf, self.count, self.seen = leaf, 0, (0, 0)
        leaf.register_post_accumulate_grad_hook(self)

    @classmethod
    def of(cls, params):
        """Of the first parameter that takes part; None where none does."""
        leaf = next((p for p in params if p.requires_grad and p.is_leaf), None)
        return None if leaf is None else cls(leaf)

    def __call__(self, param) -> None:
        key, version = id(param.grad), param.grad._version
        self.count = self.count + 1 if self.seen == (key, version - 1) else 1
        self.seen = key, version

    def warn_if_several(self) -> None:
        if self.count > 1 and self.leaf.requires_grad:
            warnings.warn(
                f"{self.count} backward passes added to the gradient, and SPS has one loss. If it "
                "is that of the last, the step is too short: pass what each of them began with, "
                "step(loss=[l1 / k, ..., lk / k]), or a list with their sum.",
                stacklevel=8,
            )


def _one_number(loss) -> float:
    """The loss as a float."""
    tensor = isinstance(loss, torch.Tensor)
    if tensor:
        require_dense("loss", loss)
    # numpy registers its time differences as integers
    plain = isinstance(loss, numbers.Real) and not isinstance(loss, np.timedelta64)
    if loss.is_complex() if tensor else not plain:
        raise DtypeError(
            "loss",
            expected="the loss as one real number",
            got=short(loss),
            remedy="call step(loss=loss), or step(closure) with a closure that returns it",
        )
    if tensor and loss.numel() != 1:
        raise ShapeError(
            "loss",
            expected="one number, or a list of them",
            got=f"shape {tuple(loss.shape)}",
            remedy="reduce it as for its gradients, for example loss.mean(); give the losses of "
            "several backward passes as a list",
        )
    try:
        return float(loss)
    except OverflowError:  # an integer or a fraction beyond float64
        return math.inf if loss > 0 else -math.inf
