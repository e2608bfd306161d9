"""The log-domain formulas of `logdomain`, compiled: softmax, gradient weights, step length.

Rows are the gap rows of (W-SVM), flat, sequence i at start[i]:start[i+1].

A sequence's gradient weights are p = exp(rest + base) v with |v| <= 1. `base` = log of the
softmax of the best non-optimal token: it runs to -infinity with training, `rest` stays
moderate, so differences between sequences and between loss gap and gradient norm are taken
before the two large parts could cancel.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

EXPONENTIAL, LOGISTIC = 0, 1
RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
LONGEST_STEP = 1e140  # the square of a sum of 2^31 such steps is still a float
# a row of records: these, then the N' logit gaps
LOG_LOSS, LOG_GAP, LOG_NORM, LOG_STEP, LOG_NONOPT, NORM2, ALONG, ACROSS2 = range(8)
PATH, LONGEST, LEAST_OPT = range(8, 11)
RECORDS = 11
# what a run accumulates: the path's length, its rounding, the longest step, the least softmax
PATH_SUM, PATH_LOW, LONGEST_SO_FAR, LEAST_SO_FAR = range(4)
NOTHING_SO_FAR = (0.0, 0.0, 0.0, 1.0)
# quantities of a sequence, one stretch of n numbers each in s; three totals stand behind them
LOW, TINY, BASE, REST, SUM, LOST, S_, SCALE, WORK, ONE, OPT = range(11)
ROWS = 11
LOSS, NONOPT, GAP = range(3)

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
# reassociation lets sums use the vector units; NaN and infinity keep their meaning
_SUM = {"reassoc", "contract", "nsz"}
jit = njit(**_OPTIONS)
jit_sum = njit(**_OPTIONS, fastmath=_SUM)
# a call passes each array in seven words, which at small sizes costs more than the work
jit_inline = njit(**_OPTIONS, forceinline=True)
jit_sum_inline = njit(**_OPTIONS, fastmath=_SUM, forceinline=True)
# no reassociation in the exponential: it would undo the two-part reduction
jit_exp = njit(**_OPTIONS, fastmath={"contract"}, forceinline=True)


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


@jit_sum_inline
def exponentials(n, a, b, start, g, s, v, bits, powers):
    """v_k = exp(low_i - g_k) with low_i the least gap of the sequence, and exp(-|low_i|)."""
    least = np.inf
    for i in range(a, b):
        low = g[start[i]]
        for k in range(start[i] + 1, start[i + 1]):
            low = min(low, g[k])
        least = min(least, low)
        s[LOW * n + i] = low
        s[TINY * n + i] = -abs(low)
        for k in range(start[i], start[i + 1]):
            v[k] = low - g[k]
    exp_into(v, start[a], start[b], bits, powers)
    if least < 60.0:  # beyond, exp(-60) times any sum of scores is below rounding
        exp_into(s, TINY * n + a, TINY * n + b, bits, powers)
    else:
        for i in range(TINY * n + a, TINY * n + b):
            s[i] = 0.0


@jit_sum_inline
def sums(lo, hi, v, delta):
    """Sum of v and of v delta over rows lo to hi."""
    E = ED = 0.0
    for k in range(lo, hi):
        E += v[k]
        ED += v[k] * delta[k]
    return E, ED


@jit_inline
def softmax_of(low, tiny, E):
    """Softmax of the optimal and of the best other token, and the latter's log."""
    if low >= 0.0:
        ratio = E * tiny
        opt = 1.0 / (1.0 + ratio)
        return opt, tiny * opt, -low - (math.log1p(ratio) if ratio > 1e-17 else 0.0)
    best = 1.0 / (tiny + E)
    return tiny * best, best, math.log(best)


