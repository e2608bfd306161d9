"""How functions are compiled, and the arithmetic that the loop spends its time on:
exponentials, the two named losses in logs, sums and products of arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

# `_nrt`: arrays are not counted. A count is atomic and taken at every use of an array: counted, a
# step takes 3.8 times as long at (n, T, d) = (5, 3, 50), the size of Figure 2, 3.3 times at
# (10, 2, 1000). So nothing is allocated here, and who calls the loop keeps its arrays alive.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
OPTIONS |= {"fastmath": False, "forceinline": False}  # else the caller's hold
# nor are the entries from Python made, a quarter of the time to compile: the loop alone has one
OPTIONS |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# reassociation lets sums use the vector units; NaN and infinity keep their meaning
SUM = OPTIONS | {"fastmath": {"reassoc", "contract", "nsz"}}
# a call passes each array in seven words, which at small sizes costs as much as the work
INLINE_SUM = SUM | {"forceinline": True}
jit, jit_sum, inline_sum = njit(**OPTIONS), njit(**SUM), njit(**INLINE_SUM)
inline = njit(**(OPTIONS | {"forceinline": True}))
inline_contracted = njit(**(INLINE_SUM | {"fastmath": {"contract"}}))

EXPONENTIAL, LOGISTIC = 0, 1


@inline_contracted
def exponential(x):
    """exp(x) for x <= 709, below -708 about 0; loops over it run on vector units.

    Cody-Waite reduction to |r| <= log(2)/2 and the Taylor polynomial of degree 13, whose
    remainder is 4e-18: off by at most about one unit in the last place. Without reassociation,
    which would undo the reduction in two parts.
    """
    x = max(x, -708.0)
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
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)  # 2^k, by its exponent field
    return ((p * r + 1.0) * r + 1.0) * power


@inline_contracted
def exponentials(x, y):
    """y = exp(x), fastest where both are padded to a multiple of eight."""
    for i in range(x.shape[0]):
        y[i] = exponential(x[i])


@inline
def log_slope(kind, z):
    """log(-l'(z))."""
    if kind == EXPONENTIAL:
        return -z
    return -math.log1p(math.exp(z)) if z < 0 else -z - math.log1p(math.exp(-z))


@inline
def log_value(kind, z):
    """log l(z)."""
    if kind == EXPONENTIAL:
        return -z
    if z > 40.0:
        return -z - 0.5 * math.exp(-z)
    softplus = math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
    return math.log(softplus)


@inline
def log_fade(kind, top, S):
    """log of (l(top - S) - l(top)) / S over -l'(top - S): the mean slope over the steepest."""
    fall = -S / 2 if S < 1e-8 else math.log(-math.expm1(-S) / S)
    if kind == EXPONENTIAL:
        return fall
    steepest = log_slope(kind, top - S)
    # the gap is log(1 + x): this is log of x / S over the steepest, without a large difference
    linear = fall + log_slope(kind, -top) - log_slope(kind, S - top)
    if S <= 0.0:
        return linear
    log_x = linear + math.log(S) + steepest
    if log_x > 30.0:
        return math.log(log_x / S) - steepest
    x = math.exp(log_x)
    return linear - 0.5 * x if x < 1e-8 else linear + math.log(math.log1p(x) / x)


@inline
def log_add(a, b):
    """log(exp a + exp b)."""
    top = max(a, b)
    return top if not np.isfinite(top) else top + math.log(math.exp(a - top) + math.exp(b - top))


class Step(NamedTuple):
    """speed <- keep speed + own gradient, iterate <- iterate + speed + extra gradient."""

    moving: bool  # else there is no step yet
    keep: float
    own: float
    extra: float


@inline
def add_compensated(total, low, k, y):
    """total_k += y, with the rounding of each sum kept in low (two-sum)."""
    y += low[k]
    new = total[k] + y
    part = new - total[k]
    low[k] = (total[k] - (new - part)) + (y - part)
    total[k] = new


@inline
def advance(total, low, speed, step, x, lo, hi):
    """Take `step` from lo to hi; without momentum at once."""
    if step.keep == 0.0 and step.extra == 0.0:
        for k in range(lo, hi):
            add_compensated(total, low, k, step.own * x[k])
        return
    for k in range(lo, hi):
        speed[k] = step.keep * speed[k] + step.own * x[k]
        add_compensated(total, low, k, speed[k] + step.extra * x[k])


@inline
def multiply(x, factors, out, lo, hi):
    """out = x factors, from lo to hi."""
    for k in range(lo, hi):
        out[k] = x[k] * factors[k]


@inline_sum
def dot(a, b):
    """a . b"""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


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


@jit_sum
def rows_dot(D, lo, hi, q, out):
    """out[k] = D_k . q for rows lo to hi, four rows at a time."""
    k = lo
    while k + 4 <= hi:
        s0 = s1 = s2 = s3 = 0.0
        for j in range(D.shape[1]):
            x = q[j]
            s0 += D[k, j] * x
            s1 += D[k + 1, j] * x
            s2 += D[k + 2, j] * x
            s3 += D[k + 3, j] * x
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
        k += 4
    while k < hi:
        out[k] = dot(D[k], q)
        k += 1


@jit_sum
def rows_combine(D, lo, hi, v, out):
    """out = sum_k v_k D_k over rows lo to hi, four rows at a time."""
    for j in range(D.shape[1]):
        out[j] = 0.0
    k = lo
    while k + 4 <= hi:
        a, b, c, e = v[k], v[k + 1], v[k + 2], v[k + 3]
        for j in range(D.shape[1]):
            out[j] += a * D[k, j] + b * D[k + 1, j] + c * D[k + 2, j] + e * D[k + 3, j]
        k += 4
    while k < hi:
        a = v[k]
        for j in range(D.shape[1]):
            out[j] += a * D[k, j]
        k += 1


@inline
def scale_rows(R, scale):
    """R_i *= scale_i."""
    for i in range(R.shape[0]):
        for j in range(R.shape[1]):
            R[i, j] *= scale[i]


@njit(**(OPTIONS | {"_nrt": True}))
def matrix_product(A, B, out):
    """out = A B; numba's call of BLAS counts its arrays."""
    np.dot(A, B, out)


def measure_flat(w, m, f):
    """|f w|^2, <f w, m> and the squared norm of f w - <f w, m> m, for a unit m."""
    norm2 = along = across2 = 0.0
    for j in range(w.shape[0]):
        norm2 += (f * w[j]) * (f * w[j])
        along += (f * w[j]) * m[j]
    for j in range(w.shape[0]):
        rest = f * w[j] - along * m[j]
        across2 += rest * rest
    return norm2, along, across2
