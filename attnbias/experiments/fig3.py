"""Figure 3: GD, NGD, joint-NGD and Polyak steps on W and u together, on data model DM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..data import Dataset, make_dm
from ..geometry.svm import solve_u_svm
from ..rules import GD, NGD, Polyak, Rule
from .claims.fig3 import FACTORS, claims
from .forms import Traces, make_result, trace_words
from .result import ExperimentResult
from .runs import require_common, run_all, solved

__all__ = ["instance", "run"]

TITLE = "Figure 3: step-size rules for W and u together, on data model DM"
FORM = Traces("fig3", TITLE, claims, trace_words)


def instance(seed: int = 0, **data: Any) -> tuple[Dataset, torch.Tensor]:
    """Data of `make_dm`, whose arguments these are, and the start W_0 = 0. u starts at 0 too.

    Examples
    --------
    >>> from attnbias.experiments import fig3
    >>> data, W0 = fig3.instance(seed=1, n=4, T=3, d=50)
    >>> data.T, float(W0.norm())
    (3, 0.0)
    """
    made = make_dm(**data, seed=seed)
    return made, torch.zeros(made.d, made.d, dtype=torch.float64)


def rules(gd_step_size: float = 0.05, ngd_step_size: float = 0.05) -> dict[str, Rule]:
    """The rules of the figure by label, and Eq. 10 with its factors; arguments as in `run`."""
    return {
        "GD": GD(gd_step_size),
        "NGD": NGD(ngd_step_size),
        "joint-NGD": NGD(ngd_step_size, normalise="shared"),
        "Polyak": Polyak(),
        FACTORS: NGD(ngd_step_size, decay=(2 / 3, 1)),
    }


def run(
    seeds: int | Sequence[int] = 5,
    steps: int = 10_000,
    *,
    n: int = 10,
    T: int = 2,
    d: int = 100,
    alpha: float = 3.0,
    sigma: float = 0.1,
    position: str = "random",
    gd_step_size: float = 0.05,
    ngd_step_size: float = 0.05,
    loss: str = "exponential",
    record: int | Sequence[int] = 200,
    device: str = "cpu",
    progress: bool = False,
) -> ExperimentResult:
    """Joint training from W_0 = 0, u_0 = 0 by five rules, over several seeds.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which. Each has data of its own.
    steps : int
        Iterations, at least 1000: exponents are fitted on the last decade.
    n : int
        Sequences.
    T : int
        Tokens a sequence.
    d : int
        Features.
    alpha : float
        How much larger the optimal token is; the theory asks for 3.4.
    sigma : float
        Standard deviation of each coordinate of the other tokens.
    position : {"random", "first", "last"}
        Where the optimal token stands; the first token is the query.
    gd_step_size : float
        GD's.
    ngd_step_size : float
        That of all three normalised rules.
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
        Traces by the labels "GD", "NGD" (each gradient by its own norm, no factors),
        "joint-NGD" (both by their common norm), "Polyak" (uncapped, L* = 0), and, as our
        addition, "NGD, Eq. 10" with the factors (t + 1)^(-2/3) for u and (t + 1)^-1 for W.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError, InfeasibleError
        Among others those of `make_dm`, of the rules, of the SVMs and of `train`.

    Notes
    -----
    Source: Fig. 3 and Section 5. [a] DM, the four rules, Eq. 10 without its factors, the six
    panels. [d] every number.

    Examples
    --------
    >>> from attnbias.experiments import fig3
    >>> fig3.run(seeds=1, steps=1000, d=40).settings["alpha"]
    3.0
    """
    settings = dict(locals())
    common = require_common(settings)
    given = {"n": n, "T": T, "d": d, "alpha": alpha, "sigma": sigma, "position": position}
    problems = [solved(*instance(seed, **given), common.device) for seed in common.seeds]
    traces = run_all(problems, rules(gd_step_size, ngd_step_size), common, train_u=True)
    measures = {
        "margin": [float(svm.margin) for _, _, svm in problems],
        "u_margin": [float(solve_u_svm(data).margin) for data, _, _ in problems],
        "largest_token_norm": [float(data.X.norm(dim=2).max()) for data, _, _ in problems],
        "largest_cosine": [_largest_cosine(data) for data, _, _ in problems],
    }
    return make_result(FORM, traces, common, settings, measures)


def _largest_cosine(data: Dataset) -> float:
    """Largest |cosine| of two different tokens: how far from orthogonal DM's tokens are."""
    tokens = torch.nn.functional.normalize(data.X.double().reshape(-1, data.d), dim=1)
    cosines = (tokens @ tokens.T).abs().fill_diagonal_(0.0)
    return float(cosines.max())
