"""Runs on one data set, advanced together: an entry of K serves all of them.

Each run takes the steps of `loops.span_loop`; what differs is that their products K r are
one product with the matrix of all r, which computes instead of waiting for K. Lanes don't
touch each other, so a run's numbers don't depend on which runs it has for company.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import RangeError, ShapeError
from ..rules import Rule
from .compiled import jit, jit_inline
from .engines import common_factor, rule_array, span_arrays, token_arrays
from .kernels import DIVERGED, ROWS, RUNNING, SCALE, scale_of, see_softmax, step_factor, weights_of
from .lanes import (
    NARROW,
    WIDE,
    interleaved,
    lane_product,
    pack_lower,
    put_vector,
    take_vector,
)
from .loops import borrow_span, borrow_tokens, borrow_work
from .problem import Problem
from .products import advance, borrow, dot
from .recording import NORM2, measure_span, record_accumulated, record_measure, take_length

_IN_COMMON = ("rows", "scores", "svm", "column")


@jit_inline
def _weigh(r, kind, rule, tokens, state, work, V, scales):
    """Weights of the gradient of run r, into its row of v and its lane of V."""
    start = tokens[0]
    _, v, c, s, bits, powers = work
    n, g, v, s = tokens[3].shape[0], state[0][r], v[r], s[r]
    linear = weights_of(rule[6] != 0.0, kind, tokens, 0, n, g, s, v, c, bits, powers)
    Q, peak = scale_of(linear, rule, n, s, bits, powers)
    for i in range(n):
        scale, part = s[SCALE * n + i], v[start[i] : start[i + 1]]
        for k in range(part.shape[0]):
            part[k] *= scale
    put_vector(V, r, v)
    scales[r, 0], scales[r, 1], scales[r, 2] = linear, Q, peak


@jit_inline
def _move(r, kind, rule, tokens, target, state, work, scale, moves, row, records):
    """Record run r and take its step, if it `moves`; returns its status. Its q is in work."""
    g, g_low, beta, beta_low, speed_g, speed_beta, g0, progress = state
    q, v, _, s, bits, powers = work
    top, v, s, progress = tokens[3], v[r], s[r], progress[r]
    n, linear, Q, peak = top.shape[0], scale[0] != 0.0, scale[1], scale[2]
    norm2 = dot(v, q)
    see_softmax(progress, n, s)
    status, f = step_factor(
        kind, linear, rule, n, s, top, bits, powers, Q, peak, norm2, records, row
    )
    if status != RUNNING:
        return status
    if row >= 0:
        of_run = (target[0], target[1], target[2][r])
        record_measure(records, row, NORM2, measure_span(g[r], beta[r], g0[r], of_run))
        record_accumulated(progress, records, row)
    if moves:
        if not take_length(progress, f * math.sqrt(norm2)):
            return DIVERGED
        advance(g[r], g_low[r], speed_g[r], rule[4], f, q, 0, q.shape[0])
        advance(beta[r], beta_low[r], speed_beta[r], rule[4], f, v, 0, q.shape[0])
    return RUNNING


@jit
def shared_loop(laws, tokens, target, state, work, lanes, ends, step, last, wanted, records):
    """`span_loop` for the runs of one group; each array of a run is a row of what is here.

    laws = (kinds, rules), a loss and a rule a run; tokens[6] holds K from `pack_lower`;
    lanes = (V, Q, scales): v and q interleaved, and (linear, Q, peak) of each run;
    ends = (statuses, steps). A run whose status is not RUNNING has a lane of zeros.
    """
    tokens, work = borrow_tokens(tokens), borrow_work(work)
    target, state = borrow_span(target, state)
    kinds, rules, wanted = borrow(laws[0]), borrow(laws[1]), borrow(wanted)
    V, Q, scales = borrow(lanes[0]), borrow(lanes[1]), borrow(lanes[2])
    statuses, steps, records = borrow(ends[0]), borrow(ends[1]), borrow(records)
    q = work[0]
    while True:
        running = False
        for r in range(len(kinds)):
            if statuses[r] == RUNNING:
                running = True
                _weigh(r, kinds[r], rules[r], tokens, state, work, V, scales)
        if not running:
            return
        lane_product(tokens[6], V, Q)
        for r in range(len(kinds)):
            if statuses[r] != RUNNING:
                continue
            take_vector(Q, r, q)
            law, moves = (kinds[r], rules[r]), step < last
            statuses[r] = _move(
                r, *law, tokens, target, state, work, scales[r], moves, wanted[step], records[r]
            )
            steps[r] = step
            if statuses[r] != RUNNING:
                V[:, r] = 0.0
        if step == last:
            return
        step += 1


class SharedRuns:
    """Runs on one data set, advanced together in span coordinates.

    Parameters
    ----------
    problems : sequence of Problem
        One a run, with the same rows, scores and SVM; the start and the loss may differ.
    rules : sequence of Rule
        One a run.
    wanted : (steps + 1,) int32
        Row of the records that takes iteration t, or -1.
    records : (R, count, RECORDS) float64
        Filled in place; the first columns of `recording`, without the logit gaps.

    Attributes
    ----------
    statuses : (R,) of `kernels`
    steps : (R,) iteration reached; a run that stopped keeps its own.

    Raises
    ------
    ShapeError, RangeError
        All before any work.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        rules: Sequence[Rule],
        wanted: np.ndarray,
        records: np.ndarray,
    ):
        _require_one_data_set(problems, rules)
        R = len(problems)
        self.statuses = np.full(R, RUNNING)
        self.steps = np.zeros(R, np.int64)
        common = common_factor(problems[0])
        tokens = (*token_arrays(problems[0], common), pack_lower(problems[0].gram))
        self.groups = []
        for first in range(0, R, WIDE):
            part = slice(first, first + WIDE)
            ends = (self.statuses[part], self.steps[part])
            group = (problems[part], rules[part], common, tokens, ends, wanted, records[part])
            self.groups.append(_Group(*group))

    def run(self, step: int, last: int) -> None:
        """Advance every run that still runs from `step` to `last`."""
        for group in self.groups:
            group.run(step, last)


