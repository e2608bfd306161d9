"""W_mm of float64 tokens in fractions: floats are integers over a power of two, so all is exact.

The dual weights of the support rows solve K a = 1 in integers, by elimination without fractions
(Bareiss); what follows is judged by the optimality conditions alone, also in integers. Where
(W-SVM) is infeasible the weights of Gordan's certificate solve K a = 0 in the same way.
Source: ours [c].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import torch

from ...errors import SolverError
from ..exact import dot

Table = list[list[int]]
COARSE = 2**30  # weights that the rows leave open are rounded to multiples of 1 / COARSE


@dataclass(frozen=True)
class IntegerTokens:
    """Tokens (n, T, d), a decoder (d,) and labels (n,) as integers; the first two over `scale`."""

    tokens: list[Table]
    decoder: list[int]
    labels: list[int]
    opt: list[int]
    bits: int

    @property
    def scale(self) -> int:
        return 2**self.bits

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.tokens), len(self.tokens[0]), len(self.tokens[0][0])

    @cached_property
    def differences(self) -> list[Table]:
        """x_opt - x_tau of each token, 0 at the optimal one."""
        best = [s[o] for s, o in zip(self.tokens, self.opt, strict=True)]
        pairs = zip(self.tokens, best, strict=True)
        return [[[b - a for a, b in zip(x, o, strict=True)] for x in s] for s, o in pairs]

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """(i, tau) of each row, in the order of a solution's dual weights."""
        n, T, _ = self.shape
        return [(i, t) for i in range(n) for t in range(T) if t != self.opt[i]]

    def gram(self, rows: list[tuple[int, int]]) -> Table:
        """Inner products of rows, times scale^4."""
        D, x = self.differences, self.tokens
        return [[dot(D[i][t], D[j][s]) * dot(x[i][0], x[j][0]) for j, s in rows] for i, t in rows]

    @cached_property
    def scores(self) -> Table:
        """Scores of all tokens, times scale^2."""
        pairs = zip(self.labels, self.tokens, strict=True)
        return [[y * dot(x, self.decoder) for x in sequence] for y, sequence in pairs]

    def has_optimal_tokens(self) -> bool:
        """Whether `opt` are the tokens of largest score, without a tie."""
        pairs = zip(self.scores, self.opt, strict=True)
        return all(sum(score >= s[o] for score in s) == 1 for s, o in pairs)


