"""Compiled inner loops: the log-domain formulas of `logdomain`, one iteration in microseconds.

Everything the loops call lives in this file, because numba's cache looks at one source file
only. Rows are the gap rows of (W-SVM), flat, sequence i at start[i]:start[i+1].

A sequence's gradient weights are p = exp(rest + base) v with |v| <= 1. `base` = log of the
softmax of the best non-optimal token: it runs to -infinity with training, `rest` stays
moderate, so differences between sequences and between loss gap and gradient norm are taken
before the two large parts could cancel.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numba.core import cgutils
from numba.extending import intrinsic

EXPONENTIAL, LOGISTIC = 0, 1
RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
LOG_LOSS, LOG_GAP, LOG_NORM, LOG_STEP, LOG_NONOPT, NORM2, ALONG, ACROSS2 = range(8)
RECORDS = 8
LOW, TINY, BASE, REST, SUM, LOST, S_, SCALE, WORK, ONE = range(10)  # rows of s
ROWS = 10

_jit = njit(cache=True, nogil=True, error_model="numpy")
# reassociation lets the products use the vector units; NaN and infinity keep their meaning
# no reassociation here: it would undo the two-part reduction
_jit_exp = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
_jit_sum = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)


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


@_jit
def borrow_tokens(tokens):
    """`borrow` for (start, delta, log_delta, top, uniform, D or K)."""
    start, delta, log_delta, top, uniform, matrix = tokens[:6]
    return (
        borrow(start),
        borrow(delta),
        borrow(log_delta),
        borrow(top),
        borrow(uniform),
        borrow(matrix),
    )


@_jit
def borrow_span(target, state):
    """`borrow` for target and state in span coordinates."""
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0 = state
    target = (borrow(xi_alpha), borrow(xi_margin), borrow(scalars))
    pairs = (borrow(g), borrow(g_low), borrow(beta), borrow(beta_low))
    return target, (*pairs, borrow(speed_g), borrow(speed_beta), borrow(g0))


@_jit
def borrow_work(work):
    """`borrow` for the scratch arrays."""
    x, v, c, s, bits, powers = work
    return borrow(x), borrow(v), borrow(c), borrow(s), borrow(bits), borrow(powers)


@_jit_exp
def exp_into(a, lo, hi, bits, powers):
    """a[lo:hi] = exp(a[lo:hi]) for a <= 709, on vector units; below -708 about 0.

    Cody-Waite reduction to |r| <= log(2)/2 and the Taylor polynomial of degree 13, whose
    remainder is 4e-18: off by at most about one unit in the last place. `powers` views
    the integers `bits` as floats: 2^k by its exponent field.
    """
    for i in range(lo, hi):
        x = max(a[i], -708.0)
        k = np.floor(x * 1.4426950408889634 + 0.5)
        r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        p = 1.6059043836821613e-10
        p = p * r + 2.08767569878681e-09
        p = p * r + 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 1.984126984126984e-04
        p = p * r + 1.388888888888889e-03
        p = p * r + 8.333333333333333e-03
        p = p * r + 4.1666666666666664e-02
        p = p * r + 1.6666666666666666e-01
        p = p * r + 0.5
        a[i] = (p * r + 1.0) * r + 1.0
        bits[i - lo] = (np.int64(k) + 1023) << 52
    for i in range(lo, hi):
        a[i] *= powers[i - lo]


@_jit
def log_slope(kind, z):
    """log(-l'(z))."""
    if kind == EXPONENTIAL:
        return -z
    return -math.log1p(math.exp(z)) if z < 0 else -z - math.log1p(math.exp(-z))


@_jit
def log_value(kind, z):
    """log l(z)."""
    if kind == EXPONENTIAL:
        return -z
    if z > 40.0:
        return -z - 0.5 * math.exp(-z)
    softplus = math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
    return math.log(softplus)


@_jit
def log_mean_slope(kind, top, S):
    """log of (l(top - S) - l(top)) / S, the mean of -l' between the two."""
    relative = S / 2 if S < 1e-8 else math.log(math.expm1(S) / S)
    if kind == EXPONENTIAL:
        return relative - top
    log_sigmoid = -top - math.log1p(math.exp(-top)) if top > 0 else -math.log1p(math.exp(top))
    rest = log_sigmoid + relative
    x = S * math.exp(rest)
    return rest - 0.5 * x if x < 1e-8 else rest + math.log(math.log1p(x) / x)


@_jit_sum
def exponentials(n, a, b, start, g, s, v, bits, powers):
    """v_k = exp(low_i - g_k) with low_i the least gap of the sequence, and exp(-|low_i|)."""
    for i in range(a, b):
        low = g[start[i]]
        for k in range(start[i] + 1, start[i + 1]):
            low = min(low, g[k])
        s[LOW * n + i] = low
        s[TINY * n + i] = -abs(low)
        for k in range(start[i], start[i + 1]):
            v[k] = low - g[k]
    exp_into(v, start[a], start[b], bits, powers)
    exp_into(s, TINY * n + a, TINY * n + b, bits, powers)


@_jit_sum
def sums(lo, hi, v, delta):
    """Sum of v and of v delta over rows lo to hi."""
    E = ED = 0.0
    for k in range(lo, hi):
        E += v[k]
        ED += v[k] * delta[k]
    return E, ED


@_jit
def softmax_weights(kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers):
    """Softmax and gradient weights of sequences a to b from the gaps g.

    Fills v and the rows of s; see the module's text. E = sum of exp(low - g), so
    1 - softmax(opt) = exp(base) E and the lost score is S = exp(base) ED.
    """
    n = top.shape[0]
    exponentials(n, a, b, start, g, s, v, bits, powers)
    for i in range(a, b):
        lo, hi = start[i], start[i + 1]
        E, ED = sums(lo, hi, v, delta)
        low, tiny = s[LOW * n + i], s[TINY * n + i]
        if low >= 0.0:
            ratio = E * tiny
            opt = 1.0 / (1.0 + ratio)
            best = tiny * opt
            base = -low - (math.log1p(ratio) if ratio > 1e-17 else 0.0)
        else:
            best = 1.0 / (tiny + E)
            opt = tiny * best
            base = math.log(best)
        S = best * ED
        slope = log_slope(kind, top[i] - S)
        if uniform[i]:
            size = log_delta[lo] + low + base  # low + base = log softmax(opt)
        else:
            size = general_weights(lo, hi, g, delta, v, c, opt, best, S, low, base)
        s[BASE * n + i] = base
        s[REST * n + i] = slope + size
        s[SUM * n + i] = E
        s[LOST * n + i] = ED
        s[S_ * n + i] = S


@_jit_sum
def general_weights(lo, hi, g, delta, v, c, opt, best, S, low, base):
    """Turn v into v c / peak and return log peak = log max |v c|, without Assumption 2.

    c_k = sum_t softmax_t (score_t - score_k) over all tokens t, opt among them. It equals
    delta_k - S, which is used unless that difference cancels.
    """
    peak = 0.0
    for k in range(lo, hi):
        c[k] = delta[k] - S
        if abs(c[k]) < 0.0625 * delta[k]:
            total = 0.0
            for t in range(lo, hi):
                total += v[t] * (delta[k] - delta[t])
            c[k] = opt * delta[k] + best * total
        peak = max(peak, abs(v[k] * c[k]))
    if peak < 1e-200:  # close to underflow: a wrong token holds the softmax
        return log_domain_weights(lo, hi, g, delta, v, c, low, base)
    for k in range(lo, hi):
        v[k] = v[k] * c[k] / peak
    return math.log(peak)


@_jit
def log_domain_weights(lo, hi, g, delta, v, c, low, base):
    """`general_weights` with every term in logs."""
    peak = -np.inf
    for k in range(lo, hi):
        shift = low + base + math.log(delta[k])
        for t in range(lo, hi):
            if delta[t] != delta[k]:
                shift = max(shift, base + low - g[t] + math.log(abs(delta[k] - delta[t])))
        total = math.exp(low + base + math.log(delta[k]) - shift)
        for t in range(lo, hi):
            if delta[t] != delta[k]:
                log_term = base + low - g[t] + math.log(abs(delta[k] - delta[t]))
                total += math.copysign(math.exp(log_term - shift), delta[k] - delta[t])
        v[k] = total
        c[k] = low - g[k] + shift + math.log(abs(total))
        peak = max(peak, c[k])
    for k in range(lo, hi):
        v[k] = math.copysign(math.exp(c[k] - peak), v[k])
    return peak


@_jit_sum
def scale_sequences(n, s, bits, powers):
    """Common scale of the gradient: returns (Q, peak) and fills s[SCALE] so that

    -grad L = exp(Q + peak) sum_i scale_i sum_k v_k z_k.
    """
    Q = peak = -np.inf
    for i in range(n):
        Q = max(Q, s[BASE * n + i])
    for i in range(n):
        s[SCALE * n + i] = s[BASE * n + i] - Q + s[REST * n + i]
        peak = max(peak, s[SCALE * n + i])
    for i in range(n):
        s[SCALE * n + i] -= peak
    exp_into(s, SCALE * n, SCALE * n + n, bits, powers)
    for i in range(n):
        s[SCALE * n + i] /= n
    return Q, peak


@_jit_sum
def log_mean(n, s, factor, bits, powers):
    """log of the mean of exp(s[WORK]) s[factor] over sequences; s[WORK] is overwritten."""
    w = WORK * n
    shift = -np.inf
    for i in range(w, w + n):
        shift = max(shift, s[i])
    for i in range(w, w + n):
        s[i] -= shift
    exp_into(s, w, w + n, bits, powers)
    total = 0.0
    for i in range(n):
        total += s[w + i] * s[factor * n + i]
    return shift + math.log(total / n)


@_jit
def loss_gap_rest(kind, n, s, top, bits, powers, Q):
    """log(L - L*) - Q."""
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q + log_mean_slope(kind, top[i], s[S_ * n + i])
    return log_mean(n, s, LOST, bits, powers)


@_jit
def log_add(a, b):
    """log(exp a + exp b)."""
    top = max(a, b)
    return top if not np.isfinite(top) else top + math.log(math.exp(a - top) + math.exp(b - top))


@_jit
def log_step_rest(rule, gap_rest, norm_rest, Q):
    """log eta_t + Q: the factor of the scaled gradient, from logs relative to Q.

    rule = (log_scale, gap_power, norm_power, log_max_step, momentum, log(L* - floor)).
    The powers of NGD and Polyak sum to -1 with the gradient's own, so Q drops out exactly.
    """
    value = rule[0] + (1.0 + rule[1] + rule[2]) * Q
    if rule[1] != 0.0:
        value += rule[1] * log_add(gap_rest, rule[5] - Q)
    if rule[2] != 0.0:
        value += rule[2] * norm_rest
    return min(value, rule[3] + Q)


@_jit
def record_softmax(kind, n, s, top, bits, powers, records, row, Q, gap_rest, norm_rest, step_rest):
    """The part of a record that needs the softmax alone."""
    for i in range(n):
        s[WORK * n + i] = log_value(kind, top[i] - s[S_ * n + i])
    records[row, LOG_LOSS] = log_mean(n, s, ONE, bits, powers)
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q
    records[row, LOG_NONOPT] = log_mean(n, s, SUM, bits, powers) + Q
    records[row, LOG_GAP] = gap_rest + Q
    records[row, LOG_NORM] = norm_rest + Q
    records[row, LOG_STEP] = step_rest - Q


@_jit
def step_factor(kind, rule, n, s, top, bits, powers, Q, peak, norm2, recording, records, row):
    """The factor of the scaled gradient in the next step, and the softmax's record.

    norm2 is the squared norm of the scaled gradient. Returns (status, factor).
    """
    if not (np.isfinite(norm2) and np.isfinite(Q)):
        return DIVERGED, 0.0
    if norm2 <= 0.0:
        return ZERO_GRADIENT, 0.0
    norm_rest = peak + 0.5 * math.log(norm2)
    gap_rest = 0.0
    if recording or rule[1] != 0.0:
        gap_rest = loss_gap_rest(kind, n, s, top, bits, powers, Q)
    step_rest = log_step_rest(rule, gap_rest, norm_rest, Q)
    if recording:
        record_softmax(
            kind, n, s, top, bits, powers, records, row, Q, gap_rest, norm_rest, step_rest
        )
    return RUNNING, math.exp(step_rest + peak)


@_jit
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


@_jit
def add_compensated(total, low, k, x):
    """total[k] += x with the rounding kept in low[k] (Neumaier)."""
    y = x + low[k]
    new = total[k] + y
    low[k] = (total[k] - new) + y if abs(total[k]) >= abs(y) else (y - new) + total[k]
    total[k] = new


@_jit_sum
def symmetric_product(K, r, q, backwards):
    """q = K r, reading the lower triangle once, four rows at a time.

    K may have padding columns. Going backwards every other time meets the rows that the
    cache still holds: 1.3 times faster where K is a little larger than the cache.
    """
    n = r.shape[0]
    for i in range(n):
        q[i] = 0.0
    m = n - n % 4
    for block in range(0, m, 4):
        i = m - 4 - block if backwards else block
        r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(i):
            x = r[j]
            a, b, c, d = K[i, j], K[i + 1, j], K[i + 2, j], K[i + 3, j]
            s0 += a * x
            s1 += b * x
            s2 += c * x
            s3 += d * x
            q[j] += a * r0 + b * r1 + c * r2 + d * r3
        q[i] += s0
        q[i + 1] += s1
        q[i + 2] += s2
        q[i + 3] += s3
        for p in range(i, i + 4):
            for t in range(i, i + 4):
                q[p] += K[p, t] * r[t]
    for i in range(m, n):
        s = 0.0
        for j in range(i):
            s += K[i, j] * r[j]
            q[j] += K[i, j] * r[i]
        q[i] += s + K[i, i] * r[i]


@_jit_sum
def dot(a, b):
    """a . b"""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@_jit_sum
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


@_jit_sum
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


@_jit
def number_of_blocks(n, D):
    """Blocks of sequences of about 512 kB, so that two passes over one stay in cache."""
    return max(1, min(n, D.size // 65536))


@_jit
def block_range(block, blocks, n):
    """First sequence of a block and of the next."""
    return block * n // blocks, (block + 1) * n // blocks


@_jit
def move(g, g_low, beta, beta_low, speed_g, speed_beta, momentum, f, r, q, lo, hi):
    """One step of span coordinates: velocities, then gaps and coefficients, rows lo to hi."""
    for k in range(lo, hi):
        dg, db = f * q[k], f * r[k]
        if momentum != 0.0:
            dg += momentum * speed_g[k]
            db += momentum * speed_beta[k]
            speed_g[k] = dg
            speed_beta[k] = db
        add_compensated(g, g_low, k, dg)
        add_compensated(beta, beta_low, k, db)


@_jit
def span_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """Run iterations `step` to `last` in span coordinates; one product K r each.

    The iterate is W = W_0 + sum_k beta_k z_k, seen through its gaps g = g_0 + K beta.
    tokens = (start, delta, log_delta, top, uniform, K); target = (xi_alpha, xi_margin, scalars);
    state = (g, g_low, beta, beta_low, speed_g, speed_beta, g_0);
    work = (q, v, c, s, bits, powers), s one stretch of n a quantity.
    records[wanted[t]] takes iteration t where wanted[t] >= 0.
    At `last` the gradient is taken and recorded, but no step follows.
    Returns (status, step reached).
    """
    start, delta, log_delta, top, uniform, K = borrow_tokens(tokens)
    target, state = borrow_span(target, state)
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0 = state
    q, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n = top.shape[0]
    while True:
        softmax_weights(kind, start, delta, log_delta, top, uniform, 0, n, g, s, v, c, bits, powers)
        Q, peak = scale_sequences(n, s, bits, powers)
        for i in range(n):
            for k in range(start[i], start[i + 1]):
                v[k] *= s[SCALE * n + i]
        symmetric_product(K, v, q, step % 2 == 1)
        norm2 = dot(v, q)
        recording = wanted[step] >= 0
        row = max(wanted[step], 0)
        status, f = step_factor(
            kind, rule, n, s, top, bits, powers, Q, peak, norm2, recording, records, row
        )
        if status != RUNNING:
            return status, step
        if recording:
            record_span(g, beta, g0, xi_alpha, xi_margin, scalars, records, row)
        if step == last:
            return RUNNING, step
        move(g, g_low, beta, beta_low, speed_g, speed_beta, rule[4], f, v, q, 0, g.shape[0])
        step += 1


@_jit
def factored_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `span_loop`, without K: gaps move by D_i (M R)_i, with R_i = D_i' r_i and M = Z Z'.

    tokens = (start, delta, log_delta, top, uniform, D, M). The gradient's norm is known before the
    second product, so a step, its softmax and the next R_i share one pass over D_i.
    """
    M = tokens[6]
    start, delta, log_delta, top, uniform, D = borrow_tokens(tokens)
    target, state = borrow_span(target, state)
    xi_alpha, xi_margin, scalars = target
    g, g_low, beta, beta_low, speed_g, speed_beta, g0 = state
    q, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n = top.shape[0]
    R = np.empty((n, D.shape[1]))
    MR = np.empty((n, D.shape[1]))
    blocks = number_of_blocks(n, D)
    f = 0.0
    moving = False
    while True:
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            if moving:
                for i in range(a, b):
                    rows_dot(D, start[i], start[i + 1], MR[i], q)
                lo, hi = start[a], start[b]
                move(g, g_low, beta, beta_low, speed_g, speed_beta, rule[4], f, v, q, lo, hi)
            softmax_weights(
                kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers
            )
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        Q, peak = scale_sequences(n, s, bits, powers)
        for i in range(n):
            R[i] *= s[SCALE * n + i]
            for k in range(start[i], start[i + 1]):
                v[k] *= s[SCALE * n + i]
        np.dot(M, R, MR)
        norm2 = dot(R.ravel(), MR.ravel())
        recording = wanted[step] >= 0
        row = max(wanted[step], 0)
        status, f = step_factor(
            kind, rule, n, s, top, bits, powers, Q, peak, norm2, recording, records, row
        )
        if status != RUNNING:
            return status, step
        if recording:
            record_span(g, beta, g0, xi_alpha, xi_margin, scalars, records, row)
        if step == last:
            return RUNNING, step
        moving = True
        step += 1


@_jit_sum
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


@_jit_sum
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


@_jit
def dense_loop(kind, rule, tokens, target, state, work, step, last, wanted, records):
    """As `span_loop`, on the d x d matrix W itself: gaps are computed afresh each iteration.

    tokens = (start, delta, log_delta, top, uniform, D, Z); target = (unit W_mm,);
    state = (W, speed).
    """
    Z = tokens[6]
    start, delta, log_delta, top, uniform, D = borrow_tokens(tokens)
    (unit,) = target
    W, speed = state
    g, v, c, s, bits, powers = borrow_work(work)
    wanted, records = borrow(wanted), borrow(records)
    n, d = Z.shape
    Y = np.empty((n, d))
    R = np.empty((n, d))
    G = np.empty((d, d))
    blocks = number_of_blocks(n, D)
    while True:
        np.dot(Z, W.T, Y)
        for block in range(blocks):
            a, b = block_range(blocks - 1 - block if step % 2 else block, blocks, n)
            for i in range(a, b):
                rows_dot(D, start[i], start[i + 1], Y[i], g)
            softmax_weights(
                kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers
            )
            for i in range(a, b):
                rows_combine(D, start[i], start[i + 1], v, R[i])
        Q, peak = scale_sequences(n, s, bits, powers)
        for i in range(n):
            R[i] *= s[SCALE * n + i]
        np.dot(R.T, Z, G)
        norm2 = dot(G.ravel(), G.ravel())
        recording = wanted[step] >= 0
        row = max(wanted[step], 0)
        status, f = step_factor(
            kind, rule, n, s, top, bits, powers, Q, peak, norm2, recording, records, row
        )
        if status != RUNNING:
            return status, step
        if recording:
            record_dense(W, unit, records, row)
        if step == last:
            return RUNNING, step
        move_dense(W, speed, rule[4], f, G)
        step += 1
