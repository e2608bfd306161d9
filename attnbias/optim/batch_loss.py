"""The loss that a step is given: one number, of one backward pass."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .._validate import require_dense, require_type, short
from ..errors import DtypeError, ShapeError


def given_loss(closure: Callable[[], Any] | None, loss: Any) -> Any:
    """What a step is given for its loss, or what the closure returns."""
    if closure is not None:
        if loss is not None:
            raise DtypeError(
                "closure, loss",
                expected="one of them",
                got="both",
                remedy="the closure returns the loss",
            )
        remedy = "pass a number as step(loss=...)"
        require_type("closure", closure, Callable, "a function without arguments", remedy)
        with torch.enable_grad():
            loss = closure()
    return loss


class Passes:
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


def one_number(loss) -> float:
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


def averaged(value: float, process_group, device: torch.device) -> float:
    """The mean over the processes of a group, of all for None; as it is for False."""
    if process_group is False or not (dist.is_available() and dist.is_initialized()):
        return value
    total = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(total, group=process_group)
    return float(total) / dist.get_world_size(process_group)