class _Group:
    """The arrays of up to `WIDE` runs: few enough that they stay in cache beside K."""

    def __init__(self, problems, rules, common, tokens, ends, wanted, records):
        self.tokens, self.ends, self.wanted, self.records = tokens, ends, wanted, records
        kinds = np.array([problem.loss.compiled for problem in problems])
        pairs = zip(problems, rules, strict=True)
        self.laws = (kinds, np.stack([rule_array(*pair, common) for pair in pairs]))
        targets, states = zip(*map(span_arrays, problems), strict=True)
        self.target = (*targets[0][:2], np.stack([scalars for _, _, scalars in targets]))
        self.state = tuple(np.stack(parts) for parts in zip(*states, strict=True))
        R, N, n = len(problems), problems[0].N, problems[0].n
        bits = np.empty(max(N, n), np.int64)
        v, s = np.empty((R, N)), np.ones((R, ROWS * n + 3))
        self.work = (np.empty(N), v, np.empty(N), s, bits, bits.view(np.float64))
        width = NARROW if R <= NARROW else WIDE
        self.lanes = (interleaved(N, width), interleaved(N, width), np.empty((R, 3)))

    def run(self, step: int, last: int) -> None:
        fixed = (self.laws, self.tokens, self.target, self.state, self.work, self.lanes)
        shared_loop(*fixed, self.ends, step, last, self.wanted, self.records)


def _require_one_data_set(problems: Sequence[Problem], rules: Sequence[Rule]) -> None:
    if not 0 < len(problems) == len(rules):
        raise ShapeError(
            "rules",
            expected="one for each of at least one problem",
            got=f"{len(rules)} rules for {len(problems)} problems",
            remedy="give as many rules as problems",
        )
    first = problems[0]
    for problem in problems:
        pairs = [(getattr(problem, name), getattr(first, name)) for name in _IN_COMMON]
        if not all(one is two for one, two in pairs):
            raise RangeError(
                "problems",
                expected="the same rows, scores and SVM in all of them",
                got="two that differ in one of these",
                remedy="make them by dataclasses.replace(problem, start=..., loss=...)",
            )
        if problem.loss.compiled is None or problem.start.device.type != "cpu":
            raise RangeError(
                "problems",
                expected="the exponential or logistic loss, on the CPU",
                got=f"{problem.loss.name} on {problem.start.device}",
                remedy="train such runs one at a time",
            )
