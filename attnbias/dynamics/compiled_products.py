"""Sums and products of arrays, compiled: what the loop spends its time on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .compiled_numbers import OPTIONS, inline, inline_sum, jit_sum


class Step(NamedTuple):
    """speed <- keep speed + own gradient, iterate <- iterate + speed + extra gradient."""

    moving: bool  # else there is no step yet
    keep: float
    own: float
    extra: float


@inline
def add_compensated(total, low, f, x, lo, hi):
    """total += f x from lo to hi, with the rounding of each sum kept in low (two-sum)."""
    for k in range(lo, hi):
        y = f * x[k] + low[k]
        new = total[k] + y
        part = new - total[k]
        low[k] = (total[k] - (new - part)) + (y - part)
        total[k] = new


@inline
def advance(total, low, speed, step, x, lo, hi):
    """Take `step` from lo to hi; without momentum at once."""
    if step.keep == 0.0 and step.extra == 0.0:
        add_compensated(total, low, step.own, x, lo, hi)
        return
    for k in range(lo, hi):
        speed[k] = step.keep * speed[k] + step.own * x[k]
        y = speed[k] + step.extra * x[k] + low[k]
        new = total[k] + y
        part = new - total[k]
        low[k] = (total[k] - (new - part)) + (y - part)
        total[k] = new


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


@inline_sum
def measure_flat(w, m):
    """|w|^2, <w, m> and the squared norm of w - <w, m> m, for a unit m."""
    norm2 = along = across2 = 0.0
    for j in range(w.shape[0]):
        norm2 += w[j] * w[j]
        along += w[j] * m[j]
    for j in range(w.shape[0]):
        rest = w[j] - along * m[j]
        across2 += rest * rest
    return norm2, along, across2
