"""The two hard-margin SVMs of the paper, solved through their duals, with certificates."""

from __future__ import annotations

import math

import torch

from .._types import TensorLike
from ..data import Dataset
from ..errors import RangeError
from .active_set import EPS, DualSolution, solve_dual
from .infeasible import infeasible, undecided
from .solution import SVMSolution, certify, proved
from .tokens import GapRows, LabelRows, gap_rows, resolve_opt

__all__ = ["LabelRows", "SVMSolution", "certify", "solve_u_svm", "solve_w_svm"]

# A relative duality gap that only data at the edge of infeasibility leave open.
LOOSE = 1e-6


def solve_w_svm(data: Dataset, opt: TensorLike | None = None) -> SVMSolution:
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
    return solve_rows(gap_rows(data, opt), "W-SVM")


def solve_u_svm(data: Dataset, opt: TensorLike | None = None) -> SVMSolution:
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
    opt = resolve_opt(data, opt)
    chosen = data.X[torch.arange(data.n, device=opt.device), opt].double()
    return solve_rows(LabelRows(data.y.double()[:, None] * chosen, opt), "u-SVM")


def solve_rows(rows: GapRows | LabelRows, problem: str) -> SVMSolution:
    """The smallest weights with margins of at least 1 on given rows, as `solve_w_svm`."""
    gram = rows.gram()
    _require_range(gram, rows, problem)
    core = solve_dual(gram)
    thin, basis = rows.thin()
    if core.status == "infeasible":
        raise infeasible(core, thin, problem)
    dual, total, point, margins = _polish(core, thin)
    solver = f"{core.method}: {core.iterations} iterations, {core.factorisations} factorisations"
    solution = proved(rows, dual, total, point, margins, basis, solver=solver, problem=problem)
    if not solution.duality_gap <= LOOSE:
        raise undecided(problem, f"a relative duality gap of {solution.duality_gap:.1e}")
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


def _polish(core: DualSolution, rows) -> tuple[torch.Tensor, ...]:
    """Iterative refinement with the residual on the rows, more exact than on their products.

    The error of the margins falls from EPS |z|^2 norm^2 to EPS |z| norm. Returns the dual
    weights, their sum of rows, and a point close to it with its margins.
    """
    dual, point = core.dual, rows.combine(core.dual)
    total, margins = point, rows.gaps(point)
    for _ in range(2):
        residual = 1 - margins
        if float(residual.index_select(0, core.active).abs().max()) < 32 * EPS:
            break
        change = core.correct(residual)
        dual, point = (dual + change).clamp_(min=0), point + rows.combine(change)
        total, margins = rows.combine(dual), rows.gaps(point)
    return dual, total, point, margins
