"""The compiled engine; the one in torch is in `coordinates`.

An engine runs iterations `step` to `last`, fills its record rows, and can hand out and take
back its whole state, which is what makes a resumed run equal to an unbroken one.
"""

from __future__ import annotations

import numpy as np
import torch

from ..rules import Rule
from . import elementary, kernels, loops, recording
from .iteration import log_floor_gap
from .problem import Problem


def common_factor(problem: Problem) -> float:
    """log of the largest exp(-top), taken out of every sequence's loss."""
    return float((-problem.scores.top).amax())


def moderate(problem: Problem) -> bool:
    """Whether all losses fit into floats with room to spare, so that few logs are needed."""
    scores = problem.scores
    spread = float(scores.top.amax() - scores.top.amin()) + float(scores.delta.amax())
    return problem.loss.compiled == elementary.EXPONENTIAL and spread < 100.0


def rule_array(problem: Problem, rule: Rule, common: float) -> np.ndarray:
    """`rule` as `loops` has it."""
    law = [rule.log_scale, rule.gap_power, rule.norm_power, rule.log_max_step, rule.momentum]
    return np.array(
        [*law, log_floor_gap(problem.log_floor, rule.loss_floor), moderate(problem), common]
    )


def first_rows(rows) -> np.ndarray:
    """(n + 1,) where each sequence's rows begin, and the end."""
    counts = torch.bincount(rows.sequence, minlength=len(rows.queries))
    return np.concatenate([[0], counts.cumsum(0).numpy()])


def aligned(matrix: torch.Tensor) -> np.ndarray:
    """A copy on 64-byte boundaries, rows padded with zeros to whole cache lines."""
    rows, columns = matrix.shape
    width = -(-columns // 8) * 8
    raw = np.zeros(rows * width + 8)
    skip = -(raw.ctypes.data // 8) % 8
    copy = raw[skip : skip + rows * width].reshape(rows, width)
    copy[:, :columns] = matrix.numpy()
    return copy


def aligned_square(matrix: torch.Tensor) -> np.ndarray:
    """`aligned`, with the rows padded as the columns are."""
    extra = -len(matrix) % 8
    return aligned(torch.nn.functional.pad(matrix, (0, extra, 0, extra)))


class Compiled:
    """What the numba loops need of an engine: one call, and their state as arrays."""

    name = "compiled"

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached)."""
        return self.loop(
            self.kind,
            self.rule,
            self.tokens,
            self.target,
            self.state,
            self.work,
            step,
            last,
            self.wanted,
            self.records,
        )

    def state_arrays(self) -> dict:
        return {f"state{i}": array for i, array in enumerate(self.state)}

    def restore(self, arrays: dict) -> None:
        for i, array in enumerate(self.state):
            array[...] = arrays[f"state{i}"]


class CompiledEngine(Compiled):
    """The numba loops on numpy views of CPU tensors."""

    def __init__(self, problem: Problem, rule: Rule, coordinates: str, wanted, records):
        self.problem, self.coordinates = problem, coordinates
        self.wanted, self.records = wanted, records
        self.kind = problem.loss.compiled
        common = common_factor(problem)
        self.rule = rule_array(problem, rule, common)
        rows, queries = problem.rows.differences, problem.rows.queries
        if coordinates == "dense":
            self.loop, matrices = loops.dense_loop, (aligned(rows), aligned(queries))
            self.target, self.state = _dense_arrays(problem)
        else:
            self.loop, matrices = loops.span_loop, (aligned(problem.gram),)
            if coordinates == "factored":
                self.loop = loops.factored_loop
                matrices = (aligned(rows), (queries @ queries.T).numpy())
            self.target, self.state = span_arrays(problem)
        self.tokens = (*token_arrays(problem, common), *matrices)
        N, n = problem.N, problem.n
        bits = np.empty(max(N, n), np.int64)
        rows_work = (np.empty(N), np.empty(N), np.empty(N))
        per_sequence = np.ones(kernels.ROWS * n + 3)
        self.work = (*rows_work, per_sequence, bits, bits.view(np.float64))

    def matrix(self) -> torch.Tensor:
        if self.coordinates == "dense":
            d = self.problem.d
            return torch.from_numpy(self.state[0][:d, :d].copy())
        return self.problem.start + self.problem.rows.combine(
            torch.from_numpy(self.state[2].copy())
        )


def token_arrays(problem: Problem, common: float) -> tuple[np.ndarray, ...]:
    """(start, delta, log delta, top, whether a sequence's deltas are one, exp(-top - common))."""
    start, top = first_rows(problem.rows), problem.scores.top
    delta = problem.scores.delta[problem.rows.sequence, problem.column]
    uniform = np.array([len(set(part)) == 1 for part in np.split(delta.numpy(), start[1:-1])])
    floor = (-top - common).exp()
    return start, delta.numpy(), delta.log().numpy(), top.numpy(), uniform, floor.numpy()


def _dense_arrays(problem: Problem) -> tuple[tuple, tuple]:
    """Target and state of `dense_loop`."""
    W = aligned_square(problem.start)
    state = (W, np.zeros_like(W), np.array(recording.NOTHING_SO_FAR))
    return (aligned_square(problem.unit_target),), state


def span_arrays(problem: Problem) -> tuple[tuple, tuple]:
    """Target and state of `span_loop` and `factored_loop`."""
    target = (*problem.target_span, problem.start_scalars)
    g0 = problem.initial_gaps.numpy()
    zeros = (np.zeros(problem.N) for _ in range(5))
    state = (g0.copy(), *zeros, g0, np.array(recording.NOTHING_SO_FAR))
    return tuple(part.contiguous().numpy() for part in target), state