@jit
def log_weights(kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers):
    """Softmax and gradient weights of sequences a to b from the gaps g, for any scores.

    Fills v and the rows of s; see the module's text. E = sum of exp(low - g), so
    1 - softmax(opt) = exp(base) E and the lost score is S = exp(base) ED.
    """
    n = top.shape[0]
    exponentials(n, a, b, start, g, s, v, bits, powers)
    for i in range(a, b):
        lo, hi = start[i], start[i + 1]
        E, ED = sums(lo, hi, v, delta)
        low = s[LOW * n + i]
        opt, best, base = softmax_of(low, s[TINY * n + i], E)
        S = best * ED
        if uniform[i]:
            size = log_delta[lo] + low + base  # low + base = log softmax(opt)
        else:
            peak = general_weights(lo, hi, delta, v, c, opt, best, S)
            if peak > 0.0:
                size = math.log(peak)
            else:
                size = log_domain_weights(lo, hi, g, delta, v, c, low, base)
        s[BASE * n + i] = base
        s[OPT * n + i] = opt
        s[REST * n + i] = log_slope(kind, top[i] - S) + size
        s[SUM * n + i] = E
        s[LOST * n + i] = ED
        s[S_ * n + i] = S


@jit_sum_inline
def linear_weights(start, delta, uniform, floor, a, b, g, s, v, c, bits, powers):
    """`log_weights` for the exponential loss and scores of moderate range: fewer logarithms.

    floor_i = exp(-top_i) up to a common factor. s[SCALE] takes the sequence's weight without
    exp(base), s[LOST] its loss gap without it, s[WORK] its loss. Returns False where a
    weight comes close to underflow, because a wrong token holds the softmax.
    """
    n = floor.shape[0]
    exponentials(n, a, b, start, g, s, v, bits, powers)
    for i in range(a, b):
        lo, hi = start[i], start[i + 1]
        E, ED = sums(lo, hi, v, delta)
        opt, best, base = softmax_of(s[LOW * n + i], s[TINY * n + i], E)
        S = best * ED
        grown = S if S < 1e-8 else math.expm1(S)  # exp(S) - 1; 1 + S/2 below is the next term
        relative = 1.0 + 0.5 * S if S < 1e-8 else grown / S
        size = delta[lo] * opt
        if not uniform[i]:
            size = general_weights(lo, hi, delta, v, c, opt, best, S)
        if size < 1e-100:  # its square must stay a float
            return False
        s[BASE * n + i] = base
        s[OPT * n + i] = opt
        s[SCALE * n + i] = floor[i] * (1.0 + grown) * size
        s[SUM * n + i] = E
        s[LOST * n + i] = floor[i] * relative * ED
        s[WORK * n + i] = floor[i] * (1.0 + grown)
    return True


@jit_sum_inline
def linear_scale(n, s, bits, powers):
    """`log_scale` after `linear_weights`; also the three totals behind the rows of s."""
    Q = -np.inf
    loss = nonopt = gap = 0.0
    for i in range(n):
        Q = max(Q, s[BASE * n + i])
        loss += s[WORK * n + i]
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q
    exp_into(s, WORK * n, WORK * n + n, bits, powers)
    for i in range(n):
        share = s[WORK * n + i] / n
        nonopt += share * s[SUM * n + i]
        gap += share * s[LOST * n + i]
        s[SCALE * n + i] *= share
    s[ROWS * n + LOSS] = loss / n
    s[ROWS * n + NONOPT] = nonopt
    s[ROWS * n + GAP] = gap
    return Q


@jit_sum
def general_weights(lo, hi, delta, v, c, opt, best, S):
    """Turn v into v c / peak and return peak = max |v c|, without Assumption 2.

    c_k = sum_t softmax_t (score_t - score_k) over all tokens t, opt among them. It equals
    delta_k - S, which is used unless that difference cancels. Close to underflow, because a
    wrong token holds the softmax, v stays and 0 comes back.
    """
    peak = 0.0
    for k in range(lo, hi):
        c[k] = delta[k] - S
        if abs(c[k]) < 0.5 * delta[k]:
            total = 0.0
            for t in range(lo, hi):
                total += v[t] * (delta[k] - delta[t])
            c[k] = opt * delta[k] + best * total
        peak = max(peak, abs(v[k] * c[k]))
    if peak < 1e-200:
        return 0.0
    for k in range(lo, hi):
        v[k] = v[k] * c[k] / peak
    return peak


@jit
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


@jit_sum
def log_scale(n, s, bits, powers):
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


@jit_sum
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


@jit
def loss_gap_rest(kind, n, s, top, bits, powers, Q):
    """log(L - L*) - Q."""
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q + log_mean_slope(kind, top[i], s[S_ * n + i])
    return log_mean(n, s, LOST, bits, powers)


