"""The log-domain softmax of `softmax`, compiled: one for W alone and for joint training.

Rows are the gap rows of (W-SVM), flat; sequence i has rows start[i] to start[i + 1]. With low
the least gap of a sequence, v_k = exp(low - g_k), base = log of the softmax of the best
non-optimal token, and c_k the mean score under the softmax less that of row k,

    -grad_W L = mean over sequences of exp(base + slope) sum_k v_k c_k z_k,   slope = log(-l').

base runs to -infinity with training while v, c and slope stay moderate, so that one common
exponent is taken out before the two large parts could cancel.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from .arithmetic import exponentials, inline_sum, jit, jit_sum, log_fade, log_slope, log_value

LEAST_SIZE, MOST_SIZE = 1e-100, 1e100  # of a factor kept as a float: its square is still one
LOSS, GAP, NONOPT = range(3)  # rows of scratch


class ScoreArrays(namedtuple("ScoreArrays", "start top delta uniform log_size log_u_size")):
    """What the decoder makes of the tokens.

    start : (n + 1,) first row of each sequence, and the end; top : (n,) optimal tokens' scores;
    delta : (N',) score gaps; uniform : (n,) whether a sequence's gaps are equal and positive;
    log_size, log_u_size : (n,) logs of the units that its rows have for W and for u.
    """


class Softmax(
    namedtuple(
        "Softmax", "v p fall logs base opt best others excess lost slope log_rest weight x y"
    )
):
    """What one iterate's softmax determines; arrays are padded to a multiple of eight.

    Per row: v as above; p, the weights of -grad_W; fall and logs are scratch.
    Per sequence: base as above; opt and best, the softmax of the optimal and the best other
    token; others = sum of v; excess = sum of v delta; lost = best excess, the score lost to the
    others; slope; log_rest and weight, of which `softmax` speaks; x and y, three rows, are scratch.
    """


@inline_sum
def softmax(kind, scores, g, s, a, b):
    """Softmax and gradient weights of sequences a to b, from the gaps g.

    Row k has the weight exp(base + slope + log_rest) weight p_k, the last two of moderate size.
    """
    start, delta = scores.start, scores.delta
    for i in range(a, b):
        low = g[start[i]]
        for k in range(start[i] + 1, start[i + 1]):
            low = min(low, g[k])
        s.base[i] = low
        s.x[0, i] = -min(abs(low), 708.0)  # so that exp of it is a normal number
        for k in range(start[i], start[i + 1]):
            s.fall[k] = low - g[k]
    whole = b == scores.top.shape[0]  # with the padding
    lo, hi = start[a], s.fall.shape[0] if whole else start[b]
    exponentials(s.fall[lo:hi], s.v[lo:hi])
    end = s.x.shape[1] if whole else b
    exponentials(s.x[0, a:end], s.y[0, a:end])
    for i in range(a, b):
        lo, hi = start[i], start[i + 1]
        E = ED = 0.0
        for k in range(lo, hi):
            E += s.v[k]
            ED += s.v[k] * delta[k]
            s.p[k] = s.v[k]
        low, least = s.base[i], s.y[0, i]
        if low >= 0.0:
            ratio = E * least
            opt = 1.0 / (1.0 + ratio)
            best = least * opt
            base = -low - (math.log1p(ratio) if ratio > 1e-17 else 0.0)
        else:
            best = 1.0 / (least + E)
            opt = least * best
            base = math.log(best)
        S = best * ED
        slope = log_slope(kind, scores.top[i] - S)
        s.base[i], s.opt[i], s.best[i], s.slope[i] = base, opt, best, slope
        s.others[i], s.excess[i], s.lost[i] = E, ED, S
        size = delta[lo] * opt
        if not scores.uniform[i]:
            size = general_weights(delta[lo:hi], s.v[lo:hi], s.p[lo:hi], opt, best, S)
        s.weight[i], s.log_rest[i] = size, 0.0
        if not LEAST_SIZE <= size <= MOST_SIZE:  # a wrong token holds the softmax, say
            s.weight[i] = 1.0
            log_opt = low + base
            if scores.uniform[i]:
                s.log_rest[i] = math.log(delta[lo]) + log_opt
            else:
                part, fall, logs = delta[lo:hi], s.fall[lo:hi], s.logs[lo:hi]
                s.log_rest[i] = log_domain_weights(part, fall, s.p[lo:hi], logs, base, log_opt)


@jit_sum
def general_weights(delta, v, p, opt, best, S):
    """p = v c / peak of one sequence, and peak = max |v c|, without Assumption 2.

    c_k = sum_t softmax_t (score_t - score_k) over all tokens t, opt among them. It equals
    delta_k - S, which is used unless that difference cancels. Score gaps delta_k may be of
    either sign. Close to underflow, because a wrong token holds the softmax, 0 comes back.
    """
    peak = 0.0
    for k in range(delta.shape[0]):
        c = delta[k] - S
        if abs(c) < 0.5 * abs(delta[k]):
            total = 0.0
            for t in range(delta.shape[0]):
                total += v[t] * (delta[k] - delta[t])
            c = opt * delta[k] + best * total
        p[k] = v[k] * c
        peak = max(peak, abs(p[k]))
    if peak < LEAST_SIZE:
        return 0.0
    for k in range(delta.shape[0]):
        p[k] /= peak
    return peak


@jit
def log_domain_weights(delta, fall, p, logs, base, log_opt):
    """`general_weights` with every term in logs; returns log peak, -inf if all c_k are 0."""
    peak = -np.inf
    for k in range(delta.shape[0]):
        own = -np.inf if delta[k] == 0.0 else log_opt + math.log(abs(delta[k]))
        shift = own
        for t in range(delta.shape[0]):
            if delta[t] != delta[k]:
                shift = max(shift, base + fall[t] + math.log(abs(delta[k] - delta[t])))
        if shift == -np.inf:
            p[k], logs[k] = 0.0, -np.inf
            continue
        total = math.copysign(math.exp(own - shift), delta[k])
        for t in range(delta.shape[0]):
            if delta[t] != delta[k]:
                term = base + fall[t] + math.log(abs(delta[k] - delta[t]))
                total += math.copysign(math.exp(term - shift), delta[k] - delta[t])
        p[k] = total
        logs[k] = -np.inf if total == 0.0 else fall[k] + shift + math.log(abs(total))
        peak = max(peak, logs[k])
    for k in range(delta.shape[0]):
        p[k] = 0.0 if p[k] == 0.0 else math.copysign(math.exp(logs[k] - peak), p[k])
    return peak


@inline_sum
def scale_weights(scores, s, P):
    """Bring p to one scale: -grad_W L = exp(P + Q + H) sum_k p_k z_k. Returns (Q, H).

    Q is the largest base + slope - P: L - L* has the size exp(P + Q), however small the gradient.
    H = -inf where p is zero.
    """
    n = scores.top.shape[0]
    Q = H = -np.inf
    for i in range(n):
        Q = max(Q, s.base[i] + (s.slope[i] - P))
    for i in range(n):
        s.x[0, i] = s.base[i] + (s.slope[i] - P) - Q + s.log_rest[i] + scores.log_size[i]
        H = max(H, s.x[0, i])
    for i in range(n):
        s.x[0, i] = s.x[0, i] - H if -np.inf < H else 0.0
    exponentials(s.x[0], s.y[0])
    for i in range(n):
        s.weight[i] *= s.y[0, i] / n
        for k in range(scores.start[i], scores.start[i + 1]):
            s.p[k] *= s.weight[i]
    return Q, H


@inline_sum
def decoder_weights(scores, s, w):
    """w of the rows b_j with -grad_u L = exp(P + H) sum_j w_j b_j; returns (P, H).

    The rows are y_i x_{i,opt}, then y_i (x_opt - x_tau) in the order of the gap rows. P is the
    largest slope.
    """
    n = scores.top.shape[0]
    P = H = -np.inf
    for i in range(n):
        P = max(P, s.slope[i])
    for i in range(n):
        H = max(H, s.slope[i] - P + scores.log_u_size[i])
    for i in range(n):
        s.x[0, i] = s.slope[i] - P + scores.log_u_size[i] - H
    exponentials(s.x[0], s.y[0])
    for i in range(n):
        w[i] = s.y[0, i] / n
        for k in range(scores.start[i], scores.start[i + 1]):
            w[n + k] = -w[i] * s.best[i] * s.v[k]
    return P, H


@inline_sum
def log_means(kind, scores, s, Q_loss, Q_gap):
    """Logs of L less Q_loss, of L - L* less Q_gap, and of the mean of 1 - softmax(opt).

    L* is the loss when every softmax sits on its optimal token; Q_gap is the largest
    base + slope. All at once, so that one exponential does not wait for another.
    """
    n, x, y = scores.top.shape[0], s.x, s.y
    loss = nonopt = -np.inf
    for i in range(n):
        x[LOSS, i] = log_value(kind, scores.top[i] - s.lost[i])
        x[GAP, i] = s.base[i] + s.slope[i] - Q_gap + log_fade(kind, scores.top[i], s.lost[i])
        x[NONOPT, i] = s.base[i]
        loss, nonopt = max(loss, x[LOSS, i]), max(nonopt, x[NONOPT, i])
    for i in range(n):
        x[LOSS, i] -= loss
        x[NONOPT, i] -= nonopt
    exponentials(x[LOSS], y[LOSS])
    exponentials(x[GAP], y[GAP])
    exponentials(x[NONOPT], y[NONOPT])
    a = b = c = opt = 0.0
    for i in range(n):
        a += y[LOSS, i]
        b += y[GAP, i] * s.excess[i]
        c += y[NONOPT, i] * s.others[i]
        opt += s.opt[i]
    nonopt += math.log(c / n)
    if nonopt >= -0.7:  # from the smaller of the two sides
        nonopt = math.log1p(-opt / n)
    return loss - Q_loss + math.log(a / n), math.log(b / n), nonopt
