"""The two engines of joint training: compiled (CPU) and torch (any device, any loss)."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..rules import Rule
from . import joint_loops, kernels, recording
from .coordinates import Dense, Span
from .engines import Compiled, aligned, aligned_square, first_rows, see_softmax
from .joint_problem import JointProblem
from .problem import Parameter
from .softmax import JointState, joint_state, log_mean_nonopt, log_mean_of


def log_below(rule: Rule) -> float:
    """log of how far the rule's loss floor lies below L* = 0; -inf at 0 itself."""
    return math.log(-rule.loss_floor) if rule.loss_floor else -math.inf


class JointCompiledEngine(Compiled):
    """The numba loops on numpy views of CPU tensors."""

    def __init__(self, problem: JointProblem, rule: Rule, coordinates: str, wanted, records):
        self.problem, self.coordinates = problem, coordinates
        self.wanted, self.records = wanted, records
        self.kind = problem.loss.compiled
        law = [rule.log_scale, rule.gap_power, rule.norm_power, rule.log_max_step, 0.0]
        self.rule = np.array([*law, log_below(rule), not rule.common_step, *rule.decay])
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


class JointTorchEngine:
    """The same iteration written with `logdomain`, on the device of the data."""

    name = "torch"

    def __init__(self, problem: JointProblem, rule: Rule, coordinates: str, wanted, records):
        self.problem, self.rule, self.coordinates = problem, rule, coordinates
        self.wanted, self.records = wanted, records
        form = Dense if coordinates == "dense" else Span
        self.W, self.u = form(problem.W), form(problem.u)
        self.progress, self.u_progress = _nothing(), _nothing()

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached)."""
        while True:
            state = self._state()
            see_softmax(self.progress, state)
            log_u, size_u, Q = self._decoder_gradient(state)
            log_W, size_W, H = self._matrix_gradient(state)
            if not (math.isfinite(Q) and math.isfinite(size_u) and math.isfinite(size_W)):
                return kernels.DIVERGED, step
            if log_u == log_W == -math.inf:
                return kernels.ZERO_GRADIENT, step
            log_loss = float(log_mean_of(self.problem.loss.log_value(state.margin)))
            gap = float(np.logaddexp(log_loss, log_below(self.rule)))
            eta_u, eta_W = self.rule.joint_log_step_sizes(step, gap, log_u, log_W)
            row = self.wanted[step]
            if row >= 0:
                self._record(row, state, log_loss, np.logaddexp(2 * log_u, 2 * log_W) / 2, eta_W)
                self._record_decoder(row, eta_u)
            if step == last:
                return kernels.RUNNING, step
            f_u = _exp(eta_u + Q) if size_u else 0.0
            f_W = _exp(eta_W + H) if size_W else 0.0
            if not (
                recording.take_length(self.progress, f_W * size_W)
                and recording.take_length(self.u_progress, f_u * size_u)
            ):
                return kernels.DIVERGED, step
            self.W.move(f_W, 0.0)
            self.u.move(f_u, 0.0)
            step += 1

    def _state(self) -> JointState:
        problem = self.problem
        n, m = problem.n, int(problem.column.max()) + 1
        scores, sequence = self.u.gaps(), problem.W.rows.sequence
        gaps = scores.new_full((n, m), torch.inf)
        gaps[sequence, problem.column] = self.W.gaps()
        delta = scores.new_zeros(n, m)
        delta[sequence, problem.column] = scores[n:]
        return joint_state(gaps, scores[:n], delta, problem.loss)

    def _decoder_gradient(self, state: JointState) -> tuple[float, float, float]:
        """log|grad_u|, and |grad_u| relative to exp(Q), which is the largest -l'."""
        Q = state.log_slope.amax()
        share = (state.log_slope - Q).exp() / self.problem.n
        others = (share[:, None] * state.softmax)[self.problem.W.rows.sequence, self.problem.column]
        norm2 = self.u.set_direction(torch.cat([share, -others]))
        return _size(norm2, float(Q))

    def _matrix_gradient(self, state: JointState) -> tuple[float, float, float]:
        """log|grad_W|, and |grad_W| relative to exp(H), which is its largest weight."""
        place = (self.problem.W.rows.sequence, self.problem.column)
        log_weight = state.log_weight[place]
        H = log_weight.amax()
        H = H.where(torch.isfinite(H), torch.zeros_like(H))  # all scores tie: no weight at all
        weights = state.sign[place] * (log_weight - H).exp() / self.problem.n
        return _size(self.W.set_direction(weights), float(H))

    def _record(self, row, state, log_loss, log_norm, eta_W) -> None:
        scalars = [log_loss, log_loss, log_norm, eta_W, float(log_mean_nonopt(state))]
        scalars += self.W.measure().tolist()
        self.records[row, : len(scalars)] = scalars
        gaps = self.W.gaps().cpu().numpy()
        recording.record_progress(self.progress, gaps, self.records, row)

    def _record_decoder(self, row, eta_u) -> None:
        first = recording.RECORDS + self.problem.N
        self.records[row, first : first + 3] = self.u.measure().tolist()
        self.records[row, first + recording.LOG_U_STEP] = eta_u
        scores = self.u.gaps().cpu().numpy()
        recording.record_decoder(self.u_progress, scores, self.records, row, first)

    def state_arrays(self) -> dict:
        parts = {"W": self.W, "u": self.u}
        arrays = {
            f"{part}.{name}": getattr(iterate, name).cpu().numpy()
            for part, iterate in parts.items()
            for name in iterate.STATE
        }
        return arrays | {"progress": self.progress, "u_progress": self.u_progress}

    def restore(self, arrays: dict) -> None:
        self.progress[...], self.u_progress[...] = arrays["progress"], arrays["u_progress"]
        for part, iterate in (("W", self.W), ("u", self.u)):
            for name in iterate.STATE:
                like = getattr(iterate, name)
                setattr(iterate, name, torch.from_numpy(arrays[f"{part}.{name}"]).to(like))

    def matrix(self) -> torch.Tensor:
        """W."""
        return self.W.matrix()

    def decoder(self) -> torch.Tensor:
        """u."""
        return self.u.matrix()


def _size(norm2: torch.Tensor, log_scale: float) -> tuple[float, float, float]:
    """log of the norm, the norm without the scale, the log of the scale; 0 below rounding."""
    norm2 = float(norm2)
    size = 0.0 if norm2 <= 0 else math.sqrt(norm2)
    return (log_scale + math.log(size) if size > 0 else -math.inf), size, log_scale


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf
