"""The compiled loops of joint training: W and u move together, in span or in dense form.

`rule` holds what `power_law_rest` reads, then (whether each gradient has its own norm, p, q).
`records[wanted[t]]` takes iteration t where wanted[t] >= 0. At `last` both gradients are taken
and recorded, but no step follows. Both loops return (status, step reached).
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit
from .joint_kernels import joint_factors, joint_weights
from .kernels import DIVERGED, RUNNING, see_softmax
from .products import (
    add_compensated,
    borrow,
    dot,
    move_dense,
    rows_combine,
    rows_dot,
    symmetric_product,
)
from .recording import (
    NORM2,
    RECORDS,
    U_NORM2,
    measure_dense,
    measure_span,
    record_decoder,
    record_measure,
    record_progress,
    take_length,
)


@jit
def borrow_six(arrays):
    """`borrow` for six arrays."""
    a, b, c, d, e, f = arrays
    return borrow(a), borrow(b), borrow(c), borrow(d), borrow(e), borrow(f)


@jit
def take(progress, f, norm2):
    """`take_length` of the step f times a vector, whose square rounding may leave below 0."""
    return take_length(progress, f * math.sqrt(max(norm2, 0.0)))


@jit
def joint_span_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """W = W_0 + sum_k beta_k z_k through its gaps, u = u_0 + sum_j coef_j b_j through its scores.

    tokens = (start, K, G), the Gram matrices of the rows z_k and b_j;
    target = (alpha, margin, scalars) of W, the same of u;
    state = (g, g_low, beta, beta_low, g_0, progress), the same of u;
    work = (v, c, q, w, p, s, bits, powers).
    """
    start, K, G = tokens
    start, K, G = borrow(start), borrow(K), borrow(G)
    W_target, u_target = target
    v, c, q, w, p, s = borrow_six(work[:6])
    bits, powers = borrow(work[6]), borrow(work[7])
    g, g_low, beta, beta_low, g0, progress = borrow_six(state[:6])
    r, r_low, coef, coef_low, r0, u_progress = borrow_six(state[6:])
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n, N = start.shape[0] - 1, g.shape[0]
    while True:
        Q, H = joint_weights(kind, start, r, g, s, v, c, w, bits, powers)
        symmetric_product(K, v, q, step % 2 == 1)
        symmetric_product(G, w, p, step % 2 == 1)
        norm2_u, norm2_W = dot(w, p), dot(v, q)
        row = wanted[step]
        see_softmax(progress, n, s)
        status, f_u, f_W = joint_factors(
            kind, rule, step, s, r, bits, powers, Q, H, norm2_u, norm2_W, records, row, n
        )
        if status != RUNNING:
            return status, step
        if row >= 0:
            record_measure(records, row, NORM2, measure_span(g, beta, g0, W_target))
            record_progress(progress, g, records, row)
            measure = measure_span(r, coef, r0, u_target)
            record_measure(records, row, RECORDS + N + U_NORM2, measure)
            record_decoder(u_progress, r, records, row, RECORDS + N)
        if step == last:
            return RUNNING, step
        if not (take(progress, f_W, norm2_W) and take(u_progress, f_u, norm2_u)):
            return DIVERGED, step
        add_compensated(g, g_low, f_W, q, 0, N)
        add_compensated(beta, beta_low, f_W, v, 0, N)
        add_compensated(r, r_low, f_u, p, 0, n + N)
        add_compensated(coef, coef_low, f_u, w, 0, n + N)
        step += 1


@jit
def joint_dense_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `joint_span_loop`, on W and u themselves: gaps and scores are computed afresh.

    tokens = (start, D, Z, B), rows x_opt - x_tau, queries and rows b_j; target = unit W_mm and
    unit u_mm; state = (W, progress, u, u_low, u_progress); work = (v, c, g, w, r, s, bits, powers).
    """
    start, D, Z, B = tokens
    start, D, B = borrow(start), borrow(D), borrow(B)
    W_unit, u_unit = target
    W, progress, u, u_low, u_progress = state
    v, c, g, w, r, s = borrow_six(work[:6])
    bits, powers = borrow(work[6]), borrow(work[7])
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n, N = start.shape[0] - 1, g.shape[0]
    d = Z.shape[1]
    Y, R, G, h = np.empty((n, d)), np.empty((n, d)), np.empty((d, d)), np.empty(d)
    while True:
        np.dot(Z, W.T, Y)
        for i in range(n):
            rows_dot(D, start[i], start[i + 1], Y[i], g)
        rows_dot(B, 0, n + N, u, r)
        Q, H = joint_weights(kind, start, r, g, s, v, c, w, bits, powers)
        for i in range(n):
            rows_combine(D, start[i], start[i + 1], v, R[i])
        np.dot(R.T, Z, G)
        rows_combine(B, 0, n + N, w, h)
        norm2_u, norm2_W = dot(h, h), dot(G.ravel(), G.ravel())
        row = wanted[step]
        see_softmax(progress, n, s)
        status, f_u, f_W = joint_factors(
            kind, rule, step, s, r, bits, powers, Q, H, norm2_u, norm2_W, records, row, n
        )
        if status != RUNNING:
            return status, step
        if row >= 0:
            record_measure(records, row, NORM2, measure_dense(W.ravel(), W_unit.ravel()))
            record_progress(progress, g, records, row)
            record_measure(records, row, RECORDS + N + U_NORM2, measure_dense(u, u_unit))
            record_decoder(u_progress, r, records, row, RECORDS + N)
        if step == last:
            return RUNNING, step
        if not (take(progress, f_W, norm2_W) and take(u_progress, f_u, norm2_u)):
            return DIVERGED, step
        move_dense(W, W, 0.0, f_W, G)
        add_compensated(u, u_low, f_u, h, 0, d)
        step += 1
