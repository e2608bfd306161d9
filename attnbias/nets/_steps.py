"""What SNGD and SPS share: one step, from gradients to parameters, whatever the step size is."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict

import torch
from torch.optim import Optimizer

from .._validate import require_choice, require_number
from ..data._source import reading
from ..errors import AttnBiasError, DtypeError, NonFiniteError, RangeError
from ..rules import INFINITE

LARGEST_EXPONENT = 709.0
WIDE, SINGLE = (torch.float64, torch.complex128), torch.finfo(torch.float32).max


class Steps(Optimizer):
    """What SNGD and SPS share: a step, given the rule for its size and the loss it starts at.

    Attributes
    ----------
    rule : Rule
        The size of a step before lr.
    log_cap : float
        Bounds the logarithm of the size after lr.
    log_growth : float
        By how much the logarithm of the size before lr may grow in a step.
    loss_floor : float
    """

    _kept = ("rule", "nonfinite", "process_group", "skipped", "last_grad_norm", "last_step_size",
             "loss_floor", "log_cap", "log_growth", "_last_log_size")  # fmt: skip
    loss_floor, log_cap, log_growth = -math.inf, math.inf, math.inf

    def __init__(self, params, rule, lr, momentum, weight_decay, nonfinite, process_group):
        self.rule = rule
        self.nonfinite = require_choice("nonfinite", nonfinite, ("raise", "skip"))
        self.process_group = process_group
        self.skipped, self._last_log_size = 0, math.inf
        self.last_grad_norm, self.last_step_size = _pair(math.nan, math.nan)
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
            _checked(self.defaults | param_group)
            super().add_param_group(param_group)

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
            The gradient norm, the loss or the step size is NaN or infinite, or the step is beyond
            3.4e38, the largest number of float32, in a group with a parameter narrower than
            float64; nothing has moved then, in any group.
        RangeError
            The loss lies below `loss_floor`.
        DtypeError, ShapeError
            SPS has no loss, or one that isn't a single number.
        """
        if closure is not None:
            if loss is not None:
                raise DtypeError("closure, loss", expected="one of them", got="both",
                                 remedy="the closure returns the loss")  # fmt: skip
            if not callable(closure):
                raise DtypeError("closure", expected="a function without arguments",
                                 got=type(closure).__name__,
                                 remedy="pass a number as step(loss=...)")  # fmt: skip
            with torch.enable_grad():
                loss = closure()
        moving = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
        norm, value = grad_norm([p.grad for params in moving for p in params]), self._loss(loss)
        log_size = self.rule.log_step_size(_log(value - self.loss_floor), _log(norm))
        log_size = min(log_size, self._last_log_size + self.log_growth)
        log_lrs = [_log(float(group["lr"])) for group in self.param_groups]
        sizes = [_exp(min(log_size + lr, self.log_cap)) if norm > 0 else 0.0 for lr in log_lrs]
        self.last_grad_norm, self.last_step_size = _pair(norm, sizes[0])
        groups = zip(self.param_groups, moving, sizes, strict=True)
        if not self._is_fault(norm, value, max(_reach(*group, norm) for group in groups)):
            if norm > 0 and log_size > -math.inf and self.log_growth < math.inf:
                self._last_log_size = log_size
            for group, params, size in zip(self.param_groups, moving, sizes, strict=True):
                if params:
                    self._update(group, params, size)
        return loss

    def _loss(self, loss) -> float:
        """The loss of the whole batch; SNGD needs none."""
        return 0.0

    def _is_fault(self, norm: float, loss: float, size: float) -> bool:
        """Whether nothing may move; raises or counts it."""
        found = {"gradient norm": norm, "loss": loss, "step size": size}
        least = {"loss": self.loss_floor}
        what = next((w for w, x in found.items() if not least.get(w, 0) <= x < math.inf), None)
        if what is None:
            return False
        if self.nonfinite == "skip":
            self.skipped += 1
            return True
        low = math.isfinite(found[what])
        expected = "at least loss_floor" if low else "a finite number"
        remedy = "the parameters are those before this step: check the batch, lower lr or max_step"
        remedy += ", or pass nonfinite='skip'"
        error = RangeError if low else NonFiniteError
        raise error(what, expected=expected, got=f"{found[what]:g}", remedy=remedy)

    def _update(self, group: dict, params: list, size: float) -> None:
        """Make v <- momentum v - size g and W <- (1 - lr decay) W + v; the buffer holds -v."""
        weights, grads = [_local(p) for p in params], [_local(_coalesced(p.grad)) for p in params]
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - float(group["lr"]) * group["weight_decay"])
        if group["momentum"]:
            for p in params:
                if not self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
            buffers = [_local(self.state[p]["momentum_buffer"]) for p in params]
            torch._foreach_mul_(buffers, float(group["momentum"]))
            torch._foreach_add_(buffers, grads, alpha=size)
            torch._foreach_sub_(weights, buffers)
        else:
            torch._foreach_add_(weights, grads, alpha=-size)

    def state_dict(self) -> dict:
        """torch's; the groups also hold the numbers that steps hand on."""
        last = self._last_log_size
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
        remedy = "load it into an optimizer made like the one that saved it"
        with reading("state_dict", "what SNGD or SPS gave for the same parameters", remedy):
            for group in state_dict["param_groups"]:
                _checked(group)
                float(group["last_log_size"] or 0), int(group["skipped"])
            if any(set(state) - {"momentum_buffer"} for state in state_dict["state"].values()):
                raise ValueError("other entries for a parameter")
            super().load_state_dict(state_dict)
        for group in self.param_groups:
            self.skipped, last = group.pop("skipped"), group.pop("last_log_size")
            self._last_log_size = math.inf if last is None else last


