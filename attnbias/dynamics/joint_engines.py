"""The compiled engine of joint training; the one in torch is in `coordinates`."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..rules import Rule
from . import joint_loops, kernels, recording
from .engines import Compiled, aligned, aligned_square, first_rows
from .iteration import log_floor_gap
from .joint_problem import JointProblem
from .problem import Parameter


class JointCompiledEngine(Compiled):
    """The numba loops on numpy views of CPU tensors."""

    def __init__(self, problem: JointProblem, rule: Rule, coordinates: str, wanted, records):
        self.problem, self.coordinates = problem, coordinates
        self.wanted, self.records = wanted, records
        self.kind = problem.loss.compiled
        law = [rule.log_scale, rule.gap_power, rule.norm_power, rule.log_max_step, 0.0]
        self.rule = np.array(
            [*law, log_floor_gap(-math.inf, rule.loss_floor), not rule.common_step, *rule.decay]
        )
        N, n = problem.N, problem.n
        start, rows = first_rows(problem.W.rows), problem.W.rows
        if coordinates == "dense":
            self.loop = joint_loops.joint_dense_loop
            tokens = (rows.differences, rows.queries, problem.u.rows.rows)
            self.tokens = (start, *(aligned(part) for part in tokens))
            unit_u = _padded(problem.u.unit_target)
            self.target = (aligned_square(problem.W.unit_target), unit_u)
            u = _padded(problem.u.start)
            W = aligned_square(problem.W.start)
            self.state = (W, _nothing(), u, np.zeros_like(u), _nothing())
        else:
            self.loop = joint_loops.joint_span_loop
            self.tokens = (start, aligned(problem.W.gram), aligned(problem.u.gram))
            self.target = (_span_target(problem.W), _span_target(problem.u))
            self.state = (*_span_state(problem.W), *_span_state(problem.u))
        bits = np.empty(max(N, n), np.int64)
        rows_work = [np.empty(size) for size in (N, N, N, n + N, n + N)]
        per_sequence = np.ones(kernels.ROWS * n + 3)
        self.work = (*rows_work, per_sequence, bits, bits.view(np.float64))

    def matrix(self) -> torch.Tensor:
        """W."""
        if self.coordinates == "dense":
            d = self.problem.d
            return torch.from_numpy(self.state[0][:d, :d].copy())
        return _from_span(self.problem.W, self.state[2])

    def decoder(self) -> torch.Tensor:
        """u."""
        if self.coordinates == "dense":
            return torch.from_numpy(self.state[2][: self.problem.d].copy())
        return _from_span(self.problem.u, self.state[8])


def _nothing() -> np.ndarray:
    return np.array(recording.NOTHING_SO_FAR)


def _padded(vector: torch.Tensor) -> np.ndarray:
    return aligned(vector[None])[0]


def _span_target(part: Parameter) -> tuple[np.ndarray, ...]:
    values = (*part.target_span, part.start_scalars)
    return tuple(value.contiguous().numpy() for value in values)


def _span_state(part: Parameter) -> tuple[np.ndarray, ...]:
    start = part.initial_gaps.numpy()
    return (start.copy(), *(np.zeros_like(start) for _ in range(3)), start, _nothing())


def _from_span(part: Parameter, coefficients: np.ndarray) -> torch.Tensor:
    return part.start + part.rows.combine(torch.from_numpy(coefficients.copy()))
