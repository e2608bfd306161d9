"""One iterate of joint training in logs, compiled: both gradients' weights, both step sizes.

The decoder acts through r = (top, delta): the optimal tokens' scores y_i u'x_{i,opt}, and the
score gaps, of either sign, in the order of the gap rows. With Q the largest log(-l'),

    -grad_u L = exp(Q) sum_j w_j b_j,        b_i = y_i x_{i,opt},  b_k = y_i (x_opt - x_tau)
    -grad_W L = exp(Q + H) sum_k v_k z_k.

Both run to exp(-5000) and beyond, H to minus the logit gaps; w and v stay moderate, and every
step size is a difference of logs taken before their large parts could cancel.
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit
from .elementary import log_slope, log_value
from .kernels import (
    BASE,
    DIVERGED,
    LOST,
    LOW,
    ONE,
    OPT,
    REST,
    RUNNING,
    S_,
    SCALE,
    SUM,
    TINY,
    WORK,
    ZERO_GRADIENT,
    exponentials,
    log_complement,
    log_mean,
    log_mean_nonopt,
    log_scale,
    power_law_rest,
    signed_weights,
    softmax_of,
    sums,
)
from .recording import (
    LOG_GAP,
    LOG_LOSS,
    LOG_NONOPT,
    LOG_NORM,
    LOG_STEP,
    LOG_U_STEP,
    RECORDS,
)

SLOPE = LOST  # a sequence's log(-l'); its loss gap is the loss itself, because L* = 0
SEPARATE, U_DECAY, W_DECAY = range(6, 9)  # in `rule`, after those of a fixed decoder


@jit
def joint_weights(kind, start, r, g, s, v, c, w, bits, powers):
    """Fill s, the weights w of -grad_u, and v of -grad_W; returns (Q, H)."""
    n = start.shape[0] - 1
    top, delta = r[:n], r[n:]
    exponentials(n, 0, n, start, g, s, v, bits, powers)
    Q = -np.inf
    for i in range(n):
        lo, hi = start[i], start[i + 1]
        E, ED = sums(lo, hi, v, delta)
        low = s[LOW * n + i]
        opt, best, base = softmax_of(low, s[TINY * n + i], E)
        for k in range(lo, hi):
            w[n + k] = best * v[k]
        slope = log_slope(kind, top[i] - best * ED)
        Q = max(Q, slope)
        s[BASE * n + i] = base
        s[OPT * n + i] = opt
        s[SUM * n + i] = E
        s[S_ * n + i] = best * ED
        s[SLOPE * n + i] = slope
        s[REST * n + i] = signed_weights(lo, hi, g, delta, v, c, low, base, opt, best, best * ED)
    for i in range(n):
        s[REST * n + i] += s[SLOPE * n + i] - Q
        w[i] = math.exp(s[SLOPE * n + i] - Q) / n
        for k in range(start[i], start[i + 1]):
            w[n + k] *= -w[i]
    return Q, scale_matrix_weights(n, start, s, v, bits, powers)


@jit
def scale_matrix_weights(n, start, s, v, bits, powers):
    """Bring v to one scale over sequences; returns its log H, 0 where all v vanish."""
    largest = -np.inf
    for i in range(n):
        largest = max(largest, s[REST * n + i])
    if largest == -np.inf:  # tied scores: attention is worth nothing
        return 0.0
    base, peak = log_scale(n, s, bits, powers)
    for i in range(n):
        for k in range(start[i], start[i + 1]):
            v[k] *= s[SCALE * n + i]
    return base + peak


@jit
def log_hypot(a, b):
    """log of the root of exp(2 a) + exp(2 b)."""
    top = max(a, b)
    if not np.isfinite(top):
        return top
    return top + 0.5 * math.log(math.exp(2 * (a - top)) + math.exp(2 * (b - top)))


@jit
def half_log(norm2):
    """log of the root, -inf for 0 and for what rounding left below it."""
    return 0.5 * math.log(norm2) if norm2 > 0.0 else -np.inf


@jit
def step_factor_of(rest, size):
    """exp(rest), which may be infinite; a gradient of zero moves nothing all the same."""
    return math.exp(rest) if size > -np.inf else 0.0


@jit
def joint_step_rests(rule, step, gap_rest, size_u, size_W, Q, H):
    """log eta_u + Q and log eta_W + Q + H: the factors of the scaled gradients, capped.

    size_u = log|grad_u| - Q, size_W = log|grad_W| - Q - H. A gradient of zero that is to be
    divided by its own norm gives no step: 0/0 = 0.
    """
    later = math.log(step + 1.0)
    if rule[SEPARATE] != 0.0:
        u = -np.inf if size_u == -np.inf else power_law_rest(rule, gap_rest, size_u, Q)
        W = -np.inf if size_W == -np.inf else power_law_rest(rule, gap_rest, size_W, Q + H)
    else:
        u = power_law_rest(rule, gap_rest, log_hypot(size_u, size_W + H), Q)
        W = u + H
    u, W = u - rule[U_DECAY] * later, W - rule[W_DECAY] * later
    return min(u, rule[3] + Q), min(W, rule[3] + Q + H)


@jit
def log_loss_rest(kind, n, s, r, bits, powers, Q):
    """log L - Q, after `joint_weights`."""
    for i in range(n):
        s[WORK * n + i] = log_value(kind, r[i] - s[S_ * n + i]) - Q
    return log_mean(n, s, ONE, bits, powers)


@jit
def joint_factors(kind, rule, step, s, r, bits, powers, Q, H, norm2_u, norm2_W, records, row, n):
    """Factors of both scaled gradients in the next step, and the record of the logs.

    norm2_u and norm2_W are squared norms of the scaled gradients; row < 0 records nothing.
    Returns (status, factor of w, factor of v).
    """
    if not (np.isfinite(norm2_u) and np.isfinite(norm2_W) and np.isfinite(Q)):
        return DIVERGED, 0.0, 0.0
    size_u, size_W = half_log(norm2_u), half_log(norm2_W)
    if size_u == -np.inf and size_W == -np.inf:
        return ZERO_GRADIENT, 0.0, 0.0
    gap_rest = 0.0
    if row >= 0 or rule[1] != 0.0:
        gap_rest = log_loss_rest(kind, n, s, r, bits, powers, Q)
    u, W = joint_step_rests(rule, step, gap_rest, size_u, size_W, Q, H)
    if row >= 0:
        records[row, LOG_LOSS] = gap_rest + Q
        records[row, LOG_GAP] = gap_rest + Q
        records[row, LOG_NONOPT] = log_complement(n, s, log_mean_nonopt(n, s, bits, powers, 0.0))
        records[row, LOG_NORM] = log_hypot(size_u, size_W + H) + Q
        # not u - Q: what the rule itself gives keeps its digits however large Q is
        eta_u, eta_W = joint_step_rests(
            rule, step, gap_rest + Q, size_u + Q, size_W + Q + H, 0.0, 0.0
        )
        records[row, LOG_STEP] = eta_W
        records[row, RECORDS + r.shape[0] - n + LOG_U_STEP] = eta_u
    return RUNNING, step_factor_of(u, size_u), step_factor_of(W, size_W)
