"""Gordan's certificate: the proof that no weights have a positive margin on all rows."""

from __future__ import annotations

import math

import torch

from ..errors import InfeasibleError, SolverError

# Relative norm of a vanishing sum of rows: the rounding of the sum, with room for 1e5 rows. It is
# a bound on the margin that rows of unit norm can have, so margins below it count as none.
VANISHING = 1e-10


def infeasible(dual: torch.Tensor, rows, problem: str, correct=None) -> InfeasibleError | None:
    """The error with Gordan's certificate, if weights a >= 0 make the rows cancel.

    Parameters
    ----------
    dual : (N',) float64
        a, not all 0.
    rows : GapRows, LabelRows or ProjectedRows
    problem : str
    correct : function, optional
        Of margins (N',): the weights that add them to the active rows'. It refines a twice.
    """
    sizes = rows.norms()
    best, residual = dual, math.inf
    for _ in range(3 if correct else 1):
        if not float(dual.sum()) > 0:
            break
        dual = dual / dual.sum()
        total = rows.combine(dual)
        length = float(total.norm()) / max(float(dual @ sizes), math.ulp(0.0))
        if length < residual:
            best, residual = dual, length
        if correct:
            dual = (dual + correct(-rows.gaps(total))).clamp(min=0)
    if not residual <= VANISHING:
        return None
    worst = int((best * sizes).argmax()) if residual > 0 else int(best.argmax())
    return InfeasibleError(
        problem,
        expected="rows with a common positive margin",
        got=f"{int((best > 0).sum())} of {len(best)} rows that cancel when weighted by the "
        f"certificate (relative norm {residual:.1e}), the heaviest from sequence "
        f"{int(rows.sequence[worst])}, token {int(rows.token[worst])}",
        remedy=_REMEDY.get(problem, "add features, or drop rows that contradict each other"),
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
    """The error at the edge of infeasibility, where there is no proof of either in float64."""
    return SolverError(
        problem,
        expected=f"a margin above 1e-9 of the row norms, or none, which is below {VANISHING:g}",
        got=got,
        remedy="center or rescale the features, or drop nearly repeated tokens",
    )
