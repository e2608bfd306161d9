"""Functions of numbers, compiled: exponentials of arrays, and the two named losses in logs."""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit, jit_exp

EXPONENTIAL, LOGISTIC = 0, 1


@jit_exp
def exp_into(a, lo, hi, bits, powers):
    """a[lo:hi] = exp(a[lo:hi]) for a <= 709, on vector units; below -708 about 0.

    Cody-Waite reduction to |r| <= log(2)/2 and the Taylor polynomial of degree 13, whose
    remainder is 4e-18: off by at most about one unit in the last place. `powers` views
    the integers `bits` as floats: 2^k by its exponent field.
    """
    if hi - lo < 12:  # too few to fill the vector units
        for i in range(lo, hi):
            a[i] = 1.0 if a[i] == 0.0 else math.exp(max(a[i], -708.0))
        return
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


@jit
def log_slope(kind, z):
    """log(-l'(z))."""
    if kind == EXPONENTIAL:
        return -z
    return -math.log1p(math.exp(z)) if z < 0 else -z - math.log1p(math.exp(-z))


@jit
def log_value(kind, z):
    """log l(z)."""
    if kind == EXPONENTIAL:
        return -z
    if z > 40.0:
        return -z - 0.5 * math.exp(-z)
    softplus = math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
    return math.log(softplus)


@jit
def log_mean_slope(kind, top, S):
    """log of (l(top - S) - l(top)) / S, the mean of -l' between the two."""
    relative = S / 2 if S < 1e-8 else S + math.log(-math.expm1(-S) / S)
    if kind == EXPONENTIAL:
        return relative - top
    rest = relative + log_slope(kind, top)  # the gap is log(1 + x), log x = rest + log S
    if S > 0.0 and rest + math.log(S) > 30.0:
        return math.log((rest + math.log(S)) / S)
    x = S * math.exp(rest)
    return rest - 0.5 * x if x < 1e-8 else rest + math.log(math.log1p(x) / x)


@jit
def log_add(a, b):
    """log(exp a + exp b)."""
    top = max(a, b)
    return top if not np.isfinite(top) else top + math.log(math.exp(a - top) + math.exp(b - top))