@jit
def log_add(a, b):
    """log(exp a + exp b)."""
    top = max(a, b)
    return top if not np.isfinite(top) else top + math.log(math.exp(a - top) + math.exp(b - top))


@jit_inline
def log_step_rest(rule, gap_rest, norm_rest, Q):
    """log eta_t + Q: the factor of the scaled gradient, from logs relative to Q.

    rule = (log_scale, gap_power, norm_power, log_max_step, momentum, log(L* - floor), ...).
    The powers of NGD and Polyak sum to -1 with the gradient's own, so Q drops out exactly.
    """
    value = rule[0] + (1.0 + rule[1] + rule[2]) * Q
    if rule[1] != 0.0:
        value += rule[1] * log_add(gap_rest, rule[5] - Q)
    if rule[2] != 0.0:
        value += rule[2] * norm_rest
    return min(value, rule[3] + Q)


@jit
def log_means(kind, n, s, top, bits, powers, Q):
    """Logs of the loss and of 1 - softmax(opt), the latter less Q, after `log_weights`."""
    for i in range(n):
        s[WORK * n + i] = log_value(kind, top[i] - s[S_ * n + i])
    loss = log_mean(n, s, ONE, bits, powers)
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q
    return loss, log_mean(n, s, SUM, bits, powers)


@jit_sum_inline
def log_complement(n, s, log_nonopt):
    """log of the mean of 1 - softmax(opt), from the smaller of the two sides."""
    if log_nonopt < -0.7:
        return log_nonopt
    opt = 0.0
    for i in range(n):
        opt += s[OPT * n + i]
    return math.log1p(-opt / n)


@jit_sum_inline
def see_softmax(progress, n, s):
    """Keep the least softmax of an optimal token so far."""
    least = progress[LEAST_SO_FAR]
    for i in range(OPT * n, OPT * n + n):
        least = min(least, s[i])
    progress[LEAST_SO_FAR] = least


@jit_inline
def add_length(progress, length):
    """Keep the sum of the step lengths, with its rounding (two-sum), and the longest."""
    y = length + progress[PATH_LOW]
    new = progress[PATH_SUM] + y
    part = new - progress[PATH_SUM]
    progress[PATH_LOW] = (progress[PATH_SUM] - (new - part)) + (y - part)
    progress[PATH_SUM] = new
    progress[LONGEST_SO_FAR] = max(progress[LONGEST_SO_FAR], length)


@jit_inline
def record_progress(progress, g, records, row):
    """What has accumulated, and the logit gaps."""
    records[row, PATH] = progress[PATH_SUM]
    records[row, LONGEST] = progress[LONGEST_SO_FAR]
    records[row, LEAST_OPT] = progress[LEAST_SO_FAR]
    for k in range(g.shape[0]):
        records[row, RECORDS + k] = g[k]


@jit_inline
def step_factor(kind, linear, rule, n, s, top, bits, powers, Q, peak, norm2, records, row):
    """The factor of the scaled gradient in the next step, and the softmax's record.

    norm2 is the squared norm of the scaled gradient; row < 0 records nothing.
    Returns (status, factor).
    """
    if not (np.isfinite(norm2) and np.isfinite(Q)):
        return DIVERGED, 0.0
    if norm2 <= 0.0:
        return ZERO_GRADIENT, 0.0
    norm_rest = peak + 0.5 * math.log(norm2)
    gap_rest = 0.0
    if row >= 0 or rule[1] != 0.0:
        if linear:
            gap_rest = peak + math.log(s[ROWS * n + GAP])
        else:
            gap_rest = loss_gap_rest(kind, n, s, top, bits, powers, Q)
    step_rest = log_step_rest(rule, gap_rest, norm_rest, Q)
    if row >= 0:
        if linear:
            loss = peak + math.log(s[ROWS * n + LOSS])
            nonopt = math.log(s[ROWS * n + NONOPT])
        else:
            loss, nonopt = log_means(kind, n, s, top, bits, powers, Q)
        records[row, LOG_LOSS] = loss
        records[row, LOG_NONOPT] = log_complement(n, s, nonopt + Q)
        records[row, LOG_GAP] = gap_rest + Q
        records[row, LOG_NORM] = norm_rest + Q
        records[row, LOG_STEP] = step_rest - Q
    return RUNNING, math.exp(step_rest + peak)
