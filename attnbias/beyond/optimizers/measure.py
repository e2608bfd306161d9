"""Which of four largest margins an optimizer comes nearest to, on tokens drawn for the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ..._threads import one_thread
from ..._validate import require_int
from ...data import Dataset
from ...dynamics.attention import attention_gradient
from ..heads.decoders import interpolating_decoder
from ..norms.geometry import NORMS, norm_margin, solve_norm_svm
from .runs import EVERY, Asks, Make, Run, advance, asked, parts

#: The step sizes that are tried, and after how many steps one is chosen by its loss.
STEP_SIZES = tuple(10.0 ** (k / 2) for k in range(-8, 5))
TRIED = 400
STEPS = (5000, 20_000)  # all make the first; the others those whose share still moves
EQUAL = 1e-3  # relative: of losses this near to each other the smallest step is taken
FAMILY, LEAD, SETTLED = 0.9, 0.05, 0.01  # shares of the largest margin


def draw_tokens(seed: int, count: int = 5) -> list[Dataset]:
    """Data sets of five sequences, each of three Gaussian tokens with fifteen features.

    The decoder scores one random token of each 1 and the others 0: Assumption 2. The four largest
    margins of a draw are reached by four matrices that are far from each other.

    Parameters
    ----------
    seed : int
    count : int

    Examples
    --------
    >>> [data.X.shape for data in draw_tokens(seed=0, count=2)]
    [torch.Size([5, 3, 15]), torch.Size([5, 3, 15])]
    """
    seed = require_int("seed", seed, low=0, high=10**9)
    found = []
    for each in range(require_int("count", count, low=1)):
        generator = torch.Generator().manual_seed(1000 * seed + each)
        X = torch.randn(5, 3, 15, generator=generator, dtype=torch.float64)
        opt = torch.randint(3, (5,), generator=generator)
        data = Dataset(X, [1.0, -1.0, 1.0, -1.0, 1.0])
        found.append(Dataset(X, data.y, interpolating_decoder(data, opt)))
    return found


@dataclass(frozen=True)
class Measured:
    """What one optimizer has come to on one data set.

    Attributes
    ----------
    step_size : float or None
        That of the lowest loss after 400 steps; None where none lasted so long.
    losses : list of float or None
        After 400 steps, one a step size; None where the run ended before.
    steps : int
        How many were made with it.
    ended : str or None
        Why there were no more; None if all were made.
    shares : dict of str to dict of str to float
        By the number of steps, the margin of W in each norm over the largest: after 400, 5,000,
        half of the steps and the last.
    """

    step_size: float | None
    losses: list[float | None]
    steps: int
    ended: str | None
    shares: dict[str, dict[str, float]]


def measure(
    data: Dataset,
    makes: Mapping[str, Make],
    *,
    step_sizes: Sequence[float] = STEP_SIZES,
    steps: tuple[int, int] = STEPS,
    progress: bool = False,
) -> dict[str, Measured]:
    """Every optimizer on one data set: the step size by its loss, then the long run.

    All runs go side by side, so that a gradient is computed for all of them at once.
    """
    with one_thread():
        largest = {norm: solve_norm_svm(data, norm).margin for norm in NORMS}
        asks, found = {}, {}
        for name, make in makes.items():
            try:
                asks[name] = asked(make, step_sizes[0], data)
            except Exception as error:  # of somebody's optimizer
                found[name] = Measured(None, [], 0, str(error), {})
        losses = _tried(data, makes, asks, step_sizes, progress)
        chosen = {name: _smallest_of_lowest(step_sizes, each) for name, each in losses.items()}
        runs = {
            name: Run(makes[name], size, data.d, asks[name])
            for name, size in chosen.items()
            if size is not None
        }
        advance(list(runs.values()), data, steps[0], progress)
        moving = [run for run in runs.values() if moved(_shares(data, run, largest)) >= SETTLED]
        advance(moving, data, steps[1] - steps[0], progress)
        for name, run in runs.items():
            shares = _shares(data, run, largest)
            ended = run.ended if shares else "its weights stay at zero"
            found[name] = Measured(chosen[name], losses[name], run.step, ended, shares)
        for name in losses.keys() - runs.keys():
            found[name] = Measured(None, losses[name], 0, f"no run lasted {TRIED} steps", {})
    return {name: found[name] for name in makes}


def _tried(data, makes, asks: dict[str, Asks], step_sizes, progress) -> dict[str, list]:
    """The losses of all step sizes after the steps that decide."""
    runs: dict[str, list[Run | None]] = {name: [] for name in asks}
    for name, size in ((name, size) for name in asks for size in step_sizes):
        try:
            runs[name].append(Run(makes[name], size, data.d, asks[name]))
        except Exception:  # a step size that it refuses
            runs[name].append(None)
    advance([run for each in runs.values() for run in each if run], data, TRIED, progress)
    return {name: [_loss(data, run) for run in each] for name, each in runs.items()}


def _loss(data: Dataset, run: Run | None) -> float | None:
    if run is None or run.step < TRIED or not bool(torch.isfinite(run.kept[TRIED]).all()):
        return None
    gradient = attention_gradient(*parts(data), run.kept[TRIED])
    return float(gradient.log_loss.exp())


def _smallest_of_lowest(step_sizes, losses) -> float | None:
    """The smallest step whose loss is within a thousandth of the lowest."""
    known = [
        (size, loss) for size, loss in zip(step_sizes, losses, strict=True) if loss is not None
    ]
    least = min((loss for _, loss in known), default=None)
    return next((size for size, loss in known if loss <= (1 + EQUAL) * least), None)


def family(shares: Mapping[str, float]) -> str | None:
    """The norm with the largest share, if that is at least .9 and .05 ahead of the next.

    Examples
    --------
    >>> family({"frobenius": 0.97, "max": 0.4, "spectral": 0.8, "nuclear": 0.8})
    'frobenius'
    """
    first, second = sorted(shares, key=lambda norm: shares[norm], reverse=True)[:2]
    clear = shares[first] >= FAMILY and shares[first] - shares[second] >= LEAD
    return first if clear else None


def moved(shares: Mapping[str, Mapping[str, float]]) -> float:
    """By how much the largest share of the last step differs from itself at half the steps."""
    last = max(map(int, shares), default=0)
    if not last:
        return 0.0
    end, half = shares[str(last)], shares[str(_half(last))]
    norm = max(end, key=lambda norm: end[norm])
    return abs(end[norm] - half[norm])


def _half(last: int) -> int:
    return last // 2 // EVERY * EVERY


def _shares(data: Dataset, run: Run, largest: dict[str, float]) -> dict[str, dict[str, float]]:
    """Margins over the largest at a few steps; a run that ended early has its own half."""
    if not bool(run.W.any()):
        return {}
    last = max(run.kept)
    at = {TRIED, 5000, _half(last), last} & run.kept.keys()
    return {
        str(step): {norm: norm_margin(data, run.kept[step], norm) / largest[norm] for norm in NORMS}
        for step in sorted(at)
    }
