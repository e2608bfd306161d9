"""SNGD and SPS as torch optimizers: stochastic steps of the sizes that `attnbias.NGD` and
`attnbias.Polyak` take, for any torch module.

The step size is computed as 0-dim float64 tensors beside the gradients. On a CPU it is then
read as a number; on a GPU it never leaves the device, so that no step waits for it.
"""

from __future__ import annotations

import dataclasses
import math

import torch
import torch.distributed as dist
from torch.optim import Optimizer

from .._validate import require_choice, require_number, short
from ..dynamics.rules import INFINITE, NGD, Polyak
from ..errors import DtypeError, NonFiniteError, RangeError
from ._updates import Leaf, gradient_norm, update_by_numbers, update_on_device

FAULTS = {
    1: (NonFiniteError, "gradient norm", "a finite number"),
    2: (NonFiniteError, "loss", "a finite number"),
    3: (RangeError, "loss", "a number of at least loss_floor"),
    4: (NonFiniteError, "step size", "a finite number"),
}
REMEDY = (
    "the parameters are those before this step; lower lr or max_step, check the batch, "
    "or pass nonfinite='skip'"
)


class _Steps(Optimizer):
    """What SNGD and SPS share: everything but the step size."""

    _step_supports_amp_scaling = True
    _needs_loss = False

    def __init__(self, params, lr, *, max_step, momentum, weight_decay, nonfinite, process_group):
        self.max_step = require_number("max_step", max_step, low=0, open_low=True)
        self.nonfinite = require_choice("nonfinite", nonfinite, ("raise", "skip"))
        self.process_group = process_group
        self._on_host = None  # tests set it to False to walk the way of a GPU
        self._skipped = self._smoothed = self._fault = self._seen = None
        self.last_step_size = self.last_grad_norm = torch.tensor(math.nan, dtype=torch.float64)
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, _checked(options))

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with their own lr, momentum or weight_decay; checked as at the start."""
        super().add_param_group(param_group)
        try:
            _checked(self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            raise

    @property
    def skipped(self) -> int:
        """Steps left out since a norm, loss or step size was bad; waits for a GPU."""
        return int(self._skipped) if self._skipped is not None else 0

    @torch.no_grad()
    def step(self, closure=None, *, loss=None):
        """Take one step.

        Parameters
        ----------
        closure : callable, optional
            Returns the loss; it may compute the gradients.
        loss : tensor or float, optional
            The loss at the parameters' present values, instead of a closure.

        Returns
        -------
        loss : what the closure returned, or `loss`

        Raises
        ------
        NonFiniteError
            A gradient norm, loss or step size is NaN or infinite, and `nonfinite` is "raise".
        RangeError
            A loss lies below `loss_floor`, and `nonfinite` is "raise".
        DtypeError
            SPS has no loss.
        """
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if loss is None and self._needs_loss:
            raise DtypeError(
                f"{type(self).__name__}.step",
                expected="the loss",
                got="none",
                remedy="call step(loss=loss), or step(closure) with a closure that returns it",
            )
        self._look()
        self._take(loss)
        return loss

    def _take(self, loss) -> None:
        groups = [_leaves(group, self.state) for group in self.param_groups]
        grads = [leaf.grad for leaves in groups for leaf in leaves]
        home = _home(grads or [p for group in self.param_groups for p in group["params"]])
        scale, found_inf = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        norm = gradient_norm(grads, home)
        if scale is not None:
            scale = torch.as_tensor(scale, dtype=torch.float64, device=home)
            norm = norm / scale
        gap, fault = self._gap(loss, home)
        fault = torch.where(torch.isfinite(norm), fault, 1)
        sizes = torch.where(norm > 0, self._sizes(gap, norm), 0.0)
        fault = torch.where((fault > 0) | torch.isfinite(sizes).all(), fault, 4)
        if found_inf is not None:
            found_inf = torch.as_tensor(found_inf, device=home) > 0
            fault = torch.where(found_inf, 0, fault)
        dead = self._judge(fault, found_inf)
        self.last_grad_norm, self.last_step_size = norm, sizes[0]
        applied = sizes if scale is None else sizes / scale
        if self._hosted(home):
            if not dead:
                self._learn(dead)
                for leaves, group, size in zip(
                    groups, self.param_groups, applied.tolist(), strict=True
                ):
                    update_by_numbers(leaves, size, group["momentum"], _decay(group))
        else:
            self._learn(dead)
            for leaves, group, size in zip(groups, self.param_groups, applied, strict=True):
                update_on_device(leaves, size, group["momentum"], _decay(group), dead)

    def _hosted(self, home: torch.device) -> bool:
        return home.type == "cpu" if self._on_host is None else self._on_host

    def _judge(self, fault: torch.Tensor, found_inf) -> torch.Tensor:
        """Whether this step must change nothing, as a 0-dim tensor; raises where it can."""
        dead = fault > 0
        if self.nonfinite == "skip":
            self._skipped = dead.long() + (0 if self._skipped is None else self._skipped)
        elif self._hosted(fault.device):
            _raise(int(fault))
        else:
            held = fault if self._fault is None else self._fault
            self._fault = torch.where(held > 0, held, fault)
            dead = self._fault > 0
            self._send()
        return dead if found_inf is None else dead | found_inf

    def _send(self) -> None:
        """Start a copy of the fault to the host, unless one is on its way."""
        if self._fault.device.type != "cuda":
            self._seen = self._seen or (None, self._fault.clone())
        elif self._seen is None:
            where = torch.zeros((), dtype=torch.int64, pin_memory=True)
            where.copy_(self._fault, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(self._fault.device))
            self._seen = (event, where)

    def _look(self) -> None:
        """Raise what has arrived on the host, without waiting."""
        if self._seen is not None and (self._seen[0] is None or self._seen[0].query()):
            (_, where), self._seen = self._seen, None
            _raise(int(where))

    def check(self) -> None:
        """Wait for the device and raise if a step was bad; a CPU's steps raise at once.

        Raises
        ------
        NonFiniteError, RangeError
        """
        if self._fault is not None:
            _raise(int(self._fault))

    def state_dict(self) -> dict:
        """torch's, after `check`; each group also holds the numbers that steps carry along."""
        self.check()
        carried = {"skipped": self.skipped, "smoothed": _number(self._smoothed)}
        state = super().state_dict()
        for group in state["param_groups"]:
            group.update(carried)
        return state

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict) -> None:
        """torch's; steps go on as if there had been no break."""
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            skipped, smoothed = group.pop("skipped", 0), group.pop("smoothed", None)
        self._skipped, self._smoothed = skipped or None, smoothed
        self._fault = self._seen = None

    def _gap(self, loss, home: torch.device):
        zero = torch.zeros((), dtype=torch.int64, device=home)
        return None, zero

    def _learn(self, dead: torch.Tensor) -> None:
        """Keep what later steps need of this one."""


