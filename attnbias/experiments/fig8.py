"""Figure 8: training from a start that attends to a wrong token, over the scale of the start."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .._validate import require_number, require_type, short
from ..checks import Check, CheckTable
from ..data import make_bad_start
from ..dynamics.trace import Trace
from ..errors import RangeError
from ..rules import GD, NGD, Rule
from .claims import at_least, at_most, exponents, last_decade, span
from .result import ExperimentResult, make_result
from .runs import require_common, run_all, solved

TITLE = "Figure 8: GD and NGD from a bad start"
TEXT = "Appendix C.1, text on Fig. 8"
ESTIMATE = "estimate: gradient along z_1"
SCALES = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
DENSE = 2000  # every step up to here is recorded


instance = make_bad_start  # the data, and the start W_0 of norm `scale`


def rules(gd_step_size: float = 1.0, ngd_step_size: float = 0.1) -> dict[str, Rule]:
    """The rules of the figure by label; arguments as in `run`."""
    return {"GD": GD(gd_step_size), "NGD": NGD(ngd_step_size)}


def run(
    scales=SCALES,
    steps: int = 10_000,
    *,
    gd_step_size: float = 1.0,
    ngd_step_size: float = 0.1,
    record=200,
    device: str = "cpu",
    progress: bool = False,
) -> ExperimentResult:
    """GD and NGD from the bad start, over the norm R of W_0.

    Parameters
    ----------
    scales : sequence of float
        Norms R = |W_0| of the start, at least three, increasing.
    steps : int
        Iterations, at least 1000.
    gd_step_size : float
        GD's.
    ngd_step_size : float
        NGD's.
    record : int or sequence of int
        As in `train`; where a number is given, every step up to 2000 is recorded as well.
    device : str
        Where the data are put.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    ExperimentResult
        Nothing is random here: one trace a label, and labels such as "GD, R = 4". Its
        `measures` have one entry a scale: "scale", and for each rule "GD, steps to one half",
        the first recorded step at which sequence 1's optimal token has more than half of
        the attention (infinite if there is none).

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Fig. 8 and Appendix C.1. [a] that W_0 violates the constraint of one sequence
    and behaves the opposite way on the other, GD. [d] sizes, labels and numbers; the scales and
    NGD are ours.

    Examples
    --------
    >>> from attnbias.experiments import fig8
    >>> result = fig8.run(scales=[1, 2, 4], steps=1000)
    >>> result.measures["GD, steps to one half"]
    [2.0, 3.0, 7.0]
    """
    settings = dict(locals())
    scales = _scales(scales)
    common = require_common(settings | {"seeds": 1}, dense=DENSE)
    chosen = rules(gd_step_size, ngd_step_size)
    traces = {}
    for scale in scales:
        runs = run_all([solved(*instance(scale), common.device)], chosen, common)
        traces |= {scale_label(rule, scale): run for rule, run in runs.items()}
    measures = {"scale": [*scales]} | {
        f"{rule}, steps to one half": [
            steps_to_half(traces[scale_label(rule, scale)][0]) for scale in scales
        ]
        for rule in chosen
    }
    settings["scales"] = list(scales)
    return make_result("fig8", TITLE, traces, common, settings, measures, claims)


def _scales(scales) -> tuple[float, ...]:
    remedy = "for example scales=[1, 2, 4]"
    require_type("scales", scales, Iterable, "a sequence of numbers", remedy)
    each = scales if getattr(scales, "ndim", 1) else [scales]  # a number in an array of no axis
    chosen = tuple(require_number("scales", scale, low=0, open_low=True) for scale in each)
    labels = {scale_label("GD", scale) for scale in chosen}
    if len(labels) < max(3, len(chosen)) or list(chosen) != sorted(chosen):
        raise RangeError(
            "scales",
            expected="at least three, increasing, that differ in six digits",
            got=short(chosen),
            remedy=remedy,
        )
    return chosen


def steps_to_half(trace: Trace) -> float:
    """First recorded step at which sequence 1 has over half of its attention on its optimal token.

    Infinite where there is none.
    """
    past = np.flatnonzero(trace.gaps[:, 0] > 0)
    return float(trace.step[past[0]]) if past.size else math.inf


def scale_label(rule: str, scale: float) -> str:
    """How a result's traces are labelled, such as "GD, R = 4"."""
    return f"{rule}, R = {scale:g}"


