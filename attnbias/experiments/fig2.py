"""Figure 2: GD, NGD, momentum and Polyak steps on Example 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .._validate import require_number
from ..data import Dataset, make_example1
from ..geometry.assumptions import check_assumption1
from ..rules import GD, NGD, Polyak, Rule
from .claims.fig2 import EARLY, claims
from .forms import Traces, make_result, trace_words
from .result import ExperimentResult
from .runs import from_small_start, require_common, run_all, solved

__all__ = ["instance", "run"]

TITLE = "Figure 2: step-size rules on Example 1"
FORM = Traces("fig2", TITLE, claims, trace_words)


def instance(
    seed: int = 0, *, start_norm: float = 0.1, **data: Any
) -> tuple[Dataset, torch.Tensor]:
    """The data and the start W_0 of one seed; other arguments are those of `make_example1`.

    Examples
    --------
    >>> from attnbias.experiments import fig2
    >>> data, W0 = fig2.instance(seed=1, n=5, T=3, d=200)
    >>> data.n, round(float(W0.norm()), 6)
    (5, 0.1)
    """
    return from_small_start(make_example1, start_norm, seed=seed, **data)


def rules(
    gd_step_size: float = 0.1,
    ngd_step_size: float = 0.1,
    momentum: float = 0.9,
    ngd_max_step: float = math.inf,
    max_step: float = 1e4,
) -> dict[str, Rule]:
    """The rules of the figure by label; arguments as in `run`."""
    return {
        "GD": GD(gd_step_size),
        "NGD": NGD(ngd_step_size, max_step=ngd_max_step),
        "NGD with momentum": NGD(ngd_step_size, momentum=momentum, max_step=ngd_max_step),
        "Polyak, capped": Polyak(max_step),
        "Polyak, uncapped": Polyak(),
    }


def run(
    seeds: int | Sequence[int] = 5,
    steps: int = 10_000,
    *,
    n: int = 10,
    T: int = 6,
    d: int = 200,
    sigma: float = 0.1,
    signal: float | None = None,
    position: str = "random",
    start_norm: float = 0.1,
    gd_step_size: float = 0.1,
    ngd_step_size: float = 0.1,
    momentum: float = 0.9,
    ngd_max_step: float = math.inf,
    max_step: float = 1e4,
    loss: str = "exponential",
    record: int | Sequence[int] = 200,
    device: str = "cpu",
    progress: bool = False,
) -> ExperimentResult:
    """Five rules from one small start on Example 1, over several seeds.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which. Each has data and a W_0 of its own.
    steps : int
        Iterations, at least 1000: exponents are fitted on the last decade.
    n : int
        Sequences.
    T : int
        Tokens a sequence.
    d : int
        Features, at least n (T - 1) + 2.
    sigma : float
        Standard deviation of each noise coordinate.
    signal : float, optional
        Norm of the two orthogonal means; sigma sqrt(d) by default.
    position : {"random", "first", "last"}
        Where the optimal token stands; the first token is the query.
    start_norm : float
        Norm of W_0, whose direction is Gaussian.
    gd_step_size : float
        GD's.
    ngd_step_size : float
        NGD's, with and without momentum.
    momentum : float
        Of the second NGD run, below 1.
    max_step : float
        Cap on the steps of one of the two Polyak runs.
    ngd_max_step : float
        Cap on NGD's factor of the gradient, which the paper also used; none by default.
    loss : {"exponential", "logistic"} or Loss
        Of the training risk.
    record : int or sequence of int
        How many iterations to record, spaced geometrically, or which.
    device : str
        Where the data are put.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    ExperimentResult

    Raises
    ------
    RangeError, DtypeError, NonFiniteError
        Those of `make_example1`, of the rules and of `train`.

    Notes
    -----
    Source: Fig. 2, Sections 3.2, 3.3 and 5. [a] Example 1, the rules, the four panels, caps on
    adaptive step sizes. [d] every number: chosen so that all four
    panels show what the text describes; the uncapped Polyak run is ours.

    Examples
    --------
    >>> from attnbias.experiments import fig2
    >>> fig2.run(seeds=1, steps=1000).settings["d"]
    200
    """
    settings = dict(locals())
    common = require_common(settings, windows=[EARLY])
    chosen = rules(gd_step_size, ngd_step_size, momentum, ngd_max_step, max_step)
    given: dict[str, Any] = {
        "n": n,
        "T": T,
        "d": d,
        "sigma": sigma,
        "signal": signal,
        "position": position,
        "start_norm": start_norm,
    }
    for name in ("ngd_max_step", "max_step"):
        settings[name] = require_number(name, settings[name], low=0, open_low=True)
    problems = [solved(*instance(seed, **given), common.device) for seed in common.seeds]
    traces = run_all(problems, chosen, common)
    measures = {
        "margin": [float(svm.margin) for _, _, svm in problems],
        "least_slack": [float(svm.least_slack) for _, _, svm in problems],
        "largest_token_norm": [float(data.X.norm(dim=2).max()) for data, _, _ in problems],
        "assumption1_ratio": [
            max(check.value / check.bound for check in check_assumption1(data))
            for data, _, _ in problems
        ],
    }
    return make_result(FORM, traces, common, settings, measures)
