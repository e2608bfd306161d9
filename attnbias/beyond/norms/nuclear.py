"""Newton's method on the conditions of optimality of the nuclear-norm W-SVM."""

from __future__ import annotations

import torch

from ..._validate import short
from ...errors import DtypeError
from ...geometry.norms import certify_scaled, span_basis
from ...geometry.solution import SVMSolution
from ...geometry.tokens import GapRows
from ..common.arguments import require_kind

_STEPS = 8
_SMALL = 1e-12  # a residual below it is left alone


def polish_nuclear(rows: GapRows, solution: SVMSolution) -> SVMSolution:
    """The same solution to machine precision, where its rank and active set can be guessed.

    Parameters
    ----------
    rows : GapRows
    solution : SVMSolution
        Of the nuclear norm, from an interior-point method.

    Returns
    -------
    SVMSolution
        That with the smaller duality gap: the polished one, or the one given.

    Notes
    -----
    Source: ours [c]. With W = K Q' in balanced factors (K'K = Q'Q) and G = sum_k a_k z_k the
    conditions are G Q = K, G' K = Q, and <z_k, K Q'> = 1 on the active set. The rank is guessed
    where singular values of W fall below the distance of those of G from 1, the active set
    where weights fall below slacks. Nothing rests on the guesses: what comes out is certified.
    A rotation of the factors changes nothing, so the steps are those of least norm.

    Examples
    --------
    >>> from attnbias.beyond.ranks.data import make_free_queries
    >>> from attnbias.beyond.norms.geometry import solve_norm_svm
    >>> from attnbias.geometry.tokens import gap_rows
    >>> data = make_free_queries(5, 5, 8, opt=True)
    >>> polish_nuclear(gap_rows(data), solve_norm_svm(data, "nuclear")).duality_gap < 1e-13
    True
    """
    require_nuclear(solution, rows)
    for _ in range(2):  # a second guess from the first answer
        found = _polished(rows, solution)
        if found is None or not found.duality_gap < solution.duality_gap:
            break
        solution = found
    return solution


def require_nuclear(solution, rows: GapRows) -> None:
    """Refuse anything but the nuclear-norm W-SVM of these rows."""
    require_kind("rows", rows, GapRows, "pass gap_rows(data)")
    nuclear = isinstance(solution, SVMSolution) and solution.norm_name == "nuclear"
    if not nuclear or len(solution.dual) != len(rows.differences):
        raise DtypeError(
            "solution",
            expected="the nuclear-norm W-SVM of these data and tokens",
            got=short(solution),
            remedy='pass solve_norm_svm(data, "nuclear", opt)',
        )


def guess(rows: GapRows, solution: SVMSolution) -> tuple[int, torch.Tensor]:
    """Rank and active rows, by which of two complementary numbers is larger."""
    total = rows.combine(solution.dual)
    size = torch.linalg.svdvals(total)[0]
    values = torch.linalg.svdvals(solution.weights)
    idle = 1 - torch.linalg.svdvals(total) / size
    rank = max(int((values / values[0] > idle).sum()), 1)
    active = solution.dual / solution.dual.max() > solution.margins - 1
    return rank, active.nonzero().flatten()


def _polished(rows: GapRows, solution: SVMSolution) -> SVMSolution | None:
    rank, active = guess(rows, solution)
    left, right = span_basis(rows.differences), span_basis(rows.queries)
    D = (rows.differences @ left)[active]
    Z = (rows.queries @ right)[rows.sequence[active]]
    U, s, Vh = torch.linalg.svd(left.T @ solution.weights @ right, full_matrices=False)
    K, Q = U[:, :rank] * s[:rank].sqrt(), Vh[:rank].T * s[:rank].sqrt()
    a = solution.dual[active] / torch.linalg.svdvals(rows.combine(solution.dual))[0]
    for _ in range(_STEPS):
        residual, jacobian = _system(D, Z, K, Q, a)
        if float(residual.abs().max()) < _SMALL:
            break
        step = torch.linalg.lstsq(jacobian, -residual[:, None], driver="gelsd").solution[:, 0]
        to_K, to_Q, to_a = step.split([K.numel(), Q.numel(), len(a)])
        K, Q, a = K + to_K.view_as(K), Q + to_Q.view_as(Q), a + to_a
    if not bool(torch.isfinite(K).all() and torch.isfinite(a).all()) or float(a.min()) < 0:
        return None
    dual = torch.zeros_like(solution.dual).index_put_((active,), a)
    W = left @ (K @ Q.T) @ right.T
    return certify_scaled(rows, dual, W, solution.right, "nuclear", solution.problem)


def _system(D, Z, K, Q, a) -> tuple[torch.Tensor, torch.Tensor]:
    """The conditions and their derivatives by (K, Q, a), each flattened by rows."""
    G = (a[:, None] * D).T @ Z
    on_Q, on_K = Z @ Q, D @ K  # (m, r): z_k' Q and d_k' K
    residual = torch.cat(
        [(G @ Q - K).flatten(), (G.T @ K - Q).flatten(), (on_K * on_Q).sum(dim=1) - 1]
    )
    m, r = len(a), K.shape[1]
    eye = torch.eye(r, dtype=G.dtype)
    by_Q, by_K = torch.kron(G, eye), torch.kron(G.T.contiguous(), eye)
    left, right = outer(D, on_Q), outer(Z, on_K)
    first = [-torch.eye(K.numel(), dtype=G.dtype), by_Q, left]
    second = [by_K, -torch.eye(Q.numel(), dtype=G.dtype), right]
    third = [left.T, right.T, G.new_zeros(m, m)]
    return residual, torch.cat([torch.cat(part, dim=1) for part in (first, second, third)])


def outer(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """(p r, m): the entries of left_k right_k', a column a row k."""
    return torch.einsum("ki,kj->ijk", left, right).reshape(-1, len(left))
