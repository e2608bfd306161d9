"""Figure 2: GD, NGD, momentum and Polyak steps on Example 1, and the text's claims on it."""

from __future__ import annotations

import math

import torch

from .._validate import require_number
from ..data import Dataset, make_example1
from ..dynamics.problem import small_start
from ..geometry.assumptions import check_assumption1
from ..geometry.svm import solve_w_svm
from ..rules import GD, NGD, Polyak, Rule
from .fig2_claims import EARLY, claims
from .result import ExperimentResult, make_result
from .runs import require_common, run_all

TITLE = "Figure 2: step-size rules on Example 1"


def instance(
    seed: int = 0,
    *,
    n: int = 10,
    T: int = 6,
    d: int = 200,
    sigma: float = 0.1,
    signal: float | None = None,
    position: str = "random",
    start_norm: float = 0.1,
) -> tuple[Dataset, torch.Tensor]:
    """The data and the start W_0 of one seed; arguments as in `run`."""
    norm = require_number("start_norm", start_norm, low=0, high=1e6)
    data = make_example1(n, T, d, sigma=sigma, signal=signal, position=position, seed=seed)
    return data, small_start(d, norm, seed)


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
    seeds=5,
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
    record=200,
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
    n, T, d, sigma, signal, position
        Those of `make_example1`.
    start_norm : float
        Norm of W_0, whose direction is Gaussian.
    gd_step_size, ngd_step_size, momentum, max_step
        Of the rules; max_step caps one of the two Polyak runs.
    ngd_max_step : float
        Cap on NGD's factor of the gradient, which the paper also used; none by default.
    loss, record, device
        As in `train`; device is where the data are put.
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
    settings = {key: value for key, value in locals().items() if key != "progress"}
    common = require_common(
        seeds=seeds, steps=steps, device=device, record=record, progress=progress, loss=loss,
        windows=[EARLY],
    )  # fmt: skip
    data_settings = {
        key: settings[key] for key in ("n", "T", "d", "sigma", "signal", "position", "start_norm")
    }
    chosen = rules(gd_step_size, ngd_step_size, momentum, ngd_max_step, max_step)
    problems = []
    for seed in common.seeds:
        data, W0 = instance(seed, **data_settings)
        data = data.to(common.device)
        problems.append((data, W0.to(common.device), solve_w_svm(data)))
    options = {"steps": common.steps, "loss": common.loss, "record": common.record}
    options["progress"] = progress
    traces = run_all(problems, chosen, **options)
    settings |= common.settings | {"loss": common.loss.name}
    measures = {
        "margin": [float(svm.margin) for _, _, svm in problems],
        "least_slack": [float(svm.least_slack) for _, _, svm in problems],
        "largest_token_norm": [float(data.X.norm(dim=2).max()) for data, _, _ in problems],
        "assumption1_ratio": [_assumption1_ratio(data) for data, _, _ in problems],
    }
    return make_result("fig2", TITLE, traces, common.seeds, settings, measures, claims)


def _assumption1_ratio(data: Dataset) -> float:
    return max(check.value / check.bound for check in check_assumption1(data))
