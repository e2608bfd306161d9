"""The compiled loop of dual acceleration, over the formulas of `kernels`."""

from __future__ import annotations

import math

from ...dynamics.compiled import jit
from ...dynamics.kernels import (
    DIVERGED,
    RUNNING,
    SCALE,
    scale_of,
    see_softmax,
    step_factor,
    weights_of,
)
from ...dynamics.loops import borrow_span, borrow_tokens, borrow_work
from ...dynamics.products import add_compensated, advance, borrow, dot, symmetric_product
from ...dynamics.recording import NORM2, measure_span, record_measure, record_progress, take_length


@jit
def accelerated_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `loops.span_loop`, with the mean of past directions in place of a velocity.

    With r the scaled weights of a step, `speed` <- t / (t + 1) (speed + r), and the iterate
    moves by speed + r; in gaps the same with K r.
    """
    tokens = borrow_tokens(tokens)
    start, top, K = tokens[0], tokens[3], tokens[6]
    target, state = borrow_span(target, state)
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, c, s, bits, powers = borrow_work(work)
    rule, wanted, records = borrow(rule), borrow(wanted), borrow(records)
    n, N = top.shape[0], g.shape[0]
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
        if not take_length(progress, f * math.sqrt(norm2) * (step + 1.0)):
            return DIVERGED, step
        share = step / (step + 1.0)
        if step > 0:
            advance(g, g_low, speed_g, share, share * f, q, 0, N)
            advance(beta, beta_low, speed_beta, share, share * f, v, 0, N)
        add_compensated(g, g_low, f, q, 0, N)
        add_compensated(beta, beta_low, f, v, 0, N)
        step += 1
