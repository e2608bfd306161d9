"""The linear head as a problem of the torch loop: W alone, or W and the decoder u.

Every iterate of GD, NGD, momentum and Polyak steps is W_t = W_0 + sum_k beta_k z_k. `Dense`
keeps the d x d matrix, `Span` the N' gaps and coefficients; both run on any device, and the
compiled loop is checked against them.
"""

from __future__ import annotations

import numpy as np
import torch

from ..rules import Descent
from . import recording
from .iteration import Gradient, Iteration, Vector
from .joint_problem import JointProblem
from .problem import Parameter, Problem
from .softmax import (
    Scores,
    log_loss_gap,
    log_mean_loss,
    log_mean_nonopt,
    log_mean_of,
    relative,
    softmax_state,
)


class Dense:
    """W itself, or u as one row: 4 n d^2 operations an iteration."""

    axis = 0  # along which W and u stand together

    def __init__(self, parameter: Parameter):
        self.parameter = parameter
        self.start = torch.atleast_2d(parameter.start)

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W, or the scores of u."""
        return self.parameter.rows.gaps(self.matrix(x))

    def vector(self, weights: torch.Tensor) -> torch.Tensor:
        """sum_k weights_k z_k."""
        return self.parameter.rows.combine(weights).reshape(self.start.shape)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Of a vector."""
        return torch.linalg.vector_norm(x)

    def measure(self, x: torch.Tensor) -> torch.Tensor:
        """(3,): |W|^2, <W, unit W_mm>, squared norm of the rest."""
        W, unit = self.matrix(x), self.parameter.unit_target
        along = (W * unit).sum()
        return torch.stack([W.square().sum(), along, (W - along * unit).square().sum()])

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """W or u."""
        return x.reshape(self.parameter.start.shape)


class Span:
    """(2, N'): the gaps g = g_0 + K beta, and beta; one product with K, whatever d is."""

    axis = 1

    def __init__(self, parameter: Parameter):
        self.parameter = parameter
        self.start = torch.stack([parameter.initial_gaps, torch.zeros_like(parameter.initial_gaps)])

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W, or the scores of u."""
        return x[0]

    def vector(self, weights: torch.Tensor) -> torch.Tensor:
        """sum_k weights_k z_k, by its gaps and its coefficients."""
        return torch.stack([self.parameter.gram @ weights, weights])

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Of a vector."""
        return (x[0] @ x[1]).clamp(min=0.0).sqrt()

    def measure(self, x: torch.Tensor) -> torch.Tensor:
        """(3,): |W|^2, <W, unit W_mm>, squared norm of the rest, with no product."""
        g, beta = x
        alpha, margins = self.parameter.target_span
        norm2_0, along_0, across2_0 = self.parameter.start_scalars
        g_0 = self.parameter.initial_gaps
        along = alpha @ g
        coefficients = beta - (along - along_0) * alpha
        # zero derivative in `along`: its rounding enters squared
        rest = (g - along * margins) + (g_0 - along_0 * margins)
        norm2 = norm2_0 + beta @ (g + g_0)
        return torch.stack([norm2, along, across2_0 + coefficients @ rest])

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """W or u."""
        return self.parameter.start + self.parameter.rows.combine(x[1])


def coordinates_of(name: str, parameter: Parameter) -> Dense | Span:
    """By the name that `train` has for them."""
    return (Dense if name == "dense" else Span)(parameter)


class Alone:
    """Training of W with a fixed decoder."""

    name = "W alone"
    stops = True
    least = "log_least_opt_score"

    def __init__(self, data: Problem, coordinates: str = "dense"):
        self.data, self.coordinates, self.loss = data, coordinates, data.loss
        self.identity = data.identity
        self.form = coordinates_of(coordinates, data)
        self.start = self.form.start
        self.place = data.rows.sequence, data.column

    def gradient(self, x: torch.Tensor) -> Gradient:
        """From the softmax in the log domain."""
        data = self.data
        gaps = torch.full_like(data.scores.delta, torch.inf)
        gaps[self.place] = self.form.gaps(x)
        state = softmax_state(gaps, data.scores, data.loss)
        weights, shift = relative(*state.weights(), (0, 1))
        parts = self.form.vector(weights[self.place] / data.n)
        return Gradient(
            Vector(parts, shift[None], self.norms(parts)), self.norms,
            lambda: log_loss_gap(state), data.log_floor, state.log_opt.amin(), state=state,
        )  # fmt: skip

    def norms(self, x: torch.Tensor) -> torch.Tensor:
        """(1,)"""
        return self.form.norm(x)[None]

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """One factor for all."""
        return factors

    def record(self, x: torch.Tensor, gradient: Gradient) -> dict:
        """Logarithms of the loss and its gap, 1 - softmax, gaps, W."""
        state = gradient.state
        return {
            "log_loss": log_mean_loss(state),
            "log_loss_gap": log_loss_gap(state),
            "log_nonopt_score": log_mean_nonopt(state),
            "gaps": self.form.gaps(x),
            "W": self.form.matrix(x),
        }


