"""The hard-margin SVM: one solver for the paper's two and for all that are like them."""

from __future__ import annotations

import numpy as np
import torch
from torch.linalg import vector_norm

from .._threads import spare_threads
from .._validate import TensorLike, as_float_tensor, as_floats, require_choice, require_type
from ..data import Dataset
from ..errors import DtypeError, InfeasibleError, RangeError
from .active_set import EPS, DualSolution, solve_dual
from .certificate import NORMS, ZERO, refuse_infeasible, undecided
from .norms import least_norm
from .precise import Margins, margins_of
from .solution import LOOSE, SVMSolution, on_device, proved, require_svm
from .solution import certify as certify  # for chapters
from .svm_decimal import LARGEST, decide
from .tokens import GapRows, VectorRows, first_equal, known, resolve_opt

# A row whose part outside the span of the equalities is smaller than this share: only rounding.
TIED = 1e-10
# A residual of margins up to which the weights are left as they are.
TIGHT = 1e-10
# Rows up to which 50 digits take less than a second, and are asked already where `is_optimal` is
# False, not only where it is far from True.
QUICK, ASKED = 100, 1e-9

__all__ = ["SVMSolution", "solve", "solve_u_svm", "solve_w_svm"]


@spare_threads
def solve_w_svm(data: Dataset, opt: TensorLike | None = None) -> SVMSolution:
    """W_mm: the smallest W with (x_{i,opt} - x_{i,t})' W x_{i,1} >= 1 for all i and t != opt_i.

    Parameters
    ----------
    data : Dataset
        float32 tokens are lifted to float64. Queries and keys of its own are taken.
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
    Source: (W-SVM) of the paper [a], norm and orientation [d]. It is solved in the N' dual
    weights, never in d^2 variables: W_mm = sum_k alpha_k z_k is one matrix product at the end.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> solve_w_svm(make_separation_pair()).weights.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    here, opt = known(data), None if opt is None else resolve_opt(data, opt)
    rows = here.own_rows(data, opt)
    ones = torch.ones(len(rows.sequence), dtype=torch.float64)
    return _placed(rows, ones, "W-SVM", gram=here.gram(opt))


def resolve_svm(svm: SVMSolution | bool | None, data: Dataset, rows: GapRows) -> SVMSolution | None:
    """W_mm of these data: solved here, given and checked against their rows, or none."""
    if svm is False:
        return None
    if svm is None or svm is True:
        return solve_w_svm(data)
    require_type("svm", svm, SVMSolution, "an SVMSolution, or False", "pass solve_w_svm(data)")
    return require_svm(svm, rows)


@spare_threads
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
    Source: (u-SVM) of the paper [a], the norm [d].

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_u_svm
    >>> solve_u_svm(make_separation_pair()).weights.tolist()
    [1.0, 0.0]
    """
    opt = resolve_opt(data, opt)
    each = torch.arange(data.n, device=opt.device)
    rows = data.y.double()[:, None] * data.X[each, opt].double()
    return solve(VectorRows(rows, each, opt, (data.d,)), problem="u-SVM")


