"""What SNGD and SPS share: one step, from gradients to parameters, whatever the step size is."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from .._validate import require_choice, require_number, short
from ..data._source import translated
from ..errors import AttnBiasError, DtypeError, NonFiniteError, RangeError
from ..rules import INFINITE

LARGEST_EXPONENT = 709.0
# What is stepped in place; anything narrower, such as float16, is stepped as a float32 copy.
IN_PLACE = (torch.float64, torch.float32, torch.bfloat16, torch.complex128, torch.complex64)
# A size beyond the largest of bfloat16 is taken as this factor on the gradient and the rest.
LIFT, LARGEST = 2.0**100, torch.finfo(torch.bfloat16).max
PLAIN = (torch.Tensor, torch.nn.Parameter)
BLOCK = 8192  # numbers whose squares are added up in single precision: an error of 1e-8

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

    def __init__(self, params, options: dict, process_group, **unknown):
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

    @torch._disable_dynamo  # a compiled step would keep no monitors; torch's own constructor has it
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
        if closure is not None:
            if loss is not None:
                raise DtypeError(
                    "closure, loss",
                    expected="one of them",
                    got="both",
                    remedy="the closure returns the loss",
                )
            if not callable(closure):
                raise DtypeError(
                    "closure",
                    expected="a function without arguments",
                    got=type(closure).__name__,
                    remedy="pass a number as step(loss=...)",
                )
            with torch.enable_grad():
                loss = closure()
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
        _advance(group, size, *parts)
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
        return [_local(part) for part in parts]

    def _update(self, group: dict, params: list, size: float) -> None:
        if group["momentum"]:
            for p in params:
                if not self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        if wide := [p for p in params if p.dtype in IN_PLACE]:
            _advance(group, size, *self._parts(group, wide))
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


def _advance(group: dict, size: float, weights: list, grads: list, buffers=()) -> None:
    """Make v <- momentum v - size g and W <- (1 - lr decay) W + v; a buffer holds -v."""
    if size > LARGEST:
        grads, size = torch._foreach_mul(grads, LIFT), size / LIFT
    if group["weight_decay"]:
        torch._foreach_mul_(weights, 1 - float(group["lr"]) * group["weight_decay"])
    if group["momentum"]:
        torch._foreach_mul_(buffers, float(group["momentum"]))
        torch._foreach_add_(buffers, grads, alpha=size)
        torch._foreach_sub_(weights, buffers)
    else:
        torch._foreach_add_(weights, grads, alpha=-size)


def grad_norm(grads: list[torch.Tensor]) -> float:
    """The norm of tensors as one vector, added up in float64.

    In float32 the sum over ten million squares is wrong in the fourth digit, and the squares of
    a gradient of 1e-20 vanish.
    """
    kinds = defaultdict(list)
    for grad in grads:
        grad = _coalesced(grad).values() if grad.is_sparse else grad
        grad = torch.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad
        grad = grad.float() if grad.itemsize < 2 else grad  # no arithmetic in a byte
        if grad.numel():
            sharding = None
            if type(grad) not in PLAIN:
                sharding = getattr(grad, "device_mesh", None), getattr(grad, "placements", None)
            kinds[grad.device, grad.dtype, sharding].append(grad)
    return math.hypot(*map(_norm, kinds.values()))


def _norm(tensors: list[torch.Tensor]) -> float:
    """Of tensors of one kind; where single or double precision can't hold their squares, with
    more of it or by the largest entry.
    """
    if tensors[0].device.type == "cpu" and type(tensors[0]) in PLAIN:
        norm = _norm_of_blocks(tensors)
        if 1e-10 < norm < math.inf:
            return norm
    norm = _plain_norm(tensors, 2)
    if 1e-140 < norm < math.inf:
        return norm
    peak = _plain_norm(tensors, math.inf)
    if not 0 < peak < math.inf:
        return peak
    return peak * _plain_norm([tensor.double() / peak for tensor in tensors], 2)


def _norm_of_blocks(tensors: list[torch.Tensor]) -> float:
    """A third of the time that torch takes for a norm in double precision."""
    wide = torch.promote_types(tensors[0].dtype, torch.float32)
    norms, rest = [], [t if t.dim() == 1 else t.reshape(-1) for t in tensors if t.numel() < BLOCK]
    for flat in (tensor.reshape(-1) for tensor in tensors if tensor.numel() >= BLOCK):
        end = len(flat) // BLOCK * BLOCK
        rest.append(flat[end:])
        norms.append(torch.linalg.vector_norm(flat[:end].view(-1, BLOCK), dim=1, dtype=wide))
    last = torch.linalg.vector_norm(torch.cat(rest), dtype=torch.float64).to(wide)
    return float(torch.linalg.vector_norm(torch.cat([*norms, last[None]]), dtype=torch.float64))


def _plain_norm(tensors: list[torch.Tensor], order: float) -> float:
    wide = torch.float32 if tensors[0].device.type == "mps" else torch.float64
    norms = torch._foreach_norm(tensors, order, dtype=wide)
    norm = torch.linalg.vector_norm(torch.stack(norms), order)
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def _pair(norm: float, size: float) -> torch.Tensor:
    return torch.tensor([norm, size], dtype=torch.float64)


def _local(tensors: list) -> list:
    """What lies here of tensors that several processes hold; of sparse ones each entry once."""
    if all(type(tensor) in PLAIN and not tensor.is_sparse for tensor in tensors):
        return tensors
    here = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    return [_coalesced(tensor) for tensor in here]


def _coalesced(grad: torch.Tensor) -> torch.Tensor:
    return grad.coalesce() if grad.is_sparse else grad


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