def claims(traces: dict, settings: dict, measures: dict) -> CheckTable:
    """The text's claims on Fig. 8 over the worst scale R = |W_0|, and ours on the time it takes.

    Parameters
    ----------
    traces : dict of str to sequence of Trace
        By the labels of `fig8.run`.
    settings, measures : dict
        Those of an ExperimentResult of `fig8.run`.

    Returns
    -------
    CheckTable
        Provenance [a] marks what the text says, in numbers that are ours: to converge is to
        be within 0.01 of 1 in cosine from starts of norm 1 at most ("a small enough norm");
        to minimise the loss is (L - L*) / L* of 0.01 at most.
    """
    scales, window = np.array(measures["scale"]), last_decade(settings)
    gd, ngd = ([traces[scale_label(rule, scale)][0] for scale in scales] for rule in ("GD", "NGD"))
    return CheckTable(
        [
            *_start_claims(gd, scales),
            *_convergence_claims(gd, scales, window),
            *_time_claims(scales, settings, measures),
            at_most(
                "NGD converges to W_mm from every start: largest 1 - cosine at the end",
                [run.W_alignment_error[-1] for run in ngd],
                0.01,
                "Theorem 1",
            ),
        ]
    )


def _start_claims(runs, scales) -> list[Check]:
    gaps = np.array([run.gaps[0] for run in runs])
    log_first, log_second = -np.logaddexp(0.0, -gaps[:, 0]), -np.logaddexp(0.0, -gaps[:, 1])
    fall = np.diff(np.array([run.log_grad_norm[0] for run in runs])) / np.diff(scales)
    return [
        at_most(
            "W_0 violates the constraint of sequence 1: largest logit gap at the start",
            gaps[:, 0],
            0.0,
            TEXT,
            "a",
        ),
        at_most(
            "its optimal token has less than half of the attention: largest softmax at the start",
            np.exp(log_first),
            0.5,
            TEXT,
            "a",
        ),
        at_least(
            "sequence 2 behaves the opposite way: smallest softmax at the start",
            np.exp(log_second),
            0.5,
            TEXT,
            "a",
        ),
        at_most(
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
            "a stationary direction: slope of log |grad L| in R, between the last two scales",
            fall[-1],
            -0.5,
            TEXT,
            "a",
            reason="-1/sqrt 2 in the limit",
        ),
    ]


def _convergence_claims(runs, scales, window) -> list[Check]:
    small = [
        run.W_alignment_error[-1] for run, scale in zip(runs, scales, strict=True) if scale <= 1
    ]
    floor = float(runs[0].loss[0] - runs[0].loss_gap[0])
    return [
        at_most(
            "GD converges to W_mm from starts of norm at most 1: largest 1 - cosine at the end",
            small or math.nan,
            0.01,
            TEXT,
            "a",
            applicable=bool(small),
            reason="" if small else "no such start among the scales",
        ),
        at_least(
            "from every start 1 - cosine is still falling at the end: smallest p of t^-p, "
            f"steps {window[0]} to {window[1]}",
            -exponents(runs, window),
            0.05,
            "Theorem 6",
            reason=f"1 - cosine at the end is {span([run.W_alignment_error[-1] for run in runs])}",
        ),
        at_least(
            "GD's attention ends on the optimal tokens: smallest softmax at the end",
            [np.exp(-np.logaddexp(0.0, -run.gaps[-1].min())) for run in runs],
            0.9,
            TEXT,
            "a",
        ),
        at_most(
            "GD minimises the train loss: largest (L - L*) / L* at the end",
            max(float(run.loss_gap[-1]) for run in runs) / floor,
            0.01,
            TEXT,
            "a",
        ),
    ]


def _time_claims(scales, settings, measures) -> list[Check]:
    """How long sequence 1 stays on the wrong token: e^(R / sqrt 2) for GD, R / (2 eta) for NGD.

    There -grad L is nearly p_1 z_1 / 2 with p_1 ~ e^g and |z_1|^2 = 2, and the gap g rises from
    -R / sqrt 2 to 0: by sqrt 2 eta a step under NGD, in a time of order e^-g(0) under GD.
    """
    first, last = scales[-2:]
    between = f"from R = {first:g} to {last:g}"
    counts = {rule: np.array(measures[f"{rule}, steps to one half"]) for rule in ("GD", "NGD")}
    with np.errstate(invalid="ignore"):
        power, pace = (
            np.diff(steps[-2:])[0] / (last - first)
            for steps in (np.log(counts["GD"]), counts["NGD"])
        )
    never = "sequence 1 does not get past one half within the run"
    seen = {
        rule: {"applicable": True, "reason": ", ".join(f"{each:g}" for each in steps) + " steps"}
        if np.isfinite(steps[-2:]).all()
        else {"applicable": False, "reason": never}
        for rule, steps in counts.items()
    }
    return [
        at_most(
            "GD's steps until sequence 1 passes one half grow as e^(R / sqrt 2): "
            f"growth of their log by R, {between}, off 1/sqrt 2 by",
            abs(power - math.sqrt(0.5)),
            0.1,
            ESTIMATE,
            **seen["GD"],
        ),
        at_most(
            "NGD's grow as R / (2 eta), linearly: "
            f"growth by R over 1 / (2 eta), {between}, off 1 by",
            abs(pace * 2 * settings["ngd_step_size"] - 1),
            0.1,
            ESTIMATE,
            **seen["NGD"],
        ),
    ]
