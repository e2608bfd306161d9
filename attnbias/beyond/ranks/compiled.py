"""Steps of factors between records, compiled; the records are those of the torch loop."""

from __future__ import annotations

import hashlib
import math
from collections import namedtuple
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numba import njit

from ...dynamics.compiled.arithmetic import (
    OPTIONS,
    dot,
    inline_sum,
    matrix_product,
    multiply,
    rows_combine,
    rows_dot,
    scale_rows,
)
from ...dynamics.compiled.cache import keep
from ...dynamics.compiled.engine import in_one_block, room_for, scores_of
from ...dynamics.compiled.loop import digest, take_length
from ...dynamics.compiled.softmax import scale_weights, softmax
from ...dynamics.loop import Iteration
from ...dynamics.progress import LONGEST_STEP, RUNNING
from ...rules import Rule


class PairArrays(
    namedtuple("PairArrays", "rows queries K Q gK gQ flat_gK flat_gQ QQ RK Y R products size")
):
    """W = K Q' beside its gradient, never as a d x d matrix.

    gK, gQ and flat views : -grad of K and of Q, scaled; QQ : queries times Q; Y : queries times
    W'; products : size times the rows' products with Y; R_i = sum_k p_k (x_opt - x_k); RK : R K.
    """


@inline_sum
def least_log_softmax(products, start, s, n):
    """The least log of the softmax of an optimal token."""
    least = 0.0
    for i in range(n):
        rest = s.best[i] * s.others[i]
        low = products[start[i]]
        for k in range(start[i] + 1, start[i + 1]):
            low = min(low, products[k])
        least = min(least, math.log1p(-rest) if rest < 0.5 else low + s.base[i])
    return least


@inline_sum
def find_gradient(loss, scores, s, pair):
    """-grad of K and of Q up to a common factor; returns the least log softmax."""
    start, n = scores.start, scores.top.shape[0]
    matrix_product(pair.queries, pair.Q, pair.QQ)
    matrix_product(pair.QQ, pair.K.T, pair.Y)
    for i in range(n):
        rows_dot(pair.rows, start[i], start[i + 1], pair.Y[i], pair.products)
    multiply(pair.products, pair.size, pair.products, 0, pair.size.shape[0])
    softmax(loss, scores, pair.products, s, 0, n)
    for i in range(n):
        rows_combine(pair.rows, start[i], start[i + 1], s.p, pair.R[i])
    least = least_log_softmax(pair.products, start, s, n)
    scale_weights(scores, s, 0.0)
    scale_rows(pair.R, s.weight)
    matrix_product(pair.R.T, pair.QQ, pair.gK)
    matrix_product(pair.R, pair.K, pair.RK)
    matrix_product(pair.queries.T, pair.RK, pair.gQ)
    return least


def _make(sources: str):
    """The loop; what it holds is part of the name under which numba keeps it."""

    def walk(loss, scores, s, pair, law, progress, stretch):
        """Steps stretch[0] to stretch[1] of K and Q; law = (step size, power of t + 1, shared).

        Stops before a step that is none or too long. Returns the step reached, and the least log
        softmax on the way.
        """
        sources  # noqa: B018
        size, power, shared = law
        t, last = stretch
        least = 0.0
        while t < last:
            now = find_gradient(loss, scores, s, pair)
            of_K = math.sqrt(dot(pair.flat_gK, pair.flat_gK))
            of_Q = math.sqrt(dot(pair.flat_gQ, pair.flat_gQ))
            whole = math.sqrt(of_K * of_K + of_Q * of_Q)
            if not 0.0 < whole < np.inf:
                return t, least
            f = size * (t + 1.0) ** -power
            f_K = f / (whole if shared else of_K) if of_K > 0.0 else 0.0
            f_Q = f / (whole if shared else of_Q) if of_Q > 0.0 else 0.0
            if not max(f_K * of_K, f_Q * of_Q) <= LONGEST_STEP:
                return t, least
            take_length(progress[0], f_K * of_K)
            take_length(progress[1], f_Q * of_Q)
            for i in range(pair.K.shape[0]):
                for j in range(pair.K.shape[1]):
                    pair.K[i, j] += f_K * pair.gK[i, j]
                    pair.Q[i, j] += f_Q * pair.gQ[i, j]
            least = min(least, now)
            t += 1
        return t, least

    return walk


_own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
walk = njit(**OPTIONS | {"no_cpython_wrapper": False})(_make(digest() + _own))
keep(walk)


class Walk(Iteration):
    """The torch loop, whose steps between two records are taken by `walk`."""

    name = "compiled"

    def __init__(self, problem: Any, rule: Rule, recorded: np.ndarray):
        super().__init__(problem, rule, recorded)
        data = problem.of_W.data
        tokens, n, (d, r) = data.W.scaled.rows, data.n, problem.start.shape[1:]
        gK, gQ = np.zeros((2, d, r))
        found = (gK, gQ, gK.reshape(-1), gQ.reshape(-1), *np.zeros((2, n, r)))
        seen = (*np.zeros((2, n, d)), np.zeros(data.N), data.W.scaled.size.numpy())
        held = (tokens.differences.numpy(), tokens.queries.numpy(), *self.x.numpy())
        parts = room_for(data), scores_of(data, None), PairArrays(*held, *found, *seen)
        self.softmax, self.scores, self.pair = in_one_block(*parts)

    def run(self, step: int, last: int) -> tuple[int, int]:
        """As of the torch loop, which goes on where `walk` stops early, and says why."""
        status, marks = RUNNING, self.recorded
        for mark in [*marks[(step <= marks) & (marks < last)].tolist(), last]:
            status, step = super().run(self._walk(step, mark), mark)
            if status != RUNNING:
                break
        return status, step

    def _walk(self, step: int, last: int) -> int:
        pair, rule = self.pair, cast(Rule, self.rule)
        law = (math.exp(rule.log_scale), float(rule.decay[0]), rule.common_step)
        pair.K[...], pair.Q[...] = self.x.numpy()
        work = (self.scores, self.softmax, pair, law, self.progress, (step, last))
        reached, least = walk(self.problem.loss.compiled, *work)
        self.x = torch.from_numpy(np.stack([pair.K, pair.Q]))
        self.least = self.least.clamp(max=least)
        return reached