class SNGD(_Steps):
    """Stochastic normalised gradient descent: steps of size min(lr / |grad|, max_step)."""

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
        self.rule = NGD(1.0, max_step=max_step)
        super().__init__(
            params,
            lr,
            max_step=max_step,
            momentum=momentum,
            weight_decay=weight_decay,
            nonfinite=nonfinite,
            process_group=process_group,
        )

    def _sizes(self, gap, norm: torch.Tensor) -> torch.Tensor:
        scales = [_like(norm, group["lr"]).log() for group in self.param_groups]
        rules = [dataclasses.replace(self.rule, log_scale=scale) for scale in scales]
        return torch.stack([rule.log_step_size(0.0, norm.log()) for rule in rules]).exp()


class SPS(_Steps):
    """Stochastic Polyak steps: lr min((loss - loss_floor) / (c |grad|^2), max_step)."""

    _needs_loss = True

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
        self.c = require_number("c", c, low=0, high=INFINITE, open_low=True)
        self.loss_floor = require_number("loss_floor", loss_floor, low=-INFINITE, high=INFINITE)
        rule = Polyak(max_step=max_step, loss_floor=self.loss_floor)
        self.rule = dataclasses.replace(rule, log_scale=-math.log(self.c))
        self.log_growth = _growth(smoothing, steps_per_epoch)
        super().__init__(
            params,
            lr,
            max_step=max_step,
            momentum=momentum,
            weight_decay=weight_decay,
            nonfinite=nonfinite,
            process_group=process_group,
        )

    def _gap(self, loss, home: torch.device):
        loss = _mean(_like_device(loss, home), self.process_group)
        gap = loss - self.loss_floor
        fault = torch.where(torch.isfinite(loss), 3 * (gap < 0), 2)
        return gap, fault

    def _sizes(self, gap: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        log_size = self.rule.log_step_size(gap.log(), norm.log())
        if self.log_growth is not None:
            if self._smoothed is not None:
                log_size = torch.minimum(log_size, self._smoothed + self.log_growth)
            self._latest = log_size, norm
        lrs = torch.stack([_like(norm, group["lr"]) for group in self.param_groups])
        return lrs * log_size.exp()

    def _learn(self, dead: torch.Tensor) -> None:
        if self.log_growth is None:
            return
        log_size, norm = self._latest
        held = torch.inf if self._smoothed is None else self._smoothed
        keep = dead | (norm == 0) | (log_size == -torch.inf)
        self._smoothed = torch.where(keep, held, log_size)


def _checked(options: dict) -> dict:
    lr = options["lr"]
    if not isinstance(lr, torch.Tensor):
        require_number("lr", lr, low=0, high=INFINITE)
    require_number("weight_decay", options["weight_decay"], low=0, high=INFINITE)
    if require_number("momentum", options["momentum"], low=0) >= 1:
        raise RangeError(
            "momentum",
            expected="a number in [0, 1)",
            got=short(options["momentum"]),
            remedy="0.9 is usual; at 1 the velocity never decays",
        )
    return options


def _growth(smoothing, steps_per_epoch) -> float | None:
    """log tau / (n / b), by which the logarithm of the step size may grow a step."""
    if smoothing is None:
        return None
    tau = require_number("smoothing", smoothing, low=1, high=INFINITE, open_low=True)
    if steps_per_epoch is None:
        raise DtypeError(
            "steps_per_epoch",
            expected="a number beside smoothing",
            got="None",
            remedy="pass the number of batches of an epoch, for example len(loader)",
        )
    return math.log(tau) / require_number(
        "steps_per_epoch", steps_per_epoch, low=0, high=INFINITE, open_low=True
    )


def _leaves(group: dict, state: dict) -> list[Leaf]:
    leaves = []
    for param in group["params"]:
        if param.grad is not None:
            grad = param.grad.coalesce() if param.grad.is_sparse else param.grad
            leaves.append(Leaf(param, grad, state[param]))
    return leaves


def _home(tensors: list[torch.Tensor]) -> torch.device:
    return next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))


def _like_device(value, home: torch.device) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach().to(home, torch.float64, non_blocking=True).reshape(())
    return torch.full((), value, dtype=torch.float64, device=home)


def _like(norm: torch.Tensor, value) -> torch.Tensor:
    return _like_device(value, norm.device)


def _decay(group: dict) -> float:
    return float(group["lr"]) * group["weight_decay"] if group["weight_decay"] else 0.0


def _number(value) -> float | None:
    return None if value is None else float(value)


def _mean(loss: torch.Tensor, group) -> torch.Tensor:
    """The loss averaged over the processes that share the batch."""
    if group is False or not (dist.is_available() and dist.is_initialized()):
        return loss
    total = loss.clone()
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)


def _raise(fault: int) -> None:
    if fault:
        kind, what, expected = FAULTS[fault]
        raise kind(what, expected=expected, got="another", remedy=REMEDY)
