"""The loop in torch, once: `iterate` runs any problem by any rule and records it in a Trace."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tqdm import tqdm

from .._files import owned, target_path
from .._provenance import provenance
from .._threads import spared
from .._validate import (
    PathLike,
    memory_named,
    require_flag,
    require_int,
    require_number,
    require_type,
)
from ..errors import DtypeError, RangeError
from ..rules import Descent
from .checkpoint import Checkpoint, with_kept_records
from .ending import why_diverged
from .iteration import Iteration
from .recording import DIVERGED, RUNNING, STATUS, finished
from .request import SMALLER, record_steps
from .trace import Trace

PROBLEM = ("start", "loss", "coordinates", "gradient", "spread", "record", "identity")
_CHUNK_SECONDS = 0.2  # between looks at the clock, the keyboard and the checkpoint


@memory_named("training", "memory for the iterate and its records", SMALLER)
def iterate(
    problem,
    rule: Descent,
    steps: int,
    *,
    record: int | Sequence[int] = 200,
    progress: bool = False,
    checkpoint: PathLike | None = None,
    checkpoint_seconds: float = 10.0,
) -> Trace:
    """Run a problem by a rule.

    Parameters
    ----------
    problem
        Heads, layers, next tokens, factors and others in `attnbias.beyond`. It has a `name`, the
        first iterate `start`, its `loss` and, in words, its `coordinates`; `gradient(x)`, a
        `Gradient`; `spread(factors)`, (P,) factors of the parts in a shape that multiplies an
        iterate; `record(x, gradient)`, a dict of named numbers, arrays or tensors, W among them;
        `stops`, whether a gradient of zero ends a run, with its status, or the iterate rests
        there; `least`, the name of what `Gradient.least` keeps, if anything; and `identity`,
        tensors that tell the problem from another, the tokens first.
    rule : Descent
        A direction and a step length.
    steps, record, progress, checkpoint, checkpoint_seconds
        As in `train`.

    Returns
    -------
    Trace
        With every recorded W, and the series that the problem names.

    Raises
    ------
    DtypeError, RangeError, FileFormatError, MemoryLimitError

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair
    >>> from attnbias.beyond.norms.dynamics import matrix_problem
    >>> trace = iterate(matrix_problem(make_separation_pair(), "exponential", None), NGD(0.5), 10)
    >>> trace.W[-1].round(decimals=9).tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """
    missing = [name for name in PROBLEM if not hasattr(problem, name)]
    if missing:
        raise DtypeError(
            "problem",
            expected="a problem, with " + ", ".join(PROBLEM),
            got=f"{type(problem).__name__} without {missing[0]}",
            remedy="make one as in attnbias.beyond",
        )
    require_type("rule", rule, Descent, "a Descent", "for example NGD(0.1)")
    course = Course(steps, record, progress, checkpoint, checkpoint_seconds)
    with spared(problem.identity[0].numel()):
        run = Iteration(problem, rule, course.recorded)
        status, step = course.run(run, problem, rule)
    done = course.finished(step, run.records["log_grad_norm"])
    series = {name: values[done] for name, values in run.records.items()}
    W = series.pop("W")
    meta = {"problem": problem.name}
    meta |= course.meta(run, problem, rule, problem.start.device, status)
    series["W_norm"] = np.linalg.norm(W, axis=(-2, -1))
    return Trace(course.recorded[done], torch.from_numpy(W), None, STATUS[status], meta, series)


class Course:
    """How far a run goes, what it records, and where it keeps its state; checked when made."""

    def __init__(self, steps, record, progress, checkpoint, seconds):
        self.steps = require_int("steps", steps, low=0, high=2**31 - 2)
        self.checkpoint = None if checkpoint is None else target_path(checkpoint)
        self.asked = record_steps(record, self.steps)
        self.records = with_kept_records(self.checkpoint, self.asked, self.steps)
        lost = np.setdiff1d(self.asked, self.records)
        if lost.size and not isinstance(record, int | np.integer):
            raise RangeError(
                "record",
                expected="iterations that the checkpoint has, or that are to come",
                got=f"{lost[0]}, which it has passed and not kept",
                remedy="leave it out, or say how many to record",
            )
        self.recorded = np.union1d(self.records, [0])  # what is left of a run that reaches none
        self.progress = require_flag("progress", progress)
        self.seconds = require_number("checkpoint_seconds", seconds, low=0)

    def finished(self, step: int, log_norms: np.ndarray) -> np.ndarray:
        """Which records were filled, of those asked for; the start's, where none of them was."""
        done = finished(self.recorded, step, log_norms)
        asked = done & np.isin(self.recorded, self.records)
        return asked if asked.any() else done

    def meta(self, run, problem, rule: Descent, device, status: int) -> dict:
        """What every Trace says of its run."""
        said = {"rule": rule.name, "rule_parameters": rule.parameters(), "steps": self.steps}
        said |= {"diverged": why_diverged(rule)} if status == DIVERGED else {}
        said |= {"loss": getattr(problem.loss, "name", problem.loss), "engine": run.name}
        return said | {"coordinates": run.coordinates, "provenance": provenance(device)}

    def run(self, run, problem, rule: Descent, tell=None) -> tuple[int, int]:
        """(status, step reached) of a run in chunks, whose ends change no number.

        `tell` is called with each step that is asked for, when the run is there.

        Compiled loops don't look at the keyboard; between two chunks Python does.
        """
        keeper = Checkpoint(self.checkpoint, self.seconds, run, problem, rule, self)
        with owned(self.checkpoint, lambda: keeper.resume() < self.steps):
            return self._run(run, keeper, keeper.kept or 0, tell)  # unchanged since it was read

    def _run(self, run, keeper: Checkpoint, step: int, tell) -> tuple[int, int]:
        size = 16
        untold = (
            [] if tell is None else self.records[self.records >= step + (keeper.kept is not None)]
        )
        options = {"total": self.steps, "initial": step, "disable": not self.progress}
        with subnormals_as_zero(), tqdm(**options, unit="step") as bar:
            while True:
                began = time.perf_counter()
                until = min(step + size, self.steps, *map(int, untold[:1]))
                status, reached = run.run(step, until)
                bar.update(reached - step)
                step = reached
                ended = status != RUNNING or step == self.steps
                keeper.save(step, force=ended)
                if len(untold) and step == untold[0]:
                    untold = untold[1:]
                    self._told(tell, step, keeper)
                if ended:
                    return status, step
                elapsed = max(time.perf_counter() - began, 1e-6)
                size = max(1, int(size * min(_CHUNK_SECONDS / elapsed, 8.0)))

    def _told(self, tell, step: int, keeper: Checkpoint) -> None:
        """Whatever comes of it, an interrupt too, the run is kept up to here."""
        try:
            tell(step)
        except BaseException:
            keeper.save(step, force=True)
            raise


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