def solve(
    rows: GapRows | VectorRows | TensorLike,
    right: TensorLike | float = 1,
    equalities: TensorLike | None = None,
    norm: str = "frobenius",
    *,
    problem: str = "SVM",
) -> SVMSolution:
    """The smallest weights W with <z_k, W> >= b_k on all rows, and the proof that they are.

    Parameters
    ----------
    rows : GapRows, VectorRows or (N', D) tensor
        z_k.
    right : float or (N',) tensor
        b_k >= 0, not all 0: 1 for a margin, 0 for a row that need only not be negative.
    equalities : (N0, D) tensor, optional
        Rows that must give 0; for VectorRows alone.
    norm : {"frobenius", "max", "spectral", "nuclear"}
        What is minimised. "frobenius" is exact; the others take `GapRows` and the package
        cvxpy, whose interior point is certified like everything else.
    problem : str
        The name under which it is refused.

    Returns
    -------
    SVMSolution

    Raises
    ------
    InfeasibleError
        With Gordan's certificate, or Farkas': weights a >= 0 of sum 1 for which the rows add up
        to zero and b'a > 0. Feasibility is the same in all norms.
    SolverError
        As for `solve_w_svm`, and where an interior point leaves a gap.
    MissingExtraError, ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: ours [c]. On the Gram matrix in float64, or with 50 digits where that leaves it
    undecided. CUDA tensors are solved for on the CPU (not run).

    Examples
    --------
    The linear SVM of points X with labels y has the rows y_i x_i. They are OSQP's A, with the
    identity as P, and l = right:

    >>> import numpy as np
    >>> from attnbias.errors import InfeasibleError
    >>> from attnbias.geometry.svm import solve
    >>> X = np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [-2.0, 1.0]])
    >>> y = np.array([1, 1, -1, -1])
    >>> svm = solve(y[:, None] * X)
    >>> svm.weights.numpy().round(9), svm.dual.numpy().round(9)
    (array([1., 1.]), array([0. , 1.5, 0. , 0.5]))
    >>> round(svm.margin, 9), svm.support.tolist()
    (0.707106781, [1, 3])

    The weights and the dual weights are judged anew from the rows:

    >>> judged = svm.certify()
    >>> [round(x, 9) for x in (judged.primal_residual, judged.dual_residual, judged.duality_gap)]
    [0.0, 0.0, 0.0]

    No line through 0 has the first three points on one side, because a mean of them is 0. The
    certificate says which:

    >>> try:
    ...     solve(X[:3])
    ... except InfeasibleError as error:
    ...     error.certificate.numpy().round(9)
    array([0.2, 0.4, 0.4])

    An offset b that costs nothing, as scikit-learn's `SVC` has it, drops out of the difference of
    two points from the two classes, which is a row of right side 2. With a column of ones in X
    the offset costs b^2, as in `LinearSVC`.

    >>> above, below = X[y > 0], X[y < 0]
    >>> w = solve((above[:, None] - below).reshape(-1, 2), 2.0).weights.numpy()
    >>> w.round(9), round(1 - float((above @ w).min()), 9)
    (array([1. , 0.5]), 0.5)
    """
    require_choice("norm", norm, NORMS)
    Z = _as_rows(rows)
    if equalities is not None:
        Z = across(Z, equalities, problem)
    right = 1.0 if isinstance(right, int) and right == 1 else right
    return _placed(Z, _as_right(right, len(Z.sequence)), problem, norm)


def _placed(Z, right: torch.Tensor, problem: str, norm="frobenius", gram=None):
    """The solution on the device of the rows, which are solved for on the CPU."""
    device = Z.sequence.device
    if device.type != "cpu":
        Z = on_device(Z, "cpu")
    gram = Z.gram() if gram is None else gram
    found = _solve(Z, right, problem, gram.detach().cpu().numpy())
    if norm != "frobenius":
        found = least_norm(Z, found.right, norm)
    return found if device.type == "cpu" else on_device(found, device)


def _as_rows(rows) -> GapRows | VectorRows:
    if isinstance(rows, GapRows | VectorRows):
        return rows
    Z = as_floats("rows", rows, (None, None), "(N', D)").double()
    each = torch.arange(len(Z), device=Z.device)
    return VectorRows(Z, each, torch.zeros_like(each), tuple(Z.shape[1:]))


def _as_right(right, count: int) -> torch.Tensor:
    right = as_float_tensor("right", right)
    right = right.expand(count) if right.ndim == 0 else right
    right = as_floats("right", right, (count,), "(N',), one a row").double().cpu()
    if not (float(right.min()) >= 0 and float(right.max()) > 0):
        raise RangeError(
            "right",
            expected="right sides of at least 0, not all 0",
            got=f"from {float(right.min()):g} to {float(right.max()):g}",
            remedy="1 for a margin, 0 for a row that need only not be behind",
        )
    return right


