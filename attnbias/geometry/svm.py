"""The two hard-margin SVMs of the paper, solved through their duals, with certificates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.linalg import vector_norm

from ..data import Dataset
from ..errors import DtypeError, InfeasibleError, RangeError, SolverError
from .active_set import EPS, Bounds, DualSolution, bounds, solve_dual
from .tokens import GapRows, gap_rows, resolve_opt

# Weights below this share of the largest count as zero, slacks below it as none: weights
# are right to EPS times the condition number of the active rows, which is far below 1e7.
ZERO = 1e-9
# Relative norm of a vanishing sum of rows: the rounding of the sum, with room for 1e5 rows.
VANISHING = 1e-10
# A relative duality gap that only data at the edge of infeasibility leave open.
LOOSE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class SVMSolution:
    """A hard-margin solution that proves its own optimality.

    Attributes
    ----------
    weights : (d, d) or (d,) float64
        W_mm of (W-SVM) or u_mm of (u-SVM).
    dual : (N',) float64
        alpha >= 0, one a constraint: weights = sum_k alpha_k z_k.
    margins : (N',) float64
        <z_k, weights>, evaluated on the weights themselves; all at least 1.
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

    Notes
    -----
    Source: (W-SVM), (u-SVM) and Xi of the paper; dual and certificates [c]. Bounds hold up to
    rounding: about 1e-16 times the largest |z_k| norm among the active constraints.
    """

    weights: torch.Tensor
    dual: torch.Tensor
    margins: torch.Tensor
    norm: float
    primal_residual: float
    dual_residual: float
    bounds: Bounds
    solver: str
    problem: str
    rows: GapRows | LabelRows

    @property
    def margin(self) -> float:
        """Xi = 1/norm."""
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
        return not bool(zero.any()) or _can_all_be_positive(self.rows, self._positive, zero)

    def is_optimal(self, tol: float = 1e-9) -> bool:
        """Whether both residuals and the relative duality gap are at most `tol`."""
        return max(self.primal_residual, self.dual_residual) <= tol and self.duality_gap <= tol

    @cached_property
    def _shares(self) -> torch.Tensor:
        """Dual weights of rows at unit norm, over the largest of them."""
        sizes = self.dual * _norms(self.rows)
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


@dataclass(frozen=True, eq=False)
class LabelRows:
    """The rows y_i x_{i,opt} of (u-SVM), with the methods of `GapRows`."""

    rows: torch.Tensor
    opt: torch.Tensor

    @property
    def sequence(self) -> torch.Tensor:
        """(n,) which sequence each row comes from: its own."""
        return torch.arange(len(self.opt), device=self.opt.device)

    @property
    def token(self) -> torch.Tensor:
        """(n,) the optimal token."""
        return self.opt

    def gram(self) -> torch.Tensor:
        """(n, n) inner products."""
        return self.rows @ self.rows.T

    def gaps(self, u: torch.Tensor) -> torch.Tensor:
        """(n,) y_i <u, x_{i,opt}>."""
        return self.rows @ u

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """(d,) weighted sum of the rows."""
        return self.rows.T @ weights


def _norms(rows: GapRows | LabelRows) -> torch.Tensor:
    """(N',) norms of the rows."""
    if isinstance(rows, LabelRows):
        return vector_norm(rows.rows, dim=1)
    return vector_norm(rows.differences, dim=1) * vector_norm(rows.queries, dim=1)[rows.sequence]


def solve_w_svm(data: Dataset, opt=None) -> SVMSolution:
    """W_mm: the smallest W with (x_{i,opt} - x_{i,t})' W x_{i,1} >= 1 for all i and t != opt_i.

    Parameters
    ----------
    data : Dataset
        float32 tokens are lifted to float64.
    opt : (n,) integers, optional
        Optimal tokens; those of the data's decoder by default.

    Returns
    -------
    SVMSolution
        weights (d, d); one dual weight for each of the N' = sum of (length - 1) constraints,
        by sequence, then token.

    Raises
    ------
    InfeasibleError
        With Gordan's certificate: weights >= 0 of sum 1 for which the rows add up to zero.
    SolverError
        At the edge of infeasibility, where float64 decides neither way.
    MissingDecoderError, TiedTokensError, ShapeError, DtypeError, RangeError

    Notes
    -----
    Source: (W-SVM) of the paper [a]. It is solved in the N' dual weights, never in d^2
    variables: W_mm = sum_k alpha_k z_k is one matrix product at the end.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> solve_w_svm(make_separation_pair()).weights.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    _require_dataset(data)
    return _solve(gap_rows(data, opt), "W-SVM")


def solve_u_svm(data: Dataset, opt=None) -> SVMSolution:
    """u_mm: the smallest u with y_i u' x_{i,opt} >= 1 for all i.

    Parameters
    ----------
    data : Dataset
        float32 tokens are lifted to float64.
    opt : (n,) integers, optional
        Optimal tokens; those of the data's decoder by default.

    Returns
    -------
    SVMSolution
        weights (d,); one dual weight for each of the n sequences.

    Raises
    ------
    InfeasibleError, SolverError
        As for `solve_w_svm`.
    MissingDecoderError, TiedTokensError, ShapeError, DtypeError, RangeError

    Notes
    -----
    Source: (u-SVM) of the paper [a].

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_u_svm
    >>> solve_u_svm(make_separation_pair()).weights.tolist()
    [1.0, 0.0]
    """
    _require_dataset(data)
    opt = resolve_opt(data, opt)
    chosen = data.X[torch.arange(data.n, device=opt.device), opt].double()
    return _solve(LabelRows(data.y.double()[:, None] * chosen, opt), "u-SVM")


def _require_dataset(data) -> None:
    if not isinstance(data, Dataset):
        raise DtypeError(
            "data",
            expected="a Dataset",
            got=type(data).__name__,
            remedy="wrap the tensors: Dataset(X, y, u)",
        )


def _solve(rows: GapRows | LabelRows, problem: str) -> SVMSolution:
    gram = rows.gram()
    _require_range(gram, rows, problem)
    core = solve_dual(gram)
    if core.status == "infeasible":
        raise _infeasible(core, rows, problem)
    dual, weights = _polish(core, rows)
    solver = f"{core.method}: {core.iterations} iterations, {core.factorisations} factorisations"
    solution = certify(rows, dual, weights, solver=solver, problem=problem)
    if not solution.duality_gap <= LOOSE:
        raise _undecided(problem, f"a relative duality gap of {solution.duality_gap:.1e}")
    return solution


def _require_range(gram, rows, problem: str) -> None:
    """Refuse tokens whose squared products leave float64's range."""
    diagonal = gram.diagonal()
    low, high = float(diagonal.min()), float(diagonal.max())
    if math.isfinite(high) and high < 1e300 and low > 1e-280:
        return
    parts = (rows.rows,) if isinstance(rows, LabelRows) else (rows.differences, rows.queries)
    sizes = [part.abs().amax(dim=1) for part in parts]
    smallest = min(float(size[size > 0].min()) if bool((size > 0).any()) else 1.0 for size in sizes)
    if not high < 1e300 or smallest < 1e-70:
        raise RangeError(
            f"data.X ({problem})",
            expected="tokens of norm between 1e-70 and 1e70, or 0",
            got=f"squared row norms from {low:.3g} to {high:.3g}",
            remedy="rescale the tokens; c X has the solution W_mm / c^2, u_mm / c",
        )


def _polish(core: DualSolution, rows) -> tuple[torch.Tensor, torch.Tensor]:
    """Iterative refinement with the residual on the rows, more exact than on their products.

    The error of the margins falls from EPS |z|^2 norm^2 to EPS |z| norm.
    """
    dual, weights = core.dual, rows.combine(core.dual)
    for _ in range(2):
        residual = 1 - rows.gaps(weights)
        if float(residual.index_select(0, core.active).abs().max()) < 32 * EPS:
            break
        change = core.correct(residual)
        dual, weights = (dual + change).clamp_(min=0), weights + rows.combine(change)
    return dual, weights


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
    total = rows.combine(dual)
    weights = total if weights is None else weights
    margins = rows.gaps(weights)
    norm, total_norm = float(vector_norm(weights)), float(vector_norm(total))
    least, signed = float(margins.min()), float(dual.min())
    # Weights of either sign bound nothing from below; a margin above 1 earns no lower norm,
    # because these weights are judged, not their best multiple.
    proved = bounds(norm, min(least, 1.0), float(dual.sum()) if signed >= 0 else 0.0, total_norm)
    off = 0.0 if weights is total else float(vector_norm(weights - total))
    return SVMSolution(
        weights=weights,
        dual=dual,
        margins=margins,
        norm=norm,
        primal_residual=max(1 - least, 0.0) if math.isfinite(least) else math.inf,
        dual_residual=off / norm if 0 < norm < math.inf else math.inf,
        bounds=proved,
        solver=solver,
        problem=problem,
        rows=rows,
    )


def _can_all_be_positive(rows, positive: torch.Tensor, zero: torch.Tensor) -> bool:
    """Whether weights can move, their sum of rows fixed, until those at `zero` are positive.

    With S the Gram matrix of the rows at `zero`, less their projections on the supporting
    rows, that asks for c > 0 with Sc = 0. By Stiemke's lemma it is one more hard margin:
    the rows of a basis of S's null space, with a vector that has a positive product with all.
    """
    H, norms = rows.gram(), _norms(rows)
    H = H / norms / norms[:, None]
    L, info = torch.linalg.cholesky_ex(H[positive][:, positive])
    if int(info):
        return False
    cross = H[positive][:, zero]
    S = H[zero][:, zero] - cross.T @ torch.cholesky_solve(cross, L)
    values, vectors = torch.linalg.eigh(S)
    basis = vectors[:, values < ZERO]
    movable = basis.shape[1] > 0 and float(basis.norm(dim=1).min()) > ZERO
    return movable and solve_dual(basis @ basis.T).status == "optimal"


def _infeasible(core: DualSolution, rows, problem: str) -> Exception:
    """The error with Gordan's certificate, or the other one when the rows disprove it."""
    sizes = _norms(rows)
    best, residual = core.dual, math.inf
    trial = best
    for _ in range(3):  # refined on the rows, as the solution is
        total = rows.combine(trial)
        length = float(total.norm()) / max(float(trial @ sizes), math.ulp(0.0))
        if length < residual:
            best, residual = trial, length
        trial = (trial + core.correct(-rows.gaps(total))).clamp(min=0)
        if not float(trial.sum()) > 0.5:
            break
        trial = trial / trial.sum()
    if not residual <= VANISHING:
        return _undecided(problem, f"rows whose weighted mean has relative norm {residual:.1e}")
    worst = int((best * sizes).argmax()) if residual > 0 else int(best.argmax())
    return InfeasibleError(
        problem,
        expected="rows with a common positive margin",
        got=f"{int((best > 0).sum())} of {len(best)} rows that cancel when weighted by the "
        f"certificate (relative norm {residual:.1e}), the heaviest from sequence "
        f"{int(rows.sequence[worst])}, token {int(rows.token[worst])}",
        remedy=_REMEDY[problem],
        certificate=best,
        residual=residual,
    )


_REMEDY = {
    "W-SVM": "add features, or drop sequences whose tokens repeat, contradict each other, or "
    "have a zero query or a token equal to the optimal one",
    "u-SVM": "no decoder separates these optimal tokens: add features, or drop sequences",
}


def _undecided(problem: str, got: str) -> SolverError:
    return SolverError(
        problem,
        expected="a margin clearly positive or clearly absent",
        got=f"{got}: feasible and infeasible data within rounding of each other",
        remedy="center or rescale the features, or drop nearly repeated tokens",
    )
