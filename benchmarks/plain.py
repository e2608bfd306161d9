"""The span loop with an ordinary softmax, compiled alike: what the stable form is compared with.

It computes the same records and is wrong once 1 - softmax falls below 2^-53, which is the
point of the stable form; here only its time matters.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from attnbias.dynamics.compiled.arithmetic import dot, symmetric_product
from attnbias.dynamics.problem import Problem

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, error_model="numpy", fastmath=_FAST)
def _loop(start, scores, top, K, g, beta, g0, alpha, margin, p, q, record, eta, steps):
    n, N = top.shape[0], g.shape[0]
    path = longest = 0.0
    least = 1.0
    for step in range(steps):
        loss = score = 0.0
        for i in range(n):
            lo, hi = start[i], start[i + 1]
            peak = 0.0
            for k in range(lo, hi):
                peak = max(peak, -g[k])
            opt = math.exp(-peak)
            total = opt
            for k in range(lo, hi):
                p[k] = math.exp(-g[k] - peak)
                total += p[k]
            mean = opt / total * top[i]
            for k in range(lo, hi):
                p[k] /= total
                mean += p[k] * scores[k]
            value = math.exp(-mean)
            loss += value
            score += opt / total
            least = min(least, opt / total)
            for k in range(lo, hi):
                p[k] *= value * (mean - scores[k]) / n
        symmetric_product(K, p, q, step % 2 == 1)
        norm = math.sqrt(dot(p, q))
        norm2 = along = across2 = 0.0
        for k in range(N):
            norm2 += beta[k] * (g[k] + g0[k])
            along += alpha[k] * g[k]
        for k in range(N):
            rest = g[k] - along * margin[k] + g0[k]
            across2 += (beta[k] - along * alpha[k]) * rest
        record[0], record[1], record[2] = loss / n, math.sqrt(norm2), score / n
        record[3], record[4] = along, across2
        record[5], record[6], record[7] = path, longest, least
        path += eta
        longest = max(longest, eta)
        for k in range(N):
            record[8 + k] = g[k]
            g[k] += eta / norm * q[k]
            beta[k] += eta / norm * p[k]
    return g


def plain_span_loop(problem: Problem, eta: float):
    """A function of the number of steps that runs the plain loop from zero."""
    counts = np.bincount(problem.W.rows.sequence.numpy(), minlength=problem.n)
    start = np.concatenate([[0], counts.cumsum()])
    top = problem.scores.top.numpy()
    delta = problem.scores.delta[problem.place].numpy()
    scores = top[problem.W.rows.sequence.numpy()] - delta
    K, zero = problem.W.rows.gram().numpy(), np.zeros(problem.N)
    work = (np.empty(problem.N), np.empty(problem.N), np.empty(8 + problem.N))

    def run(steps: int) -> None:
        state = (zero.copy(), zero.copy(), zero, zero, zero)
        _loop(start, scores, top, K, *state, *work, eta, steps)

    return run
