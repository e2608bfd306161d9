"""What SNGD and SPS share: one step, from gradients to parameters, whatever the step size is.

Norm, loss and step sizes are floats where the gradients lie on a CPU. Elsewhere they are 0-dim
tensors that stay on the device, so that no step waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import math

import torch
from torch.optim import Optimizer

from .._validate import require_choice, require_number, short
from ..errors import AttnBiasError, DtypeError, FileFormatError, NonFiniteError, RangeError
from ..rules import INFINITE
from ._norm import norm_as_number, norm_on_device
from ._scalars import choose, exp, is_finite, log, negate, scalar
from ._updates import (
    Leaf,
    update_by_numbers,
    update_on_device,
)

FAULTS = (
    (NonFiniteError, "gradient norm", "a finite number"),
    (NonFiniteError, "loss", "a finite number"),
    (RangeError, "loss", "at least loss_floor"),
    (NonFiniteError, "step size", "a finite number"),
)


class Steps(Optimizer):
    """What SNGD and SPS share: everything but the step size."""

    _step_supports_amp_scaling = True
    _kept = ("rule", "nonfinite", "process_group", "_skipped", "_last")
    _kept += ("_last_log_size", "_report", "_on_host")
    _on_host: bool | None = None  # tests set it to False, to walk a GPU's path on a CPU
    _on_its_way: tuple | None = None
    loss_floor = -math.inf

    def __init__(self, params, rule, lr, momentum, weight_decay, nonfinite, process_group):
        self.rule = rule
        self.nonfinite = require_choice("nonfinite", nonfinite, ("raise", "skip"))
        self.process_group = process_group
        self._last = math.nan, math.nan
        self._skipped, self._last_log_size, self._report = 0, math.inf, None
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        with _named_errors():
            super().__init__(params, _checked(options))

    def __getstate__(self) -> dict:
        return super().__getstate__() | {name: getattr(self, name) for name in self._kept}

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with their own lr, momentum or weight_decay.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
        """
        with _named_errors():
            super().add_param_group(param_group)
        try:
            _checked(self.param_groups[-1])
        except AttnBiasError:
            self.param_groups.pop()
            raise

    @property
    def last_grad_norm(self) -> torch.Tensor:
        """|g| of the last step, 0-dim."""
        return torch.as_tensor(self._last[0], dtype=torch.float64)

    @property
    def last_step_size(self) -> torch.Tensor:
        """eta of the last step in the first group, 0-dim, before any decay."""
        return torch.as_tensor(self._last[1], dtype=torch.float64)

    @property
    def skipped(self) -> int:
        """Steps left out under `nonfinite="skip"`; reading it waits for a GPU."""
        return int(self._skipped)

    @torch.no_grad()
    def step(self, closure=None, *, loss=None):
        """Take one step.

        Parameters
        ----------
        closure : callable, optional
            Returns the loss; it may compute the gradients too.
        loss : tensor or float, optional
            The loss where the gradients were taken, instead of a closure.

        Returns
        -------
        loss : what the closure returned, or `loss`

        Raises
        ------
        NonFiniteError
            The gradient norm, the loss or the step size is NaN or infinite.
        RangeError
            The loss lies below `loss_floor`.
        DtypeError, ShapeError
            SPS has no loss, or one that isn't a single number.
        """
        if closure is not None:
            _require_no_loss(loss)
            with torch.enable_grad():
                loss = closure()
        self._look()
        groups = [_leaves(group, self.state) for group in self.param_groups]
        grads = [leaf.grad for leaves in groups for leaf in leaves]
        home = _home(grads or [p for group in self.param_groups for p in group["params"]])
        hosted = home.type == "cpu" if self._on_host is None else self._on_host
        number = float if hosted else functools.partial(scalar, home=home)
        scale, overflow = self._amp(number)
        norm = (norm_as_number(grads) if hosted else norm_on_device(grads, home)) / scale
        value = self._loss(loss, number, home)
        sizes = self._sizes(norm, value, [number(group["lr"]) for group in self.param_groups])
        self._last = norm, sizes[0]
        still = self._judge(norm, value, sizes, overflow)
        self._learn(still)
        for group, leaves, size in zip(self.param_groups, groups, sizes, strict=True):
            decay = number(group["lr"]) * group["weight_decay"] if group["weight_decay"] else None
            if not hosted:
                update_on_device(leaves, size / scale, group["momentum"], decay, still)
            elif not still:
                update_by_numbers(leaves, size / scale, group["momentum"], decay)
        return loss

    def _amp(self, number):
        """By what a GradScaler multiplied the gradients, and whether they overflowed."""
        scale, found_inf = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        scale = 1.0 if scale is None else number(scale)
        return scale, number(0.0 if found_inf is None else found_inf) > 0

    def _loss(self, loss, number, home: torch.device):
        """The loss of the whole batch; SNGD needs none."""
        return number(0.0)

    def _sizes(self, norm, loss, lrs: list) -> list:
        """A step size for each group; a gradient of zero gives no step."""
        log_sizes = self._log_sizes(log(loss - self.loss_floor), log(norm), list(map(log, lrs)))
        return [exp(choose(norm > 0, log_size, -math.inf)) for log_size in log_sizes]

    def _learn(self, still) -> None:
        """Keep what the next step needs of this one, unless nothing was to move."""

    def _judge(self, norm, loss, sizes: list, overflow):
        """Whether nothing may move; counts, raises, or sets the flag on the device."""
        values = [norm, loss, loss, sum(sizes)]
        faults = [negate(is_finite(value)) for value in values]
        faults[2] = loss < self.loss_floor
        if not isinstance(norm, torch.Tensor):
            return self._judge_now(faults, values) if not overflow else True
        faults = torch.stack(faults) & ~overflow
        if self.nonfinite == "skip":
            self._skipped = self._skipped + faults.any()
            return faults.any() | overflow
        report = torch.cat([faults.to(norm.dtype), torch.stack(values)])
        held = report if self._report is None else self._report
        self._report = torch.where(held[:4].any(), held, report)
        self._send()
        return self._report[:4].any() | overflow

    def _judge_now(self, faults: list[bool], values: list[float]) -> bool:
        if self.nonfinite == "raise":
            _raise(faults, values)
        self._skipped += any(faults)
        return any(faults)

    def _send(self) -> None:
        """Start a copy of the report to the host, unless one is on its way."""
        if self._on_its_way is not None:
            return
        if self._report.device.type != "cuda":
            self._on_its_way = self._report, None
            return
        copy = torch.empty(8, dtype=self._report.dtype, pin_memory=True)
        copy.copy_(self._report, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self._report.device))
        self._on_its_way = copy, event

    def _look(self) -> None:
        """Raise what a report that has arrived says; never waits."""
        if self._on_its_way is not None:
            copy, event = self._on_its_way
            if event is None or event.query():
                self._on_its_way = None
                self._raise_once(copy)

    def _raise_once(self, report: torch.Tensor) -> None:
        flags = report.tolist()
        if any(flags[:4]):
            self._report = self._on_its_way = None
        _raise(flags[:4], flags[4:])

    def check(self) -> None:
        """Wait for the device, and raise what `step` would.

        Raises
        ------
        NonFiniteError, RangeError
        """
        if self._report is not None:
            self._raise_once(self._report)

    def state_dict(self) -> dict:
        """torch's, after `check`; the groups also hold the numbers that steps hand on."""
        self.check()
        last = float(self._last_log_size)
        handed_on = {"skipped": self.skipped, "last_log_size": last if last < math.inf else None}
        state = super().state_dict()
        for group in state["param_groups"]:
            group.update(handed_on)
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        """torch's; steps go on as if nothing had come between.

        Raises
        ------
        FileFormatError
            The state is another optimizer's, or one of other parameters.
        """
        _require_ours(state_dict)
        try:
            super().load_state_dict(state_dict)
        except (TypeError, ValueError, KeyError) as error:
            raise _foreign(str(error)) from None
        for group in self.param_groups:
            self._skipped, last = group.pop("skipped"), group.pop("last_log_size")
            self._last_log_size = math.inf if last is None else last
        self._report = self._on_its_way = None


@contextlib.contextmanager
def _named_errors():
    """Turn what torch raises about parameters into a named error."""
    try:
        yield
    except AttnBiasError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise DtypeError(
            "params",
            expected="leaf tensors, or groups of them, each tensor once",
            got=str(error),
            remedy="pass model.parameters(), or dicts with 'params'",
        ) from None


def _checked(options: dict) -> dict:
    for name in ("lr", "weight_decay"):
        require_number(name, options[name], low=0, high=INFINITE)
    if require_number("momentum", options["momentum"], low=0) >= 1:
        raise RangeError(
            "momentum",
            expected="a number in [0, 1)",
            got=short(options["momentum"]),
            remedy="0.9 is usual; at 1 the velocity never decays",
        )
    return options


def _require_no_loss(loss) -> None:
    if loss is not None:
        raise DtypeError(
            "closure, loss",
            expected="one of them",
            got="both",
            remedy="the closure returns the loss",
        )


def _leaves(group: dict, state: dict) -> list[Leaf]:
    leaves = []
    for param in group["params"]:
        grad = param.grad
        if grad is not None:
            grad = grad.coalesce() if grad.is_sparse else grad
            leaves.append(Leaf(param, grad, state[param] if group["momentum"] else None))
    return leaves


def _home(tensors: list[torch.Tensor]) -> torch.device:
    """Where the step size is computed: the first accelerator, or the CPU."""
    return next((t.device for t in tensors if not t.is_cpu), torch.device("cpu"))


def _raise(flags: list, values: list[float]) -> None:
    """Raise the first of FAULTS whose flag is set."""
    for flag, value, (kind, what, expected) in zip(flags, values, FAULTS, strict=True):
        if flag:
            raise kind(
                what,
                expected=expected,
                got=f"{value:g}",
                remedy="the parameters are those before this step: check the batch, lower lr or "
                "max_step, or pass nonfinite='skip'",
            )


def _require_ours(state_dict) -> None:
    """Refuse another optimizer's state before anything is loaded."""
    try:
        groups, states = state_dict["param_groups"], state_dict["state"].values()
        for group in groups:
            _checked(group)
            float(group["last_log_size"] or 0), int(group["skipped"])
        right = all(set(state) in (set(), {"momentum_buffer", "scale"}) for state in states)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise _foreign(f"{type(error).__name__}: {error}") from None
    if not right:
        raise _foreign("other entries for a parameter")


def _foreign(got: str) -> FileFormatError:
    return FileFormatError(
        "state_dict",
        expected="what SNGD or SPS gave for the same parameters",
        got=got,
        remedy="load it into an optimizer made like the one that saved it",
    )
