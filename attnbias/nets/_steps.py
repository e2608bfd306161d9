"""What SNGD and SPS share: one step, from gradients to parameters, whatever the step size is.

Norm, loss and step size are 0-dim float64 tensors beside the gradients. On a CPU the size is
then read as a number; on a GPU it never leaves the device, so that no step waits for it.
"""

from __future__ import annotations

import contextlib
import math

import torch
from torch.optim import Optimizer

from .._validate import require_choice, require_number, short
from ..dynamics.rules import INFINITE
from ..errors import AttnBiasError, DtypeError, FileFormatError, NonFiniteError, RangeError
from ._updates import Leaf, gradient_norm, real_dtype, update_by_numbers, update_on_device

FAULTS = (
    (NonFiniteError, "gradient norm", "a finite number"),
    (NonFiniteError, "loss", "a finite number"),
    (RangeError, "loss", "at least loss_floor"),
    (NonFiniteError, "step size", "a finite number"),
)


class Steps(Optimizer):
    """What SNGD and SPS share: everything but the step size."""

    _step_supports_amp_scaling = True
    _kept = ("rule", "nonfinite", "process_group", "last_step_size", "last_grad_norm")
    _kept += ("_skipped", "_last_log_size", "_report", "_on_host")
    _on_host: bool | None = None  # tests set it to False, to walk a GPU's path on a CPU
    _on_its_way: tuple | None = None
    loss_floor = -math.inf

    def __init__(self, params, rule, lr, momentum, weight_decay, nonfinite, process_group):
        self.rule = rule
        self.nonfinite = require_choice("nonfinite", nonfinite, ("raise", "skip"))
        self.process_group = process_group
        self.last_step_size = self.last_grad_norm = torch.tensor(math.nan)
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
            with torch.enable_grad():
                loss = closure()
        self._look()
        groups = [_leaves(group, self.state) for group in self.param_groups]
        grads = [leaf.grad for leaves in groups for leaf in leaves]
        home = _home(grads or [p for group in self.param_groups for p in group["params"]])
        scale, overflow = self._amp(home)
        norm = gradient_norm(grads, home) / scale
        value = self._loss(loss, home)
        sizes = self._sizes(norm, value)
        self.last_grad_norm, self.last_step_size = norm, sizes[0]
        still = self._judge(norm, value, sizes, overflow)
        self._learn(still)
        self._move(groups, sizes / scale, still)
        return loss

    def _amp(self, home: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """By what a GradScaler multiplied the gradients, and whether they overflowed."""
        scale, found_inf = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        scale = scalar(1.0 if scale is None else scale, home)
        return scale, scalar(0.0 if found_inf is None else found_inf, home) > 0

    def _loss(self, loss, home: torch.device) -> torch.Tensor:
        return scalar(0.0, home)

    def _sizes(self, norm: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        """(groups,) step sizes; a gradient of zero gives no step."""
        log_lrs = [scalar(group["lr"], norm.device).log() for group in self.param_groups]
        log_gap = (loss - self.loss_floor).log()
        log_sizes = self._log_sizes(log_gap, norm.log(), torch.stack(log_lrs))
        return torch.where(norm > 0, log_sizes, -math.inf).exp()

    def _learn(self, still: torch.Tensor) -> None:
        """Keep what the next step needs of this one, unless nothing was to move."""

    def _move(self, groups: list[list[Leaf]], sizes: torch.Tensor, still: torch.Tensor) -> None:
        hosted = self._hosted(still.device)
        if hosted and still:
            return
        for group, leaves, size in zip(self.param_groups, groups, sizes, strict=True):
            momentum, decay = group["momentum"], group["lr"] * group["weight_decay"]
            if hosted:
                update_by_numbers(leaves, float(size), momentum, float(decay))
            else:
                decay = scalar(decay, size.device) if group["weight_decay"] else None
                update_on_device(leaves, size, momentum, decay, still)

    def _hosted(self, home: torch.device) -> bool:
        return home.type == "cpu" if self._on_host is None else self._on_host

    def _judge(self, norm, loss, sizes, overflow) -> torch.Tensor:
        """Whether nothing may move, as a 0-dim tensor; counts, raises or sets the flag."""
        bad = [~norm.isfinite(), ~loss.isfinite(), loss < self.loss_floor]
        bad = torch.stack([*bad, ~sizes.isfinite().all()]) & ~overflow
        report = torch.cat([bad.to(norm.dtype), torch.stack([norm, loss, loss, sizes.max()])])
        if self.nonfinite == "skip":
            self._skipped = self._skipped + bad.any()
        elif self._hosted(norm.device):
            _raise(report)
        else:
            held = report if self._report is None else self._report
            self._report = torch.where(held[:4].any(), held, report)
            self._send()
            return self._report[:4].any() | overflow
        return bad.any() | overflow

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
        try:
            _raise(report)
        except AttnBiasError:
            self._report = self._on_its_way = None
            raise

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
        handed_on = {"skipped": self.skipped, "last_log_size": float(self._last_log_size)}
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
            self._skipped, self._last_log_size = group.pop("skipped"), group.pop("last_log_size")
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


def _leaves(group: dict, state: dict) -> list[Leaf]:
    leaves = []
    for param in group["params"]:
        if param.grad is not None:
            grad = param.grad.coalesce() if param.grad.is_sparse else param.grad
            leaves.append(Leaf(param, grad, state[param] if group["momentum"] else None))
    return leaves


def _home(tensors: list[torch.Tensor]) -> torch.device:
    """Where the step size is computed: the first accelerator, or the CPU."""
    return next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))


def scalar(value, home: torch.device) -> torch.Tensor:
    """A number as a 0-dim tensor, without waiting for the device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(home, real_dtype(home), non_blocking=True).reshape(())
    return torch.full((), value, dtype=real_dtype(home), device=home)


def _raise(report: torch.Tensor) -> None:
    """Raise the first fault in a report: four flags, then the four values."""
    flags, values = report.tolist()[:4], report.tolist()[4:]
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
            float(group["last_log_size"]), int(group["skipped"])
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
