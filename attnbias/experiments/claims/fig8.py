"""What the text says on Figure 8, claim by claim, and our own additions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...checks import Check, CheckTable
from .compare import Runs, at_least, at_most, exponents, gaps_of, span

if TYPE_CHECKING:
    from ..result import ExperimentResult

TEXT = "Appendix C.1, text on Fig. 8"
ESTIMATE = "estimate: gradient along z_1"


def scale_label(rule: str, scale: float) -> str:
    """How a result's traces are labelled, such as "GD, R = 4"."""
    return f"{rule}, R = {scale:g}"


def claims(result: ExperimentResult) -> CheckTable:
    """The text's claims on Fig. 8 over the worst scale R = |W_0|, and ours on the time it takes.

    Parameters
    ----------
    result : ExperimentResult
        Of `fig8.run`.

    Returns
    -------
    CheckTable
        Provenance [a] marks what the text says, in numbers that are ours: to converge is to
        be within 0.01 of 1 in cosine from starts of norm 1 at most ("a small enough norm");
        to minimise the loss is (L - L*) / L* of 0.01 at most.
    """
    scales = np.array(result.measures["scale"])
    gd, ngd = (
        [result.traces[scale_label(rule, scale)][0] for scale in scales] for rule in ("GD", "NGD")
    )
    return CheckTable(
        [
            *_start(gd, scales),
            *_convergence(gd, scales, result.last_decade),
            *_time(result),
            at_most(
                "ngd",
                "NGD converges to W_mm from every start: largest 1 - cosine at the end",
                [run.W_alignment_error[-1] for run in ngd],
                0.01,
                "Theorem 1",
            ),
        ]
    )


def _start(runs: Runs, scales: np.ndarray) -> list[Check]:
    gaps = np.array([gaps_of(run)[0] for run in runs])
    log_first, log_second = -np.logaddexp(0.0, -gaps[:, 0]), -np.logaddexp(0.0, -gaps[:, 1])
    fall = np.diff(np.array([run.log_grad_norm[0] for run in runs])) / np.diff(scales)
    return [
        at_most(
            "start/constraint",
            "W_0 violates the constraint of sequence 1: largest logit gap at the start",
            gaps[:, 0],
            0.0,
            TEXT,
            "a",
        ),
        at_most(
            "start/first",
            "its optimal token has less than half of the attention: largest softmax at the start",
            np.exp(log_first),
            0.5,
            TEXT,
            "a",
        ),
        at_least(
            "start/second",
            "sequence 2 behaves the opposite way: smallest softmax at the start",
            np.exp(log_second),
            0.5,
            TEXT,
            "a",
        ),
        at_most(
            "stationary/softmax",
            "scaled up, W_0 saturates the wrong token: "
            "log softmax of sequence 1 is at most -R / sqrt 2, largest excess",
            # the gap is a product of floats: a few roundings of a number up to R
            log_first + scales / math.sqrt(2),
            0.0,
            TEXT,
            "a",
            rounding=1e-14 * float(scales.max()),
        ),
        at_most(
            "stationary/gradient",
            "a stationary direction: slope of log |grad L| in R, between the last two scales",
            fall[-1],
            -0.5,
            TEXT,
            "a",
            reason="-1/sqrt 2 in the limit",
        ),
    ]


def _convergence(runs: Runs, scales: np.ndarray, window: tuple[int, int]) -> list[Check]:
    ends = [run.W_alignment_error[-1] for run in runs]
    small = [end for end, scale in zip(ends, scales, strict=True) if scale <= 1]
    floor = float(runs[0].loss[0] - runs[0].loss_gap[0])
    return [
        at_most(
            "gd/small",
            "GD converges to W_mm from starts of norm at most 1: largest 1 - cosine at the end",
            small or math.nan,
            0.01,
            TEXT,
            "a",
            applicable=bool(small),
            reason="" if small else "no such start among the scales",
        ),
        at_least(
            "gd/falls",
            "from every start 1 - cosine is still falling at the end: smallest p of t^-p, "
            f"steps {window[0]} to {window[1]}",
            -exponents(runs, window),
            0.05,
            "Theorem 6",
            reason=f"1 - cosine at the end is {span(ends)}",
        ),
        at_least(
            "gd/softmax",
            "GD's attention ends on the optimal tokens: smallest softmax at the end",
            [np.exp(-np.logaddexp(0.0, -gaps_of(run)[-1].min())) for run in runs],
            0.9,
            TEXT,
            "a",
        ),
        at_most(
            "loss",
            "GD minimises the train loss: largest (L - L*) / L* at the end",
            max(float(run.loss_gap[-1]) for run in runs) / floor,
            0.01,
            TEXT,
            "a",
        ),
    ]


def _time(result: ExperimentResult) -> list[Check]:
    """How long sequence 1 stays on the wrong token: e^(R / sqrt 2) for GD, R / (2 eta) for NGD.

    There -grad L is nearly p_1 z_1 / 2 with p_1 ~ e^g and |z_1|^2 = 2, and the gap g rises from
    -R / sqrt 2 to 0: by sqrt 2 eta a step under NGD, in a time of order e^-g(0) under GD.
    """
    first, last = result.measures["scale"][-2:]
    between = f"from R = {first:g} to {last:g}"
    gd, ngd = (np.array(result.measures[f"{rule}, steps to one half"]) for rule in ("GD", "NGD"))
    with np.errstate(invalid="ignore"):
        power, pace = (np.diff(steps[-2:])[0] / (last - first) for steps in (np.log(gd), ngd))
    return [
        at_most(
            "time/gd",
            "GD's steps until sequence 1 passes one half grow as e^(R / sqrt 2): "
            f"growth of their log by R, {between}, off 1/sqrt 2 by",
            abs(power - math.sqrt(0.5)),
            0.1,
            ESTIMATE,
            **_reached(gd),
        ),
        at_most(
            "time/ngd",
            "NGD's grow as R / (2 eta), linearly: "
            f"growth by R over 1 / (2 eta), {between}, off 1 by",
            abs(pace * 2 * result.settings["ngd_step_size"] - 1),
            0.1,
            ESTIMATE,
            **_reached(ngd),
        ),
    ]


def _reached(steps: np.ndarray) -> dict:
    if np.isfinite(steps[-2:]).all():
        return {"reason": ", ".join(f"{each:g}" for each in steps) + " steps"}
    never = "sequence 1 does not get past one half within the run"
    return {"applicable": False, "reason": never}
