"""The torch engine of joint training (any device, any loss)."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..rules import Rule
from . import recording
from .coordinates import Dense, Span
from .engines import see_softmax
from .joint_problem import JointProblem
from .recording import DIVERGED, RUNNING, ZERO_GRADIENT
from .softmax import JointState, joint_state, log_mean_nonopt, log_mean_of


def _nothing() -> np.ndarray:
    return np.array(recording.NOTHING_SO_FAR)


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
                return DIVERGED, step
            if log_u == log_W == -math.inf:
                return ZERO_GRADIENT, step
            log_loss = float(log_mean_of(self.problem.loss.log_value(state.margin)))
            gap = float(np.logaddexp(log_loss, self.problem.log_floor_gap(self.rule)))
            eta_u, eta_W = self.rule.joint_log_step_sizes(step, gap, log_u, log_W)
            row = self.wanted[step]
            if row >= 0:
                self._record(row, state, log_loss, np.logaddexp(2 * log_u, 2 * log_W) / 2, eta_W)
                self._record_decoder(row, eta_u)
            if step == last:
                return RUNNING, step
            f_u = _exp(eta_u + Q) if size_u else 0.0
            f_W = _exp(eta_W + H) if size_W else 0.0
            if not (
                recording.take_length(self.progress, f_W * size_W)
                and recording.take_length(self.u_progress, f_u * size_u)
            ):
                return DIVERGED, step
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
