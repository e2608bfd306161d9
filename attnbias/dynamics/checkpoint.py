"""A run's whole state on disk, so that a resumed run equals an unbroken one, bit for bit.

A loss, a rule or a problem is told from another of its name by its values at fixed points.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._marks import differing, in_words, projections
from .._records import read_npz, write_npz
from .._validate import short
from ..errors import FileFormatError
from ..losses import Loss
from ..rules import Descent, Rule

if TYPE_CHECKING:
    from .loop import Course, Objective, Run

TOLERANCE = 1e-9  # of values that other machines compute again
_SIZES = [10.0 ** (k / 4) for k in range(-12, 13)]  # 1e-3 to 1e3
_POINTS = [-z for z in reversed(_SIZES)] + [0.0] + _SIZES
_STEPS = (0, 1, 2, 3, 10, 30, 100, 300, 1000, 3000, 10**4, 10**5, 10**6)


def with_kept_records(path: Path, asked: np.ndarray, steps: int) -> np.ndarray:
    """What a run records: if it was to end earlier, what it has, and then what is asked for."""
    if not path.exists():
        return asked
    _, header = read_npz(path, kind="checkpoint")
    step, end, kept = (header.get(name) for name in ("step", "steps", "records"))
    if not (isinstance(step, int) and isinstance(end, int) and isinstance(kept, list)):
        return asked  # refused by `resume`
    kept = np.array(kept, dtype=asked.dtype)
    if end >= steps:
        return kept if header.get("asked") == asked.tolist() else asked
    return np.concatenate([kept[kept <= step], asked[asked > step]])


class Checkpoint:
    """Keeps a run's state on disk, and refuses a file of another run."""

    def __init__(self, path: Path, run: Run, course: Course):
        self.path, self.run, self.course = path, run, course
        self.written = time.monotonic()
        self.kept: int | None = None  # the step of the file
        digest, rule, loss = hashlib.sha256(), run.rule, run.problem.loss
        for tensor in run.problem.identity:
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        held = {"name": rule.name, **vars(rule)}
        known = repr(held) if type(rule) is Rule else in_words(held)
        words = (known, getattr(loss, "name", loss), run.coordinates, run.name)
        self.plan = {
            "steps": course.steps,
            "asked": course.asked.tolist(),
            "records": course.records.tolist(),
        }
        digest.update(repr(words).encode())
        self.key = digest.hexdigest()
        self.marks = loss_mark(loss, run.problem.identity[0].device) | run.marks()

    def save(self, step: int, force: bool) -> None:
        due = force or time.monotonic() - self.written >= self.course.seconds
        if not due or step == self.kept:  # a finished one is only read
            return
        arrays = {**self._records(), **self.run.state_arrays()}
        header = {"kind": "checkpoint", "step": step, "key": self.key, "marks": self.marks}
        write_npz(self.path, arrays, header | self.plan)
        self.written, self.kept = time.monotonic(), step

    def resume(self) -> int:
        if not self.path.exists():
            return 0
        arrays, header = read_npz(self.path, kind="checkpoint")
        other = differing(header.get("marks", {}), self.marks, TOLERANCE)
        end = header.get("steps")
        ends_earlier = isinstance(end, int) and end < self.course.steps
        if not ends_earlier and header.get("asked") != self.plan["asked"]:
            other = [*other, "set of records"]
        if header.get("key") != self.key or other:
            raise FileFormatError(
                str(self.path),
                expected="a checkpoint of this run (same data, rule, loss, start and records)",
                got="one of another run" + (f" (another {', '.join(other)})" if other else ""),
                remedy="give another file name, or delete it to start afresh",
            )
        step = header.get("step")
        if not isinstance(step, int) or not 0 <= step <= self.course.steps:
            raise FileFormatError(
                str(self.path),
                expected=f"a checkpoint of step {self.course.steps} or earlier",
                got=f"one of step {short(step)}",
                remedy="ask for at least as many steps, or give another file name",
            )
        records, due = (
            self._records(),
            int(np.searchsorted(self.course.recorded, step, side="right")),
        )
        filled = {name: array[:due] for name, array in records.items()}
        arrays = {k: array[:due] if k in records else array for k, array in arrays.items()}
        for name, like in {**filled, **self.run.state_arrays()}.items():
            got = f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"
            if got != f"{like.dtype} {like.shape}":
                raise FileFormatError(
                    str(self.path),
                    expected=f"{name}, {like.dtype} {like.shape}",
                    got=got,
                    remedy="delete the file to start afresh",
                )
        self.run.restore(arrays)
        for name, array in filled.items():
            array[...] = arrays[name]
        self.kept = step
        return step

    def _records(self) -> dict[str, np.ndarray]:
        return {f"records{name}": array for name, array in self.run.records.items()}


def loss_mark(loss: Loss | str, device: str | torch.device = "cpu") -> dict[str, Any]:
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


def rule_mark(rule: Descent, problem: Objective) -> dict[str, Any]:
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


def problem_mark(problem: Objective) -> dict[str, Any]:
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
