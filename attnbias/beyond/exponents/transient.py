"""How the offset settles: its rates, the largest step size, and the part that never does."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ..._validate import as_numbers, require_choice, require_number, require_shape
from ...data import Dataset
from ...errors import RangeError
from ...geometry.svm import SVMSolution
from .slack import least_slack, require_w_svm, solution_of

METHODS = ("NGD", "heavy ball", "dual acceleration")
_RANK = 1e-10  # rates below this share of the largest are rounding, 1e-14, of zero
_DEPENDENT = 1e-7  # a Cholesky pivot below this share of the largest is rounding


class OffsetParts(NamedTuple):
    """The offset P of W from its part along W_mm, in two orthogonal parts.

    Attributes
    ----------
    within : (R, m - 1 or more) float64
        Coordinates, in an orthonormal basis, of the part in the span of the m supporting rows.
    beyond : (R, N' - m) float64
        The same of the part across that span, within the span of all rows.

    Examples
    --------
    >>> from attnbias import NGD, make_example1, solve_w_svm, train
    >>> data = make_example1(2, 3, 6, sigma=0.5, seed=2)
    >>> trace = train(data, NGD(0.1), 100, record=[50, 100])
    >>> parts = offset_parts(solve_w_svm(data), trace.gaps)
    >>> len(parts.within) == len(parts.beyond) == 2
    True
    """

    within: torch.Tensor
    beyond: torch.Tensor


def transient_rates(svm: SVMSolution) -> torch.Tensor:
    """Stiffness of the offset's fixed point, one number a direction, least first.

    Once the softmax is saturated, a unit step along the negative gradient moves the offset,
    at a small distance x from its fixed point, by -chi x in each of m - 1 directions.

    Parameters
    ----------
    svm : SVMSolution
        Of the W-SVM, with m supporting rows.

    Returns
    -------
    (m - 1,) float64 tensor
        Zeros where supporting rows are dependent.

    Raises
    ------
    DtypeError

    Notes
    -----
    Source: ours [c]. Saturated weights are p_k = Lambda alpha_k exp(-<z_k, x>), so the unit
    direction is unit W_mm - Xi sum_k alpha_k <z_k, x> z_k plus a part along W_mm, to first
    order. sum_k alpha_k z_k z_k' has W_mm as an eigenvector, with eigenvalue 1; chi are Xi
    times the others on the rows' span, those of A^(1/2) K A^(1/2) without the eigenvector
    A^(1/2) 1, A = diag(alpha).

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> rates = transient_rates(solve_w_svm(make_example1(2, 3, 6, sigma=0.5, seed=0)))
    >>> [round(rate, 2) for rate in rates.tolist()]
    [0.85, 1.31, 1.84]
    """
    require_w_svm("svm", svm)
    support = svm.supports
    root = svm.dual[support].sqrt()
    S = root[:, None] * svm.rows.gram()[support][:, support] * root
    others = torch.linalg.svd(root[None, :]).Vh[1:]  # a basis of what is orthogonal to A^(1/2) 1
    return svm.margin * torch.linalg.eigvalsh(others @ S @ others.T).clamp(min=0.0)


def transient_rate(data: Dataset, solution: SVMSolution | None = None) -> float:
    """Rate at which the offset of W from W_mm settles, per unit of height.

    The height of W is Xi <W, unit W_mm>, about Xi |W|: the gap that supporting rows have. Late
    in a run the offset differs from its limit by about exp(-rate height).

    Parameters
    ----------
    data : Dataset
        With a feasible (W-SVM).
    solution : SVMSolution, optional
        Of the W-SVM of these data.

    Returns
    -------
    float
        The least of three: `least_slack`, with which idle rows fall silent; the least of
        `transient_rates` over Xi, with which supporting rows find their balance; and 1, with
        which the softmax saturates, unless all supporting rows are of one sequence. Infinite
        when one row alone supports W_mm and none is idle.

    Raises
    ------
    InfeasibleError, ShapeError, DtypeError, TiedTokensError, MissingDecoderError

    Notes
    -----
    Source: ours [c], for small steps along the gradient of the exponential loss, under
    Assumption 2 and strict complementarity, with independent supporting rows; a unit of length
    is Xi units of height. An idle row of slack delta adds a force of size exp(-delta height).
    Loss and softmax give the rows of a sequence a common factor, which is exp(-height) off its
    limit; between sequences this is a force as well, within one it drops out.

    Examples
    --------
    >>> from attnbias.data.degenerate import make_degenerate
    >>> round(transient_rate(make_degenerate(-0.1)), 12)
    0.1
    """
    solution = solution_of(data, solution)
    rates = transient_rates(solution)
    moving = rates[rates > _RANK * rates.max()] if len(rates) else rates
    slowest = float(moving.min()) / solution.margin if len(moving) else math.inf
    supporting = solution.rows.sequence[solution.supports]
    saturation = 1.0 if len(supporting.unique()) > 1 else math.inf
    return min(least_slack(data, solution), slowest, saturation)


def max_stable_step(svm: SVMSolution, method: str = "NGD", momentum: float = 0.0) -> float:
    """Step size above which the offset's fixed point repels.

    Parameters
    ----------
    svm : SVMSolution
    method : {"NGD", "heavy ball", "dual acceleration"}
    momentum : float
        beta of the heavy ball, in [0, 1).

    Returns
    -------
    float
        2 / chi, 2 (1 + beta) / chi or 4 / (3 chi), chi the largest of
        `transient_rates`; infinity with a single supporting row.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: ours [c]: linear stability of the fixed point in the saturated limit. With
    a = step_size chi an offset x multiplies by the roots of r - (1 - a),
    r^2 - (1 + beta - a) r + beta, and for dual acceleration, late, r^2 - 2 (1 - a) r + 1 - a.
    All lie inside the unit circle exactly up to these step sizes. That a run comes near the
    fixed point in the first place is not said.

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> svm = solve_w_svm(make_example1(2, 3, 6, sigma=0.5, seed=0))
    >>> [round(max_stable_step(svm, method), 3) for method in ("NGD", "dual acceleration")]
    [1.088, 0.725]
    """
    require_choice("method", method, METHODS)
    beta = require_number("momentum", momentum, low=0.0)
    if beta >= 1 or (beta > 0 and method != "heavy ball"):
        raise RangeError(
            "momentum",
            expected="a number in [0, 1), and 0 unless the method is 'heavy ball'",
            got=f"{beta:g} with {method!r}",
            remedy="pass method='heavy ball' with momentum=0.9, say",
        )
    rates = transient_rates(svm)
    if not len(rates) or not float(rates[-1]) > 0:
        return float("inf")
    factor = {"NGD": 2.0, "heavy ball": 2 * (1 + beta), "dual acceleration": 4 / 3}[method]
    return factor / float(rates[-1])


def offset_parts(svm: SVMSolution, gaps) -> OffsetParts:
    """Split the offset into what the supporting rows hold and what only idle rows moved.

    Parameters
    ----------
    svm : SVMSolution
        Of the W-SVM, with linearly independent rows.
    gaps : (R, N') array
        Logit gaps of iterates, such as `trace.gaps`. What W_0 has across all rows is not seen
        by them.

    Returns
    -------
    OffsetParts

    Raises
    ------
    DtypeError, ShapeError, RangeError

    Notes
    -----
    Source: ours [c]. With h_k = <z_k, P> = g_k - c <z_k, unit W_mm> the two squared norms are
    h_S' K_SS^-1 h_S and the same form of the rest with the Schur complement of K_SS.

    Examples
    --------
    >>> from attnbias import NGD, make_example1, solve_w_svm, train
    >>> data = make_example1(2, 3, 6, sigma=0.5, seed=2)
    >>> svm, trace = solve_w_svm(data), train(data, NGD(0.1), 10_000, record=[10_000])
    >>> parts = offset_parts(svm, trace.gaps)
    >>> round(parts.within.norm().item(), 4), round(parts.beyond.norm().item(), 4)
    (1.0849, 0.5071)
    """
    require_w_svm("svm", svm)
    gaps = torch.from_numpy(as_numbers("gaps", gaps, dtype=float))
    words, remedy = "(R, N'), one gap a row of the W-SVM", "pass trace.gaps of a run on these data"
    require_shape("gaps", gaps, (None, len(svm.dual)), words, remedy)
    K, S = svm.rows.gram(), svm.supports
    order = torch.cat([S.nonzero().flatten(), (~S).nonzero().flatten()])
    L, info = torch.linalg.cholesky_ex(K[order][:, order])
    pivots = L.diagonal()
    if int(info) or bool(pivots.min() < _DEPENDENT * pivots.max()):
        raise RangeError(
            "svm",
            expected="linearly independent rows z_k",
            got="dependent ones",
            remedy="more features or fewer tokens; d >= n T is enough for tokens drawn at random",
        )
    along = gaps @ svm.dual * svm.margin
    h = (gaps - along[:, None] * svm.margins * svm.margin)[:, order]
    parts = torch.linalg.solve_triangular(L, h.T, upper=False).T
    m = int(S.sum())
    return OffsetParts(parts[:, :m], parts[:, m:])
