"""The compiled training loops, one a coordinate system, over the formulas of `kernels`.

`rule` holds (log_scale, gap_power, norm_power, log_max_step, momentum, log(L* - loss floor),
whether `linear_weights` may be tried, log of the common factor of `floor`).
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit
from .kernels import (
    DIVERGED,
    RUNNING,
    SCALE,
    scale_of,
    see_softmax,
    step_factor,
    weights_of,
)
from .products import (
    advance,
    block_range,
    borrow,
    dot,
    move_dense,
    number_of_blocks,
    rows_combine,
    rows_dot,
    symmetric_product,
)
from .recording import (
    NORM2,
    measure_dense,
    measure_span,
    record_measure,
    record_progress,
    take_length,
)


@jit
def borrow_tokens(tokens):
    """`borrow` for (start, delta, log_delta, top, uniform, floor, D or K)."""
    start, delta, log_delta, top, uniform, floor, matrix = tokens[:7]
    rows = (borrow(start), borrow(delta), borrow(log_delta))
    return (*rows, borrow(top), borrow(uniform), borrow(floor), borrow(matrix))


@jit
def borrow_span(target, state):
    """`borrow` for target and state in span coordinates."""
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    target = (borrow(xi_alpha), borrow(xi_margin), borrow(scalars))
    pairs = (borrow(g), borrow(g_low), borrow(beta), borrow(beta_low))
    speeds = (borrow(speed_g), borrow(speed_beta))
    return target, (*pairs, *speeds, borrow(g0), borrow(progress))


@jit
def borrow_work(work):
    """`borrow` for the scratch arrays."""
    x, v, c, s, bits, powers = work
    return borrow(x), borrow(v), borrow(c), borrow(s), borrow(bits), borrow(powers)


@jit
def span_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """Run iterations `step` to `last` in span coordinates; one product K r each.

    The iterate is W = W_0 + sum_k beta_k z_k, seen through its gaps g = g_0 + K beta.
    tokens = (start, delta, log_delta, top, uniform, floor, K);
    target = (xi_alpha, xi_margin, scalars);
    state = (g, g_low, beta, beta_low, speed_g, speed_beta, g_0, progress);
    work = (q, v, c, s, bits, powers), s one stretch of n a quantity.
    records[wanted[t]] takes iteration t where wanted[t] >= 0.
    At `last` the gradient is taken and recorded, but no step follows.
    Returns (status, step reached).
    """
    tokens = borrow_tokens(tokens)
    start, top, K = tokens[0], tokens[3], tokens[6]
    target, state = borrow_span(target, state)
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, c, s, bits, powers = borrow_work(work)
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n = top.shape[0]
    while True:
        linear = weights_of(rule[6] != 0.0, kind, tokens, 0, n, g, s, v, c, bits, powers)
        Q, peak = scale_of(linear, rule, n, s, bits, powers)
        for i in range(n):
            for k in range(start[i], start[i + 1]):
                v[k] *= s[SCALE * n + i]
        symmetric_product(K, v, q, step % 2 == 1)
        norm2 = dot(v, q)
        see_softmax(progress, n, s)
        row = wanted[step]
        status, f = step_factor(
            kind, linear, rule, n, s, top, bits, powers, Q, peak, norm2, records, row
        )
        if status != RUNNING:
            return status, step
        if row >= 0:
            record_measure(records, row, NORM2, measure_span(g, beta, g0, target))
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if not take_length(progress, f * math.sqrt(norm2)):
            return DIVERGED, step
        advance(g, g_low, speed_g, rule[4], f, q, 0, g.shape[0])
        advance(beta, beta_low, speed_beta, rule[4], f, v, 0, g.shape[0])
        step += 1


@jit
def factored_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `span_loop`, without K: gaps move by D_i (M R)_i, with R_i = D_i' r_i and M = Z Z'.

    tokens = (start, delta, log_delta, top, uniform, floor, D, M). The gradient's norm is known
    before the second product, so a step, its softmax and the next R_i share one pass over D_i.
    """
    M = tokens[7]
    tokens = borrow_tokens(tokens)
    start, top, D = tokens[0], tokens[3], tokens[6]
    target, state = borrow_span(target, state)
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, c, s, bits, powers = borrow_work(work)
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n = top.shape[0]
    R = np.empty((n, D.shape[1]))
    MR = np.empty((n, D.shape[1]))
    blocks = number_of_blocks(n, D)
    f = 0.0
    moving = False
    linear = rule[6] != 0.0
    while True:
        held = True
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            if moving:
                for i in range(a, b):
                    rows_dot(D, start[i], start[i + 1], MR[i], q)
                lo, hi = start[a], start[b]
                advance(g, g_low, speed_g, rule[4], f, q, lo, hi)
                advance(beta, beta_low, speed_beta, rule[4], f, v, lo, hi)
            held &= weights_of(linear, kind, tokens, a, b, g, s, v, c, bits, powers)
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        moving = False
        if linear and not held:
            linear = False
            continue
        Q, peak = scale_of(linear, rule, n, s, bits, powers)
        for i in range(n):
            R[i] *= s[SCALE * n + i]
            for k in range(start[i], start[i + 1]):
                v[k] *= s[SCALE * n + i]
        np.dot(M, R, MR)
        norm2 = dot(R.ravel(), MR.ravel())
        see_softmax(progress, n, s)
        row = wanted[step]
        status, f = step_factor(
            kind, linear, rule, n, s, top, bits, powers, Q, peak, norm2, records, row
        )
        if status != RUNNING:
            return status, step
        if row >= 0:
            record_measure(records, row, NORM2, measure_span(g, beta, g0, target))
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if not take_length(progress, f * math.sqrt(norm2)):
            return DIVERGED, step
        moving = True
        linear = rule[6] != 0.0
        step += 1


@jit
def dense_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `span_loop`, on the d x d matrix W itself: gaps are computed afresh each iteration.

    tokens = (start, delta, log_delta, top, uniform, floor, D, Z); target = (unit W_mm,);
    state = (W, speed, progress).
    """
    Z = tokens[7]
    tokens = borrow_tokens(tokens)
    start, top, D = tokens[0], tokens[3], tokens[6]
    (unit,) = target
    W, speed, progress = state
    g, v, c, s, bits, powers = borrow_work(work)
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n, d = Z.shape
    Y = np.empty((n, d))
    R = np.empty((n, d))
    G = np.empty((d, d))
    blocks = number_of_blocks(n, D)
    linear = rule[6] != 0.0
    while True:
        np.dot(Z, W.T, Y)
        held = True
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            for i in range(a, b):
                rows_dot(D, start[i], start[i + 1], Y[i], g)
            held &= weights_of(linear, kind, tokens, a, b, g, s, v, c, bits, powers)
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        if linear and not held:
            linear = False
            continue
        Q, peak = scale_of(linear, rule, n, s, bits, powers)
        for i in range(n):
            R[i] *= s[SCALE * n + i]
        np.dot(R.T, Z, G)
        norm2 = dot(G.ravel(), G.ravel())
        see_softmax(progress, n, s)
        row = wanted[step]
        status, f = step_factor(
            kind, linear, rule, n, s, top, bits, powers, Q, peak, norm2, records, row
        )
        if status != RUNNING:
            return status, step
        if row >= 0:
            record_measure(records, row, NORM2, measure_dense(W.ravel(), unit.ravel()))
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if not take_length(progress, f * math.sqrt(norm2)):
            return DIVERGED, step
        move_dense(W, speed, rule[4], f, G)
        linear = rule[6] != 0.0
        step += 1
