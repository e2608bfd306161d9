"""Figure 8: training from a start that attends to a wrong token, over the scale of the start."""

from __future__ import annotations

import math

import numpy as np
import torch

from .._validate import require_number, short
from ..data import Dataset, make_bad_start
from ..dynamics.trace import Trace
from ..errors import DtypeError, RangeError
from ..geometry.svm import solve_w_svm
from ..rules import GD, NGD, Rule
from .fig8_claims import claims, scale_label
from .result import ExperimentResult, make_result
from .runs import require_common, run_all

TITLE = "Figure 8: GD and NGD from a bad start"
SCALES = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
DENSE = 2000  # every step up to here is recorded


def instance(scale: float = 4.0) -> tuple[Dataset, torch.Tensor]:
    """The data and the start W_0 of norm `scale`, of `make_bad_start`."""
    return make_bad_start(scale)


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
    gd_step_size, ngd_step_size : float
        Of the rules.
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
    settings = {key: value for key, value in locals().items() if key != "progress"}
    scales = _scales(scales)
    common = require_common(
        seeds=1, steps=steps, device=device, record=record, progress=progress, windows=[]
    )
    chosen = rules(gd_step_size, ngd_step_size)
    recorded = common.record
    if isinstance(record, int | np.integer):
        recorded = np.union1d(recorded, np.arange(min(DENSE, common.steps) + 1))
    options = {"steps": common.steps, "record": recorded, "progress": progress}
    traces = {}
    for scale in scales:
        data, W0 = (part.to(common.device) for part in instance(scale))
        runs = run_all([(data, W0, solve_w_svm(data))], chosen, **options)
        traces |= {scale_label(rule, scale): run for rule, run in runs.items()}
    settings |= common.settings | {"scales": list(scales), "record": len(recorded)}
    measures = {"scale": [*scales]}
    for rule in chosen:
        found = [steps_to_half(traces[scale_label(rule, scale)][0]) for scale in scales]
        measures[f"{rule}, steps to one half"] = found
    return make_result("fig8", TITLE, traces, common.seeds, settings, measures, claims)


def _scales(scales) -> tuple[float, ...]:
    try:
        chosen = tuple(require_number("scales", scale, low=0, open_low=True) for scale in scales)
    except TypeError:
        raise DtypeError(
            "scales",
            expected="a sequence of numbers",
            got=short(scales),
            remedy="for example scales=[1, 2, 4]",
        ) from None
    labels = {scale_label("GD", scale) for scale in chosen}
    if len(labels) < max(3, len(chosen)) or list(chosen) != sorted(chosen):
        raise RangeError(
            "scales",
            expected="at least three, increasing, that differ in six digits",
            got=short(chosen),
            remedy="for example scales=[1, 2, 4]",
        )
    return chosen


def steps_to_half(trace: Trace) -> float:
    """First recorded step at which sequence 1 has over half of its attention on its optimal token.

    Infinite where there is none.
    """
    past = np.flatnonzero(trace.gaps[:, 0] > 0)
    return float(trace.step[past[0]]) if past.size else math.inf