def project_rows(raw: torch.Tensor, ties: torch.Tensor):
    """Rows less their part in the span F of `ties`, a basis of F, and which rows lie in F.

    Parameters
    ----------
    raw : (N, D) float64
    ties : (N0, D) float64
        N0 may be 0.

    Returns
    -------
    rows : (N, D) float64
    basis : (D, r) float64
    lost : (N,) bool
        Rows of which nothing but rounding is left.

    Notes
    -----
    Source: ours [c]. Equalities cost an SVM nothing: its solution is in the complement of F, and
    there <z, W> = <Pz, W> with P the projection along F. The certificate of the rows Pz is that
    of the problem with equalities: weak duality with free multipliers on F.

    Examples
    --------
    >>> raw, tie = torch.eye(2).double(), torch.tensor([[1.0, 1.0]]).double()
    >>> rows, basis, lost = project_rows(raw, tie)
    >>> [round(x, 3) for x in rows[0].tolist()], lost.tolist()
    ([0.5, -0.5], [False, False])
    """
    basis = raw.new_zeros(raw.shape[1], 0)
    if len(ties):
        left, sizes, _ = torch.linalg.svd(ties.T, full_matrices=False)
        basis = left[:, sizes > TIED * sizes.max()]
    rows = raw - (raw @ basis) @ basis.T
    rows = rows - (rows @ basis) @ basis.T  # twice, so that rounding in F is gone
    return rows, basis, vector_norm(rows, dim=1) <= TIED * vector_norm(raw, dim=1)


def across(rows: GapRows | VectorRows, ties: TensorLike, problem: str) -> VectorRows:
    """The rows less their part in the span of the equalities' rows `ties` (N0, D).

    Raises
    ------
    InfeasibleError
        Where there is no row, or one lies in that span.
    DtypeError, ShapeError, NonFiniteError
    """
    if isinstance(rows, GapRows):
        raise DtypeError(
            "rows",
            expected="rows written out, beside equalities",
            got="GapRows",
            remedy="pass VectorRows, or a tensor of the products flattened",
        )
    F = as_float_tensor("equalities", ties)
    if F.ndim == 0 or len(F):
        F = as_floats("equalities", F, (None, rows.rows.shape[1]), "(N0, D), as the rows")
    left, basis, lost = project_rows(rows.rows, F.detach().to(rows.rows))
    if len(left) == 0 or bool(lost.any()):
        raise InfeasibleError(
            problem,
            expected="rows beside the equalities, none in their span",
            got="no such row" if len(left) == 0 else f"{int(lost.sum())} in the span",
            remedy="ask for fewer equalities, or add features",
        )
    return VectorRows(left, rows.sequence, rows.token, rows.shape, basis)


def _solve(rows, right: torch.Tensor, problem: str, gram: np.ndarray) -> SVMSolution:
    _require_range(gram, rows, problem)
    thin, basis = rows.thin()
    core = solve_dual(gram, right.numpy())
    if core.status == "infeasible":
        start = torch.from_numpy(core.dual)
        refuse_infeasible(start, thin, right, problem, core.correct)
    else:
        start, point, total, judged = _polish(core, thin, right, fine=basis is None)
        evened = _evened(rows, start, judged[0], right)
        total = total if basis is None and evened is start else None
        start, names = evened, {"solver": core.method, "problem": problem}
        known = judged if basis is None else None  # thin rows' own products round otherwise
        found = proved(rows, right, start, point, basis, total=total, judged=known, **names)
        if found.primal_residual > TIGHT:
            even = solve_dual(gram, (right * thin.norms()).numpy())
            found = _raised(found, thin, thin.combine(torch.from_numpy(even.dual)))
        if found.is_optimal(LOOSE if len(start) > QUICK else ASKED):
            return found
    return _at_the_edge(rows, thin, basis, right, problem, start)


def _evened(rows, dual: torch.Tensor, margins: torch.Tensor, right) -> torch.Tensor:
    """The dual weights with those of equal rows made equal, which leaves their sum of rows.

    A solver that asks for independent rows puts the whole weight on one of them, so that the
    other looks like an active constraint that supports nothing.
    """
    at_margin = margins.numpy() <= right.numpy() + ZERO
    if dual.numpy()[at_margin].all():
        return dual
    active = torch.from_numpy(at_margin)
    group = first_equal(rows, active)
    means = dual.scatter_reduce(0, group, dual[active], "mean", include_self=False)
    dual = dual.clone()
    dual[active] = means[group]
    return dual


