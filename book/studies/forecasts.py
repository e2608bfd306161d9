"""How often the forecasts of `diagnose` are right: ten kinds of data sets, a hundred of each."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from attnbias import NGD, Dataset, diagnose, load_binary_mnist, make_dm, make_example1, train
from attnbias._records import read_json
from attnbias.diagnosis.runs import random_start
from attnbias.errors import InfeasibleError, SolverError, TiedTokensError

TARGETS = (1e-2, 1e-4, 1e-5)
STEP_SIZE, LONGEST, FACTOR = 0.1, 100_000, 3.0
RECORD = Path(__file__).parents[1] / "results/forecast.json"  # of `python -m scripts.forecast`
UNSEEN, LATER = 1_000_000, 10_000  # seed of a start that no report has seen, and its iterations


def _whole(g, low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


def _normal(g, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def _labels(g, n: int) -> torch.Tensor:
    return torch.where(torch.rand(n, generator=g) < 0.5, -1.0, 1.0)


def _sizes(g, n: tuple, T: tuple, d: tuple) -> tuple[int, int, int]:
    return _whole(g, *n), _whole(g, *T), _whole(g, *d)


def _gaussian(g) -> Dataset:
    n, T, d = _sizes(g, (5, 30), (3, 9), (32, 128))
    return Dataset(_normal(g, n, T, d), _labels(g, n), _normal(g, d) / d**0.5)


def _unit(g, n=(5, 30), T=(3, 9), d=(32, 128)) -> Dataset:
    n, T, d = _sizes(g, n, T, d)
    X = _normal(g, n, T, d)
    return Dataset(X / X.norm(dim=2, keepdim=True), _labels(g, n), _normal(g, d))


def _nearly_orthogonal(g) -> Dataset:
    return _unit(g, (2, 8), (2, 5), (1000, 2000))


def _example1(g) -> Dataset:
    n, T, more = _sizes(g, (3, 20), (2, 8), (0, 200))
    d = n * (T - 1) + 2 + more
    return make_example1(n, T, d, sigma=d**-0.5, seed=_whole(g, 0, 10**6))


def _dm(g) -> Dataset:
    n, T, d = _sizes(g, (5, 20), (2, 4), (50, 200))
    data = make_dm(n, T, d, sigma=d**-0.5 / 3, seed=_whole(g, 0, 10**6))
    u = (data.y[:, None] * data.X[torch.arange(n), data.opt]).sum(dim=0)
    return Dataset(data.X, data.y, 3 * u / u.norm())


def _few_features(g) -> Dataset:
    n, T, d = _sizes(g, (2, 8), (2, 4), (3, 8))
    return Dataset(_normal(g, n, T, d), _labels(g, n), _normal(g, d))


def _correlated(g) -> Dataset:
    n, T, d = _sizes(g, (5, 20), (3, 8), (64, 256))
    X = 0.7**0.5 * _normal(g, d) + 0.3**0.5 * _normal(g, n, T, d)
    return Dataset(X / d**0.5, _labels(g, n), _normal(g, d))


def _words(g) -> Dataset:
    """Ragged, with repeated words, except that the best one of a sentence is said once."""
    V, d, n = _sizes(g, (20, 60), (16, 64), (5, 20))
    E = (_normal(g, V, d) + 0.7 * _normal(g, d)) / d**0.5
    y, u = _labels(g, n), _normal(g, d)
    lengths = [_whole(g, 3, 10) for _ in range(n)]
    X = torch.zeros(n, max(lengths), d).double()
    for i, length in enumerate(lengths):
        score = y[i] * (E @ u)
        said = torch.randint(V, (length,), generator=g)
        worst, best = score.argmin(), said[score[said].argmax()]
        again = (said == best).nonzero().flatten()[1:]
        said[again] = worst
        X[i, :length] = E[said]
    return Dataset(X, y, u, lengths=lengths)


def _scaled(g) -> Dataset:
    n, T, d = _sizes(g, (5, 20), (3, 8), (32, 128))
    scale = 10 ** float(2 * torch.rand((), generator=g) - 1)
    return Dataset(scale * _normal(g, n, T, d) / d**0.5, _labels(g, n), _normal(g, d) / scale)


def _digits(g) -> Dataset:
    n, T, patch = _sizes(g, (4, 30), (2, 6), (0, 2))
    return load_binary_mnist(n=n, T=T, patch=(28, 14, 7)[patch], seed=_whole(g, 0, 10**6))


KINDS: dict[str, Callable] = {
    "Gaussian": _gaussian,
    "unit norm": _unit,
    "nearly orthogonal": _nearly_orthogonal,
    "Example 1": _example1,
    "DM": _dm,
    "3 to 8 features": _few_features,
    "common part": _correlated,
    "words, ragged": _words,
    "norms 0.1 to 10": _scaled,
    "digits": _digits,
}


def draw(kind: str, count: int):
    """The first so many feasible data sets of a kind, each with its seed.

    Yields
    ------
    (seed, Dataset)
        Seeds whose tokens tie or have no W_mm are passed over.

    Examples
    --------
    >>> [seed for seed, data in draw("Gaussian", 2)]
    [0, 1]
    """
    seed, first = 0, 10_000 * list(KINDS).index(kind)
    while count:
        try:
            data = KINDS[kind](torch.Generator().manual_seed(first + seed))
            report = diagnose(data, step_size=STEP_SIZE, steps=0)
        except (TiedTokensError, InfeasibleError, SolverError):
            report = None
        if report is not None and report.svm is not None:
            yield seed, data
            count -= 1
        seed += 1


def measured(data: Dataset, svm, longest: int = LONGEST) -> list[float]:
    """The first recorded iterations of NGD from W_0 = 0 with 1 - cosine <= each target, or NaN."""
    found, steps = [math.nan], 3000
    while math.isnan(found[-1]) and steps <= longest:
        trace = train(data, NGD(STEP_SIZE), steps, svm=svm, record=200)
        hits = [trace.step[trace.W_alignment_error <= target] for target in TARGETS]
        found = [float(hit[0]) if len(hit) else math.nan for hit in hits]
        steps = longest if steps < longest else longest + 1
    return found


def judge_one(kind: str, seed: int, data: Dataset, longest: int = LONGEST) -> dict:
    """What the report says of one data set, and what training does.

    Returns
    -------
    dict
        With one number a target: forecast and how, the estimate of the dual variables alone, and
        the iterations that a run takes. And how many of 4 random starts are said to arrive, and
        whether a fifth is on its optimal tokens at the end.
    """
    reports = [
        diagnose(data, step_size=STEP_SIZE, target=target, starts=4 * (target == TARGETS[0]))
        for target in TARGETS
    ]
    forecasts, svm = [report.forecast for report in reports], reports[0].svm
    said = [not math.isnan(run["iterations"]) for run in forecasts[0]["runs"][1:]]
    start = random_start(data, svm.rows, UNSEEN + seed)
    last = min(LATER, longest)
    later = train(data, NGD(STEP_SIZE), last, svm=svm, W0=start, record=[last])
    return {
        "kind": kind,
        "seed": seed,
        "forecast": [f["iterations"] for f in forecasts],
        "how": [f["how"] for f in forecasts],
        "dual": [f["estimate"] for f in forecasts],
        "measured": measured(data, svm, longest),
        "ended": forecasts[0]["runs"][0]["ended"],
        "starts": [sum(said), len(said)],
        "fifth": bool((later.gaps[-1] > 0).all()),
    }


def recorded() -> list[dict]:
    """The thousand data sets of the record, each as `judge_one` has it."""
    return read_json(RECORD, "forecast")["sets"]


def right(forecast, taken) -> np.ndarray:
    """1 where a forecast is within the factor, 0 where not, NaN where there is nothing to judge.

    A forecast for a run that does not arrive is wrong, unless it is so near the longest run that
    a right one may lie beyond it.
    """
    forecast, taken = np.asarray(forecast, dtype=float), np.asarray(taken, dtype=float)
    within = (forecast <= FACTOR * taken) & (taken <= FACTOR * forecast)
    unknown = np.isnan(forecast) | (np.isnan(taken) & (forecast > LONGEST / FACTOR))
    return np.where(unknown, np.nan, within.astype(float))


def forecast_table(sets: list[dict], target: float) -> pd.DataFrame:
    """Counts a kind and in all: sets that arrive, have a forecast, and have one that is right."""
    at = TARGETS.index(target)
    taken, forecast, dual = (
        np.array([one[name][at] for one in sets], dtype=float)  # None is NaN
        for name in ("measured", "forecast", "dual")
    )
    counted = np.array([one["how"][at] == "counted" for one in sets])
    arrive, ok, of_dual = taken > 0, right(forecast, taken), right(dual, taken)
    columns = {
        "sets": np.ones(len(sets)),
        "arrive": arrive,
        "of them with forecast": arrive & ~np.isnan(forecast),
        "forecasts": ~np.isnan(ok),
        "within 3": ok == 1,
        "extrapolated": ~np.isnan(ok) & ~counted,
        "of them within 3": (ok == 1) & ~counted,
        "dual alone": ~np.isnan(of_dual),
        "dual within 3": of_dual == 1,
    }
    frame = pd.DataFrame({name: np.asarray(each, dtype=int) for name, each in columns.items()})
    kinds = pd.Categorical([one["kind"] for one in sets], list(KINDS))
    counts = frame.groupby(kinds, observed=True).sum()
    return pd.concat([counts, frame.sum().to_frame("all").T])


def starts_table(sets: list[dict]) -> pd.DataFrame:
    """How often a fifth random start arrives, by how many of the report's four do."""
    said = pd.Series([one["starts"][0] for one in sets if one["starts"][1] == 4], name="of 4")
    fifth = pd.Series([one["fifth"] for one in sets if one["starts"][1] == 4])
    return pd.DataFrame({"sets": fifth.groupby(said).size(), "fifth": fifth.groupby(said).mean()})
