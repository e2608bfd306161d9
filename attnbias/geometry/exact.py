"""Certificates without rounding: what a solution's numbers prove, in ball arithmetic.

A ball is a number with a bound on its error, and each operation encloses the true result
(python-flint). Tokens, weights and dual weights are taken as the exact numbers that floats are.

The SVM is solved once more with 77 digits, from the stored dual weights on. How is not part of
the proof, which is weak duality at the weights a >= 0 that it ends with: for G = sum_k a_k z_k of
least margin m > 0, the matrix G / m is feasible, and

    (sum_k a_k)^2 / |G|^2  <=  |W_mm|^2  <=  |G|^2 / m^2.

Because W_mm is the point of a convex set next to 0, <W_mm, G / m - W_mm> >= 0, so that
|G / m - W_mm|^2 is at most the difference of these bounds. Source: ours [c].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .._extras import need
from .._validate import as_floats, require_finite, require_number
from ..errors import RangeError
from .active_set import solve_dual
from .tokens import GapRows

__all__ = ["ExactCertificate"]

LARGEST = 1000  # constraints of which a proof takes seconds; the time grows with their cube

BITS = 256
# Width of the bounds on |W_mm|^2, relative, at which to stop: distances are then known to 1e-22
# of the norm, far below float64's rounding.
CLOSE = 2.0**-144
# Share by which the diagonal of a Gram matrix is raised, so that equal rows have an inverse too. A
# correction leaves of the error at most this share over the least eigenvalue that isn't 0.
NUDGE = 2.0**-96
CORRECTIONS = 4
ROUNDS = 6  # changes of the supporting rows; from a solver's weights on one is enough


@dataclass(frozen=True)
class ExactCertificate:
    """What is proved of an SVM and of a solution's numbers; no rounding can make it wrong.

    Attributes
    ----------
    margin : (float, float)
        Xi lies between; from 0 where no weights with positive margins were found.
    distance : (float, float)
        Between which |weights - W_mm| / |W_mm| lies, for the weights of the solution.
    dual_distance : (float, float)
        The same for the sum of the rows by the solution's dual weights.
    duality_gap : float
        An upper bound on the relative duality gap of the solution's weights and dual weights;
        infinite where one of them bounds nothing.
    negative : int
        How many of the dual weights are below 0.

    Notes
    -----
    Source: weak duality and strong convexity [c].

    Examples
    --------
    >>> from dataclasses import replace
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> solution = solve_w_svm(make_separation_pair())
    >>> proved = solution.certify(exact=True)
    >>> proved.margin, proved.distance, proved.is_optimal()
    ((1.0, 1.0), (0.0, 0.0), True)
    >>> replace(solution, dual=solution.dual + 2**-30).certify(exact=True).refusals()
    ["the dual weights' sum is between 9.3e-10 and 9.3e-10 of the optimum's norm away from it"]
    """

    margin: tuple[float, float]
    distance: tuple[float, float]
    dual_distance: tuple[float, float]
    duality_gap: float
    negative: int

    def is_optimal(self, tol: float = 1e-12) -> bool:
        """Whether it is proved that both distances and the duality gap are at most `tol`.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
            When `tol` isn't a number of at least 0.
        """
        return not self.refusals(tol)

    def refusals(self, tol: float = 1e-12) -> list[str]:
        """Why `is_optimal(tol)` is False: a sentence for each reason, none where it is True."""
        tol = require_number("tol", tol, low=0)
        if not self.margin[0] > 0:
            return ["no weights with positive margins were found"]
        found = [f"{self.negative} dual weights are negative"] if self.negative else []
        both = {"the point": self.distance, "the dual weights' sum": self.dual_distance}
        away = "{} is between {:.2g} and {:.2g} of the optimum's norm away from it"
        found += [away.format(name, *ends) for name, ends in both.items() if not ends[1] <= tol]
        if not self.duality_gap <= tol:
            found.append(f"no bound on the duality gap below {self.duality_gap:.2g} is proved")
        return found


def prove(svm) -> ExactCertificate:
    """The certificate of an SVMSolution; see its method `certify`."""
    require_plain(svm)
    flint = need("flint", "exact")
    with flint.ctx.workprec(BITS):
        balls = Balls(flint, svm)
        dual = [flint.arb(a) for a in svm.dual.tolist()]
        best = balls.proof()
        products, square = balls.of_point(svm.point)
        margins = balls.margins(dual)
        total = dot(dual, margins)  # |sum_k a_k z_k|^2
        gap, least, weight = flint.arb("inf"), _least(products), sum(dual)
        negative = sum(bool(a < 0) for a in dual)
        if least > 0 and weight > 0 and total > 0 and not negative:
            gap = (square * total).sqrt() / (least * weight) - 1
        return ExactCertificate(
            margin=(down(flint, best.low), up(flint, best.high)),
            distance=balls.distance(best, products, square),
            dual_distance=balls.distance(best, margins, total),
            duality_gap=max(up(flint, gap), 0.0),
            negative=negative,
        )


def require_plain(svm) -> None:
    """Refuse what the proof does not cover, by name."""
    count, equalities = len(svm.rows.sequence), getattr(svm.rows, "basis", None) is not None
    for name, wrong, expected, got in [
        ("norm", svm.norm_name != "frobenius", "the Frobenius norm", svm.norm_name),
        ("right", bool((svm.right != 1).any()), "right sides of 1", "others"),
        ("rows", equalities, "rows without equalities beside them", "some"),
        ("rows", count > LARGEST, f"at most {LARGEST} constraints", str(count)),
    ]:
        if wrong:
            remedy = "judge this solution by is_optimal(), which holds up to rounding"
            raise RangeError(
                name, expected=f"{expected}, for a proof without rounding", got=got, remedy=remedy
            )
    as_floats("dual", svm.dual, (count,), "one a row")
    require_finite("point", svm.point)


def _starts(svm) -> Iterator[list[float]]:
    """Dual weights to begin at: those stored and, where they lead nowhere, float64's solution."""
    yield svm.dual.tolist()
    yield solve_dual(svm.rows.gram().cpu().numpy()).dual.tolist()


