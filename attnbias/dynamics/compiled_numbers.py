"""How functions are compiled, and functions of numbers: exponentials, the two named losses in logs."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# `_nrt`: arrays are not counted. A count is atomic and taken at every use of an array, which at the
# size of Figure 2 takes longer than the arithmetic. So nothing is allocated here, and who calls
# the loop keeps its arrays alive.
OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}
OPTIONS |= {"fastmath": False, "forceinline": False}  # else the caller's hold
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


@inline
def log_add(a, b):
    """log(exp a + exp b)."""
    top = max(a, b)
    return top if not np.isfinite(top) else top + math.log(math.exp(a - top) + math.exp(b - top))
