"""M1 on rows of any origin: prompt attention, with queries and keys of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...checks import Check, CheckTable
from ...data import Dataset
from ...geometry.constants import row_bound
from ...losses import Loss, as_loss
from ...theorems.run import TraceView
from ...theorems.sharper.rate import NEVER_TURNS, after, first_turned
from ...theorems.statements import (
    Statement,
    fails,
    needs_alignment,
    needs_assumption2,
    needs_fixed_decoder,
    needs_plain_steps,
    needs_start,
    table,
)
from ..losses.checks import same_loss
from ..losses.constants import slope_range

RISE = Statement(
    "rise",
    "records at which a logit gap is smaller than before, where no two rows point apart",
    "rows that never point apart",
)
RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against (b^2 / (2 Xi^2)) (|P_0|^2 + (2 Lambda / Xi + sbar) S) / S^2",
    "M1 on rows",
)
_SETTLED = 1e-12  # share of a gap by which rounding may lower it


def check_rows(data: Dataset, trace, loss="exponential", *, svm=None) -> CheckTable:
    """M1 in terms of the rows z_k alone, for data whose queries and keys are anything.

    With b the largest |z_k|, N' rows, Lambda exp(Lambda) = N' kappa / (e phi_low^2), S the path
    length since <W, W_mm> was first recorded non-negative, P_0 the part of W across W_mm there,
    and sbar the longest step so far,

        1 - cosine(W_t, W_mm) <= (b^2 / (2 Xi^2)) (|P_0|^2 + (2 Lambda / Xi + sbar) S) / S^2.

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
    loss, run = as_loss(loss), TraceView(data, trace, svm, cross=True)
    reason = needs_fixed_decoder(run) or same_loss(trace, loss)
    reason = reason or fails(run, needs_assumption2, needs_plain_steps, needs_start)
    return table(reason, (RISE, RATE), _rows, run, loss)


def _rows(run: TraceView, loss: Loss) -> Iterator[Check]:
    yield _rise(run)
    yield _rate(run, loss)


def _rise(run: TraceView) -> Check:
    least = float(run.K.min())
    if not least >= 0:
        return RISE.refused(f"two rows have the product {least:.3g}")
    slack = _SETTLED * np.abs(run.gaps[1:])
    return RISE.once((np.diff(run.gaps, axis=0) < -slack).any(axis=1).sum(), 0.0)


def _rate(run: TraceView, loss: Loss) -> Check:
    turn = first_turned(run)
    keep = after(run, turn)
    reason = fails(run, needs_alignment) or ("" if keep.any() else NEVER_TURNS)
    if reason:
        return RATE.refused(reason)
    (low, high), trace = slope_range(run.data, loss), run.trace
    with np.errstate(divide="ignore"):
        log_A = math.log(run.N) + high - low - 1 - 2 * np.log(trace.least_opt_score)
    path = np.where(keep, trace.path_length - trace.path_length[turn], 1.0)
    size = float(run.rows.norms().max())
    bounds = row_bound(size, run.Xi, log_A, trace.longest_step, run.across[turn], path)
    least = bounds[keep].min()
    words = {"vacuous": not least < 1, "reason": f"least bound {least:.2g}"}
    return RATE.along(run, trace.W_alignment_error, bounds, keep, **words)