def _raised(found: SVMSolution, thin, even: torch.Tensor) -> SVMSolution:
    """The weights with a share of the `even` ones, whose margins are b_k |z_k| or more.

    Float64's weights next to the solution have margins that are off by 2e-16 |z_k| |W|. So much
    of the even weights is added that none falls short; the given ones if that proves no more.
    """
    best, asked = found, found.right > 0
    sizes, point = thin.norms() * found.right, found.point
    for _ in range(3):
        short = found.right - found.margins + 2 * EPS * thin.norms() * found.norm
        point = point + float((short / sizes)[asked].max()) * even
        names = {"solver": found.solver, "problem": found.problem}
        found = proved(found.rows, found.right, found.dual, point, found.basis, **names)
        best = min(best, found, key=lambda each: max(each.primal_residual, each.duality_gap))
        if found.primal_residual <= TIGHT:
            break
    return best


def _at_the_edge(rows, thin, basis, right: torch.Tensor, problem: str, start) -> SVMSolution:
    """`solve` with 50 digits: the solution, or the error with Gordan's certificate."""
    sizes = thin.norms()
    if len(sizes) > LARGEST:
        raise undecided(problem, f"{len(sizes)} rows whose Gram matrix proves neither", rows)
    # margins |z_k| are the same task in any units
    shares, even = decide(thin, right * sizes, start)
    refuse_infeasible(shares, thin, right, problem)
    dual, point = (shares, None) if even is None else decide(thin, right, shares)
    if even is None or point is None:
        raise undecided(problem, "rows that cancel by weights which float64 does not hold", rows)
    names = {"solver": "50 digits", "problem": problem}
    found = proved(rows, right, dual, point, basis, **names)
    found = found if found.primal_residual <= TIGHT else _raised(found, thin, even)
    if found.is_optimal(LOOSE):
        return found
    margin, gap = float(1 / even.norm()), found.duality_gap
    got = f"{margin:.1e}, feasible, with a duality gap of {gap:.1e} in float64"
    raise undecided(problem, got, rows)


def _require_range(gram: np.ndarray, rows, problem: str) -> None:
    """Refuse tokens whose squared products leave float64's range."""
    diagonal = gram.diagonal()
    low, high = float(diagonal.min()), float(diagonal.max())
    if low > 1e-280 and high < 1e300:
        return
    sizes = torch.stack([part.abs().amax(dim=1) for part in rows.factors])
    smallest = float(sizes.masked_fill(sizes == 0, 1.0).min())
    if not high < 1e300 or smallest < 1e-70:
        raise RangeError(
            f"data.X ({problem})",
            expected="tokens of norm between 1e-70 and 1e70, or 0",
            got=f"squared row norms from {low:.3g} to {high:.3g}",
            remedy="rescale the tokens; c X has the solution W_mm / c^2, u_mm / c",
        )


def _polish(
    core: DualSolution, rows, right, *, fine: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, Margins]:
    """Iterative refinement with the residual on the rows, more exact than on their products.

    The error of the margins falls from EPS |z|^2 norm^2 to EPS |z| norm. Returns the dual
    weights, a point close to their sum of rows, that sum if it is known, and the point's margins.
    """
    dual = torch.from_numpy(core.dual)
    total = point = rows.combine(dual)
    judged = margins_of(rows, right, point, fine=fine)
    for _ in range(2):
        residual = (right - judged[0]).numpy()
        if len(core.active) == 0 or abs(residual[core.active]).max() < 32 * EPS:
            break
        change = torch.from_numpy(core.correct(residual))
        dual, point, total = (dual + change).clamp_(min=0), point + rows.combine(change), None
        judged = margins_of(rows, right, point, fine=fine)
    return dual, point, total, judged
