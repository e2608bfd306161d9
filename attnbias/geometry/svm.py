"""The two hard-margin SVMs of the paper, solved through their duals, with certificates."""

from __future__ import annotations

import math

import torch

from .._types import TensorLike
from ..data import Dataset
from ..errors import RangeError
from .active_set import EPS, DualSolution, solve_dual
from .edge import LARGEST, decide
from .infeasible import infeasible, undecided
from .solution import LOOSE, SVMSolution, certify, proved
from .tokens import GapRows, LabelRows, gap_rows, resolve_opt

__all__ = ["LabelRows", "SVMSolution", "certify", "solve_u_svm", "solve_w_svm"]


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
        At the edge of infeasibility, where rows have a margin of 1e-10 to 1e-9 of their norms
        and float64 holds no weights that prove themselves; or below about 1e-7 with more than
        400 rows. Other margins are solved for, and those below 1e-10 count as none.
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
    """The smallest weights with margins of at least 1 on given rows, as `solve_w_svm`.

    On the Gram matrix in float64, or with 50 digits where that leaves it undecided.
    """
    gram = rows.gram()
    _require_range(gram, rows, problem)
    thin, basis = rows.thin()
    core = solve_dual(gram)
    dual = core.dual
    if core.status != "infeasible":
        dual, total, point, margins = _polish(core, thin)
        by = f"{core.method}: {core.iterations} iterations, {core.factorisations} factorisations"
        found = proved(rows, dual, total, point, margins, basis, solver=by, problem=problem)
        if found.is_optimal(LOOSE):
            return found
    elif (refusal := infeasible(dual, thin, problem, core.correct)) is not None:
        raise refusal
    return _at_the_edge(rows, thin, basis, problem, dual)


def _at_the_edge(rows, thin, basis, problem: str, start: torch.Tensor) -> SVMSolution:
    """`solve_rows` with 50 digits: the solution, or the error with Gordan's certificate."""
    sizes = thin.norms()
    if len(sizes) > LARGEST:
        raise undecided(problem, f"{len(sizes)} rows whose Gram matrix proves neither")
    shares, even = decide(thin, sizes, start)  # margins |z_k| are the same task in any units
    refusal = infeasible(shares, thin, problem)
    if refusal is not None:
        raise refusal
    dual, point = decide(thin, torch.ones_like(sizes), shares)
    if even is None or point is None:
        raise undecided(problem, "rows that cancel by weights which float64 does not hold")
    # Rounding takes 2e-16 |z| |W| of a margin; a share of the even margins makes up for that.
    total, spare = thin.combine(dual), float(point.norm() / even.norm()) * even
    for at in (point, point + LOOSE / 2 * spare):
        margins = thin.gaps(at)
        found = proved(rows, dual, total, at, margins, basis, solver="50 digits", problem=problem)
        if found.is_optimal(LOOSE):
            return found
    margin, gap = 1 / float(even.norm()), found.duality_gap
    raise undecided(problem, f"{margin:.1e}, feasible, with a duality gap of {gap:.1e} in float64")


def _require_range(gram, rows, problem: str) -> None:
    """Refuse tokens whose squared products leave float64's range."""
    diagonal = gram.diagonal()
    low, high = float(diagonal.min()), float(diagonal.max())
    if math.isfinite(high) and high < 1e300 and low > 1e-280:
        return
    parts = (rows.differences, rows.queries) if isinstance(rows, GapRows) else (rows.rows,)
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
