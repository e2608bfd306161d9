"""The torch engine of training W alone (any device, any loss).

An engine runs iterations `step` to `last`, fills its record rows, and can hand out and take
back its whole state, which is what makes a resumed run equal to an unbroken one.
"""

from __future__ import annotations

import numpy as np
import torch

from ..rules import Rule
from . import recording
from .coordinates import Dense, Span
from .problem import Problem
from .recording import DIVERGED, RUNNING, ZERO_GRADIENT
from .softmax import log_loss_gap, log_mean_loss, log_mean_nonopt, softmax_state


def see_softmax(progress: np.ndarray, state) -> None:
    """Keep the least softmax of an optimal token so far."""
    least = float(state.log_opt.amin().exp())
    progress[recording.LEAST_SO_FAR] = min(least, progress[recording.LEAST_SO_FAR])


class TorchEngine:
    """The same iteration written with `logdomain`, on the device of the data."""

    name = "torch"

    def __init__(self, problem: Problem, rule: Rule, coordinates: str, wanted, records):
        self.problem, self.rule, self.coordinates = problem, rule, coordinates
        self.wanted, self.records = wanted, records
        self.iterate = (Dense if coordinates == "dense" else Span)(problem)
        self.log_floor_gap = torch.tensor(problem.log_floor_gap(rule), dtype=torch.float64)
        self.progress = np.array(recording.NOTHING_SO_FAR)

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached)."""
        problem, rule = self.problem, self.rule
        floor = self.log_floor_gap.to(problem.start.device)
        while True:
            gaps = torch.full_like(problem.scores.delta, torch.inf)
            gaps[problem.rows.sequence, problem.column] = self.iterate.gaps()
            state = softmax_state(gaps, problem.scores, problem.loss)
            see_softmax(self.progress, state)
            log_weight = state.log_weight[problem.rows.sequence, problem.column]
            sign = state.sign[problem.rows.sequence, problem.column]
            peak = log_weight.amax()
            norm2 = self.iterate.set_direction(sign * (log_weight - peak).exp() / problem.n)
            if not bool(torch.isfinite(norm2)):
                zero = bool(peak == -torch.inf)
                return (ZERO_GRADIENT if zero else DIVERGED), step
            if bool(norm2 <= 0):
                return ZERO_GRADIENT, step
            log_norm = peak + 0.5 * norm2.log()
            log_gap = log_loss_gap(state, problem.scores, problem.loss)
            log_step = rule.log_step_size(torch.logaddexp(log_gap, floor), log_norm)
            log_step = torch.as_tensor(log_step, dtype=torch.float64, device=gaps.device)
            if self.wanted[step] >= 0:
                self._record(self.wanted[step], state, log_gap, log_norm, log_step)
            if step == last:
                return RUNNING, step
            factor = (log_step + peak).exp()
            if not recording.take_length(self.progress, float(factor * norm2.sqrt())):
                return DIVERGED, step
            self.iterate.move(factor, rule.momentum)
            step += 1

    def _record(self, row, state, log_gap, log_norm, log_step) -> None:
        problem = self.problem
        mean = log_mean_nonopt(state)
        loss = log_mean_loss(state, problem.scores, problem.loss)
        softmax = torch.stack([loss, log_gap, log_norm, log_step, mean])
        scalars = torch.cat([softmax, self.iterate.measure()]).cpu().numpy()
        self.records[row, : len(scalars)] = scalars
        gaps = self.iterate.gaps().cpu().numpy()
        recording.record_progress(self.progress, gaps, self.records, row)

    def state_arrays(self) -> dict:
        tensors = {name: getattr(self.iterate, name).cpu().numpy() for name in self.iterate.STATE}
        return tensors | {"progress": self.progress}

    def restore(self, arrays: dict) -> None:
        self.progress[...] = arrays["progress"]
        for name in self.iterate.STATE:
            like = getattr(self.iterate, name)
            setattr(self.iterate, name, torch.from_numpy(arrays[name]).to(like))

    def matrix(self) -> torch.Tensor:
        return self.iterate.matrix()
