"""M1 for any decreasing loss: with u fixed a loss reweighs sequences by bounded factors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ...checks import Check, CheckTable
from ...errors import RangeError
from ...losses import Loss, as_loss
from ...theorems.run import TraceView
from ...theorems.sharper.rate import rate_check
from ...theorems.statements import (
    Statement,
    fails,
    needs_alignment,
    needs_assumption2,
    needs_fixed_decoder,
    needs_plain_steps,
    needs_softmax,
    needs_start,
    table,
)
from .constants import slope_constants

RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against M1's bound with the slopes of the loss in kappa",
    "M1 for any loss",
)
SPREAD = Statement(
    "spread",
    "largest over smallest -l' score gap of two sequences in the run, against kappa of the loss",
    "M1 for any loss, step 1 of the proof",
)


def check_any_loss(data, trace, loss, *, svm=None) -> CheckTable:
    """M1 with kappa taken from the slopes of the loss, at every recorded step.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    trace : Trace
        Of a run with this loss, u fixed, by a rule without momentum, with step 0 recorded.
    loss : str or Loss
        The loss that the run was made with.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable
        How far the weights of sequences spread, and the rate.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. Needs Assumption 2 and a slope that vanishes nowhere between the scores
    of a sequence; softmax scores enter as measured, as in `check_rate`.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> from attnbias.beyond.losses.losses import polynomial_loss
    >>> from attnbias.beyond.losses.checks import check_any_loss
    >>> data, loss = make_separation_pair(), polynomial_loss(2)
    >>> check_any_loss(data, train(data, NGD(0.5), 200, loss=loss), loss).all_hold
    True
    """
    loss = as_loss(loss)
    run = TraceView(data, trace, svm)
    try:
        constants, flat = slope_constants(data, loss, svm=run.svm), ""
    except RangeError as error:
        constants, flat = None, f"the slope of {loss.name} vanishes: {error}"
    reason = needs_fixed_decoder(run) or same_loss(trace, loss) or flat
    reason = reason or fails(
        run, needs_assumption2, needs_plain_steps, needs_start, needs_alignment, needs_softmax
    )
    return table(reason, (SPREAD, RATE), _rows, run, loss, constants)


def same_loss(trace, loss: Loss) -> str:
    """Why a statement on this loss does not speak of the run, or nothing."""
    used = trace.meta.get("loss")
    return "" if used == loss.name else f"the run has the loss {used!r}, not {loss.name!r}"


def _rows(run: TraceView, loss: Loss, constants) -> Iterator[Check]:
    slope = loss.log_slope(torch.from_numpy(np.ascontiguousarray(run.margin))).numpy()
    weight = slope + np.log(run.delta[:, run.first_row])
    spread = np.exp(np.ptp(weight, axis=1))
    yield SPREAD.along(run, spread, constants.kappa, rounding=1e-9 * constants.kappa)
    yield rate_check(RATE, run, constants)