def grad_norm(grads: list[torch.Tensor]) -> float:
    """The norm of tensors as one vector, added up in float64.

    In float32 the sum over ten million squares is wrong in the fourth digit, and the squares of
    a gradient of 1e-20 vanish.
    """
    kinds = defaultdict(list)
    for grad in grads:
        grad = _coalesced(grad).values() if grad.is_sparse else grad
        grad = torch.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad
        if grad.numel():
            sharding = getattr(grad, "device_mesh", None), getattr(grad, "placements", None)
            kinds[grad.device, *sharding].append(grad)
    return math.hypot(*map(_norm, kinds.values()))


def _norm(tensors: list[torch.Tensor]) -> float:
    """Of tensors on one device; float64 itself holds no squares below 1e-308 or above 1e308."""
    norm = _plain_norm(tensors, 2)
    if 1e-140 < norm < math.inf:
        return norm
    peak = _plain_norm(tensors, math.inf)
    if not 0 < peak < math.inf:
        return peak
    return peak * _plain_norm([tensor.double() / peak for tensor in tensors], 2)


def _plain_norm(tensors: list[torch.Tensor], order: float) -> float:
    wide = torch.float32 if tensors[0].device.type == "mps" else torch.float64
    norms = torch._foreach_norm(tensors, order, dtype=wide)
    norm = torch.linalg.vector_norm(torch.stack(norms), order)
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def _pair(norm: float, size: float) -> torch.Tensor:
    return torch.tensor([norm, size], dtype=torch.float64)


def _reach(group: dict, params: list, size: float, norm: float) -> float:
    """The largest number of a group's step, infinite where its parameters can't hold that."""
    largest = max(size, size * norm, float(group["lr"]) * group["weight_decay"])
    if largest <= SINGLE or all(p.dtype in WIDE for p in params):
        return largest
    return math.inf


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """What lies here of a tensor that several processes hold."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _coalesced(grad: torch.Tensor) -> torch.Tensor:
    return grad.coalesce() if grad.is_sparse else grad


def _log(x: float) -> float:
    """-inf at 0 and NaN below."""
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _exp(x: float) -> float:
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
            "params", expected="leaf tensors, or groups of them, each tensor once", got=str(error),
            remedy="pass model.parameters(), or dicts with 'params'",
        ) from None  # fmt: skip


def _checked(options: dict) -> dict:
    for name in ("lr", "weight_decay"):
        require_number(name, options[name], low=0, high=INFINITE)
    require_number("momentum", options["momentum"], low=0, high=1, open_high=True)
    return options
