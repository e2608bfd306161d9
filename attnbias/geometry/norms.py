"""The W-SVM in other norms than Frobenius': an interior point, scaled until it is feasible."""

from __future__ import annotations

import warnings
from functools import partial

import torch

from .._extras import need
from ..errors import DtypeError, SolverError
from .certificate import units
from .solution import SVMSolution, certify
from .tokens import GapRows, VectorRows

WIDEST = 1e-3  # a relative gap that no interior-point solve of these sizes leaves open


def least_norm(rows: GapRows | VectorRows, right: torch.Tensor, norm: str) -> SVMSolution:
    """The matrix of least max, spectral or nuclear norm with margins of at least `right`.

    In the last two W may be taken between the span of the differences and that of the queries,
    since a projection raises neither norm; in the max norm without what no difference or no
    query sees. The solver has that small matrix.
    """
    if not isinstance(rows, GapRows):
        raise DtypeError(
            "rows",
            expected=f"GapRows, whose weights are a matrix, for the {norm} norm",
            got=type(rows).__name__,
            remedy="pass gap_rows(data, opt), or take the Frobenius norm",
        )
    cp, problem = need("cvxpy", "chapters"), f"{norm}-norm W-SVM"
    remedy = units(rows) + "rescale the tokens to norms near 1, or take fewer"
    failure = partial(SolverError, problem, remedy=remedy)
    basis = seen_axes if norm == "max" else span_basis
    left, queries = basis(rows.differences), basis(rows.queries)
    D = (rows.differences @ left).numpy()
    Z = (rows.queries @ queries)[rows.sequence].numpy()
    M = cp.Variable((D.shape[1], Z.shape[1]))
    sizes = {"max": cp.max(cp.abs(M)), "spectral": cp.sigma_max(M), "nuclear": cp.normNuc(M)}
    margins = cp.sum(cp.multiply(D @ M, Z), axis=1) >= right.numpy()
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the bounds will tell
            asked = cp.Problem(cp.Minimize(sizes[norm]), [margins])
            asked.solve(solver=cp.CLARABEL)
    except cp.error.SolverError as error:
        raise failure(expected="a solution", got=str(error)[:60]) from None
    if M.value is None or margins.dual_value is None:  # "infeasible", of units far apart
        raise failure(expected="a solution", got=f"the status {asked.status!r}")
    dual = torch.from_numpy(margins.dual_value).double().clamp(min=0)
    W = left @ torch.from_numpy(M.value).double() @ queries.T
    solution = certify_scaled(rows, dual, W, right, norm, problem)
    if not solution.duality_gap < WIDEST:
        expected = f"a relative duality gap below {WIDEST:g}"
        raise failure(expected=expected, got=f"{solution.duality_gap:.2g}")
    return solution


def certify_scaled(rows: GapRows, dual, W, right, norm: str, problem: str) -> SVMSolution:
    """What the multiple of W proves whose least margin equals its right side."""
    asked = right > 0
    share = float((rows.gaps(W)[asked] / right[asked]).min())
    W = W / share if share > 0 else W
    right = None if bool((right == 1).all()) else right
    return certify(rows, dual, W, right=right, norm=norm, solver="interior point", problem=problem)


def span_basis(vectors: torch.Tensor) -> torch.Tensor:
    """(d, r) orthonormal basis of the span of (m, d) vectors."""
    U, s, _ = torch.linalg.svd(vectors.T, full_matrices=False)
    return U[:, s > 1e-12 * s[0]]


def seen_axes(vectors: torch.Tensor) -> torch.Tensor:
    """(d, r) unit vectors along which some of (m, d) vectors are not 0."""
    return torch.eye(vectors.shape[1], dtype=torch.float64)[:, (vectors != 0).any(dim=0)]
