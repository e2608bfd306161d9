"""What tells a loss, a rule or a problem from another of its name: its values at fixed points."""

from __future__ import annotations

import copy
import dataclasses

import torch

from .._marks import projections
from ..losses import Loss
from ..rules import Descent, Rule

TOLERANCE = 1e-9  # of values that other machines compute again
_SIZES = [10.0 ** (k / 4) for k in range(-12, 13)]  # 1e-3 to 1e3
_POINTS = [-z for z in reversed(_SIZES)] + [0.0] + _SIZES
_STEPS = (0, 1, 2, 3, 10, 30, 100, 300, 1000, 3000, 10**4, 10**5, 10**6)


def loss_mark(loss, device="cpu") -> dict:
    """Of a loss of one's own, its value, slope and gap; a named one is known by its name."""
    if not isinstance(loss, Loss) or loss.compiled is not None:
        return {}
    z = torch.tensor(_POINTS, dtype=torch.float64, device=device)
    log_S = torch.linspace(-9, 3, len(z), dtype=z.dtype, device=device)  # of gaps from 1e-4 to 20
    return {
        "value of the loss": _numbers(lambda: loss.log_value(z)),
        "slope of the loss": _numbers(lambda: loss.log_slope(z)),
        "gap of the loss": _numbers(lambda: loss.gap(z, log_S)),
    }


def rule_mark(rule: Descent, problem) -> dict:
    """Of a rule of one's own, its steps at a problem's start; a power law is known by its numbers.

    The gradient is taken as it is and at smaller sizes, at iterations up to 1e6.
    """
    if type(rule) is Rule:
        return {}

    def steps() -> torch.Tensor:
        own = copy.deepcopy(rule)  # it may count its calls, or draw
        memory, found = own.memory(problem.start.clone()), []
        gradient = problem.gradient(problem.start)
        for k, step in enumerate(_STEPS):
            down = gradient.descent
            down = down._replace(log_scale=down.log_scale - k)
            seen = dataclasses.replace(gradient, descent=down)
            size = torch.as_tensor(own.length(seen, step), dtype=torch.float64).flatten()
            along = own.direction(seen, step, memory)
            move = own.carry(along.parts, seen, step, memory)
            numbers = [*size.tolist(), *along.log_scale.tolist(), *projections(move.flatten())]
            found.append(numbers)
        return torch.tensor(found, dtype=torch.float64)

    return {"step of the rule": _numbers(steps)}


def problem_mark(problem) -> dict:
    """The gradient at the start of a problem."""

    def gradient() -> torch.Tensor:
        down = problem.gradient(problem.start).descent
        numbers = [*projections(down.parts.flatten()), *down.log_scale.tolist()]
        return torch.tensor(numbers, dtype=torch.float64)

    return {"gradient at the start": _numbers(gradient)}


def _numbers(make) -> list[float] | str:
    """What it makes, or the kind of error by which it ends."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return make().detach().cpu().double().flatten().tolist()
    except Exception as error:  # of a user's function
        return type(error).__name__
