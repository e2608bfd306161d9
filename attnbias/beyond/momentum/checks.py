"""What momentum does to the path, and to the rate where the whole run is known."""

from __future__ import annotations

import math

import numpy as np

from ...theorems.run import FLOOR, MEASURED, TraceView
from ...theorems.sharper.fast_rate import degenerate_fault
from ...theorems.statements import (
    Checks,
    Statement,
    needs_alignment,
    needs_assumption2,
    needs_start,
    needs_zero_start,
    run_check,
)

BELOW = Statement(
    "along_low", "<W_t, unit W_mm>, against c_0 + Xi s_t / (2 B^2)", "momentum, ours", ">="
)
ABOVE = Statement("norm_high", "|W_t|, against |W_0| + s_t", "momentum, ours")
PATH = Statement(
    "path", "|<W_t, unit z> - <W_0, unit z> - s_t|, against its rounding", "one row, ours"
)
COSINE = Statement(
    "cosine", "|1 - cosine - its closed form|, against its rounding", "one row, ours"
)
ACROSS_BELOW = Statement(
    "across_low", "|P_t|, against log(1 + eta' t / sqrt 5) - C", "the degenerate triple, ours", ">="
)
ACROSS_ABOVE = Statement(
    "across_high", "|P_t|, against log(1 + eta' e^(eta' + C) t)", "the triple, ours"
)


def path_scale(run: TraceView) -> np.ndarray:
    """(R,) s_t: how far W would be from W_0 if all unit directions were one.

    eta t for NGD; eta / (1 - beta) (t - beta (1 - beta^t) / (1 - beta)) for the heavy ball;
    eta t (t + 3) / 4 for dual acceleration.
    """
    t, eta = run.step.astype(float), run.step_size
    if accelerated(run):
        return eta * t * (t + 3) / 4
    beta = run.rule["momentum"]
    return eta / (1 - beta) * (t - beta * (1 - beta**t) / (1 - beta))


def accelerated(run: TraceView) -> bool:
    """Whether the run is of `train_accelerated`: no heavy ball has momentum 1."""
    return run.rule["momentum"] == 1


def _unfit(run: TraceView) -> str:
    """'' or what keeps s_t from being the path's scale."""
    if run.kind != "NGD" or run.joint:
        return "for normalised gradients, with or without momentum, u fixed"
    if math.isfinite(run.rule["log_max_step"]):
        return "for a rule without a cap"
    status = run.trace.status
    return "" if status == "completed" else f"the run did not complete: {status}"


@run_check(BELOW, ABOVE, given=(_unfit, needs_assumption2, needs_start))
def check_momentum_path(run: TraceView) -> Checks:
    """However it is momentum-averaged, W grows along W_mm at least in proportion to s_t.

    W_t = W_0 + sum_r w_{t,r} d_r with unit directions d_r and weights >= 0 of sum s_t, whence
    <W_t, unit W_mm> >= c_0 + Xi s_t / (2 B^2) and |W_t| <= |W_0| + s_t.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of NGD, with or without momentum, or of `train_accelerated`, no cap; step 0 recorded.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. Every d_r has <d_r, unit W_mm> >= Xi / (2 B^2) by Lemma 4.

    Examples
    --------
    >>> from attnbias import make_example1
    >>> from attnbias.beyond.momentum.dynamics import train_accelerated
    >>> data = make_example1(seed=0)
    >>> check_momentum_path(data, train_accelerated(data, 0.1, 1000)).all_hold
    True
    """
    scale, B = path_scale(run), run.constants(0.25).B
    low, high = run.along[0] + run.Xi / (2 * B**2) * scale, run.W_norm[0] + scale
    yield BELOW.along(run, run.along, low, rounding=MEASURED * (1 + np.abs(low)))
    yield ABOVE.along(run, run.W_norm, high, rounding=MEASURED * (1 + high))


def _one_row(run: TraceView) -> str:
    return "" if run.N == 1 else f"for one constraint, not {run.N}"


@run_check(PATH, COSINE, given=(_one_row, _unfit, needs_start, needs_alignment))
def check_single_row(run: TraceView) -> Checks:
    """With one constraint every direction is z / |z|, and the run has a closed form.

    w_t = <W_t, unit z> = w_0 + s_t, the rest of W_0 stays, and
    1 - cosine = 1 - w_t / sqrt(w_t^2 + |W_0|^2 - w_0^2).

    Parameters
    ----------
    data : Dataset
        One sequence of two tokens, such as `make_separation_pair()`.
    trace : Trace
        As for `check_momentum_path`.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c].

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> W0 = [[-0.3, 0.2], [0.1, 0.4]]
    >>> check_single_row(data, train(data, NGD(0.5, momentum=0.9), 1000, W0=W0)).all_hold
    True
    """
    w, scale = run.along, path_scale(run)
    total = float(run.W_norm[0]) ** 2
    rest = max(total - w[0] ** 2, 0.0)
    norm = np.hypot(w[0] + scale, math.sqrt(rest))
    with np.errstate(invalid="ignore", divide="ignore"):
        ahead = w[0] + scale
        closed = np.where(ahead > 0, rest / (norm * (norm + ahead)), 1 - ahead / norm)
        # w_0^2 is a difference of squares: a few roundings of |W_0|^2, over 2 |W_t|^2
        doubt = FLOOR + MEASURED * closed + 1e-15 * total / norm**2
    away, moved = np.abs(run.trace.W_alignment_error - closed), run.W_norm > 0
    yield PATH.along(run, np.abs(w - w[0] - scale), MEASURED * (1 + scale))
    yield COSINE.along(run, away, doubt, moved, empty="W stays zero")


def _heavy_ball(run: TraceView) -> str:
    return "for a heavy ball, not dual acceleration" if accelerated(run) else ""


@run_check(
    ACROSS_BELOW,
    ACROSS_ABOVE,
    given=(
        _heavy_ball,
        _unfit,
        degenerate_fault,
        needs_assumption2,
        needs_zero_start,
        needs_alignment,
    ),
)
def check_momentum_triple(run: TraceView) -> Checks:
    """The degenerate triple with a heavy ball: the offset still grows like log t.

    With eta' = eta / (1 - beta) and C = beta eta / ((1 - beta)^2 sqrt 5), for t >= 1,

        log(1 + eta' t / sqrt 5) - C <= |P_t| <= log(1 + eta' e^(eta' + C) t).

    Parameters
    ----------
    data : Dataset
        `make_degenerate()` or a rotation of it.
    trace : Trace
        Of NGD with or without momentum from W_0 = 0, no cap, step 0 recorded.
    svm : SVMSolution, optional

    Returns
    -------
    CheckTable

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c]. Z = W + beta / (1 - beta) (W_t - W_{t-1}) moves by eta' along the unit
    direction at W_t, and its offset is at most C above that of W_t.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.data.degenerate import make_degenerate
    >>> data = make_degenerate()
    >>> check_momentum_triple(data, train(data, NGD(0.1, momentum=0.9), 1000)).all_hold
    True
    """
    beta = run.rule["momentum"]
    eta, t = run.step_size / (1 - beta), run.step.astype(float)
    C = beta * eta / ((1 - beta) * math.sqrt(5))
    low = np.maximum(np.log1p(eta * t / math.sqrt(5)) - C, 0.0)
    with np.errstate(divide="ignore"):
        high = np.logaddexp(0.0, math.log(eta) + eta + C + np.log(t))
    room = MEASURED * (1 + high)
    yield ACROSS_BELOW.later(run, run.across, low, rounding=room)
    yield ACROSS_ABOVE.later(run, run.across, high, rounding=room)