class Joint:
    """Training of the decoder u and of W: two parts, in this order."""

    name = "joint"
    stops = True
    least = "log_least_opt_score"

    def __init__(self, data: JointProblem, coordinates: str = "dense"):
        self.data, self.coordinates, self.loss = data, coordinates, data.loss
        self.identity = data.identity
        self.forms = [coordinates_of(coordinates, part) for part in (data.u, data.W)]
        self.axis = self.forms[0].axis
        starts = [form.start for form in self.forms]
        self.sizes = [start.shape[self.axis] for start in starts]
        self.start = torch.cat(starts, dim=self.axis)
        self.place = data.W.rows.sequence, data.column
        self.shape = data.n, int(data.column.max()) + 1

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """That of u and that of W."""
        return x.split(self.sizes, dim=self.axis)

    def gradient(self, x: torch.Tensor) -> Gradient:
        """From the softmax in the log domain."""
        (in_u, in_W), (u, W), n = self.forms, self.parts(x), self.data.n
        scores = in_u.gaps(u)
        gaps = scores.new_full(self.shape, torch.inf)
        gaps[self.place] = in_W.gaps(W)
        delta = scores.new_zeros(self.shape)
        delta[self.place] = scores[n:]
        state = softmax_state(gaps, Scores(scores[:n], delta), self.loss)
        # -grad_u L is the mean of exp(log_slope) y (x_opt - sum softmax (x_opt - x))
        slope, Q = relative(torch.ones_like(scores[:n]), state.log_slope)
        others = (slope[:, None] * state.log_others.exp())[self.place]
        weights, H = relative(*state.weights(), (0, 1))
        weights = weights[self.place]
        vectors = in_u.vector(torch.cat([slope, -others]) / n), in_W.vector(weights / n)
        parts = torch.cat(vectors, dim=self.axis)
        return Gradient(
            Vector(parts, torch.stack([Q, H]), self.norms(parts)), self.norms,
            lambda: log_mean_loss(state), least=state.log_opt.amin(), state=state,
        )  # fmt: skip

    def norms(self, x: torch.Tensor) -> torch.Tensor:
        """(2,)"""
        pairs = zip(self.forms, self.parts(x), strict=True)
        return torch.stack([form.norm(part) for form, part in pairs])

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """Each part's factor over its rows or columns."""
        counts = torch.tensor(self.sizes, device=factors.device)
        factors = factors.repeat_interleave(counts, output_size=sum(self.sizes))
        return factors[:, None] if self.axis == 0 else factors


class TorchEngine(Iteration):
    """W alone in torch, with the records that the compiled loops fill."""

    def __init__(self, problem: Problem, rule: Descent, coordinates: str, wanted, records):
        self.rows = records
        super().__init__(Alone(problem, coordinates), rule, wanted)
        self.records = records

    def _empty(self, gradient: Gradient):
        return self.rows

    def _record(self, row: int, gradient: Gradient, log_size: torch.Tensor) -> None:
        state, form = gradient.state, self.problem.form
        scalars = [log_mean_loss(state), log_loss_gap(state), gradient.log_norm[0], log_size[0]]
        scalars += [log_mean_nonopt(state), *form.measure(self.x)]
        fill(self.records[row], scalars, self.path[0], self.longest[0], self.least)
        self.records[row, recording.RECORDS :] = form.gaps(self.x).cpu().numpy()

    def matrix(self) -> torch.Tensor:
        """W."""
        return self.problem.form.matrix(self.x)


class JointTorchEngine(Iteration):
    """W and u in torch, with the records that the compiled loops fill."""

    def __init__(self, problem: JointProblem, rule: Descent, coordinates: str, wanted, records):
        self.rows = records
        super().__init__(Joint(problem, coordinates), rule, wanted)
        self.records = records

    def _empty(self, gradient: Gradient):
        return self.rows

    def _record(self, row: int, gradient: Gradient, log_size: torch.Tensor) -> None:
        problem, state = self.problem, gradient.state
        (in_u, in_W), (u, W) = problem.forms, problem.parts(self.x)
        log_loss = log_mean_of(problem.loss.log_value(state.margin))
        whole = torch.logsumexp(2 * gradient.log_norm, dim=0) / 2
        scalars = [log_loss, log_loss, whole, log_size[1], log_mean_nonopt(state)]
        line, first = self.records[row], recording.RECORDS + problem.data.N
        fill(line, [*scalars, *in_W.measure(W)], self.path[1], self.longest[1], self.least)
        line[recording.RECORDS : first] = in_W.gaps(W).cpu().numpy()
        line[first : first + 3] = in_u.measure(u).cpu().numpy()
        line[first + recording.U_PATH] = self.path[0]
        line[first + recording.LOG_U_STEP] = float(log_size[0])
        line[first + recording.U_RECORDS :] = in_u.gaps(u).cpu().numpy()

    def matrix(self) -> torch.Tensor:
        """W."""
        return self.problem.forms[1].matrix(self.problem.parts(self.x)[1])

    def decoder(self) -> torch.Tensor:
        """u."""
        return self.problem.forms[0].matrix(self.problem.parts(self.x)[0])


def fill(line: np.ndarray, scalars: list, path: float, longest: float, least) -> None:
    """The first columns of a record row: the scalars, then what has accumulated."""
    line[: len(scalars)] = torch.stack(scalars).cpu().numpy()
    line[recording.PATH : recording.RECORDS] = path, longest, float(least.exp())
