"""The softmax of many runs at once in the log domain, as tensor functions without a host read.

The formulas of `kernels`, in one form for all scores, since a GPU gains nothing from the
shorter ones: no branch on a value, so that the functions can be compiled and captured.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..losses import EXPONENTIAL, LOGISTIC


class Fixed(NamedTuple):
    """What an iteration reads. The flags are known when it is compiled.

    gram : (S, N, N).
    valid, delta : (S, 1, n, m), m = T - 1; delta is 0 at padding. top : (S, 1, n).
    start, target, margins : (S, R, N): gaps of W_0, unit W_mm by coefficients and by gaps.
    scalars : (3, S, R), see `Parameter.start_scalars`.
    log_scale to log_floor_gap : (S, R), the rules.
    logistic : (S, R, 1) which runs have the logistic loss.
    order : (count of recorded iterations,) rows of the records, in turn.
    exponential_runs, logistic_runs : whether there are any.
    needs_gap : whether some rule asks for L - L*. has_momentum : whether some rule has it.
    """

    gram: torch.Tensor
    valid: torch.Tensor
    delta: torch.Tensor
    top: torch.Tensor
    start: torch.Tensor
    target: torch.Tensor
    margins: torch.Tensor
    scalars: torch.Tensor
    log_scale: torch.Tensor
    gap_power: torch.Tensor
    norm_power: torch.Tensor
    log_max_step: torch.Tensor
    momentum: torch.Tensor
    log_floor_gap: torch.Tensor
    logistic: torch.Tensor
    order: torch.Tensor
    exponential_runs: bool
    logistic_runs: bool
    needs_gap: bool
    has_momentum: bool


class Softmax(NamedTuple):
    """The softmax of every sequence, (S, R, n), and the weights of its rows.

    log_best : log of the softmax of the best non-optimal token, which runs to -infinity.
    opt : softmax of the optimal token.
    rest, v : the weights of the rows are exp(log_best + rest) v, |v| <= 1.
    E, ED : 1 - softmax(opt) and the lost score S, over exp(log_best). S : itself.
    """

    log_best: torch.Tensor
    opt: torch.Tensor
    rest: torch.Tensor
    v: torch.Tensor
    E: torch.Tensor
    ED: torch.Tensor
    S: torch.Tensor


def softmax_of(g, fixed: Fixed) -> Softmax:
    """Softmax and weights of the rows from gaps (S, R, n, m), exact however far they run.

    A row's weight is softmax_k c_k, c_k = sum_s softmax_s (score_s - score_k), all tokens s.
    Scores are taken relative to the strongest token's: rows that share its score have in c_k
    no term of it, and are scaled by the strongest token of another score (gap h); the others
    have the leading term Z (score - score_k), against which nothing cancels.
    """
    gaps = g.masked_fill(~fixed.valid, torch.inf)
    low = gaps.amin(-1)
    best = (low[..., None] - gaps).exp()
    E, ED = best.sum(-1), (best * fixed.delta).sum(-1)
    first = low.clamp(max=0.0)  # gap of the strongest token, the optimal one included
    share, at_opt = (first - low).exp(), first.exp()
    Z = at_opt + share * E
    log_first = -Z.log()
    level = fixed.delta.masked_fill(best != 1.0, -torch.inf).amax(-1).masked_fill(low >= 0, 0.0)
    relative = fixed.delta - level[..., None]
    other = fixed.valid & (relative != 0)
    opt_differs = level != 0
    h = gaps.masked_fill(~other, torch.inf).amin(-1)
    h = torch.where(opt_differs, h.clamp(max=0.0), h)
    f = (h[..., None] - gaps).exp().masked_fill(~other, 0.0)
    minor = (f * relative).sum(-1) - (h.exp() * level).masked_fill(~opt_differs, 0.0)
    major = share * (best * relative).sum(-1) - at_opt * level
    alike = -(share * minor)[..., None] * best
    v = torch.where(other, f * (Z[..., None] * relative - major[..., None]), alike)
    size = v.abs().amax(-1)
    v = (v / size[..., None]).masked_fill((size == 0)[..., None], 0.0)
    S = share / Z * ED
    rest = log_first + (low - h) + size.log() + log_slope(fixed, fixed.top - S)
    return Softmax(log_first + (first - low), at_opt / Z, rest, v, E, ED, S)


def _of_loss(fixed: Fixed, exponential, logistic):
    """Whichever loss each run has, from functions of nothing; only losses that occur run."""
    if not fixed.logistic_runs:
        return exponential()
    if not fixed.exponential_runs:
        return logistic()
    return torch.where(fixed.logistic, logistic(), exponential())


def log_slope(fixed: Fixed, z):
    """log(-l'(z))."""
    return _of_loss(fixed, lambda: EXPONENTIAL.log_slope(z), lambda: LOGISTIC.log_slope(z))


def log_value(fixed: Fixed, z):
    """log l(z)."""
    return _of_loss(fixed, lambda: EXPONENTIAL.log_value(z), lambda: LOGISTIC.log_value(z))


def log_mean_slope(fixed: Fixed, S):
    """log of (l(top - S) - l(top)) / S, as in `elementary`."""
    top = fixed.top
    relative = torch.where(S < 1e-8, S / 2, S + (-torch.expm1(-S) / S).log())
    return _of_loss(fixed, lambda: relative - top, lambda: _logistic_mean_slope(relative, top, S))


def _logistic_mean_slope(relative, top, S):
    rest = relative + LOGISTIC.log_slope(top)  # the gap is log(1 + x), log x = rest + log S
    log_x = rest + S.log()
    x = log_x.clamp(max=30.0).exp()
    middle = torch.where(x < 1e-8, rest - x / 2, rest + (torch.log1p(x) / x).log())
    return torch.where(log_x > 30.0, (log_x / S).log(), middle)


def log_mean(logs):
    """log of the mean of exponentials over the last axis."""
    shift = logs.amax(-1)
    return shift + (logs - shift[..., None]).exp().mean(-1).log()


def loss_gap(fixed: Fixed, softmax: Softmax, Q):
    """log(L - L*) - Q."""
    slope = softmax.log_best - Q[..., None] + log_mean_slope(fixed, softmax.S)
    return log_mean(slope + softmax.ED.log())
