"""The iteration in torch, where the data are: a problem gives the gradient, a rule makes the step.

An iterate is one tensor x with P parts, each of a gradient and a norm of its own: W alone, the
decoder and W in joint training, the matrices of several heads. A gradient is known up to a
factor whose logarithm stands beside it, so that it has a direction however small it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from .problem import log_floor_gap
from .recording import DIVERGED, LONGEST_STEP, NOTHING_SO_FAR, RUNNING, ZERO_GRADIENT, take_length


class Vector(NamedTuple):
    """A tensor like the iterate: each part is exp(log_scale) times that of `parts`.

    log_scale, size : (P,), with `size` the norm of a part before the factor.
    """

    parts: torch.Tensor
    log_scale: torch.Tensor
    size: torch.Tensor


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
        log(L - L*) - common, computed when asked for.
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
    """

    descent: Vector
    norms: Callable[[torch.Tensor], torch.Tensor]
    gap: Callable[[], torch.Tensor] | None = None
    common: torch.Tensor | float = 0.0
    beside: torch.Tensor | None = None
    log_floor: float = -math.inf
    least: torch.Tensor | None = None
    rest: torch.Tensor | None = None
    state: object = None

    @property
    def log_norm(self) -> torch.Tensor:
        """(P,) log of the norm of each part of the gradient."""
        return self.descent.log_scale + self.descent.size.log()

    def log_gap(self) -> torch.Tensor:
        """log(L - L*)."""
        return self.common + self.gap()

    def log_excess(self, loss_floor: float | None, less=None) -> torch.Tensor:
        """log(L - floor), or that less `common` and less a part of `beside`; None is L* itself."""
        less = -self.common if less is None else less
        gap, below = self.gap() - less, log_floor_gap(self.log_floor, loss_floor)
        if below == -math.inf:
            return gap
        return torch.logaddexp(gap, torch.as_tensor(below - self.common - less).to(gap))

    def vector(self, parts: torch.Tensor) -> Vector:
        """A direction of a rule's own, with its norms."""
        size = self.norms(parts)
        return Vector(parts, torch.zeros_like(size), size)


class Iteration:
    """A run on its way: the iterate, what its rule remembers, what has been recorded.

    `run` goes from one iteration to another; `state_arrays` and `restore` hand out and take back
    the whole state, which makes a resumed run equal to an unbroken one.
    """

    name = "torch"

    def __init__(self, problem, rule, recorded: np.ndarray, records=None):
        self.problem, self.rule, self.recorded = problem, rule, recorded
        self.coordinates = problem.coordinates
        self.x = problem.start.clone()
        self.memory = rule.memory(self.x)
        gradient = problem.gradient(self.x)
        self.progress = [list(NOTHING_SO_FAR) for _ in gradient.descent.size]  # one a part
        self.least = gradient.least
        self.records = self._empty(gradient) if records is None else records

    def _empty(self, gradient: Gradient) -> dict[str, np.ndarray]:
        """Rows to fill, one array a name."""
        values = self._values(gradient, torch.zeros_like(gradient.descent.size))
        rows = len(self.recorded)
        return {name: np.full((rows, *value.shape), np.nan) for name, value in values.items()}

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached). At `last` no step follows."""
        problem, rule, recorded = self.problem, self.rule, self.recorded
        row = int(np.searchsorted(recorded, step))  # of the next record
        while True:
            gradient = problem.gradient(self.x)
            sizes = gradient.descent.size.cpu().numpy()
            if not np.isfinite(sizes).all():
                return DIVERGED, step
            if self.least is not None:
                self.least = torch.minimum(self.least, gradient.least)
            status = ZERO_GRADIENT if problem.stops and not sizes.any() else RUNNING
            if row < len(recorded) and recorded[row] == step:
                length = -math.inf if status else rule.length(gradient, step)
                self._record(row, gradient, self._one_a_part(length, gradient))
                row += 1
            if status or step == last:
                return status, step
            along = rule.direction(gradient, step, self.memory)
            log_factor = self._one_a_part(rule.log_factor(gradient, step, along), gradient)
            factor = log_factor.exp().masked_fill(along.size == 0, 0.0)
            lengths = (factor * along.size).tolist()
            if not all(length <= LONGEST_STEP for length in lengths):  # NaN is not
                return DIVERGED, step
            for progress, length in zip(self.progress, lengths, strict=True):
                take_length(progress, length)
            move = problem.spread(factor) * along.parts
            self.x = self.x + rule.carry(move, gradient, step, self.memory)
            step += 1

    def _one_a_part(self, log_size, gradient: Gradient) -> torch.Tensor:
        log_size = torch.as_tensor(log_size, dtype=torch.float64).to(self.x.device)
        return log_size.expand(gradient.descent.size.shape)

    def _lengths(self) -> dict[str, np.ndarray]:
        """(P,) lengths of the path, what rounding left of them, and the longest steps."""
        return dict(zip(("path", "path_low", "longest"), np.transpose(self.progress), strict=False))

    def _values(self, gradient: Gradient, log_size: torch.Tensor) -> dict[str, np.ndarray]:
        """The problem's own names, and what a rule and its steps are known by."""
        path, _, longest = self._lengths().values()
        steps = {"log_grad_norm": gradient.log_norm, "log_step_size": log_size}
        steps |= {"path_length": path, "longest_step": longest}
        if len(self.progress) == 1 and self.x.ndim == 2:  # one matrix, not a stack of one
            steps = {name: value[0] for name, value in steps.items()}
        values = steps | self.problem.record(self.x, gradient)
        if self.least is not None:
            values[self.problem.least] = self.least
        return {name: np.array(_on_host(value)) for name, value in values.items()}

    def _record(self, row: int, gradient: Gradient, log_size: torch.Tensor) -> None:
        for name, value in self._values(gradient, log_size).items():
            self.records[name][row] = value

    def state_arrays(self) -> dict:
        arrays = {"x": self.x, **self._lengths()}
        arrays |= {} if self.least is None else {"least": self.least}
        arrays |= {f"memory.{name}": value for name, value in self.memory.items()}
        return {name: np.asarray(_on_host(value)) for name, value in arrays.items()}

    def restore(self, arrays: dict) -> None:
        self.x = torch.from_numpy(arrays["x"]).to(self.x)
        kept = np.transpose([arrays[name] for name in self._lengths()]).tolist()
        self.progress = [[*row, *NOTHING_SO_FAR[len(row) :]] for row in kept]
        if self.least is not None:
            self.least = torch.from_numpy(arrays["least"]).to(self.least)
        for name, value in self.memory.items():
            self.memory[name] = torch.from_numpy(arrays[f"memory.{name}"]).to(value)


def _on_host(value):
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
