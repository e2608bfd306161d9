"""Gordan's certificate: the proof that no weights have a positive margin on all rows."""

from __future__ import annotations

import math

from ..errors import InfeasibleError, SolverError
from .active_set import DualSolution

# Relative norm of a vanishing sum of rows: the rounding of the sum, with room for 1e5 rows.
VANISHING = 1e-10


def infeasible(core: DualSolution, rows, problem: str) -> InfeasibleError | SolverError:
    """The error with Gordan's certificate, or the other one when the rows disprove it."""
    sizes = rows.norms()
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
        return undecided(problem, f"rows whose weighted mean has relative norm {residual:.1e}")
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
    "several-token SVM": "these sets can't be told apart by one W: add features, or drop tokens "
    "that are combinations of selected ones",
    "graph SVM": "embeddings that depend on each other forbid this order: add features",
}


def undecided(problem: str, got: str) -> SolverError:
    """The error at the edge of infeasibility, where float64 decides neither way."""
    return SolverError(
        problem,
        expected="a margin clearly positive or clearly absent",
        got=f"{got}: feasible and infeasible data within rounding of each other",
        remedy="center or rescale the features, or drop nearly repeated tokens",
    )
