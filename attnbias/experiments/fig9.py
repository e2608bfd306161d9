"""Figure 9: GD and NGD on sequences of real digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._validate import PathLike
from ..data import Dataset, load_binary_mnist
from ..geometry.tokens import optimal_tokens, token_scores
from ..rules import GD, NGD, Polyak, Rule
from .claims.fig9 import PROJECTED, claims
from .forms import Traces, make_result, trace_words
from .result import ExperimentResult
from .runs import from_small_start, require_common, run_all, solved

__all__ = ["instance", "run"]

TITLE = "Figure 9: GD and NGD on binary MNIST"
FORM = Traces("fig9", TITLE, claims, trace_words)


def instance(
    seed: int = 0, *, start_norm: float = 0.1, **data: Any
) -> tuple[Dataset, torch.Tensor]:
    """The data and the start W_0 of one seed; other arguments are those of `load_binary_mnist`.

    Examples
    --------
    >>> from attnbias.experiments import fig9
    >>> digits, W0 = fig9.instance(seed=1, n=4, T=3, patch=7)
    >>> digits.d, round(float(W0.norm()), 6)
    (49, 0.1)
    """
    return from_small_start(load_binary_mnist, start_norm, seed=seed, **data)


def rules(gd_step_size: float = 1.0, ngd_step_size: float = 0.1) -> dict[str, Rule]:
    """The rules of the figure by label; arguments as in `run`."""
    return {"GD": GD(gd_step_size), "NGD": NGD(ngd_step_size), "Polyak, uncapped": Polyak()}


def run(
    seeds: int | Sequence[int] = 5,
    steps: int = 10_000,
    *,
    n: int = 20,
    T: int = 6,
    patch: int = 28,
    noise: float = 1.0,
    classifier_scale: float = 1.0,
    position: str = "random",
    source: PathLike = "bundled",
    start_norm: float = 0.1,
    gd_step_size: float = 1.0,
    ngd_step_size: float = 0.1,
    record: int | Sequence[int] = 200,
    device: str = "cpu",
    progress: bool = False,
) -> ExperimentResult:
    """GD, NGD and Polyak steps on real digits among noise, over several seeds.

    NGD is run once more with the noise tokens projected off the classifier, so that
    Assumption 2 holds exactly: "NGD, projected noise".

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which. Each has digits, noise and a W_0 of its own.
    steps : int
        Iterations, at least 1000: exponents are fitted on the last decade.
    n : int
        Sequences.
    T : int
        Patches a sequence: a digit, and noise.
    patch : {28, 14, 7, 4}
        Side of a patch after average pooling; it has patch^2 features.
    noise : float
        Norm of a noise token over that of a digit.
    classifier_scale : float
        Mean score of the training digits under the fixed classifier.
    position : {"random", "first", "last"}
        Where the digit stands; the first token is the query.
    source : {"bundled", "huggingface"} or path
        Where the digits come from: the package, an installed one, the hub, or a folder.
    start_norm : float
        Norm of W_0, whose direction is Gaussian.
    gd_step_size : float
        GD's, by default ten times NGD's, to its advantage.
    ngd_step_size : float
        NGD's.
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
    RangeError, DtypeError, NonFiniteError, TiedTokensError, MissingFileError
        Among others those of `load_binary_mnist` and of `train`.

    Notes
    -----
    Source: Fig. 9 and Appendix C.2. [a] digits among Gaussian patches, a fixed linear
    classifier, GD and NGD. [d] every number; Polyak steps and the projected run are ours.

    Examples
    --------
    >>> from attnbias.experiments import fig9
    >>> result = fig9.run(seeds=1, steps=1000, n=4, T=3, patch=14)
    >>> result.measures["digit_optimal_fraction"]
    [1.0]
    """
    settings = dict(locals())
    common = require_common(settings)
    chosen = rules(gd_step_size, ngd_step_size)
    given: dict[str, Any] = {
        "n": n,
        "T": T,
        "patch": patch,
        "noise": noise,
        "classifier_scale": classifier_scale,
        "position": position,
        "source": source,
        "start_norm": start_norm,
    }
    problems, projected = (
        [
            solved(*instance(seed, project_noise=each, **given), common.device)
            for seed in common.seeds
        ]
        for each in (False, True)
    )
    traces = run_all(problems, chosen, common)
    traces |= run_all(projected, {PROJECTED: chosen["NGD"]}, common)
    settings["source"] = str(source)
    measures = _measures([data for data, _, _ in problems])
    measures["margin"] = [float(svm.margin) for _, _, svm in problems]
    measures["projected_spread"] = _measures([data for data, _, _ in projected])["spread"]
    return make_result(FORM, traces, common, settings, measures)


def _measures(sets: list[Dataset]) -> dict[str, list[float]]:
    """How far each data set satisfies Assumption 2, and whether the digit is optimal."""
    keys = ("digit_optimal_fraction", "classifier_test_accuracy", "score_gap")
    measures: dict[str, list[float]] = {key: [data.meta[key] for data in sets] for key in keys}
    measures |= {"spread": [], "relative_spread": []}
    for data in sets:
        scores, opt = token_scores(data), optimal_tokens(data)
        others = scores.scatter(1, opt[:, None], -torch.inf).topk(data.T - 1, dim=1).values
        spread = others[:, 0] - others[:, -1]
        gap = scores.amax(dim=1) - others.mean(dim=1)
        measures["spread"].append(float(spread.max()))
        measures["relative_spread"].append(float((spread / gap).max()))
    return measures
