"""What primal and dual weights prove about a hard margin: bounds on its norm, or that none is."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch.linalg import vector_norm

from .._validate import require_choice
from ..errors import InfeasibleError, SolverError
from .active_set import EPS, solve_dual

# Weights below this share of the largest count as zero, slacks below it as none: weights
# are right to EPS times the condition number of the active rows, which is far below 1e7.
ZERO = 1e-9
# How far below 0 a margin of right side 0 may be, relative to |z_k| |W|: rounding.
BELOW = 1e-12
# Relative norm of a vanishing sum of rows: the rounding of the sum, with room for 1e5 rows. It is
# a bound on the margin that rows of unit norm can have, so margins below it count as none.
VANISHING = 1e-10

# What to do where a problem of that name is infeasible.
REMEDIES = {
    "W-SVM": "add features, or drop sequences whose tokens repeat, contradict each other, or "
    "have a zero query or a token equal to the optimal one",
    "u-SVM": "no decoder separates these optimal tokens: add features, or drop sequences",
}

# Ratio of sizes from which units are named as the likely reason.
UNLIKE = 1e5

NORMS = ("frobenius", "max", "spectral", "nuclear")
_SIZES = {
    "frobenius": vector_norm,
    "max": partial(vector_norm, ord=math.inf),
    "sum": partial(vector_norm, ord=1),
    "spectral": partial(torch.linalg.matrix_norm, ord=2),
    "nuclear": partial(torch.linalg.matrix_norm, ord="nuc"),
}
# The dual of each: the largest <G, W> over W of norm 1.
DUAL = {"frobenius": "frobenius", "max": "sum", "spectral": "nuclear", "nuclear": "spectral"}


class Bounds(NamedTuple):
    """Bounds on the optimal norm: `upper` from a feasible point, `lower` from a dual one."""

    upper: float
    lower: float

    @property
    def gap(self) -> float:
        """Relative duality gap upper/lower - 1, at least 0; infinite where undefined."""
        defined = 0 < self.lower < math.inf and self.upper < math.inf
        return max(self.upper / self.lower - 1, 0.0) if defined else math.inf

    @property
    def direction_error(self) -> float:
        """Bound sqrt(2 (1 - lower/upper)) on the distance of unit solution and unit optimum."""
        gap = self.gap
        return math.sqrt(2 * gap / (1 + gap)) if gap < math.inf else math.inf


def bounds(norm: float, least_margin: float, dual_sum: float, dual_norm: float) -> Bounds:
    """The bounds of a point of that norm and least margin, and of weights with those sums."""
    upper = norm / least_margin if least_margin > 0 and math.isfinite(norm) else math.inf
    lower = dual_sum / dual_norm if dual_norm > 0 and math.isfinite(dual_sum) else 0.0
    return Bounds(float(upper), float(lower))


def matrix_norm(W: torch.Tensor, norm: str) -> float:
    """Norm of a matrix: one of `NORMS`, or "sum", the sum of all absolute entries.

    Raises
    ------
    RangeError

    Examples
    --------
    >>> import torch
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    >>> [matrix_norm(W, norm) for norm in ("frobenius", "max", "spectral", "nuclear", "sum")]
    [5.0, 4.0, 4.0, 7.0, 7.0]
    """
    return float(_SIZES[require_choice("norm", norm, tuple(_SIZES))](W))


def refuse_infeasible(dual, rows, right, problem: str, correct=None) -> None:
    """Raise Gordan's certificate, if weights a >= 0 make the rows cancel and b'a > 0.

    Parameters
    ----------
    dual : (N',) float64
        a, not all 0.
    rows : GapRows or VectorRows
    right : (N',) float64
        b.
    problem : str
    correct : function, optional
        Of margins (N',): the weights that add them to the active rows'. It refines a twice.

    Raises
    ------
    InfeasibleError
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
            change = correct((-rows.gaps(total)).numpy())
            dual = (dual + torch.from_numpy(change)).clamp(min=0)
    if not (residual <= VANISHING and float(right @ best) > 0):
        return
    worst = int((best * sizes).argmax()) if residual > 0 else int(best.argmax())
    error = InfeasibleError(
        problem,
        expected="rows with a common positive margin",
        got=f"{int((best > 0).sum())} of {len(best)} rows that cancel when weighted by the "
        f"certificate (relative norm {residual:.1e}), the heaviest from sequence "
        f"{int(rows.sequence[worst])}, token {int(rows.token[worst])}",
        remedy=units(rows)
        + REMEDIES.get(problem, "add features, or drop rows that contradict each other"),
    )
    error.certificate, error.residual = best, residual
    raise error


def undecided(problem: str, got: str, rows) -> SolverError:
    """The error at the edge of infeasibility, where there is no proof of either in float64."""
    return SolverError(
        problem,
        expected=f"a margin above 1e-9 of the row norms, or none, which is below {VANISHING:g}",
        got=got,
        remedy=units(rows) + "center or rescale the features, or drop nearly repeated tokens",
    )


def units(rows) -> str:
    """Advice for rows whose features, or whose norms, are in units far apart; else nothing."""
    sizes = {"rows": rows.norms()}
    sizes |= {"features": max((part.abs().amax(dim=0) for part in rows.factors), key=_apart)}
    widest = max(sizes, key=lambda name: _apart(sizes[name]))
    if not _apart(sizes[widest]) > UNLIKE:
        return ""
    known = sizes[widest][sizes[widest] > 0]
    of = "columns of sizes" if widest == "features" else "sequences whose rows have norms"
    what = "each feature" if widest == "features" else "the tokens of each sequence"
    return (
        f"rescale {what}, for {of} from {float(known.min()):.0e} to {float(known.max()):.0e} "
        "leave float64 no digits (it is the SVM of the new units that is solved then); or "
    )


def _apart(sizes: torch.Tensor) -> float:
    known = sizes[sizes > 0]
    return float(known.max() / known.min()) if len(known) else 1.0


def least_share(right, margins, unsure, below) -> float:
    """The least margin over its right side; -inf where one of right side 0 is under -`below`."""
    right, margins, unsure, below = (x.cpu().numpy() for x in (right, margins, unsure, below))
    asked = right > 0
    if (margins < -below)[~asked].any():
        return -math.inf
    return float(((margins - unsure)[asked] / right[asked]).min())


def spread(sizes: torch.Tensor, dual: torch.Tensor) -> float:
    """How far rounding, of the weights and on the way, may move the sum of rows of these norms."""
    return 4 * EPS * math.sqrt(len(dual)) * float(dual.abs() @ sizes)


def can_all_be_positive(rows, positive: torch.Tensor, zero: torch.Tensor) -> bool:
    """Whether weights can move, their sum of rows fixed, until those at `zero` are positive.

    `positive` and `zero` say where the dual weights are positive, and where they are zero at an
    active constraint. With S the Gram matrix of the rows at `zero`, less their projections on
    the supporting rows, that asks for c > 0 with Sc = 0. By Stiemke's lemma it is one more hard
    margin: the rows of a basis of S's null space, with a vector that has a positive product with
    all.
    """
    H, norms = rows.gram(), rows.norms()
    H = H / norms / norms[:, None]
    L, info = torch.linalg.cholesky_ex(H[positive][:, positive])
    if int(info):
        return False
    cross = H[positive][:, zero]
    S = H[zero][:, zero] - cross.T @ torch.cholesky_solve(cross, L)
    values, vectors = torch.linalg.eigh(S)
    basis = vectors[:, values < ZERO].cpu()  # lengths below ZERO count as 0
    movable = basis.shape[1] > 0 and float(basis.norm(dim=1).min()) > ZERO
    return movable and solve_dual((basis @ basis.T).numpy()).status == "optimal"
