"""The linear head as a problem of the torch loop: W alone, or W and the decoder u.

Every iterate of GD, NGD, momentum and Polyak steps is W_t = W_0 + sum_k beta_k z_k. `Dense`
keeps the d x d matrix, `Span` the N' gaps and coefficients; both run on the data's device, and the
compiled loop is checked against them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..rules import Gradient, Vector
from .problem import LEAST_SQUARE, LIFT, Parameter, Problem, moved_by
from .softmax import Scores, log_mean_loss, log_mean_nonopt, log_mean_of, relative, softmax_state


class Dense:
    """W itself, or u as one row: 4 n d^2 operations an iteration."""

    axis = 0  # along which W and u stand together

    def __init__(self, parameter: Parameter):
        self.parameter, self.start = parameter, torch.atleast_2d(parameter.start)
        self.size = len(self.start)

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W, or the scores of u."""
        return self.parameter.gaps(self.matrix(x))

    def vector(self, weights: torch.Tensor) -> torch.Tensor:
        """sum_k weights_k z_k, of the scaled rows."""
        return self.parameter.scaled.rows.combine(weights).reshape(self.start.shape)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Of a vector."""
        return torch.linalg.vector_norm(x)

    def measure(self, x: torch.Tensor) -> torch.Tensor:
        """(4,): as `Parameter.measure`."""
        return self.parameter.measure(self.matrix(x))

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """W or u."""
        return x.reshape(self.parameter.start.shape)


class Span:
    """(2, N'), of the scaled rows: gaps g = g_0 + K beta, and beta; one product with K, whatever d.

    Of the rows themselves gaps are `scaled.size` times these.
    """

    axis = 1

    def __init__(self, parameter: Parameter):
        self.parameter, self.size = parameter, parameter.N

    @functools.cached_property
    def start(self) -> torch.Tensor:
        """g_0, and no row yet."""
        gaps = self.parameter.initial_gaps
        return torch.stack([gaps, torch.zeros_like(gaps)])

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W, or the scores of u."""
        return x[0] * self.parameter.scaled.size

    def vector(self, weights: torch.Tensor) -> torch.Tensor:
        """sum_k weights_k z_k, by its gaps and its coefficients."""
        return torch.stack([self.parameter.gram @ weights, weights])

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Of a vector."""
        return (x[0] @ x[1]).clamp(min=0.0).sqrt()

    def measure(self, x: torch.Tensor) -> torch.Tensor:
        """(4,): as `Parameter.measure`, with no product."""
        part = self.parameter
        held = (part.initial_gaps, *part.target_span, part.start_scalars)
        return torch.stack(measure_span(x, *held))

    def matrix(self, x: torch.Tensor) -> Callable[[], torch.Tensor]:
        """What makes W or u, since W may be larger than all else."""
        part = self.parameter
        return functools.partial(moved_by, part.start, part.scaled.rows, x[1])


def measure_span(x, g_0, alpha, margins, scalars) -> tuple[torch.Tensor, ...]:
    """`Span.measure` of x = (gaps, beta), for many runs at once where axes stand before (N',)."""
    plain, lifted = scalars.unbind(0)
    found = _span_scalars(x, g_0, alpha, margins, plain)
    # a start of ordinary size has no lifted scalars, and needs none
    tiny = (found[0] < LEAST_SQUARE) & (plain[0] < LEAST_SQUARE)
    larger = _span_scalars([part * LIFT for part in x], g_0 * LIFT, alpha, margins, lifted)
    chosen = [torch.where(tiny, b, a) for a, b in zip(found, larger, strict=True)]
    return *chosen, torch.where(tiny, LIFT, torch.ones_like(found[0]))


def _span_scalars(x, g_0, alpha, margins, scalars) -> tuple[torch.Tensor, ...]:
    (g, beta), (norm2_0, along_0, across2_0) = x, scalars.unbind(0)
    norm2 = norm2_0 + torch.linalg.vecdot(beta, g + g_0)
    along = torch.linalg.vecdot(alpha, g)
    now, then = along[..., None], along_0[..., None]
    # zero derivative in `along`: its rounding enters squared
    rest = (g - now * margins) + (g_0 - then * margins)
    return norm2, along, across2_0 + torch.linalg.vecdot(beta - (now - then) * alpha, rest)


class LinearHead:
    """Training of W, the last part of an iterate, with a fixed decoder or behind the decoder u."""

    name, stops, least = "W alone", True, "log_least_opt_score"

    def __init__(self, data: Problem, coordinates: str = "dense"):
        self.data, self.coordinates, self.loss = data, coordinates, data.loss
        parts: list[Parameter[Any]] = [data.W] if data.u is None else [data.u, data.W]
        form: type[Dense | Span] = Dense if coordinates == "dense" else Span
        self.forms = [form(part) for part in parts]
        self.axis, self.sizes = self.forms[0].axis, [form.size for form in self.forms]

    @property
    def identity(self) -> tuple[torch.Tensor, ...]:
        """That of the data's problem."""
        return self.data.identity

    @functools.cached_property
    def start(self) -> torch.Tensor:
        """The parts' starts beside each other."""
        return torch.cat([form.start for form in self.forms], dim=self.axis)

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """That of u, if it is trained, and that of W."""
        return x.split(self.sizes, dim=self.axis)

    def gradient(self, x: torch.Tensor) -> Gradient:
        """From the softmax in the log domain."""
        data, (*u, W), (*in_u, in_W) = self.data, self.parts(x), self.forms
        known = in_u[0].gaps(*u) if u else None
        scores = data.scores if known is None else self._scores(known)
        gaps = torch.full_like(scores.delta, torch.inf)
        gaps[data.place] = in_W.gaps(W)
        state = softmax_state(gaps, scores, self.loss)
        P: Any = 0.0 if known is None else state.log_slope.amax()
        weights, Q, H = state.gradient(P, data.W.scaled.log_size)
        vectors = [in_W.vector(weights[data.place] / data.n)]
        if data.u is None:
            common, beside, gap = Q, H[None], lambda: state.log_gap(Q)
        else:  # L* = 0
            # -grad_u L is the mean of exp(log_slope) y (x_opt - sum softmax (x_opt - x))
            log_slope = state.log_slope - P + data.u.scaled.log_size
            slope, H_u = relative(torch.ones_like(scores.top), log_slope)
            others = (slope[:, None] * state.log_others.exp())[data.place]
            vectors.insert(0, in_u[0].vector(torch.cat([slope, -others]) / data.n))
            common, beside = P, torch.stack([H_u, Q + H])
            gap = lambda: log_mean_of(self.loss.log_value(state.margin) - P)  # noqa: E731
        parts = torch.cat(vectors, dim=self.axis)
        along = Vector(parts, common + beside, self.norms(parts))
        least = state.log_opt.amin()
        return Gradient(along, self.norms, gap, common, beside, data.log_floor, least, state=state)

    def _scores(self, known: torch.Tensor) -> Scores:
        """From u's products with its rows: scores of the optimal tokens, then score gaps."""
        delta = torch.zeros_like(self.data.scores.delta)
        delta[self.data.place] = known[self.data.n :]
        return Scores(known[: self.data.n], delta)

    def norms(self, x: torch.Tensor) -> torch.Tensor:
        """(P,)"""
        pairs = zip(self.forms, self.parts(x), strict=True)
        return torch.stack([form.norm(part) for form, part in pairs])

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """Each part's factor over its rows or columns."""
        counts = torch.tensor(self.sizes, device=factors.device)
        factors = factors.repeat_interleave(counts, output_size=sum(self.sizes))
        return factors[:, None] if self.axis == 0 else factors

    def record(self, x: torch.Tensor, gradient: Gradient) -> dict[str, torch.Tensor]:
        """What the compiled loop records too: logs, and of each part `measure` and products."""
        state = gradient.state
        values = {
            "log_loss": log_mean_loss(state),
            "log_loss_gap": gradient.log_gap(),
            "log_grad_norm": torch.logsumexp(2 * gradient.log_norm, dim=0) / 2,
            "log_nonopt_score": log_mean_nonopt(state),
        }
        for name, form, part in zip(
            "uW"[-len(self.forms) :], self.forms, self.parts(x), strict=True
        ):
            values[f"{name}_measure"] = form.measure(part)
            values[f"{name}_products"] = form.gaps(part)
        return values

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W."""
        return self.forms[-1].gaps(self.parts(x)[-1])

    def matrix(self, x: torch.Tensor) -> torch.Tensor | Callable[[], torch.Tensor]:
        """W, or in "span" what makes it."""
        return self.forms[-1].matrix(self.parts(x)[-1])

    def decoder(self, x: torch.Tensor) -> torch.Tensor:
        """u."""
        u = self.forms[0].matrix(self.parts(x)[0])
        return u() if callable(u) else u