def as_integers(X: torch.Tensor, y: torch.Tensor, u: torch.Tensor, opt: torch.Tensor):
    """IntegerTokens of float64 tensors."""
    ratios = [v.as_integer_ratio() for v in [*X.flatten().tolist(), *u.tolist()]]
    scale = max(below for _, below in ratios)
    whole = iter([above * (scale // below) for above, below in ratios])
    n, T, d = X.shape
    tokens = [[[next(whole) for _ in range(d)] for _ in range(T)] for _ in range(n)]
    labels = [int(v) for v in y.tolist()]
    return IntegerTokens(tokens, [*whole], labels, opt.tolist(), scale.bit_length() - 1)


@dataclass(frozen=True)
class RationalSolution:
    """W_mm = numerators / (denominator scale^2), by weights (n, T) over the same denominator."""

    data: IntegerTokens
    weights: Table
    denominator: int
    numerators: Table

    @property
    def square(self) -> Fraction:
        """|W_mm|^2, the sum of the weights."""
        return Fraction(sum(map(sum, self.weights)), self.denominator)

    @cached_property
    def gaps(self) -> list[tuple[int, int, int]]:
        """(i, tau, gap - 1 up to a positive factor) of each row."""
        D, x = self.data.differences, self.data.tokens
        images = [[dot(w, s[0]) for w in self.numerators] for s in x]
        one = self.denominator * self.data.scale**4
        return [(i, t, dot(D[i][t], images[i]) - one) for i, t in self.data.rows]

    def strict(self) -> bool:
        """Whether each gap of one has a positive weight."""
        return all(gap or self.weights[i][t] for i, t, gap in self.gaps)

    def refusals(self) -> list[str]:
        """Which optimality conditions fail, each with its first place."""
        short = [(i, t) for i, t, gap in self.gaps if gap < 0]
        loose = [(i, t) for i, t, gap in self.gaps if gap > 0 and self.weights[i][t]]
        signs = [(i, t) for i, t in self.data.rows if self.weights[i][t] < 0]
        wrong = [] if combined(self.data, self.weights) == self.numerators else [(0, 0)]
        found = {
            "a negative weight": signs,
            "a gap below one": short,
            "a positive weight where the gap is above one": loose,
            "another matrix than the weights give": wrong,
        }
        return [f"{name} (sequence {p[0][0]}, token {p[0][1]})" for name, p in found.items() if p]

    def require_optimal(self) -> RationalSolution:
        if found := self.refusals():
            raise _refused("the optimality conditions of (W-SVM), in fractions", found[0])
        return self


def solve_rationally(data: IntegerTokens, dual: list[float], idle: list[bool]) -> RationalSolution:
    """The solution whose support rows have these dual weights, in fractions.

    Rows that are `idle`, of gap one and weight zero as far as floats can tell, join the support
    where the fractions say that they must.
    """
    support = [k for k, a in enumerate(dual) if a]
    while True:
        rows = [data.rows[k] for k in support]
        weights = _weights(data, rows, [dual[k] for k in support], 1)
        found = _combination(data, dict(zip(rows, weights, strict=True)))
        short = [k for k, (*_, gap) in enumerate(found.gaps) if gap < 0 and idle[k]]
        if not short or short[0] in support:
            return found.require_optimal()
        support = sorted([*support, short[0]])


def cancel_rationally(data: IntegerTokens, certificate: list[float]) -> RationalSolution:
    """Gordan's certificate in integers, over the denominator 1: a sum of rows that is zero."""
    support = [k for k, a in enumerate(certificate) if a > 1e-9 * max(certificate)]
    rows = [data.rows[k] for k in support]
    weights = _weights(data, rows, [certificate[k] for k in support], 0)
    over = lcm(*(a.denominator for a in weights))
    found = _combination(data, {row: a * over for row, a in zip(rows, weights, strict=True)})
    if min(weights) < 0 or not any(weights) or any(map(any, found.numerators)):
        raise _refused("rows that cancel exactly", "rows that cancel up to rounding alone")
    return found


def _weights(data, rows, near: list[float], right: int) -> list[Fraction]:
    """Solutions a of K a = right; entries that K leaves open are those `near`, rounded."""
    M = [[*row, right * data.scale**4] for row in data.gram(rows)]
    pivots, last = eliminate(M, len(rows))
    if any(row[-1] for row in M[len(pivots) :]):
        raise _refused("support rows with a common gap", "rows that contradict each other")
    found = [Fraction(round(a * COARSE), COARSE) for a in near]
    free = [c for c in range(len(rows)) if c not in pivots]
    for row, c in zip(M, pivots, strict=False):
        found[c] = (row[-1] - sum(row[f] * found[f] for f in free)) / Fraction(last)
    return found


def eliminate(M: Table, columns: int) -> tuple[list[int], int]:
    """Reduce to `last` times the echelon form, in place and in integers; the pivots' columns."""
    last = 1
    pivots: list[int] = []
    for c in range(columns):
        r = len(pivots)
        p = next((j for j in range(r, len(M)) if M[j][c]), None)
        if p is None:
            continue
        M[r], M[p] = M[p], M[r]
        head, top = M[r][c], M[r]
        for j, row in enumerate(M):
            if j != r:
                left = row[c]
                M[j] = [(head * a - left * b) // last for a, b in zip(row, top, strict=True)]
        last = head
        pivots.append(c)
    return pivots, last


def _combination(data: IntegerTokens, weights: dict) -> RationalSolution:
    n, T, _ = data.shape
    over = lcm(*(Fraction(a).denominator for a in weights.values()))
    table = [[int(weights.get((i, t), 0) * over) for t in range(T)] for i in range(n)]
    return RationalSolution(data, table, over, combined(data, table))


def combined(data: IntegerTokens, weights: Table) -> Table:
    """The sum of the rows by these weights, times scale^2."""
    n, _, d = data.shape
    sums = [
        [dot(weights[i], column) for column in zip(*data.differences[i], strict=True)]
        for i in range(n)
    ]
    queries = [s[0] for s in data.tokens]
    return [
        [sum(v[a] * q[b] for v, q in zip(sums, queries, strict=True)) for b in range(d)]
        for a in range(d)
    ]


def _refused(expected: str, got: str) -> SolverError:
    remedy = "solve again; tokens whose gaps are one up to rounding need a larger support"
    return SolverError("W-SVM", expected=expected, got=got, remedy=remedy)
