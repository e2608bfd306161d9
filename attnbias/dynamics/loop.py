"""The loop in torch, once: `iterate` runs any problem by any rule and records it in a Trace."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tqdm import tqdm

from .._files import target_path
from .._provenance import provenance
from .._threads import spared
from .._types import PathLike
from .._validate import require_flag, require_int, require_number
from ..errors import DivergedError, DtypeError, RangeError
from ..rules import Descent, Rule
from .checkpoint import Checkpoint
from .iteration import Iteration
from .recording import RUNNING, STATUS
from .request import record_rows, record_steps
from .trace import Trace

_CHUNK_SECONDS = 0.2  # between looks at the clock, the keyboard and the checkpoint


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
        With `start`, `gradient`, `spread` and `record`, as `iteration.Differentiable` has them:
        heads, layers, next tokens, factors and others in `attnbias.beyond`.
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
    DtypeError, RangeError, FileFormatError

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair
    >>> from attnbias.beyond.norms.dynamics import matrix_problem
    >>> trace = iterate(matrix_problem(make_separation_pair(), "exponential", None), NGD(0.5), 10)
    >>> trace.W[-1].round(decimals=9).tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """
    steps = require_int("steps", steps, low=0, high=2**31 - 2)
    recorded = record_steps(record, steps)
    progress = require_flag("progress", progress)
    seconds = require_number("checkpoint_seconds", checkpoint_seconds, low=0)
    path = None if checkpoint is None else target_path(checkpoint)
    run = Iteration(problem, rule, record_rows(recorded, steps))
    keeper = Checkpoint(path, seconds, run, problem, rule, recorded)
    with subnormals_as_zero(), spared(problem.start.numel()):
        status, step = advance(run, steps, keeper, progress)
    filled = run.records["log_grad_norm"].reshape(len(recorded), -1)
    done = (recorded <= step) & ~np.isnan(filled).any(axis=1)
    series = {name: values[done] for name, values in run.records.items()}
    W = series.pop("W")
    meta = {"problem": problem.name, "rule": rule.name, "rule_parameters": rule.parameters()}
    meta |= {"loss": getattr(problem.loss, "name", problem.loss), "steps": steps}
    meta |= {"engine": "torch", "coordinates": problem.coordinates}
    meta["provenance"] = provenance(problem.start.device)
    series["W_norm"] = np.linalg.norm(W, axis=(-2, -1))
    return Trace(recorded[done], torch.from_numpy(W), None, STATUS[status], meta, series)


def finite(trace: Trace, maker: str) -> Trace:
    """The trace of a run that did not diverge.

    Raises
    ------
    DivergedError
    """
    if trace.status == "diverged":
        last = trace.step[-1] if len(trace.step) else 0
        raise DivergedError(
            maker, expected="finite gradients and steps", got=f"others after step {last}",
            remedy="take a smaller step size",
        )  # fmt: skip
    return trace


def require_plain(rule) -> Descent:
    """GD, NGD without momentum, cap or decay, or a rule of one's own; others are refused."""
    if not isinstance(rule, Descent):
        raise DtypeError("rule", expected="a Rule", got=type(rule).__name__, remedy="NGD(0.1)")
    if not isinstance(rule, Rule):
        return rule
    plain = (rule.gap_power, rule.norm_power) in ((0.0, 0.0), (0.0, -1.0))
    if not plain or rule.momentum or rule.log_max_step < np.inf or any(rule.decay):
        raise RangeError(
            "rule", expected="GD or NGD without momentum, cap or decay", got=rule.name,
            remedy="NGD(0.1)",
        )  # fmt: skip
    return rule


class Split(Descent):
    """NGD on one part of the gradient alone; the rest, `Gradient.rest`, moves as by GD."""

    def __init__(self, rule: Rule):
        self.base, self.name = rule, f"{rule.name}, split"

    def length(self, gradient, step):
        """As of NGD."""
        return self.base.length(gradient, step)

    def carry(self, move, gradient, step, memory):
        """The normalised step, and step size times the rest."""
        return move + np.exp(self.base.log_scale) * gradient.rest

    def parameters(self) -> dict:
        """Those of NGD."""
        return self.base.parameters() | {"name": self.name}


def chunks(step: int, steps: int) -> Iterator[int]:
    """Ends of stretches of about `_CHUNK_SECONDS` from `step` to `steps`, at least one.

    Compiled loops don't look at the keyboard; between two chunks Python does.
    """
    size = 16
    while True:
        began, last = time.perf_counter(), min(step + size, steps)
        yield last
        if last == steps:
            return
        elapsed = max(time.perf_counter() - began, 1e-6)
        step, size = last, max(1, int(size * min(_CHUNK_SECONDS / elapsed, 8.0)))


def advance(run, steps: int, keeper, progress: bool) -> tuple[int, int]:
    """Run in chunks; a chunk's end changes no number."""
    status, step = RUNNING, keeper.resume(steps)
    with tqdm(total=steps, initial=step, disable=not progress, unit="step") as bar:
        for last in chunks(step, steps):
            status, reached = run.run(step, last)
            bar.update(reached - step)
            step = reached
            finished = status != RUNNING or step == steps
            keeper.save(step, force=finished)
            if finished:
                break
    return status, step


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