class Balls:
    """The rows z_k = D_k q_i' of sequences i, exactly: `sequence` has i of each k."""

    def __init__(self, flint, svm) -> None:
        self.flint, self.svm, rows = flint, svm, svm.rows
        if isinstance(rows, GapRows):
            self.sequence, queries = rows.sequence.tolist(), self.matrix(rows.queries)
            self.D = self.matrix(rows.differences)
            if rows.keys is not None:  # the differences in float64 are rounded
                first = rows.keys[rows.sequence, rows.opt[rows.sequence]]
                other = rows.keys[rows.sequence, rows.token]
                self.D = self.matrix(first) - self.matrix(other)
        else:
            self.sequence, queries = [0] * len(rows.rows), flint.arb_mat([[1]])
            self.D = self.matrix(rows.rows)
        self.queries = queries.transpose()
        DD, QQ = (self.D * self.D.transpose()).tolist(), (queries * self.queries).tolist()
        pairs = zip(DD, self.sequence, strict=True)
        self.gram = flint.arb_mat(
            [[x * QQ[i][j] for x, j in zip(row, self.sequence, strict=True)] for row, i in pairs]
        )

    def matrix(self, values: torch.Tensor):
        return self.flint.arb_mat(values.detach().double().cpu().tolist())

    def of_point(self, point: torch.Tensor):
        """<z_k, P> of all k, and |P|^2, for the solution's point P."""
        if not isinstance(self.svm.rows, GapRows):
            point = point.reshape(-1, 1)
        P, queries = self.matrix(point), self.queries
        inner = P.transpose() * P
        if self.svm.basis is not None:
            basis = self.matrix(self.svm.basis)
            queries, inner = basis * queries, inner * (basis * basis.transpose())
        products = self.D * (P * queries)
        return [products[k, i] for k, i in enumerate(self.sequence)], inner.trace()

    def margins(self, dual: list) -> list:
        """<z_k, G> of the sum G of rows by these weights."""
        return (self.gram * self.flint.arb_mat([[a] for a in dual])).entries()

    def proof(self) -> _Proof:
        """The best proof on the way to the dual solution."""
        proofs = self.proofs()
        best = next(proofs)
        while not bool(best.width < CLOSE) and (other := next(proofs, None)):
            best = other if bool(other.width <= best.width) else best
        return best

    def proofs(self) -> Iterator[_Proof]:
        """Those on the way, by primal-dual active sets."""
        for start in _starts(self.svm):
            dual = [self.flint.arb(a) for a in start]
            for _ in range(ROUNDS):
                dual = [max(a, self.flint.arb(0)) for a in dual]
                margins = self.margins(dual)
                yield _Proof(self.flint, dual, margins)
                sides = enumerate(zip(dual, margins, strict=True))
                support = [k for k, (a, m) in sides if a + (1 - m) / self.gram[k, k] > 0]
                if not support:
                    break
                dual = self.corrected(dual, support)

    def corrected(self, dual: list, support: list) -> list:
        """Weights with margins of one on the supporting rows, 0 on the others."""
        mat, size = self.flint.arb_mat, len(support)
        K, nudge = mat([[self.gram[j, k] for k in support] for j in support]), mat(size, size)
        for j in range(size):
            nudge[j, j] = NUDGE * K[j, j]
        inverse = (K + nudge).solve(mat(size, size, 1), nonstop=True, algorithm="approx")
        a = mat([[dual[k]] for k in support])
        for _ in range(CORRECTIONS):
            a = (a + inverse * (mat(size, 1, [1] * size) - K * a)).mid()
        new = dict(zip(support, a.entries(), strict=True))
        return [new.get(k, 0) for k in range(len(dual))]

    def distance(self, best: _Proof, products: list, square) -> tuple[float, float]:
        """Bounds on |P - W_mm| / |W_mm|, from <z_k, P> and |P|^2."""
        if not best.least > 0:
            return 0.0, math.inf
        apart = square - 2 * dot(best.dual, products) / best.least + best.high_square
        apart = apart.nonnegative_part().sqrt()
        low, high = (apart - best.radius) * best.low, (apart + best.radius) * best.high
        return max(down(self.flint, low), 0.0), up(self.flint, high)


class _Proof:
    """What weights a >= 0 with these margins of their sum prove."""

    def __init__(self, flint, dual: list, margins: list) -> None:
        self.dual, self.least = dual, _least(margins)
        square, weight, infinite = dot(dual, margins), sum(dual), flint.arb("inf")
        self.low = self.radius = flint.arb(0)
        self.high = square.nonnegative_part().sqrt() / weight if weight > 0 else infinite
        self.width = infinite
        if self.least > 0:
            self.low = self.least / square.sqrt()
            self.high_square = square / self.least**2
            between = (self.high_square - weight**2 / square).nonnegative_part()
            self.radius, self.width = between.sqrt(), between / self.high_square


def dot(a: Sequence, b: Sequence):
    """Of numbers of any kind."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def _least(values: list):
    finite = all(value.is_finite() for value in values)  # a NaN is less than nothing
    return min(value.lower() for value in values) if finite else -math.inf


def down(flint, x) -> float:
    """The largest float that is surely not above x."""
    low = float(x.lower())
    while math.isfinite(low) and not flint.arb(low) <= x:
        low = math.nextafter(low, -math.inf)
    return low


def up(flint, x) -> float:
    return 0.0 - down(flint, -x)
