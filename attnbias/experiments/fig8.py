"""Figure 8: training from a start that attends to a wrong token, over the scale of the start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from .._validate import require_number, require_type, short
from ..data import make_bad_start
from ..dynamics.trace import Trace
from ..errors import RangeError
from ..rules import GD, NGD, Rule
from .claims.compare import gaps_of
from .claims.fig8 import claims, scale_label
from .forms import Traces, make_result, trace_words
from .result import ExperimentResult
from .runs import require_common, run_all, solved

__all__ = ["run"]

TITLE = "Figure 8: GD and NGD from a bad start"
FORM = Traces("fig8", TITLE, claims, trace_words)
SCALES = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
DENSE = 2000  # every step up to here is recorded


instance = make_bad_start  # the data, and the start W_0 of norm `scale`


def rules(gd_step_size: float = 1.0, ngd_step_size: float = 0.1) -> dict[str, Rule]:
    """The rules of the figure by label; arguments as in `run`."""
    return {"GD": GD(gd_step_size), "NGD": NGD(ngd_step_size)}


def run(
    scales: Sequence[float] = SCALES,
    steps: int = 10_000,
    *,
    gd_step_size: float = 1.0,
    ngd_step_size: float = 0.1,
    record: int | Sequence[int] = 200,
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
    traces: dict[str, tuple[Trace, ...]] = {}
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
    return make_result(FORM, traces, common, settings, measures)


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
    past = np.flatnonzero(gaps_of(trace)[:, 0] > 0)
    return float(trace.step[past[0]]) if past.size else math.inf
