"""Several selected tokens: split steps turn to their SVM while deficits stay positive."""

from __future__ import annotations

import math

import numpy as np

from ...checks import Check
from ...dynamics.trace import Trace, require_trace_of
from ...errors import DtypeError
from ...geometry.constants import lambert
from ...geometry.solution import require_optimal
from ..next_token.ties import soft_parts
from .geometry import SeveralRows

STATEMENT = "1 - cosine(W_t, several-token SVM), against the bound of split steps"
SOURCE = "split steps under a nonlinear head, ours"


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
    >>> from attnbias.beyond.multi_token.head_functions import QuadraticHead
    >>> from attnbias.beyond.multi_token.dynamics import train_nonlinear
    >>> from attnbias.beyond.multi_token.mixtures import predict_mixture
    >>> from attnbias.beyond.multi_token.geometry import solve_several_svm
    >>> data = make_orthogonal(2, 3, 5)
    >>> svm = solve_several_svm(data, predict_mixture(data, data.u, 0.3).sets)
    >>> run = train_nonlinear(data, QuadraticHead(data.u, 0.3), NGD(0.5), 300, split=svm.rows)
    >>> check_several(run, svm).holds
    True
    """
    require_trace_of(trace, "nonlinear head", "train_nonlinear")
    if not isinstance(getattr(svm, "rows", None), SeveralRows):
        raise DtypeError(
            "svm", expected="a solution of solve_several_svm", got=type(svm).__name__,
            remedy="train with train_nonlinear(..., split=svm.rows)",
        )  # fmt: skip
    low, high = trace.series.get("log_factor", [[-math.inf, math.inf]])[-1]
    if not (math.isfinite(low) and math.isfinite(high)):
        reason = "for split runs in which no token outside the sets is ever pulled up"
        return Check.not_applicable(STATEMENT, reason, source=SOURCE)
    require_optimal("svm", svm)
    unit = svm.weights.numpy() / svm.norm
    along = np.tensordot(trace.W.numpy(), unit, 2)
    ahead = np.flatnonzero(along >= 0)
    if len(ahead) == 0 or ahead[0] + 1 >= len(along):
        return Check.not_applicable(STATEMENT, "W never pointed to the SVM", source=SOURCE)
    later = slice(int(ahead[0]) + 1, None)
    bound = _bound(trace, svm, along, unit, int(ahead[0]), high - low)
    empty = bool(bound[-1] >= 2)
    reason = f"the bound is {bound[-1]:.3g} at the end, falling like 1/path" if empty else ""
    error = trace.alignment_error(svm.weights)[later]
    return Check.along(
        STATEMENT, trace.step[later], error, bound, source=SOURCE, vacuous=empty, reason=reason
    )


def _bound(trace, svm, along, unit, start: int, log_spread: float) -> np.ndarray:
    """The right side at the records after `start`, with the log of C_high / C_low."""
    later = slice(start + 1, None)
    soft = soft_parts(trace, svm.rows)
    across = trace.W[start].numpy() - along[start] * unit - soft[start]
    path = trace.path_length[later] - trace.path_length[start]
    Lambda = lambert(math.log(len(svm.dual)) + log_spread - 1)
    room = np.linalg.norm(across) ** 2 + (2 * Lambda / svm.margin + trace.longest_step[-1]) * path
    room = room + np.linalg.norm(soft[later], axis=(1, 2)) ** 2
    b = float(svm.rows.norms().max())
    return b**2 / (2 * svm.margin**2) * room / path**2
