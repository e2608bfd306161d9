"""The compiled training loops, one a coordinate system, over the formulas of `kernels`.

`rule` holds (log_scale, gap_power, norm_power, log_max_step, momentum, log(L* - loss floor),
whether `linear_weights` may be tried, log of the common factor of `floor`).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from .kernels import (
    ACROSS2,
    ALONG,
    DIVERGED,
    LONGEST_STEP,
    NORM2,
    RUNNING,
    SCALE,
    add_length,
    jit,
    jit_inline,
    jit_sum,
    jit_sum_inline,
    linear_scale,
    linear_weights,
    log_scale,
    log_weights,
    record_progress,
    see_softmax,
    step_factor,
)


def _drop_stale_cache() -> None:
    """numba's cache sees an edit of this file, not of the one whose functions it calls."""
    edited = Path(__file__).with_name("kernels.py").stat().st_mtime
    for index in Path(__file__).parent.glob("__pycache__/loops.*.nbi"):
        if index.stat().st_mtime < edited:
            index.unlink(missing_ok=True)


_drop_stale_cache()


@intrinsic
def borrow(_typing, a):
    """The same memory as an array that carries no reference count.

    Counting is atomic and happens at each call; over a hundred of them would cost more than
    the arithmetic of a small problem. The caller of the loops keeps the memory alive.
    """

    def codegen(context, builder, signature, args):
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()

    return a(a), codegen


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


@jit_sum_inline
def record_span(g, beta, g0, xi_alpha, xi_margin, scalars, records, row):
    """|W|^2, <W, unit W_mm> and the squared norm of the rest, from span coordinates.

    scalars = (|W_0|^2, c_0, |P_0|^2), c = <W, unit W_mm>, P = W - c unit W_mm. The sum for
    |P|^2 has a zero derivative in c, so the rounding of c enters squared.
    """
    norm2, along, c0 = scalars[0], 0.0, scalars[1]
    for k in range(g.shape[0]):
        norm2 += beta[k] * (g[k] + g0[k])
        along += xi_alpha[k] * g[k]
    across2 = scalars[2]
    for k in range(g.shape[0]):
        rest = (g[k] - along * xi_margin[k]) + (g0[k] - c0 * xi_margin[k])
        across2 += (beta[k] - (along - c0) * xi_alpha[k]) * rest
    records[row, NORM2] = norm2
    records[row, ALONG] = along
    records[row, ACROSS2] = across2


@jit_inline
def add_compensated(total, low, f, x, lo, hi):
    """total += f x over rows lo to hi, with the rounding of each sum kept in low (two-sum)."""
    for k in range(lo, hi):
        y = f * x[k] + low[k]
        new = total[k] + y
        part = new - total[k]
        low[k] = (total[k] - (new - part)) + (y - part)
        total[k] = new


@jit_inline
def advance(total, low, speed, momentum, f, x, lo, hi):
    """speed <- momentum speed + f x, total <- total + speed; without momentum at once."""
    if momentum == 0.0:
        add_compensated(total, low, f, x, lo, hi)
        return
    for k in range(lo, hi):
        speed[k] = momentum * speed[k] + f * x[k]
    add_compensated(total, low, 1.0, speed, lo, hi)


@jit_sum
def symmetric_product(K, r, q, backwards):
    """q = K r, reading the lower triangle once, eight rows at a time.

    K may have padding columns. Going backwards every other time meets the rows that the
    cache still holds: 1.3 times faster where K is a little larger than the cache.
    """
    n = r.shape[0]
    for i in range(n):
        q[i] = 0.0
    m = n - n % 8
    for block in range(0, m, 8):
        i = m - 8 - block if backwards else block
        r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
        r4, r5, r6, r7 = r[i + 4], r[i + 5], r[i + 6], r[i + 7]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for j in range(i):
            x = r[j]
            a, b, c, d = K[i, j], K[i + 1, j], K[i + 2, j], K[i + 3, j]
            e, f, g, h = K[i + 4, j], K[i + 5, j], K[i + 6, j], K[i + 7, j]
            s0 += a * x
            s1 += b * x
            s2 += c * x
            s3 += d * x
            s4 += e * x
            s5 += f * x
            s6 += g * x
            s7 += h * x
            q[j] += a * r0 + b * r1 + c * r2 + d * r3 + e * r4 + f * r5 + g * r6 + h * r7
        q[i] += s0
        q[i + 1] += s1
        q[i + 2] += s2
        q[i + 3] += s3
        q[i + 4] += s4
        q[i + 5] += s5
        q[i + 6] += s6
        q[i + 7] += s7
        for k in range(i, i + 8):
            for j in range(i, i + 8):
                q[k] += K[k, j] * r[j]
    for i in range(m, n):
        s = 0.0
        for j in range(i):
            s += K[i, j] * r[j]
            q[j] += K[i, j] * r[i]
        q[i] += s + K[i, i] * r[i]


@jit_sum_inline
def dot(a, b):
    """a . b"""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit_sum
def rows_dot(D, lo, hi, q, out):
    """out[k] = D_k . q for rows lo to hi, four rows at a time."""
    d = D.shape[1]
    k = lo
    while k + 4 <= hi:
        s0 = s1 = s2 = s3 = 0.0
        for j in range(d):
            x = q[j]
            s0 += D[k, j] * x
            s1 += D[k + 1, j] * x
            s2 += D[k + 2, j] * x
            s3 += D[k + 3, j] * x
        out[k] = s0
        out[k + 1] = s1
        out[k + 2] = s2
        out[k + 3] = s3
        k += 4
    while k < hi:
        out[k] = dot(D[k], q)
        k += 1


