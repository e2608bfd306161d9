"""One iteration of many runs at once, in span coordinates: tensor functions, no host reads.

S data sets times R runs. Rows stand in padded form, N = n (T - 1) a run, so that (S, R, N) is
(S, R, n, T - 1) without a copy; padding rows of the Gram matrices are zero. What a host loop
would decide by `if` is decided by masks, so that an iteration can be compiled and captured in a
CUDA graph.
"""

from __future__ import annotations

from collections import namedtuple

import torch

from ...losses import EXPONENTIAL, FADES, LOGISTIC
from .. import softmax
from ..coordinates import measure_span
from ..progress import DIVERGED, LONGEST_STEP, RUNNING, ZERO_GRADIENT

# the numbers of a record, in order
MEASURE = ("norm2", "along", "across2", "lifted")
RECORDED: tuple[str, ...] = (
    "log_loss",
    "log_loss_gap",
    "log_grad_norm",
    "log_step_size",
    "log_nonopt_score",
)
RECORDED += (*MEASURE, "path_length", "longest_step", "least_opt_score")


class Fixed(
    namedtuple(
        "Fixed",
        "gram valid delta top size log_size start target margins scalars law order loss",
    )
):
    """What an iteration reads.

    gram (S, N, N) of the scaled rows; valid, delta (S, 1, n, m); top (S, 1, n); size (S, 1, N),
    the rows' units, and log_size (S, 1, n); start, and unit W_mm by its coefficients and its gaps
    of the scaled rows (S, R, N); `Parameter.start_scalars` (2, 3, S, R); the numbers of each
    rule (6, S, R), in the order of `power_law` with the momentum last; rows of the records in turn.
    """


class State(
    namedtuple(
        "State",
        "g g_low beta beta_low speed_g speed_beta path path_low longest least status steps "
        "records cursor",
    )
):
    """What an iteration changes, in place: (S, R, N), then (S, R), records and place in `order`."""


class Seen(namedtuple("Seen", "at Q H weights product norm2 finite")):
    """-grad L = exp(Q + H) sum_k weights_k z_k at the state `at` of the softmax.

    product is K weights, norm2 their inner product; finite : of runs that are not stopped before.
    """


class Mixed:
    """The exponential or the logistic loss, by a mask of the runs (S, R, 1)."""

    log_slope_below = None  # the slope of neither vanishes

    def __init__(self, logistic: torch.Tensor):
        self.logistic = logistic

    def log_value(self, z):
        """log l(z)."""
        return torch.where(self.logistic, LOGISTIC.log_value(z), EXPONENTIAL.log_value(z))

    def log_slope(self, z):
        """log(-l'(z))."""
        return torch.where(self.logistic, LOGISTIC.log_slope(z), EXPONENTIAL.log_slope(z))

    def fade(self, z, log_S):
        """log of the mean slope from z - S to z over that at z - S."""
        return torch.where(
            self.logistic, *(FADES[name](z, log_S) for name in ("logistic", "exponential"))
        )


def evaluate(fixed: Fixed, state: State) -> Seen:
    """The gradient of every iterate; stops runs whose gradient is zero or not finite."""
    n, m = fixed.delta.shape[-2:]
    gaps = (state.g * fixed.size).unflatten(-1, (n, m)).masked_fill(~fixed.valid, torch.inf)
    at = softmax.softmax_state(gaps, softmax.Scores(fixed.top, fixed.delta), fixed.loss)
    weights, Q, H = at.gradient(log_size=fixed.log_size)
    weights = weights.flatten(-2) / n
    product = torch.bmm(weights, fixed.gram)
    norm2 = (weights * product).sum(-1)
    finite, running = torch.isfinite(norm2), state.status == RUNNING
    ended = state.status.masked_fill(running & ~finite, DIVERGED)
    state.status.copy_(ended.masked_fill(running & finite & (norm2 <= 0), ZERO_GRADIENT))
    least = torch.minimum(state.least, at.log_opt.amin(-1).exp())
    state.least.copy_(torch.where(running, least, state.least))
    return Seen(at, Q, H, weights, product, norm2, running & finite)


def power_law(fixed: Fixed, gap, norm, Q):
    """log eta_t + Q, capped, from the logs of L - L* and the gradient's norm less Q.

    A power of zero must not meet an infinite logarithm.
    """
    log_scale, gap_power, norm_power, log_max_step, log_floor_gap, _ = fixed.law.unbind(0)
    gap = gap_power * torch.logaddexp(gap, log_floor_gap - Q)
    value = log_scale + gap.masked_fill(gap_power == 0, 0.0)
    value = value + (norm_power * norm).masked_fill(norm_power == 0, 0.0)
    return torch.minimum(value + (1 + gap_power + norm_power) * Q, log_max_step + Q)


def move(fixed: Fixed, state: State, seen: Seen, gap: torch.Tensor) -> None:
    """The step of every run that goes on; stops those whose step is too long for floats."""
    f = power_law(fixed, gap - seen.H, 0.5 * seen.norm2.log(), seen.Q + seen.H).exp()
    length = f * seen.norm2.sqrt()
    running, fits = state.status == RUNNING, length <= LONGEST_STEP  # NaN does not
    go = running & fits
    state.status.masked_fill_(running & ~fits, DIVERGED)
    _add(state.path, state.path_low, length, go)
    state.longest.copy_(torch.where(go, torch.maximum(state.longest, length), state.longest))
    state.steps.add_(go)
    f, go, momentum = f[..., None], go[..., None], fixed.law[-1][..., None]
    for total, low, speed, step in (
        (state.g, state.g_low, state.speed_g, f * seen.product),
        (state.beta, state.beta_low, state.speed_beta, f * seen.weights),
    ):
        speed.copy_(torch.where(go, momentum * speed + step, speed))
        _add(total, low, speed, go)


def _add(total, low, step, go) -> None:
    """total += step where `go`, with the rounding of each sum kept in low (two-sum)."""
    y = step + low
    new = total + y
    part = new - total
    rounding = (total - (new - part)) + (y - part)
    low.copy_(torch.where(go, rounding, low))
    total.copy_(torch.where(go, new, total))


def record(fixed: Fixed, state: State, seen: Seen, gap: torch.Tensor) -> None:
    """Fill the record row that is next in order, for the runs that are not stopped before."""
    gap, norm = gap + seen.Q, seen.Q + seen.H + 0.5 * seen.norm2.log()
    step = power_law(fixed, gap, norm, torch.zeros_like(gap))
    step = step.masked_fill(norm == -torch.inf, -torch.inf)  # there is no step
    columns = [softmax.log_mean_loss(seen.at), gap, norm, step, softmax.log_mean_nonopt(seen.at)]
    target = (fixed.start, fixed.target, fixed.margins, fixed.scalars)
    columns += [*measure_span((state.g, state.beta), *target)]
    columns += [state.path, state.longest, state.least]
    row = fixed.order.index_select(0, state.cursor)
    running = seen.finite[..., None]
    old = state.records.index_select(0, row).squeeze(0)
    values = torch.where(running, torch.stack(columns, -1), old)
    state.records.index_copy_(0, row, values[None])
    state.cursor.add_(1)


def iteration(fixed: Fixed, state: State, recorded: bool, step: bool) -> None:
    """The gradient of every run, if asked its record, and if asked a step."""
    seen = evaluate(fixed, state)
    gap = seen.at.log_gap(seen.Q)
    if recorded:
        record(fixed, state, seen, gap)
    if step:
        move(fixed, state, seen, gap)
