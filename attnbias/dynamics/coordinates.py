"""The linear head as a problem of the torch loop: W alone, or W and the decoder u.

Every iterate of GD, NGD, momentum and Polyak steps is W_t = W_0 + sum_k beta_k z_k. `Dense`
keeps the d x d matrix, `Span` the N' gaps and coefficients; both run on the data's device, and the
compiled loop is checked against them.
"""

from __future__ import annotations

import torch

from ..rules import Descent, Gradient, Vector
from .loop import Iteration
from .problem import LEAST_SQUARE, LIFT, JointProblem, Parameter, Problem, moved_by
from .recording import LOG_U_STEP, PATH, PATH_SUM, RECORDS, U_PATH, U_RECORDS
from .softmax import Scores, log_mean_loss, log_mean_nonopt, log_mean_of, relative, softmax_state


class Dense:
    """W itself, or u as one row: 4 n d^2 operations an iteration."""

    axis = 0  # along which W and u stand together

    def __init__(self, parameter: Parameter):
        self.parameter = parameter
        self.start = torch.atleast_2d(parameter.start)

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
        self.parameter, self.gram = parameter, parameter.scaled.rows.gram()
        self.start = torch.stack([parameter.initial_gaps, torch.zeros_like(parameter.initial_gaps)])

    def gaps(self, x: torch.Tensor) -> torch.Tensor:
        """(N',) logit gaps of W, or the scores of u."""
        return x[0] * self.parameter.scaled.size

    def vector(self, weights: torch.Tensor) -> torch.Tensor:
        """sum_k weights_k z_k, by its gaps and its coefficients."""
        return torch.stack([self.gram @ weights, weights])

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Of a vector."""
        return (x[0] @ x[1]).clamp(min=0.0).sqrt()

    def measure(self, x: torch.Tensor) -> torch.Tensor:
        """(4,): as `Parameter.measure`, with no product."""
        part = self.parameter
        held = (part.initial_gaps, *part.target_span, part.start_scalars)
        return torch.stack(measure_span(x, *held))

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """W or u."""
        return moved_by(self.parameter.start, self.parameter.scaled.rows, x[1])


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

    def __init__(self, data: Problem | JointProblem, coordinates: str = "dense"):
        self.data, self.coordinates, self.loss = data, coordinates, data.loss
        self.identity, self.place = data.identity, (data.matrix.rows.sequence, data.column)
        joint = isinstance(data, JointProblem)
        parts = [data.u, data.W] if joint else [data]
        self.shape = (data.n, int(data.column.max()) + 1) if joint else data.scores.delta.shape
        self.forms = [(Dense if coordinates == "dense" else Span)(part) for part in parts]
        starts = [form.start for form in self.forms]
        self.axis = self.forms[0].axis
        self.sizes = [start.shape[self.axis] for start in starts]
        self.start = torch.cat(starts, dim=self.axis)

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """That of u, if it is trained, and that of W."""
        return x.split(self.sizes, dim=self.axis)

    def gradient(self, x: torch.Tensor) -> Gradient:
        """From the softmax in the log domain."""
        data, (*u, W), (*in_u, in_W) = self.data, self.parts(x), self.forms
        known = in_u[0].gaps(*u) if u else None
        scores = data.scores if known is None else self._scores(known)
        gaps = W.new_full(self.shape, torch.inf)
        gaps[self.place] = in_W.gaps(W)
        state = softmax_state(gaps, scores, self.loss)
        P = 0.0 if known is None else state.log_slope.amax()
        weights, Q, H = state.gradient(P, data.matrix.scaled.log_size)
        vectors = [in_W.vector(weights[self.place] / data.n)]
        if known is None:
            common, beside, gap = Q, H[None], lambda: state.log_gap(Q)
        else:  # L* = 0
            # -grad_u L is the mean of exp(log_slope) y (x_opt - sum softmax (x_opt - x))
            log_slope = state.log_slope - P + data.u.scaled.log_size
            slope, H_u = relative(torch.ones_like(scores.top), log_slope)
            others = (slope[:, None] * state.log_others.exp())[self.place]
            vectors.insert(0, in_u[0].vector(torch.cat([slope, -others]) / data.n))
            common, beside = P, torch.stack([H_u, Q + H])
            gap = lambda: log_mean_of(self.loss.log_value(state.margin) - P)  # noqa: E731
        parts = torch.cat(vectors, dim=self.axis)
        along = Vector(parts, common + beside, self.norms(parts))
        held = {"gap": gap, "common": common, "beside": beside, "log_floor": data.log_floor}
        return Gradient(along, self.norms, **held, least=state.log_opt.amin(), state=state)

    def _scores(self, known: torch.Tensor) -> Scores:
        """From u's products with its rows: scores of the optimal tokens, then score gaps."""
        delta = known.new_zeros(self.shape)
        delta[self.place] = known[self.data.n :]
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


class TorchEngine(Iteration):
    """W, alone or with u, in torch, with the records that the compiled loops fill."""

    def __init__(self, problem, rule: Descent, coordinates: str, recorded, records):
        super().__init__(LinearHead(problem, coordinates), rule, recorded, records)

    def _record(self, row: int, gradient: Gradient, log_size: torch.Tensor) -> None:
        head, state, line = self.problem, gradient.state, self.records[row]
        form, W = head.forms[-1], head.parts(self.x)[-1]
        whole = torch.logsumexp(2 * gradient.log_norm, dim=0) / 2
        scalars = [log_mean_loss(state), gradient.log_gap(), whole, log_size[-1]]
        scalars += [log_mean_nonopt(state), *form.measure(W)]
        line[:PATH] = torch.stack(scalars).cpu().numpy()
        path, _, longest, _ = self.progress[-1]
        line[PATH:RECORDS] = path, longest, float(self.least.exp())
        first = RECORDS + head.data.N
        line[RECORDS:first] = form.gaps(W).cpu().numpy()
        if len(head.forms) > 1:
            form, u = head.forms[0], head.parts(self.x)[0]
            line[first : first + U_PATH] = form.measure(u).cpu().numpy()
            line[first + U_PATH] = self.progress[0][PATH_SUM]
            line[first + LOG_U_STEP] = float(log_size[0])
            line[first + U_RECORDS :] = form.gaps(u).cpu().numpy()

    def gaps(self) -> torch.Tensor:
        """(N',) logit gaps of W."""
        head = self.problem
        return head.forms[-1].gaps(head.parts(self.x)[-1]).cpu()

    def matrix(self) -> torch.Tensor:
        """W."""
        return self.problem.forms[-1].matrix(self.problem.parts(self.x)[-1])

    def decoder(self) -> torch.Tensor:
        """u."""
        return self.problem.forms[0].matrix(self.problem.parts(self.x)[0])