@jit_sum
def rows_combine(D, lo, hi, v, out):
    """out = sum_k v_k D_k over rows lo to hi, four rows at a time."""
    d = D.shape[1]
    for j in range(d):
        out[j] = 0.0
    k = lo
    while k + 4 <= hi:
        a, b, c, e = v[k], v[k + 1], v[k + 2], v[k + 3]
        for j in range(d):
            out[j] += a * D[k, j] + b * D[k + 1, j] + c * D[k + 2, j] + e * D[k + 3, j]
        k += 4
    while k < hi:
        a = v[k]
        for j in range(d):
            out[j] += a * D[k, j]
        k += 1


@jit
def number_of_blocks(n, D):
    """Blocks of sequences of about 200 kB, so that two passes over one stay in cache."""
    return max(1, min(n, D.size // 24576))


@jit
def block_range(block, blocks, n):
    """First sequence of a block and of the next."""
    return block * n // blocks, (block + 1) * n // blocks


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
    start, delta, log_delta, top, uniform, floor, K = borrow_tokens(tokens)
    target, state = borrow_span(target, state)
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n = top.shape[0]
    while True:
        linear = rule[6] != 0.0 and linear_weights(
            start, delta, uniform, floor, 0, n, g, s, v, c, bits, powers
        )
        if linear:
            Q, peak = linear_scale(n, s, bits, powers), rule[7]
        else:
            log_weights(kind, start, delta, log_delta, top, uniform, 0, n, g, s, v, c, bits, powers)
            Q, peak = log_scale(n, s, bits, powers)
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
            record_span(g, beta, g0, xi_alpha, xi_margin, scalars, records, row)
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if f * f * norm2 > LONGEST_STEP**2:
            return DIVERGED, step
        add_length(progress, f * math.sqrt(norm2))
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
    start, delta, log_delta, top, uniform, floor, D = borrow_tokens(tokens)
    target, state = borrow_span(target, state)
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n = top.shape[0]
    R = np.empty((n, D.shape[1]))
    MR = np.empty((n, D.shape[1]))
    blocks = number_of_blocks(n, D)
    f = 0.0
    moving = False
    linear = rule[6] != 0.0
    while True:
        in_range = True
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            if moving:
                for i in range(a, b):
                    rows_dot(D, start[i], start[i + 1], MR[i], q)
                lo, hi = start[a], start[b]
                advance(g, g_low, speed_g, rule[4], f, q, lo, hi)
                advance(beta, beta_low, speed_beta, rule[4], f, v, lo, hi)
            if linear:
                in_range &= linear_weights(
                    start, delta, uniform, floor, a, b, g, s, v, c, bits, powers
                )
            else:
                log_weights(
                    kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers
                )
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        moving = False
        if not in_range:
            linear = False
            continue
        if linear:
            Q, peak = linear_scale(n, s, bits, powers), rule[7]
        else:
            Q, peak = log_scale(n, s, bits, powers)
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
            record_span(g, beta, g0, xi_alpha, xi_margin, scalars, records, row)
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if f * f * norm2 > LONGEST_STEP**2:
            return DIVERGED, step
        add_length(progress, f * math.sqrt(norm2))
        moving = True
        linear = rule[6] != 0.0
        step += 1


@jit_sum
def record_dense(W, unit, records, row):
    """|W|^2, <W, unit W_mm>, |W - <W, unit> unit|^2 from the matrix itself."""
    norm2 = along = across2 = 0.0
    w, m = W.ravel(), unit.ravel()
    for j in range(w.shape[0]):
        norm2 += w[j] * w[j]
        along += w[j] * m[j]
    for j in range(w.shape[0]):
        rest = w[j] - along * m[j]
        across2 += rest * rest
    records[row, NORM2] = norm2
    records[row, ALONG] = along
    records[row, ACROSS2] = across2


@jit_sum
def move_dense(W, speed, momentum, f, G):
    """One step of the matrix."""
    w, s, g = W.ravel(), speed.ravel(), G.ravel()
    if momentum == 0.0:
        for j in range(w.shape[0]):
            w[j] += f * g[j]
    else:
        for j in range(w.shape[0]):
            s[j] = momentum * s[j] + f * g[j]
            w[j] += s[j]


@jit
def dense_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `span_loop`, on the d x d matrix W itself: gaps are computed afresh each iteration.

    tokens = (start, delta, log_delta, top, uniform, floor, D, Z); target = (unit W_mm,);
    state = (W, speed, progress).
    """
    Z = tokens[7]
    start, delta, log_delta, top, uniform, floor, D = borrow_tokens(tokens)
    (unit,) = target
    W, speed, progress = state
    g, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n, d = Z.shape
    Y = np.empty((n, d))
    R = np.empty((n, d))
    G = np.empty((d, d))
    blocks = number_of_blocks(n, D)
    linear = rule[6] != 0.0
    while True:
        np.dot(Z, W.T, Y)
        in_range = True
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            for i in range(a, b):
                rows_dot(D, start[i], start[i + 1], Y[i], g)
            if linear:
                in_range &= linear_weights(
                    start, delta, uniform, floor, a, b, g, s, v, c, bits, powers
                )
            else:
                log_weights(
                    kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers
                )
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        if not in_range:
            linear = False
            continue
        if linear:
            Q, peak = linear_scale(n, s, bits, powers), rule[7]
        else:
            Q, peak = log_scale(n, s, bits, powers)
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
            record_dense(W, unit, records, row)
            record_progress(progress, g, records, row)
        if step == last:
            return RUNNING, step
        if f * f * norm2 > LONGEST_STEP**2:
            return DIVERGED, step
        add_length(progress, f * math.sqrt(norm2))
        move_dense(W, speed, rule[4], f, G)
        linear = rule[6] != 0.0
        step += 1
