"""The loop in torch, where the data are: a problem gives the gradient, a rule makes the step.

An iterate is one tensor x with P parts, each of a gradient and a norm of its own: W alone, the
decoder and W in joint training, the matrices of several heads. `iterate` runs any problem by any
rule and records it in a Trace; `Iteration` is the loop, `Course` how far it goes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import torch
from tqdm import tqdm

from .._files import owned, target_path
from .._records import provenance
from .._threads import spared
from .._validate import (
    PathLike,
    memory_named,
    require_flag,
    require_int,
    require_number,
    require_type,
    short,
)
from ..errors import DtypeError, RangeError
from ..losses import Loss
from ..rules import Descent, Gradient
from .checkpoint import Checkpoint, problem_mark, rule_mark, with_kept_records
from .progress import (
    DIVERGED,
    LONGEST_STEP,
    NOTHING_SO_FAR,
    RUNNING,
    STATUS,
    ZERO_GRADIENT,
    take_length,
)
from .trace import Trace

if TYPE_CHECKING:
    from .compiled.engine import CompiledEngine

# on its way, in torch or compiled
Run: TypeAlias = "Iteration | CompiledEngine"
SMALLER = "record fewer iterations, take fewer features or tokens, or a machine with more memory"
_CHUNK_SECONDS = 0.2  # between looks at the clock, the keyboard and the checkpoint


class Objective(Protocol):
    """A problem of the loop: heads, layers, next tokens, factors and others.

    Attributes
    ----------
    name : str
    start : tensor
        The first iterate.
    loss : Loss or str
    coordinates : str
        In words.
    stops : bool
        Whether a gradient of zero ends a run, with its status, or the iterate rests there.
    identity : tuple of tensors
        They tell the problem from another, the tokens first.
    least : str, optional
        The name of what `Gradient.least` keeps; only where there is one.
    """

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> torch.Tensor: ...
    @property
    def loss(self) -> Loss | str: ...
    @property
    def coordinates(self) -> str: ...
    @property
    def stops(self) -> bool: ...
    @property
    def identity(self) -> tuple[torch.Tensor, ...]: ...

    def gradient(self, x: torch.Tensor) -> Gradient:
        """At an iterate."""

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """(P,) factors of the parts in a shape that multiplies an iterate."""

    def record(self, x: torch.Tensor, gradient: Gradient) -> Mapping[str, Any]:
        """Named numbers, arrays or tensors, W among them."""


@memory_named("training", "memory for the iterate and its records", SMALLER)
def iterate(
    problem: Objective,
    rule: Descent,
    steps: int,
    *,
    record: int | Sequence[int] = 200,
    progress: bool = False,
    checkpoint: PathLike | None = None,
    checkpoint_seconds: float = 10.0,
    engine: type[Iteration] | None = None,
) -> Trace:
    """Run a problem by a rule.

    Parameters
    ----------
    problem : Objective
        Anything with these attributes and methods.
    rule : Descent
        A direction and a step length.
    steps, record, progress, checkpoint, checkpoint_seconds
        As in `train`.
    engine : type, optional
        A faster `Iteration`, for a problem and a rule that it knows.

    Returns
    -------
    Trace
        With every recorded W, and the series that the problem names.

    Raises
    ------
    DtypeError, RangeError, FileFormatError, MemoryLimitError

    Examples
    --------
    >>> from attnbias import GD
    >>> from attnbias.rules import Vector
    >>> class Bowl:
    ...     name, loss, coordinates, stops = "bowl", "half the square", "dense", True
    ...     start = torch.ones(1, 1).double()
    ...     identity = (start,)
    ...
    ...     def gradient(self, x):
    ...         norms = lambda x: x.norm()[None]
    ...         return Gradient(Vector(-x, torch.zeros(1).double(), norms(x)), norms)
    ...
    ...     def spread(self, factors):
    ...         return factors
    ...
    ...     def record(self, x, gradient):
    ...         return {"W": x}
    >>> iterate(Bowl(), GD(0.5), 2, record=[0, 1, 2]).W.flatten().tolist()
    [1.0, 0.5, 0.25]
    """
    needed = [name for name in vars(Objective) if not name.startswith("_")]
    missing = [name for name in needed if not hasattr(problem, name)]
    if missing:
        raise DtypeError(
            "problem",
            expected="a problem, with " + ", ".join(needed),
            got=f"{type(problem).__name__} without {missing[0]}",
            remedy="make one as in the example of iterate",
        )
    require_type("rule", rule, Descent, "a Descent", "for example NGD(0.1)")
    course = Course(steps, record, progress, checkpoint, checkpoint_seconds)
    with spared(problem.identity[0].numel()):
        run = (engine or Iteration)(problem, rule, course.recorded)
        status, step = course.run(run)
    series = course.finished(step, run.records)
    at, W = series.pop("step"), series.pop("W")
    meta = {"problem": problem.name} | course.meta(run, problem.start.device, status)
    series["W_norm"] = np.linalg.norm(W, axis=(-2, -1))
    return Trace(at, torch.from_numpy(W), None, STATUS[status], meta, series)


class Iteration:
    """The loop in torch: the iterate, what its rule remembers, what has been recorded."""

    name = "torch"

    def __init__(self, problem: Objective, rule: Descent, recorded: np.ndarray):
        self.problem: Any = problem
        self.rule, self.recorded = rule, recorded
        self.coordinates = problem.coordinates
        self.x = problem.start.clone()
        self.memory = rule.memory(self.x)
        gradient = problem.gradient(self.x)
        self.progress = np.array([NOTHING_SO_FAR] * len(gradient.descent.size))  # (P, 4)
        self.least: Any = gradient.least
        values = self._values(gradient, torch.zeros_like(gradient.descent.size))
        self.records = {
            name: np.full((len(recorded), *value.shape), np.nan) for name, value in values.items()
        }

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached). At `last` no step follows."""
        problem, rule, recorded = self.problem, self.rule, self.recorded
        row = int(np.searchsorted(recorded, step))  # of the next record
        while True:
            gradient = problem.gradient(self.x)
            sizes = gradient.descent.size.cpu().numpy()
            if not np.isfinite(sizes).all():
                return DIVERGED, step
            if gradient.least is not None:
                self.least = torch.minimum(self.least, gradient.least)
            status = ZERO_GRADIENT if problem.stops and not sizes.any() else RUNNING
            if row < len(recorded) and recorded[row] == step:
                length = -math.inf if status else rule.length(gradient, step)
                values = self._values(gradient, self._one_a_part(length, gradient))
                for name, value in values.items():
                    self.records[name][row] = value
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

    def _one_a_part(self, log_size: torch.Tensor | float, gradient: Gradient) -> torch.Tensor:
        log_size = torch.as_tensor(log_size, dtype=torch.float64).to(self.x.device)
        return log_size.expand(gradient.descent.size.shape)

    def _lengths(self) -> dict[str, np.ndarray]:
        """(P,) lengths of the path, what rounding left of them, and the longest steps, as views."""
        return dict(zip(("path", "path_low", "longest"), self.progress.T, strict=False))

    def _values(self, gradient: Gradient, log_size: torch.Tensor) -> dict[str, np.ndarray]:
        """The problem's own names, and what a rule and its steps are known by."""
        path, _, longest = self._lengths().values()
        steps: dict[str, Any] = {"log_grad_norm": gradient.log_norm, "log_step_size": log_size}
        steps |= {"path_length": path, "longest_step": longest}
        if len(self.progress) == 1 and self.x.ndim == 2:  # one matrix, not a stack of one
            steps = {name: value[0] for name, value in steps.items()}
        values = {**steps, **self.problem.record(self.x, gradient)}
        if self.least is not None:
            values[getattr(self.problem, "least", "least")] = self.least
        return {name: np.array(_on_host(value)) for name, value in values.items()}

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The iterate, lengths, least quantities and the rule's memory."""
        arrays = {"x": self.x, **self._lengths()}
        arrays |= {} if self.least is None else {"least": self.least}
        arrays |= {f"memory.{name}": value for name, value in self.memory.items()}
        return {name: np.asarray(_on_host(value)) for name, value in arrays.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back `state_arrays`."""
        self.x = torch.from_numpy(arrays["x"]).to(self.x)
        for name, values in self._lengths().items():
            values[...] = arrays[name]
        if self.least is not None:
            self.least = torch.from_numpy(arrays["least"]).to(self.least)
        for name, value in self.memory.items():
            self.memory[name] = torch.from_numpy(arrays[f"memory.{name}"]).to(value)

    def marks(self) -> dict[str, Any]:
        """What tells its rule and its problem, which may be of one's own, from others."""
        return rule_mark(self.rule, self.problem) | problem_mark(self.problem)


def _on_host(value):
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value


def record_steps(record: int | Sequence[int], steps: int) -> np.ndarray:
    """The iterations to record, sorted: given ones, or so many spaced geometrically."""
    if isinstance(record, int | np.integer) and not isinstance(record, bool | np.timedelta64):
        count = require_int("record", int(record), low=1, high=10**7)
        inner = np.geomspace(1, max(steps, 1), max(count - 1, 1)).round().astype(np.int64)
        return np.unique(np.concatenate([[0], inner.clip(max=steps), [steps]]))
    try:
        chosen = np.asarray(record)
    except (TypeError, ValueError, RuntimeError):
        chosen = np.asarray([None])
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise DtypeError(
            "record",
            expected="an integer or a non-empty sequence of integers",
            got=f"{type(record).__name__} {short(record)}",
            remedy="for example record=[0, 10, 100] or record=200",
        )
    if chosen.min() < 0 or chosen.max() > steps:
        raise RangeError(
            "record",
            expected=f"iterations from 0 to steps = {steps}",
            got=f"{chosen.min()} to {chosen.max()}",
            remedy="run more steps, or record fewer",
        )
    return np.unique(chosen.astype(np.int64))


class Course:
    """How far a run goes, what it records, and where it keeps its state; checked when made."""

    def __init__(
        self,
        steps: int,
        record: int | Sequence[int],
        progress: bool,
        checkpoint: PathLike | None,
        seconds: float,
    ):
        self.steps = require_int("steps", steps, low=0, high=2**31 - 2)
        self.asked = self.records = record_steps(record, self.steps)
        self.checkpoint = None if checkpoint is None else target_path(checkpoint)
        if self.checkpoint is not None:
            self.records = with_kept_records(self.checkpoint, self.asked, self.steps)
            lost = np.setdiff1d(self.asked, self.records)
            if lost.size and not isinstance(record, int | np.integer):
                raise RangeError(
                    "record",
                    expected="iterations that the checkpoint has, or that are to come",
                    got=f"{lost[0]}, which it has passed and not kept",
                    remedy="leave it out, or say how many to record",
                )
        # the start is what is left of a run that reaches none
        self.recorded = self.records if self.records[0] == 0 else np.append(0, self.records)
        self.progress = require_flag("progress", progress)
        self.seconds = require_number("checkpoint_seconds", seconds, low=0)

    def finished(self, step: int, records: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The rows that were filled, of those asked for; the start's, where none of them was."""
        rows = finished(self.recorded, step, records["log_grad_norm"])
        if len(self.recorded) > len(self.records) and rows[1:].any():
            rows[0] = False
        return {name: values[rows] for name, values in {"step": self.recorded, **records}.items()}

    def meta(self, run: Run, device: torch.device, status: int) -> dict[str, Any]:
        """What every Trace says of its run."""
        rule, loss = run.rule, run.problem.loss
        said = {"rule": rule.name, "rule_parameters": rule.parameters(), "steps": self.steps}
        said |= {"diverged": why_diverged(rule)} if status == DIVERGED else {}
        said |= {"loss": getattr(loss, "name", loss), "engine": run.name}
        return said | {"coordinates": run.coordinates, "provenance": provenance(device)}

    def run(self, run: Run, tell: Callable[[int], None] | None = None) -> tuple[int, int]:
        """(status, step reached) of a run in chunks, whose ends change no number.

        `tell` is called with each step that is asked for, when the run is there.

        Compiled loops don't look at the keyboard; between two chunks Python does.
        """
        if self.checkpoint is None:
            return self._run(run, None, tell)
        keeper = Checkpoint(self.checkpoint, run, self)
        with owned(self.checkpoint, lambda: keeper.resume() < self.steps):
            return self._run(run, keeper, tell)

    def _run(self, run: Run, keeper: Checkpoint | None, tell) -> tuple[int, int]:
        size, kept = 16, None if keeper is None else keeper.kept  # unchanged since it was read
        step = kept or 0
        left = self.records >= step + (kept is not None)
        untold = [] if tell is None else self.records[left].tolist()
        bar = tqdm(total=self.steps, initial=step, unit="step") if self.progress else None
        with subnormals_as_zero(), bar or contextlib.nullcontext():
            while True:
                began = time.perf_counter()
                until = min(step + size, self.steps, *untold[:1])
                status, reached = run.run(step, until)
                if bar is not None:
                    bar.update(reached - step)
                step = reached
                ended = status != RUNNING or step == self.steps
                if keeper is not None:
                    keeper.save(step, force=ended)
                if step in untold[:1]:
                    untold = untold[1:]
                    self._told(tell, step, keeper)
                if ended:
                    return status, step
                elapsed = max(time.perf_counter() - began, 1e-6)
                size = max(1, int(size * min(_CHUNK_SECONDS / elapsed, 8.0)))

    def _told(self, tell, step: int, keeper: Checkpoint | None) -> None:
        """Whatever comes of it, an interrupt too, the run is kept up to here."""
        try:
            tell(step)
        except BaseException:
            if keeper is not None:
                keeper.save(step, force=True)
            raise


def finished(recorded: np.ndarray, step: int, log_norms: np.ndarray) -> np.ndarray:
    """Which records were filled: none where the gradient was not finite."""
    return (recorded <= step) & ~np.isnan(log_norms.reshape(len(recorded), -1)).any(axis=1)


def why_diverged(rule: Descent) -> str:
    """What a step that is too long for floats comes from."""
    if getattr(rule, "gap_power", 0) and getattr(rule, "log_max_step", 0) == np.inf:
        return (
            "the loss stays above the floor of Polyak's step while the gradient vanishes, so that "
            "steps grow without end: give a cap, Polyak(max_step=...)"
        )
    return "a step too long for floats, or its logits: take a smaller step size, or smaller tokens"


@contextlib.contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Take subnormal results and operands as zero in this thread, until the block ends.

    Late in a run the weight of an idle constraint falls through this range. Weights are held
    relative to the largest of their sequence and logarithms beside them, so that what is lost
    lies 290 digits below anything that is recorded.
    """
    tiny = torch.tensor(1e-310, dtype=torch.float64)
    already = bool(tiny * 1.0 == 0.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)
