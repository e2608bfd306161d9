"""A hard-margin solution with the certificates that prove it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.linalg import vector_norm

from .._validate import require_number
from ..errors import DtypeError, RangeError
from .certificate import Bounds, bounds
from .complementarity import can_all_be_positive
from .tokens import GapRows, LabelRows

# Weights below this share of the largest count as zero, slacks below it as none: weights
# are right to EPS times the condition number of the active rows, which is far below 1e7.
ZERO = 1e-9
# The largest residual and relative duality gap of a solution. Only margins below about 1e-8 of
# the row norms, or rows whose norms differ by 1e8, come near it.
LOOSE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class SVMSolution:
    """A hard-margin solution that proves its own optimality.

    Attributes
    ----------
    weights : (d, d) or (d,) float64
        W_mm of (W-SVM) or u_mm of (u-SVM). For d above 2048 formed at the first use alone.
    dual : (N',) float64
        alpha >= 0, one a constraint: weights = sum_k alpha_k z_k.
    margins : (N',) float64
        <z_k, weights>, evaluated on the weights, or on `point` for d above 2048; all at
        least 1.
    norm : float
        Frobenius norm of the weights.
    primal_residual : float
        How far the smallest margin falls short of 1.
    dual_residual : float
        |weights - sum_k alpha_k z_k| / norm.
    bounds : Bounds
        On the optimal norm, proved by the margins and by the dual weights.
    solver : str
        Method, iterations and factorisations.
    problem : {"W-SVM", "u-SVM"}
    rows : GapRows or LabelRows
        The constraints.
    point : (d, d), (d, r) or (d,) float64
        The weights, or their coordinates in `basis`.
    basis : (r, d) float64, optional
        An orthonormal basis of the queries' span: weights = point @ basis.

    Notes
    -----
    Source: (W-SVM), (u-SVM) and Xi of the paper; dual and certificates [c]. Bounds hold up to
    rounding: about 1e-16 times the largest |z_k| norm among the active constraints.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> solution = solve_w_svm(make_separation_pair())
    >>> solution.margin, solution.duality_gap < 1e-12
    (1.0, True)
    >>> solution.support.tolist()
    [0]
    """

    dual: torch.Tensor
    margins: torch.Tensor
    norm: float
    primal_residual: float
    dual_residual: float
    bounds: Bounds
    solver: str
    problem: str
    rows: GapRows | LabelRows
    point: torch.Tensor
    basis: torch.Tensor | None = None

    @cached_property
    def weights(self) -> torch.Tensor:
        """W_mm (d, d) or u_mm (d,)."""
        return self.point if self.basis is None else self.point @ self.basis

    @property
    def margin(self) -> float:
        """The margin Xi = 1 / norm."""
        return 1 / self.norm if self.norm > 0 else math.inf

    @property
    def duality_gap(self) -> float:
        """Upper over lower bound on the optimal norm, minus 1; infinite where undefined."""
        return self.bounds.gap

    @property
    def direction_error(self) -> float:
        """Bound on |weights/norm - unit optimum|; 1 - cosine is at most half its square."""
        return self.bounds.direction_error

    @cached_property
    def constraints(self) -> torch.Tensor:
        """(N', 2) long: sequence and token of each constraint; the optimal token for u-SVM."""
        return torch.stack([self.rows.sequence, self.rows.token], dim=1)

    @cached_property
    def support(self) -> torch.Tensor:
        """(m,) long: indices of the positive dual weights (above 1e-9 of the largest)."""
        return self._positive.nonzero().flatten()

    @property
    def least_dual(self) -> float:
        """Smallest positive dual weight over the largest, for rows at unit norm."""
        return float(self._shares[self._positive].amin()) if len(self.support) else math.inf

    @property
    def least_slack(self) -> float:
        """Smallest margin minus 1 among the constraints that aren't active, or infinity."""
        return float((self.margins - 1).masked_fill(self._active, torch.inf).min())

    @cached_property
    def strictly_complementary(self) -> bool:
        """Whether some dual solution is positive on every active constraint."""
        zero = self._active & ~self._positive
        return not bool(zero.any()) or can_all_be_positive(self.rows, self._positive, zero, ZERO)

    def is_optimal(self, tol: float = 1e-9) -> bool:
        """Whether both residuals and the relative duality gap are at most `tol`.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
            When `tol` isn't a number of at least 0.
        """
        tol = require_number("tol", tol, low=0)
        return max(self.primal_residual, self.dual_residual) <= tol and self.duality_gap <= tol

    @cached_property
    def _shares(self) -> torch.Tensor:
        """Dual weights of rows at unit norm, over the largest of them."""
        sizes = self.dual * self.rows.norms()
        return sizes / sizes.max()

    @property
    def _positive(self) -> torch.Tensor:
        return self._shares > ZERO

    @property
    def _active(self) -> torch.Tensor:
        return self._positive | (self.margins <= 1 + ZERO)

    def __repr__(self) -> str:
        return (
            f"SVMSolution({self.problem}: margin={self.margin:.6g}, "
            f"{len(self.support)} of {len(self.dual)} constraints support it, "
            f"duality gap {self.duality_gap:.1e}; {self.solver})"
        )


def certify(
    rows: GapRows | LabelRows,
    dual: torch.Tensor,
    weights: torch.Tensor | None = None,
    *,
    solver: str = "given",
    problem: str = "W-SVM",
) -> SVMSolution:
    """What given dual weights prove about the SVM with these rows, whoever found them.

    Parameters
    ----------
    rows : GapRows or LabelRows
    dual : (N',) float64
    weights : optional
        A primal point close to the rows' sum, by default the sum itself.

    Returns
    -------
    SVMSolution
        Its `is_optimal` is True only if the weights are optimal; undefined is infinite.
    """
    thin, basis = rows.thin() if weights is None else (rows, None)
    total = thin.combine(dual)
    point = total if weights is None else weights
    margins = thin.gaps(point)
    return proved(rows, dual, total, point, margins, basis, solver=solver, problem=problem)


def proved(rows, dual, total, point, margins, basis, *, solver, problem) -> SVMSolution:
    """The solution `point` with `margins`, where the dual weights' sum of rows is `total`."""
    norm, total_norm = float(vector_norm(point)), float(vector_norm(total))
    least, signed = float(margins.min()), float(dual.min())
    # Weights of either sign bound nothing from below; a margin above 1 earns no lower norm,
    # because these weights are judged, not their best multiple.
    both = bounds(norm, min(least, 1.0), float(dual.sum()) if signed >= 0 else 0.0, total_norm)
    off = 0.0 if point is total else float(vector_norm(point - total))
    return SVMSolution(
        dual=dual,
        margins=margins,
        norm=norm,
        primal_residual=max(1 - least, 0.0) if math.isfinite(least) else math.inf,
        dual_residual=off / norm if 0 < norm < math.inf else math.inf,
        bounds=both,
        solver=solver,
        problem=problem,
        rows=rows,
        point=point,
        basis=basis,
    )


def require_w_svm(name: str, value) -> SVMSolution:
    """A solution of a W-SVM."""
    if not isinstance(value, SVMSolution) or value.problem != "W-SVM":
        raise DtypeError(
            name,
            expected="an SVMSolution of the W-SVM",
            got="a u-SVM's" if isinstance(value, SVMSolution) else type(value).__name__,
            remedy="pass solve_w_svm(data)",
        )
    return value


def require_optimal(name: str, svm: SVMSolution) -> SVMSolution:
    """A solution whose certificate proves it: what other weights violate refutes no theorem."""
    if not svm.is_optimal(LOOSE):
        raise RangeError(
            name,
            expected=f"an optimal solution: residuals and duality gap of at most {LOOSE:g}",
            got=f"residuals {svm.primal_residual:.2g} and {svm.dual_residual:.2g}, "
            f"gap {svm.duality_gap:.2g}",
            remedy="pass what the solver returned, solve_w_svm(data) or its like",
        )
    return svm
