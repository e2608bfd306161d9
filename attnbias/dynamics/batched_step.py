"""One iteration of many runs at once, in span coordinates: tensor functions, no host reads.

S data sets times R runs advance together. Rows stand in padded form, N = n (T - 1) a run, so
that (S, R, N) is (S, R, n, T - 1) without a copy; padding rows of the Gram matrices are zero.
Rows are the last axis: it is contiguous in the elementwise work, and the product is for cuBLAS
one of an N x N matrix by an N x R one. What a host loop would decide by `if` is decided by
masks, so that the functions can be compiled and captured.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from .batched_softmax import Fixed, Softmax, log_mean, log_value, loss_gap, softmax_of
from .recording import DIVERGED, LONGEST_STEP, RUNNING, ZERO_GRADIENT


class State(NamedTuple):
    """What an iteration changes, in place: (S, R, N), then (S, R), then the records.

    Without momentum the speeds are empty. `cursor` is the place in `order`.
    """

    g: torch.Tensor
    g_low: torch.Tensor
    beta: torch.Tensor
    beta_low: torch.Tensor
    speed_g: torch.Tensor
    speed_beta: torch.Tensor
    path: torch.Tensor
    path_low: torch.Tensor
    longest: torch.Tensor
    least: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor
    records: torch.Tensor
    cursor: torch.Tensor


class Seen(NamedTuple):
    """What the gradient of an iterate says: -grad L = exp(Q + peak) sum_k weights_k z_k.

    product : K weights. norm2 : their inner product. gap : log(L - L*) - Q, or None.
    """

    softmax: Softmax
    Q: torch.Tensor
    peak: torch.Tensor
    weights: torch.Tensor
    product: torch.Tensor
    norm2: torch.Tensor
    gap: torch.Tensor | None


def look(fixed: Fixed, state: State) -> Seen:
    """The gradient of every iterate; stops runs whose gradient is zero or not finite."""
    n, m = fixed.delta.shape[-2:]
    softmax = softmax_of(state.g.unflatten(-1, (n, m)), fixed)
    Q = softmax.log_best.amax(-1)
    scale = softmax.log_best - Q[..., None] + softmax.rest
    peak = scale.amax(-1)
    shift = peak.masked_fill(peak == -torch.inf, 0.0)  # all weights are zero there
    weights = softmax.v * ((scale - shift[..., None]).exp() / n)[..., None]
    weights = weights.flatten(-2)
    product = torch.bmm(weights, fixed.gram)
    norm2 = (weights * product).sum(-1)
    gap = loss_gap(fixed, softmax, Q) if fixed.needs_gap else None
    finite = torch.isfinite(norm2) & torch.isfinite(Q)
    running = state.status == RUNNING
    ended = state.status.masked_fill(running & ~finite, DIVERGED)
    state.status.copy_(ended.masked_fill(running & finite & (norm2 <= 0), ZERO_GRADIENT))
    least = torch.minimum(state.least, softmax.opt.amin(-1))
    state.least.copy_(torch.where(running, least, state.least))
    return Seen(softmax, Q, peak, weights, product, norm2, gap)


def log_step(fixed: Fixed, gap, norm, Q):
    """log eta_t + Q, from logs relative to Q: of L - L* (None: not asked for) and the norm."""
    value = fixed.log_scale + (1.0 + fixed.gap_power + fixed.norm_power) * Q
    if gap is not None:
        power = fixed.gap_power * torch.logaddexp(gap, fixed.log_floor_gap - Q)
        value = value + power.masked_fill(fixed.gap_power == 0, 0.0)
    value = value + (fixed.norm_power * norm).masked_fill(fixed.norm_power == 0, 0.0)
    return torch.minimum(value, fixed.log_max_step + Q)


def move(fixed: Fixed, state: State, seen: Seen) -> None:
    """The step of every run that goes on; stops those whose step is too long for floats."""
    norm = seen.peak + 0.5 * seen.norm2.log()
    f = (log_step(fixed, seen.gap, norm, seen.Q) + seen.peak).exp()
    length = f * seen.norm2.sqrt()
    running, fits = state.status == RUNNING, length <= LONGEST_STEP  # NaN does not
    go = running & fits
    state.status.masked_fill_(running & ~fits, DIVERGED)
    _add(state.path, state.path_low, length, go)
    state.longest.copy_(torch.where(go, torch.maximum(state.longest, length), state.longest))
    state.steps.add_(go)
    f, go = f[..., None], go[..., None]
    momentum = fixed.momentum[..., None] if fixed.has_momentum else None
    _advance(state.g, state.g_low, state.speed_g, momentum, f * seen.product, go)
    _advance(state.beta, state.beta_low, state.speed_beta, momentum, f * seen.weights, go)


def _advance(total, low, speed, momentum, step, go) -> None:
    """speed <- momentum speed + step, total <- total + speed, where `go`."""
    if momentum is not None:
        step = momentum * speed + step
        speed.copy_(torch.where(go, step, speed))
    _add(total, low, step, go)


def _add(total, low, step, go) -> None:
    """total += step where `go`, with the rounding of each sum kept in low (two-sum)."""
    y = step + low
    new = total + y
    part = new - total
    rounding = (total - (new - part)) + (y - part)
    low.copy_(torch.where(go, rounding, low))
    total.copy_(torch.where(go, new, total))


def record(fixed: Fixed, state: State, seen: Seen) -> None:
    """Fill the record row that is next in order, for the runs that go on."""
    softmax, Q = seen.softmax, seen.Q
    gap = (loss_gap(fixed, softmax, Q) if seen.gap is None else seen.gap) + Q
    norm = seen.peak + 0.5 * seen.norm2.log() + Q
    nonopt = log_mean(softmax.log_best - Q[..., None] + softmax.E.log()) + Q
    complement = torch.log1p(-softmax.opt.mean(-1))  # from the smaller of the two sides
    loss = log_mean(log_value(fixed, fixed.top - softmax.S))
    columns = [loss, gap, norm, log_step(fixed, gap, norm, torch.zeros_like(Q))]
    columns += [torch.where(nonopt < -0.7, nonopt, complement), *measure(fixed, state)]
    values = torch.stack([*columns, state.path, state.longest, state.least], -1)
    row = fixed.order.index_select(0, state.cursor)
    running = (state.status == RUNNING)[..., None]
    values = torch.where(running, values, state.records.index_select(0, row).squeeze(0))
    state.records.index_copy_(0, row, values[None])
    state.cursor.add_(1)


def measure(fixed: Fixed, state: State):
    """|W|^2, <W, unit W_mm> and the squared norm of the rest, as `recording.measure_span`."""
    norm2_0, along_0, across2_0 = fixed.scalars.unbind(0)
    norm2 = norm2_0 + (state.beta * (state.g + fixed.start)).sum(-1)
    along = (fixed.target * state.g).sum(-1)
    moved = (along - along_0)[..., None] * fixed.target
    rest = state.g - along[..., None] * fixed.margins
    rest = rest + (fixed.start - along_0[..., None] * fixed.margins)
    return norm2, along, across2_0 + ((state.beta - moved) * rest).sum(-1)


def plain_iteration(fixed: Fixed, state: State) -> None:
    """One iteration."""
    move(fixed, state, look(fixed, state))


def recorded_iteration(fixed: Fixed, state: State) -> None:
    """One iteration that fills a record row."""
    seen = look(fixed, state)
    record(fixed, state, seen)
    move(fixed, state, seen)


def plain_look(fixed: Fixed, state: State) -> None:
    """The gradient at the last iterate, with no step."""
    look(fixed, state)


def recorded_look(fixed: Fixed, state: State) -> None:
    """The gradient at the last iterate and its record row, with no step."""
    record(fixed, state, look(fixed, state))
