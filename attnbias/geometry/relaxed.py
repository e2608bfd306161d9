"""The W-SVM in which some sequences need only be attended to: margins of 0 instead of 1."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import nnls

from .._validate import as_float_tensor, require_finite, require_shape
from ..data import Dataset
from ..errors import InfeasibleError, RangeError, SolverError
from .certificate import Bounds, bounds
from .edge import LARGEST, decide
from .tokens import GapRows, gap_rows

_RANK = 1e-12  # eigenvalues of the Gram matrix below this share of the largest are rounding
_WIDEST = 1e-6  # a relative gap that only data at the edge of infeasibility leave open
_VANISHING = 1e-8  # norm of a weighted sum of rows that cancel, relative to their norms
_BELOW = 1e-12  # how far below 0 a margin of right side 0 may be, relative to |z_k| |W|


@dataclass(frozen=True, eq=False)
class RelaxedSVM:
    """The smallest W with <z_k, W> >= b_k, b_k >= 0, and the bounds that prove it.

    Attributes
    ----------
    weights : (d, d) float64
        Scaled so that the least of margins over right sides is 1.
    dual : (N',) float64
        a >= 0 with weights = sum_k a_k z_k.
    margins, right : (N',) float64
        <z_k, weights> and b_k.
    bounds : Bounds
        On the least norm: b'a / |sum_k a_k z_k| from below, |weights| from above; infinite if
        a margin with b_k = 0 is negative, or no scaling lifts all others to b_k.
    rows : GapRows
    """

    weights: torch.Tensor
    dual: torch.Tensor
    margins: torch.Tensor
    right: torch.Tensor
    bounds: Bounds
    rows: GapRows

    @property
    def norm(self) -> float:
        """Of the weights."""
        return float(self.weights.norm())

    @property
    def duality_gap(self) -> float:
        """Upper over lower bound, minus 1."""
        return self.bounds.gap

    def __repr__(self) -> str:
        relaxed = int((self.right == 0).sum())
        return (
            f"RelaxedSVM(norm={self.norm:.6g}, {relaxed} of {len(self.right)} rows relaxed, "
            f"duality gap {self.duality_gap:.1e})"
        )


def solve_relaxed_svm(data: Dataset, right, opt=None) -> RelaxedSVM:
    """The smallest W with (x_{i,opt} - x_{i,t})' W x_{i,1} >= b_i for all i and t != opt_i.

    Parameters
    ----------
    data : Dataset
        Queries and keys of its own are taken.
    right : (n,) tensor
        b_i >= 0, one a sequence, not all 0: ones are the W-SVM, and a 0 asks of a sequence
        only that its optimal token is not behind.
    opt : (n,) integers, optional
        Optimal tokens; those of the data by default.

    Returns
    -------
    RelaxedSVM

    Raises
    ------
    InfeasibleError
        With Farkas' certificate: weights a >= 0, 1'a = 1, for which the rows cancel and
        b'a > 0.
    SolverError
        At the edge of infeasibility.
    RangeError, ShapeError, DtypeError, NonFiniteError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: right sides 0 and 1 are the relaxed problem of Tarzanagh et al. (2023) for joint
    training [b]; certificate and solver are ours [c]. For a >= 0 and any feasible W,
    b'a <= sum_k a_k <z_k, W> <= |sum_k a_k z_k| |W|. The point is found by least distance
    programming (Lawson and Hanson 1974, chapter 23), then refined on its active rows.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> from attnbias.beyond.prompt.data import prompt_keys, prompt_of
    >>> X = [[[0.0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1.5]]]
    >>> data = prompt_keys(Dataset(X, [1, -1, 1], opt=[1, 1, 1]))
    >>> for right in ([1.0, 1, 1], [1.0, 1, 0]):
    ...     p = prompt_of(solve_relaxed_svm(data, right).weights)
    ...     print([abs(round(x, 6)) for x in p.tolist()])
    [1.25, 0.25]
    [1.0, 0.0]
    """
    rows = gap_rows(data, opt)
    b = as_float_tensor("right", right).double()
    require_shape("right", b, (data.n,), "(n,)")
    require_finite("right", b)
    if not (float(b.min()) >= 0 and float(b.max()) > 0):
        raise RangeError(
            "right", expected="right sides of at least 0, not all 0",
            got=f"from {float(b.min()):g} to {float(b.max()):g}",
            remedy="1 for a margin, 0 for a sequence that need only not be behind",
        )  # fmt: skip
    each = b.to(rows.differences.device)[rows.sequence]
    size, dual = smallest_above(row_coordinates(rows), each.cpu().numpy())
    dual = torch.from_numpy(dual).to(rows.differences)
    if size < np.inf:
        solution = certify_relaxed(rows, each, _refined(rows, dual, each))
        if solution.duality_gap <= _WIDEST:
            return solution
    elif isinstance(found := _infeasible(rows, dual, each), InfeasibleError):
        raise found
    if len(each) > LARGEST:
        raise _undecided(f"{len(each)} rows that prove neither")
    dual, W = _decided(rows, each, dual)
    if W is None:
        raise _infeasible(rows, dual, each)
    solution = certify_relaxed(rows, each, dual, W)
    if not solution.duality_gap <= _WIDEST:
        raise _undecided(f"a relative duality gap of {solution.duality_gap:.1e}")
    return solution


def _decided(rows: GapRows, right: torch.Tensor, start: torch.Tensor):
    """`decide` with 50 digits, also where rows are zero: they ask for nothing, or for too much."""
    some = rows.norms() > 0
    if bool((right[~some] > 0).any()):
        return (~some & (right > 0)).to(right), None
    part = dataclasses.replace(
        rows,
        differences=rows.differences[some],
        sequence=rows.sequence[some],
        token=rows.token[some],
    )
    found, W = decide(part, right[some], start[some])
    return torch.zeros_like(right).masked_scatter_(some, found), W


def certify_relaxed(
    rows: GapRows, right: torch.Tensor, dual: torch.Tensor, weights: torch.Tensor | None = None
) -> RelaxedSVM:
    """What given dual weights (N',) prove about right sides (N',), whoever found them.

    `weights` is a primal point close to the rows' sum, by default the sum itself.
    """
    total = rows.combine(dual)
    W = total if weights is None else weights
    margins, norm = rows.gaps(W), float(W.norm())
    asked = right > 0
    share = float((margins[asked] / right[asked]).min())
    slip = float((margins + _BELOW * rows.norms() * norm)[~asked].min()) if (~asked).any() else 0.0
    share = share if slip >= 0 else 0.0
    lower = float(right @ dual) if float(dual.min()) >= 0 else 0.0
    both, scale = bounds(norm, share, lower, float(total.norm())), share if share > 0 else 1.0
    return RelaxedSVM(W / scale, dual / scale, margins / scale, right, both, rows)


def row_coordinates(rows: GapRows) -> np.ndarray:
    """(N', r) coordinates of the rows in an orthonormal basis of their span."""
    values, vectors = torch.linalg.eigh(rows.gram())
    keep = values > _RANK * values[-1]
    return (vectors[:, keep] * values[keep].sqrt()).cpu().numpy()


def smallest_above(Z: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray]:
    """Norm of the smallest v with Z v >= right, and weights with v = Z' weights; inf if none.

    With norm inf the weights are a certificate: >= 0, with Z' weights = 0 and right'weights > 0.
    """
    if (right <= 0).all():
        return 0.0, np.zeros(len(Z))
    scale = np.abs(right).max()
    E = np.vstack([Z.T, right / scale])
    target = np.zeros(len(E))
    target[-1] = 1.0
    weights, _ = nnls(E, target, maxiter=100 * len(Z))
    last = 1.0 - E[-1] @ weights  # Lawson and Hanson: v = Z' weights / last
    if last <= _RANK:
        return np.inf, weights
    weights = weights / last * scale
    return float(np.linalg.norm(Z.T @ weights)), weights


def _refined(rows: GapRows, dual: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The weights moved until active margins equal their right sides, if they stay positive."""
    active = dual > 0
    missing = (right - rows.gaps(rows.combine(dual)))[active]
    K = rows.gram()[active][:, active]
    change = torch.linalg.lstsq(K.cpu(), missing.cpu()[:, None], driver="gelsd").solution[:, 0]
    moved = dual.clone()
    moved[active] += change.to(dual)
    return moved if float(moved.min()) >= 0 else dual


def _infeasible(rows: GapRows, dual: torch.Tensor, right: torch.Tensor):
    certificate = dual / dual.sum()
    sizes = float(certificate @ rows.norms())
    residual = float(rows.combine(certificate).norm()) / sizes if sizes > 0 else 0.0
    if not (residual <= _VANISHING and float(right @ certificate) > 0):
        return _undecided(f"rows that cancel but for a share of {residual:.1e}")
    heaviest = int(certificate.argmax())
    return InfeasibleError(
        "relaxed W-SVM",
        expected="rows with a W of the margins asked for",
        got=f"{int((certificate > 0).sum())} of {len(certificate)} rows that cancel when weighted "
        f"by the certificate, the heaviest from sequence {int(rows.sequence[heaviest])}",
        remedy="relax more sequences, add features, or drop sequences that contradict each other",
        certificate=certificate,
        residual=residual,
    )


def _undecided(got: str) -> SolverError:
    return SolverError(
        "relaxed W-SVM",
        expected="margins clearly possible or clearly not",
        got=got,
        remedy="rescale the tokens to norms near 1, or drop nearly repeated ones",
    )
