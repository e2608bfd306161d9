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

from .compiled import jit, jit_inline, jit_sum, jit_sum_inline
from .elementary import exp_into, log_add, log_mean_slope, log_slope, log_value
from .recording import LEAST_SO_FAR, LOG_GAP, LOG_LOSS, LOG_NONOPT, LOG_NORM, LOG_STEP

RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
# quantities of a sequence, one stretch of n numbers each in s; three totals stand behind them
LOW, TINY, BASE, REST, SUM, LOST, S_, SCALE, WORK, ONE, OPT = range(11)
ROWS = 11
LOSS, NONOPT, GAP = range(3)


@jit_inline
def exp_part(a, lo, hi, bits, powers):
    """`exp_into` on a[lo:hi] as an array of its own, with the same numbers 3 times faster.

    An index that might be negative counts from the end, which keeps a loop off the vector
    units; one that starts at 0 is known not to be.
    """
    exp_into(a[lo:hi], 0, hi - lo, bits, powers)


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
    exp_part(v, start[a], start[b], bits, powers)
    if least < 60.0:  # beyond, exp(-60) times any sum of scores is below rounding
        exp_part(s, TINY * n + a, TINY * n + b, bits, powers)
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
            size = signed_weights(lo, hi, g, delta, v, c, low, base, opt, best, S)
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
    exp_part(s, WORK * n, WORK * n + n, bits, powers)
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
    delta_k - S, which is used unless that difference cancels. Score gaps delta_k may be of
    either sign. Close to underflow, because a wrong token holds the softmax, v stays and 0
    comes back.
    """
    peak = 0.0
    for k in range(lo, hi):
        c[k] = delta[k] - S
        if abs(c[k]) < 0.5 * abs(delta[k]):
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
    """`general_weights` with every term in logs; returns log peak, -inf if all c_k are 0."""
    peak = -np.inf
    for k in range(lo, hi):
        own = -np.inf if delta[k] == 0.0 else low + base + math.log(abs(delta[k]))
        shift = own
        for t in range(lo, hi):
            if delta[t] != delta[k]:
                shift = max(shift, base + low - g[t] + math.log(abs(delta[k] - delta[t])))
        if shift == -np.inf:
            v[k], c[k] = 0.0, -np.inf
            continue
        total = math.copysign(math.exp(own - shift), delta[k])
        for t in range(lo, hi):
            if delta[t] != delta[k]:
                log_term = base + low - g[t] + math.log(abs(delta[k] - delta[t]))
                total += math.copysign(math.exp(log_term - shift), delta[k] - delta[t])
        v[k] = total
        c[k] = -np.inf if total == 0.0 else low - g[k] + shift + math.log(abs(total))
        peak = max(peak, c[k])
    for k in range(lo, hi):
        v[k] = 0.0 if v[k] == 0.0 else math.copysign(math.exp(c[k] - peak), v[k])
    return peak


@jit
def signed_weights(lo, hi, g, delta, v, c, low, base, opt, best, S):
    """`general_weights`, in logs where they underflow; returns log peak."""
    peak = general_weights(lo, hi, delta, v, c, opt, best, S)
    if peak > 0.0:
        return math.log(peak)
    return log_domain_weights(lo, hi, g, delta, v, c, low, base)


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
    exp_part(s, SCALE * n, SCALE * n + n, bits, powers)
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
    exp_part(s, w, w + n, bits, powers)
    total = 0.0
    for i in range(n):
        total += s[w + i] * s[factor * n + i]
    return shift + math.log(total / n)


@jit_inline
def weights_of(linear, kind, tokens, a, b, g, s, v, c, bits, powers):
    """`linear_weights` where `linear` asks for them and they are in range, else `log_weights`.

    Returns whether they are the linear ones.
    """
    start, delta, log_delta, top, uniform, floor, _ = tokens
    if linear and linear_weights(start, delta, uniform, floor, a, b, g, s, v, c, bits, powers):
        return True
    log_weights(kind, start, delta, log_delta, top, uniform, a, b, g, s, v, c, bits, powers)
    return False


@jit_inline
def scale_of(linear, rule, n, s, bits, powers):
    """(Q, peak) of `log_scale`, after either form of weights."""
    if linear:
        return linear_scale(n, s, bits, powers), rule[7]
    return log_scale(n, s, bits, powers)


@jit
def loss_gap_rest(kind, n, s, top, bits, powers, Q):
    """log(L - L*) - Q."""
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q + log_mean_slope(kind, top[i], s[S_ * n + i])
    return log_mean(n, s, LOST, bits, powers)


@jit_inline
def power_law_rest(rule, gap_rest, norm_rest, Q):
    """log eta_t + Q before the cap: the factor of the scaled gradient, from logs relative to Q.

    rule = (log_scale, gap_power, norm_power, log_max_step, momentum, log(L* - floor), ...).
    The powers of NGD and Polyak sum to -1 with the gradient's own, so Q drops out exactly.
    """
    value = rule[0] + (1.0 + rule[1] + rule[2]) * Q
    if rule[1] != 0.0:
        value += rule[1] * log_add(gap_rest, rule[5] - Q)
    if rule[2] != 0.0:
        value += rule[2] * norm_rest
    return value


@jit_inline
def log_step_rest(rule, gap_rest, norm_rest, Q):
    """`power_law_rest` after the cap."""
    return min(power_law_rest(rule, gap_rest, norm_rest, Q), rule[3] + Q)


@jit
def log_mean_nonopt(n, s, bits, powers, Q):
    """log of the mean of 1 - softmax(opt), less Q."""
    for i in range(n):
        s[WORK * n + i] = s[BASE * n + i] - Q
    return log_mean(n, s, SUM, bits, powers)


@jit
def log_means(kind, n, s, top, bits, powers, Q):
    """Logs of the loss and of 1 - softmax(opt), the latter less Q, after `log_weights`."""
    for i in range(n):
        s[WORK * n + i] = log_value(kind, top[i] - s[S_ * n + i])
    loss = log_mean(n, s, ONE, bits, powers)
    return loss, log_mean_nonopt(n, s, bits, powers, Q)


@jit_sum_inline
def see_softmax(progress, n, s):
    """Keep the least softmax of an optimal token so far."""
    least = progress[LEAST_SO_FAR]
    for i in range(OPT * n, OPT * n + n):
        least = min(least, s[i])
    progress[LEAST_SO_FAR] = least


@jit_sum_inline
def log_complement(n, s, log_nonopt):
    """log of the mean of 1 - softmax(opt), from the smaller of the two sides."""
    if log_nonopt < -0.7:
        return log_nonopt
    opt = 0.0
    for i in range(n):
        opt += s[OPT * n + i]
    return math.log1p(-opt / n)


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
        # not step_rest - Q: what the rule itself gives keeps its digits however large Q is
        records[row, LOG_STEP] = log_step_rest(rule, gap_rest + Q, norm_rest + Q, 0.0)
    return RUNNING, math.exp(step_rest + peak)
