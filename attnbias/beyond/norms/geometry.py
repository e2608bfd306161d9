"""The W-SVM in other norms: max, spectral and nuclear, each with two-sided bounds."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch

from ..._extras import need
from ..._validate import require_choice
from ...data import Dataset
from ...errors import SolverError
from ...geometry.certificate import Bounds, bounds
from ...geometry.svm import solve_w_svm
from ...geometry.tokens import GapRows, gap_rows

NORMS = ("frobenius", "max", "spectral", "nuclear")
_DUAL = {"frobenius": "frobenius", "max": "sum", "spectral": "nuclear", "nuclear": "spectral"}
_WIDEST = 1e-3  # a relative gap that no interior-point solve of these sizes leaves open


@dataclass(frozen=True, eq=False)
class NormSVMSolution:
    """A matrix of least norm with all margins at least 1, and the bounds that prove it.

    Attributes
    ----------
    weights : (d, d) float64
        Scaled so that the smallest margin is 1. In no norm but Frobenius' need it be the only one.
    dual : (N',) float64
        a >= 0.
    norm : str
        Of `NORMS`.
    margins : (N',) float64
    bounds : Bounds
        On the least norm: 1'a / |sum_k a_k z_k|_dual from below, |weights| from above.
    """

    weights: torch.Tensor
    dual: torch.Tensor
    norm: str
    margins: torch.Tensor
    bounds: Bounds

    @property
    def margin(self) -> float:
        """Largest margin of a matrix of norm 1: 1 over the least norm, as far as it is proved."""
        return 1 / self.bounds.upper

    @property
    def duality_gap(self) -> float:
        """Upper over lower bound, minus 1."""
        return self.bounds.gap

    def __repr__(self) -> str:
        return f"NormSVMSolution({self.norm}: margin={self.margin:.6g}, gap {self.duality_gap:.1e})"


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
    require_choice("norm", norm, (*NORMS, "sum"))
    if norm == "frobenius":
        return float(W.norm())
    if norm == "max":
        return float(W.abs().max())
    if norm == "sum":
        return float(W.abs().sum())
    values = torch.linalg.svdvals(W)
    return float(values.sum() if norm == "nuclear" else values.max())


def norm_margin(data: Dataset, W: torch.Tensor, norm: str, opt=None) -> float:
    """Smallest logit gap of W over its norm: what a steepest descent in that norm maximises.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor
    norm : {"frobenius", "max", "spectral", "nuclear"}
    opt : (n,) integers, optional

    Returns
    -------
    float
        NaN for W = 0.

    Raises
    ------
    RangeError, MissingDecoderError, TiedTokensError

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> data = make_separation_pair()
    >>> norm_margin(data, solve_w_svm(data).weights, "nuclear")
    1.0
    """
    size = matrix_norm(W, norm)
    return float(gap_rows(data, opt).gaps(W.double()).min()) / size if size > 0 else math.nan


def solve_norm_svm(data: Dataset, norm: str, opt=None) -> NormSVMSolution:
    """The matrix W of least norm with (x_{i,opt} - x_{i,t})' W x_{i,1} >= 1 for all i, t != opt_i.

    Parameters
    ----------
    data : Dataset
    norm : {"frobenius", "max", "spectral", "nuclear"}
        "frobenius" is `solve_w_svm`; the others need the package cvxpy.
    opt : (n,) integers, optional

    Returns
    -------
    NormSVMSolution

    Raises
    ------
    InfeasibleError
        As `solve_w_svm`: feasibility is the same in all norms.
    MissingExtraError, SolverError
    RangeError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: ours [c] for the certificate. For a >= 0 and any feasible W,
    1'a <= sum_k a_k <z_k, W> <= |sum_k a_k z_k|_dual |W|. The dual of the max norm is the sum of
    absolute values, that of the spectral norm the nuclear norm. In the last two W may be taken
    between the span of the differences and that of the queries, since a projection raises
    neither norm; the solver sees that small matrix.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> solve_norm_svm(make_separation_pair(), "frobenius").margin
    1.0
    """
    require_choice("norm", norm, NORMS)
    exact, rows = solve_w_svm(data, opt), gap_rows(data, opt)
    if norm == "frobenius":
        return certify_norm(rows, exact.weights, exact.dual, norm)
    weights, dual = _solve(rows, norm)
    solution = certify_norm(rows, weights, dual, norm)
    if not solution.duality_gap < _WIDEST:
        raise SolverError(
            f"{norm}-norm W-SVM",
            expected=f"a relative duality gap below {_WIDEST:g}",
            got=f"{solution.duality_gap:.2g}",
            remedy="rescale the tokens to norms near 1, or take fewer",
        )
    return solution


def certify_norm(rows: GapRows, weights, dual, norm: str) -> NormSVMSolution:
    """What given weights and dual weights prove about the SVM in a norm, whoever found them.

    Weights without a positive margin prove nothing from above, dual weights that are negative
    somewhere nothing from below.
    """
    margins = rows.gaps(weights)
    least = float(margins.min())
    signed = float(dual.min())
    total = matrix_norm(rows.combine(dual), _DUAL[norm])
    both = bounds(
        matrix_norm(weights, norm), least, float(dual.sum()) if signed >= 0 else 0.0, total
    )
    scale = least if least > 0 else 1.0
    return NormSVMSolution(weights / scale, dual, norm, margins / scale, both)


def _solve(rows: GapRows, norm: str) -> tuple[torch.Tensor, torch.Tensor]:
    cvxpy = need("cvxpy", "chapters")
    left, right = _frames(rows, norm)
    D = (rows.differences @ left).numpy()
    Z = (rows.queries @ right)[rows.sequence].numpy()
    M = cvxpy.Variable((left.shape[1], right.shape[1]))
    size = {
        "max": lambda: cvxpy.max(cvxpy.abs(M)),
        "spectral": lambda: cvxpy.sigma_max(M),
        "nuclear": lambda: cvxpy.normNuc(M),
    }[norm]()
    margins = cvxpy.sum(cvxpy.multiply(D @ M, Z), axis=1) >= 1
    try:
        with warnings.catch_warnings():  # of inaccurate solutions: the bounds will tell
            warnings.simplefilter("ignore", UserWarning)
            cvxpy.Problem(cvxpy.Minimize(size), [margins]).solve(solver=cvxpy.CLARABEL)
    except cvxpy.error.SolverError as error:
        raise SolverError(
            f"{norm}-norm W-SVM",
            expected="a solution",
            got=str(error)[:60],
            remedy="rescale the tokens to norms near 1",
        ) from None
    small = torch.from_numpy(M.value).double()
    dual = torch.from_numpy(margins.dual_value).double().clamp(min=0)
    return left @ small @ right.T, dual


def _frames(rows: GapRows, norm: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Orthonormal bases of the differences and of the queries; all of R^d for the max norm."""
    if norm == "max":
        eye = torch.eye(rows.queries.shape[1], dtype=torch.float64)
        return eye, eye
    return span_basis(rows.differences), span_basis(rows.queries)


def span_basis(vectors: torch.Tensor) -> torch.Tensor:
    U, s, _ = torch.linalg.svd(vectors.T, full_matrices=False)
    return U[:, s > 1e-12 * s[0]]
