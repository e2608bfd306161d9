"""M1 on rows of any origin: prompt attention, with queries and keys of its own."""

from __future__ import annotations

import math

import numpy as np

from ...checks import Check, CheckTable
from ...data import Dataset
from ...dataset import require_dataset
from ...geometry.constants import row_bound
from ...geometry.solution import require_optimal
from ...geometry.svm import solve_w_svm
from ...geometry.tokens import gap_rows, token_scores
from ...losses import as_loss
from ...theorems.statements import Statement, refused
from ...theorems.trace_validation import require_same_data, require_same_shapes, require_trace
from ..losses.constants import slope_range

RISE = Statement(
    "records at which a logit gap is smaller than before, where no two rows point apart",
    "rows that never point apart",
)
RATE = Statement(
    "1 - cosine(W_t, W_mm), against (R^2 / (2 Xi^2)) (|P_0|^2 + (2 Lambda / Xi + sbar) S) / S^2",
    "M1 on rows",
)
_SETTLED = 1e-12  # share of a gap by which rounding may lower it


def check_rows(data: Dataset, trace, loss="exponential", *, svm=None) -> CheckTable:
    """M1 in terms of the rows z_k alone, for data whose queries and keys are anything.

    With R the largest |z_k|, N' rows, Lambda exp(Lambda) = N' kappa / (e phi_low^2), S the path
    length since <W, W_mm> was first recorded non-negative, P_0 the part of W across W_mm there,
    and sbar the longest step so far,

        1 - cosine(W_t, W_mm) <= (R^2 / (2 Xi^2)) (|P_0|^2 + (2 Lambda / Xi + sbar) S) / S^2.

    Parameters
    ----------
    data : Dataset
        With a decoder; for a prompt, of `prompt_keys` or `prompt_queries`.
    trace : Trace
        Of a run with this loss, u fixed, by a rule without momentum, with step 0 recorded.
    loss : str or Loss
        The loss that the run was made with.
    svm : SVMSolution, optional
        Of the W-SVM of these data.

    Returns
    -------
    CheckTable
        Whether all gaps rise, applicable where <z_k, z_l> >= 0 for all rows; and the rate.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. The proof of M1 knows of a row only its length, at most 2 B^2 there. Needs
    Assumption 2; softmax scores enter as measured.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> from attnbias.beyond.prompt.data import prompt_keys
    >>> from attnbias.beyond.prompt.checks import check_rows
    >>> data = prompt_keys(make_separation_pair())
    >>> check_rows(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    require_dataset(data, cross=True)
    require_trace(trace)
    loss, rows = as_loss(loss), gap_rows(data)
    require_same_shapes(data, trace, len(rows.sequence))
    require_same_data(data, trace, rows)
    reason = _refusal(data, trace, rows, loss)
    if reason:
        return refused((RISE, RATE), reason)
    svm = solve_w_svm(data) if svm is None else require_optimal("svm", svm)
    return CheckTable([_rise(trace, rows), _rate(data, trace, rows, loss, svm)])


def _refusal(data, trace, rows, loss) -> str:
    scores = token_scores(data)
    other = scores[rows.sequence, rows.token]
    first = np.searchsorted(rows.sequence.cpu().numpy(), np.arange(data.n))
    if trace.scores is not None:
        return "the decoder was trained too"
    if trace.meta["loss"] != loss.name:
        return f"the run has the loss {trace.meta['loss']!r}, not {loss.name!r}"
    if not bool((other == other[first][rows.sequence]).all()):
        return "Assumption 2 fails: non-optimal tokens of a sequence have different scores"
    if trace.meta["rule_parameters"]["momentum"]:
        return "momentum steps are not along the gradient"
    return "" if trace.step[0] == 0 else "step 0 was not recorded"


def _rise(trace, rows) -> Check:
    least = float(rows.gram().min())
    if not least >= 0:
        reason = f"two rows have the product {least:.3g}"
        return Check.not_applicable(RISE.words, reason, source=RISE.source)
    slack = _SETTLED * np.abs(trace.gaps[1:])
    fell = (np.diff(trace.gaps, axis=0) < -slack).any(axis=1).sum()
    return Check(RISE.words, float(fell), 0.0, source=RISE.source)


def _rate(data, trace, rows, loss, svm) -> Check:
    low, high = slope_range(data, loss)
    error, path = trace.W_alignment_error, trace.path_length
    along = trace.W_norm * (1 - np.nan_to_num(error, nan=1.0))
    across = trace.W_norm * np.sqrt(np.nan_to_num(error * (2 - error)))
    turned = np.flatnonzero(along >= 0)
    turn = int(turned[0]) if len(turned) else len(path) - 1
    keep = (np.arange(len(path)) > turn) & (along > 0) & (path > path[turn])
    if not keep.any():
        return RATE.refused("<W, W_mm> is negative at every recorded step but perhaps the last")
    Xi, R = float(svm.margin), float(rows.norms().max())
    with np.errstate(divide="ignore"):
        log_low = np.log(trace.least_opt_score[keep])
    log_A = math.log(len(rows.sequence)) + high - low - 1 - 2 * log_low
    S, longest = path[keep] - path[turn], trace.longest_step[keep]
    bounds = row_bound(R, Xi, log_A, longest, across[turn], S)
    return Check.along(
        RATE.words, trace.step[keep], error[keep], bounds, source=RATE.source,
        vacuous=not float(bounds.min()) < 1, reason=f"least bound {float(bounds.min()):.2g}",
    )  # fmt: skip
