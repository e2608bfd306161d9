"""SNGD and SPS as torch optimizers: stochastic steps whose sizes are those of `attnbias.NGD`
and `attnbias.Polyak`, for any torch module.
"""

from __future__ import annotations

import dataclasses
import math
import numbers

import numpy as np
import torch
import torch.distributed as dist

from .._validate import require_number, short
from ..errors import DtypeError, ShapeError
from ..rules import INFINITE, NGD, Polyak
from ._steps import Steps


class SNGD(Steps):
    """Stochastic normalised gradient descent: W <- W - min(lr / |g|, max_step) g.

    Parameters
    ----------
    params : iterable of parameters or of groups
        As torch's optimizers take them. |g| is the norm of the gradient of all groups together;
        lr, momentum and weight_decay may differ between groups.
    lr : float
        Length of a step, >= 0. Schedulers may change it.
    momentum : float
        beta in [0, 1): v <- beta v - eta g, W <- W + v, as in `attnbias.NGD`.
    weight_decay : float
        Decoupled: W shrinks by 1 - lr weight_decay in each step, whatever the norm is.
    max_step : float
        Cap on eta = lr / |g|.
    nonfinite : {"raise", "skip"}
        What a norm that is NaN or infinite does, and a step beyond 3.4e38 for parameters
        narrower than float64, which can't hold it. "raise": an error, with the parameters as
        they were before the step. "skip": the step is left out and counted in `skipped`.
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
        params,
        lr,
        *,
        momentum=0.0,
        weight_decay=0.0,
        max_step=math.inf,
        nonfinite="raise",
        process_group=None,
    ):
        self.log_cap = NGD(1.0, max_step=max_step).log_max_step
        super().__init__(params, NGD(1.0), lr, momentum, weight_decay, nonfinite, process_group)


class SPS(Steps):
    """Stochastic Polyak steps: eta = lr min((loss - loss_floor) / (c |g|^2), max_step).

    Parameters
    ----------
    params : iterable of parameters or of groups
        As for `SNGD`.
    lr : float
        Factor on every step, >= 0, for schedulers; 1 is the rule itself.
    max_step : float
        The cap. Without smoothing it stays the same.
    c : float
        > 0. 2 is the factor that we recall of this paper's Polyak steps [b]; Loizou et al. take
        1/2 in their experiments and at least 1/2 in theory.
    smoothing : float, optional
        tau > 1: a step size, before lr, is at most tau^(1 / steps_per_epoch) times the last.
    steps_per_epoch : float, optional
        Batches in an epoch, n / b; needed with smoothing.
    loss_floor : float
        What stands for the infimum of a batch's loss.
    momentum, weight_decay : float
        As for `SNGD`. With lr = 1, W shrinks by 1 - weight_decay in each step.
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
    and the smoothing [b]; lr, momentum and decay are [d]. A gradient of zero or a loss at its floor
    gives no step, and smoothing then keeps the step size before [d]: it could not grow from zero.

    To begin with [d]: max_step about the lr at which SGD is stable, 0.3 where nothing is known, and
    c=0.5; the measurement is in the chapter that `SNGD` names.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets.optim import SPS
    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = SPS([w], c=0.5)
    >>> loss = w @ w / 2
    >>> loss.backward()
    >>> optimizer.step(loss=loss).item(), w.tolist()
    (12.5, [0.0, 0.0])
    """

    def __init__(
        self,
        params,
        lr=1.0,
        *,
        max_step=math.inf,
        c=2.0,
        smoothing=None,
        steps_per_epoch=None,
        loss_floor=0.0,
        momentum=0.0,
        weight_decay=0.0,
        nonfinite="raise",
        process_group=None,
    ):
        c = require_number("c", c, low=0, high=INFINITE, open_low=True)
        loss_floor = require_number("loss_floor", loss_floor, low=-INFINITE, high=INFINITE)
        rule = dataclasses.replace(Polyak(max_step, loss_floor), log_scale=-math.log(c))
        self.loss_floor, self.log_growth = loss_floor, _growth(smoothing, steps_per_epoch)
        super().__init__(params, rule, lr, momentum, weight_decay, nonfinite, process_group)

    def _loss(self, loss) -> float:
        value = _one_number(loss)
        if self.process_group is False or not (dist.is_available() and dist.is_initialized()):
            return value
        first = next(p for group in self.param_groups for p in group["params"])
        total = torch.tensor(value, dtype=torch.float64, device=first.device)
        dist.all_reduce(total, group=self.process_group)
        return float(total) / dist.get_world_size(self.process_group)


def _growth(smoothing, steps_per_epoch) -> float:
    """By how much the logarithm of the step size may grow in a step: log tau / (n / b)."""
    if (smoothing is None) != (steps_per_epoch is None):
        raise DtypeError(
            "smoothing, steps_per_epoch", expected="both or neither",
            got=f"{short(smoothing)}, {short(steps_per_epoch)}",
            remedy="smoothing=2 and steps_per_epoch=len(loader) are usual",
        )  # fmt: skip
    if smoothing is None:
        return math.inf
    tau = require_number("smoothing", smoothing, low=1, high=INFINITE, open_low=True)
    steps = require_number("steps_per_epoch", steps_per_epoch, low=1, high=INFINITE)
    return math.log(tau) / steps


def _one_number(loss) -> float:
    """The loss as a float."""
    tensor = isinstance(loss, torch.Tensor)
    # numpy registers its time differences as integers
    plain = isinstance(loss, numbers.Real) and not isinstance(loss, np.timedelta64)
    if loss.is_complex() if tensor else not plain:
        raise DtypeError(
            "loss", expected="the loss as one real number", got=short(loss),
            remedy="call step(loss=loss), or step(closure) with a closure that returns it",
        )  # fmt: skip
    if tensor and loss.numel() != 1:
        raise ShapeError(
            "loss", expected="one number", got=f"shape {tuple(loss.shape)}",
            remedy="reduce it as for its gradients, for example loss.mean()",
        )  # fmt: skip
    try:
        return float(loss)
    except OverflowError:  # an integer or a fraction beyond float64
        return math.inf if loss > 0 else -math.inf
