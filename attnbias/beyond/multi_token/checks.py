"""The best convex combination of tokens, where split steps settle, and whether a run goes there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..._validate import require_number
from ...checks import Check
from ...data import Dataset
from ...dynamics.trace import Trace
from ...errors import LabelError, RangeError
from ...geometry.solution import SVMSolution, require_optimal
from ...losses import as_loss
from ...theorems.statements import Statement
from ..common.arguments import Typed, as_finite, require_even, require_kind, require_svm
from ..common.checks import rate_check, require_trace_of
from ..next_token.ties import soft_parts
from .geometry import SeveralRows, finite_part

STATEMENT = Statement(
    "rate",
    "1 - cosine(W_t, several-token SVM), against the bound of split steps",
    "split steps under a nonlinear head, ours",
)


def check_several(trace: Trace, svm) -> Check:
    """Split NGD turns to the several-token SVM, with the weights' factors as measured.

    With b the largest norm of a projected row, N their number, Xi the margin, S the path across
    the ties' span F since <W, unit SVM> became at least 0, P the part across F and the SVM, s
    the step size, W_F the part in F, and C_low <= C_k <= C_high along the whole run,

        1 - cosine <= b^2 / (2 Xi^2 S^2) (|P_0|^2 + (2 Lambda / Xi + s) S + |W_F|^2),
        Lambda exp(Lambda) = N C_high / (e C_low).

    Parameters
    ----------
    trace : Trace
        Of `train_nonlinear(..., split=svm.rows)`.
    svm : SVMSolution
        From `solve_several_svm`.

    Returns
    -------
    Check
        Along the records; not applicable where a token outside the sets was ever pulled up.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: ours [c], the proof of M1 for the projected rows. Their weights are C_k exp(-g_k)
    with C_k = |l'| softmax(ref) exp(-part of the gap in F) (mean score - score_k): positive
    while token k is too weak to enter the combination.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.multi_token.data import make_orthogonal
    >>> from attnbias.beyond.multi_token.data import QuadraticHead
    >>> from attnbias.beyond.multi_token.dynamics import train_nonlinear
    >>> from attnbias.beyond.multi_token.checks import predict_mixture
    >>> from attnbias.beyond.multi_token.geometry import solve_several_svm
    >>> data = make_orthogonal(2, 3, 5)
    >>> svm = solve_several_svm(data, predict_mixture(data, data.u, 0.3).sets)
    >>> run = train_nonlinear(data, QuadraticHead(data.u, 0.3), NGD(0.5), 300, split=svm.rows)
    >>> check_several(run, svm).holds
    True
    """
    require_trace_of(trace, "nonlinear head", "train_nonlinear")
    require_svm("svm", svm, SeveralRows, "solve_several_svm(data, sets)")
    low, high = trace.series.get("log_factor", [[-math.inf, math.inf]])[-1]
    if not (math.isfinite(low) and math.isfinite(high)):
        return STATEMENT.refused(
            "for split runs in which no token outside the sets is ever pulled up"
        )
    require_optimal("svm", svm)
    log_A, b = math.log(len(svm.dual)) + high - low - 1, float(svm.rows.norms().max())
    return rate_check(STATEMENT, trace, svm, b, log_A, soft=soft_parts(trace, svm.rows))


_ORTHOGONAL = 1e-9  # cosine between tokens of a sequence that counts as rounding


def best_mixture(scores, curvature) -> torch.Tensor:
    """Weights p on the simplex with the largest a'p - sum_t c_t p_t^2.

    Parameters
    ----------
    scores : (n, T)
        a.
    curvature : (n, T)
        c > 0.

    Returns
    -------
    (n, T) float64

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, RangeError

    Notes
    -----
    Source: textbook, a weighted projection on the simplex: p_t = max(a_t - price, 0) / (2 c_t),
    with the price that makes the sum 1. Sorted by a, the k best are kept where k is the
    largest number for which the price of these k is below the k-th score.

    Examples
    --------
    >>> best_mixture([[1.0, 0.5, 0.0]], [[0.5, 0.5, 0.5]]).tolist()
    [[0.75, 0.25, 0.0]]
    """
    a = as_finite("scores", scores, (None, None), "(n, T)")
    c = as_finite("curvature", curvature, tuple(a.shape), "(n, T), as scores")
    ordered, place = a.sort(dim=1, descending=True)
    width = 1 / (2 * c.gather(1, place))
    price = ((ordered * width).cumsum(dim=1) - 1) / width.cumsum(dim=1)
    if not (float(c.min()) > 0 and bool(torch.isfinite(price).all())):
        raise RangeError(
            "curvature",
            expected="numbers above 0 that float64 can balance with the scores",
            got=f"from {float(c.min()):.3g}",
            remedy="without curvature a single token is best",
        )
    last = (ordered > price).sum(dim=1, keepdim=True) - 1
    return ((a - price.gather(1, last)) / (2 * c)).clamp(min=0)


@dataclass(frozen=True, eq=False)
class Mixture(Typed):
    """The best combination of each sequence's tokens.

    Attributes
    ----------
    weights : (n, T) float64
    sets : (n, T) bool
        Tokens of positive weight.
    value : (n,) float64
        The head there.
    deficit : (n, T) float64
        price - score: by how much a token is too weak to enter, 0 on the sets.

    Examples
    --------
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> best = predict_mixture(data, [1.0, 0.5, 0.0], 0.5)
    >>> best.sets.tolist(), best.deficit.round(decimals=6).tolist()
    ([[True, True, False]], [[0.0, 0.0, 0.25]])
    """

    weights: torch.Tensor
    sets: torch.Tensor
    value: torch.Tensor
    deficit: torch.Tensor

    @property
    def room(self) -> float:
        """The smallest positive weight or deficit: 0 where the best combination is a tie."""
        return float(torch.where(self.sets, self.weights, self.deficit).min())


def predict_mixture(data: Dataset, v, strength: float) -> Mixture:
    """The best combination for the head v'o - strength |o|^2, in closed form.

    Parameters
    ----------
    data : Dataset
        Labels +1, tokens of one sequence orthogonal to each other.
    v : (d,)
    strength : float, > 0

    Returns
    -------
    Mixture

    Raises
    ------
    LabelError, ShapeError, RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. At o = X'p the head is a'p - strength sum_t |x_t|^2 p_t^2 with a = X v,
    so that the answer is `best_mixture`. One token wins if and only if
    a_1 - a_2 >= 2 strength |x_1|^2.

    Examples
    --------
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> predict_mixture(data, [1.0, 0.5, 0.0], 0.5).weights.tolist()
    [[0.75, 0.25, 0.0]]
    """
    require_even(data, cross=True)
    strength = require_number("strength", strength, low=0, open_low=True)
    v = as_finite("v", v, (data.d,), "(d,)")
    _require_orthogonal(data)
    X = data.X.double()
    a, c = X @ v, strength * X.square().sum(dim=2)
    p = best_mixture(a, c)
    slope = a - 2 * c * p
    price = (p * slope).sum(dim=1, keepdim=True)
    deficit = (price - slope).masked_fill(p > 0, 0.0)
    return Mixture(p, p > 0, (a * p - c * p.square()).sum(dim=1), deficit)


@dataclass(frozen=True, eq=False)
class Settled(Typed):
    """W_t - (its part along W_mm) in the limit of split NGD, as predicted.

    Attributes
    ----------
    finite : (d, d) float64
        W_fin, in the ties' span F.
    offset : (d, d) float64
        The part across F and across W_mm.
    complete : bool
        Whether all rows support the SVM; if not, idle rows leave a part that depends on the
        start and the path, and `offset` is only the rest.

    Examples
    --------
    >>> from attnbias.beyond.multi_token.geometry import solve_several_svm
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> best = predict_mixture(data, [1.0, 0.5, 0.0], 0.5)
    >>> end = predict_settled(data, best, solve_several_svm(data, best.sets))
    >>> end.finite.shape, end.offset.shape
    (torch.Size([3, 3]), torch.Size([3, 3]))
    """

    finite: torch.Tensor
    offset: torch.Tensor
    complete: bool

    @property
    def size(self) -> float:
        """Norm of the whole: |finite + offset|."""
        return float((self.finite.square().sum() + self.offset.square().sum()).sqrt())


def predict_settled(
    data: Dataset, mixture: Mixture, svm: SVMSolution, loss="exponential"
) -> Settled:
    """Where W_t settles beside the SVM's direction, from W_0 = 0.

    Parameters
    ----------
    data : Dataset
    mixture : Mixture
    svm : SVMSolution
        Of `solve_several_svm(data, mixture.sets)`.
    loss : str or Loss

    Returns
    -------
    Settled

    Raises
    ------
    As `finite_part`.

    Notes
    -----
    Source: ours [d], a fixed point and not a proof. The gradient across F is the sum of the rows
    weighted by exp(log C_k - g_k), with C_k = |l'(h)| softmax(ref) exp(-part of g_k in F)
    deficit_k. The direction rests only if these are in the proportion of the dual weights a:
    g_k = log C_k - log a_k + constant on the support.

    Examples
    --------
    >>> from attnbias.beyond.multi_token.geometry import solve_several_svm
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> best = predict_mixture(data, [1.0, 0.5, 0.0], 0.5)
    >>> end = predict_settled(data, best, solve_several_svm(data, best.sets))
    >>> round(end.size, 4), end.complete
    (0.7768, True)
    """
    require_kind("mixture", mixture, Mixture, "pass predict_mixture(data, v, strength)")
    rows = require_svm("svm", svm, SeveralRows, "solve_several_svm(data, mixture.sets)")
    if not torch.equal(rows.sets, mixture.sets):
        raise RangeError(
            "svm",
            expected="the SVM of the sets of the mixture",
            got="of others",
            remedy="pass solve_several_svm(data, mixture.sets)",
        )
    log_p = mixture.weights.log()
    finite = finite_part(data, log_p, mixture.sets)
    first = mixture.sets.long().argmax(dim=1)[rows.sequence]
    log_slope = as_loss(loss).log_slope(mixture.value)[rows.sequence]
    log_C = log_slope + log_p[rows.sequence, first] - rows.raw @ finite.reshape(-1)
    log_C = log_C + mixture.deficit[rows.sequence, rows.token].log()
    kept = svm.support
    wanted = (log_C - svm.dual.clamp(min=1e-300).log())[kept]
    K = rows.gram()[kept][:, kept]
    beta = torch.linalg.lstsq(K, wanted[:, None], driver="gelsd").solution[:, 0]
    dual = svm.dual[kept]
    beta = beta - beta.sum() / dual.sum() * dual
    weights = torch.zeros_like(svm.dual).index_put_((kept,), beta)
    return Settled(finite, rows.combine(weights), len(kept) == len(svm.dual))


def _require_orthogonal(data: Dataset) -> None:
    if bool((data.y != 1).any()):
        raise LabelError(
            "data",
            expected="labels +1, for which the head is to be large and is concave",
            got=f"{int((data.y != 1).sum())} of -1",
            remedy="with -1 single tokens win",
        )
    X = data.X.double()
    G = X @ X.mT
    size = G.diagonal(dim1=1, dim2=2)
    off, least = float((G - torch.diag_embed(size)).abs().amax()), float(size.min())
    if not (least > 0 and off <= _ORTHOGONAL * least):
        raise RangeError(
            "data.X",
            expected="tokens of a sequence orthogonal to each other, none zero",
            got=f"inner products up to {off:.2g}, norms^2 from {least:.2g}",
            remedy="make_orthogonal, or maximise the head numerically",
        )
