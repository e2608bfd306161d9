"""Which of four largest margins an optimizer comes nearest to, on tokens drawn for the question."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import torch

from ..._threads import one_thread
from ..._validate import require_int, require_type
from ...dataset import Dataset, require_dataset
from ...dynamics.attention import attention_gradient
from ...errors import RangeError
from ...geometry.tokens import optimal_tokens
from ..heads.decoders import interpolating_decoder
from ..norms.geometry import NORMS, norm_margin, solve_norm_svm
from .margins import SETTLED, Measured, OptimizerMargins, half_of, moved
from .runs import Asks, Make, Run, advance, asked, parts

#: The step sizes that are tried, and after how many steps one is chosen by its loss.
STEP_SIZES = tuple(10.0 ** (k / 2) for k in range(-8, 5))
TRIED = 400
STEPS = (5000, 20_000)  # all make the first; the others those whose share still moves
EQUAL = 1e-3  # relative: of losses this near to each other the smallest step is taken


def draw_tokens(seed: int, count: int = 5) -> list[Dataset]:
    """Data sets of five sequences, each of three Gaussian tokens with fifteen features.

    The decoder scores one random token of each 1 and the others 0: Assumption 2.

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
        found.append(data.with_decoder(interpolating_decoder(data, opt)))
    return found


def optimizer_margins(
    optimizer: Make,
    data: Dataset | Sequence[Dataset] | None = None,
    *,
    steps: tuple[int, int] = STEPS,
    name: str | None = None,
    progress: bool = False,
) -> OptimizerMargins:
    """Ask a torch optimizer which of four margins it comes nearest to, on exact gradients.

    It trains one attention layer from W = 0 on each data set, with the exponential loss, full
    batches and its own defaults but for the step size, which is chosen among thirteen by the loss
    after 400 steps, never by a margin.

    Parameters
    ----------
    optimizer : callable
        A class of torch optimizers, or a function, that is called with a list of parameters and
        `lr`.
    data : Dataset or list of Dataset, optional
        With decoders; `draw_tokens(1)`, those of the book's first table, by default.
    steps : pair of int
        All data sets have the first, and those on which the largest share still moves by .01 the
        second.
    name : str, optional
    progress : bool

    Returns
    -------
    OptimizerMargins

    Raises
    ------
    DtypeError, RangeError
        The latter also for an optimizer that cannot make a step, with its own error.
    InfeasibleError, MissingDecoderError, TiedTokensError
        As `solve_w_svm`.
    MissingExtraError

    Notes
    -----
    Source: ours [d]: the data sets, the grid, and the thresholds of family and settled. A run ends
    early where the square of its gradient would leave float64, since optimizers square gradients.

    Examples
    --------
    Sign descent comes nearest to the largest margin in the max norm:

    >>> class Sign(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for param in group["params"]:
    ...                 param -= group["lr"] * param.grad.sign()
    >>> optimizer_margins(Sign, draw_tokens(1)[1], steps=(400, 400)).family
    'max'
    """
    remedy = "for example torch.optim.Adam, or functools.partial of it with settings"
    require_type("optimizer", optimizer, Callable, "a class of optimizers", remedy)
    first, last = as_steps(steps)
    name = str(name or getattr(optimizer, "__name__", type(optimizer).__name__))
    found = []
    for one in _data_sets(data):
        each = measure(one, {name: optimizer}, steps=(first, last), progress=progress)[name]
        if each.step_size is None:
            raise RangeError(
                "optimizer",
                expected=f"one that is made of parameters and lr, and makes {TRIED} steps",
                got=f"{name}: {each.ended}",
                remedy="wrap it: lambda params, lr: Mine(params, lr=lr, other=settings)",
            )
        found.append(each)
    return OptimizerMargins(name, tuple(found))


def _data_sets(data) -> list[Dataset]:
    if data is None:
        return draw_tokens(1)
    listed = list(data) if isinstance(data, list | tuple) else [data]
    if not listed:
        remedy = "leave it out for five that are drawn"
        raise RangeError("data", expected="at least one data set", got="none", remedy=remedy)
    for each in listed:
        require_dataset(each)
        optimal_tokens(each)  # refuses one without a decoder
    return listed


def as_steps(steps) -> tuple[int, int]:
    """Two numbers of steps, the second not below the first."""
    pair = steps if isinstance(steps, tuple | list) and len(steps) == 2 else (None, None)
    first = require_int("steps", pair[0], low=TRIED, high=10**6)
    return first, require_int("steps", pair[1], low=first, high=10**6)


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
    with one_thread(), warnings.catch_warnings(action="ignore"):  # of optimizers
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
    least = min((loss for _, loss in known), default=0.0)
    return next((size for size, loss in known if loss <= (1 + EQUAL) * least), None)


def _shares(data: Dataset, run: Run, largest: dict[str, float]) -> dict[str, dict[str, float]]:
    """Margins over the largest at a few steps; a run that ended early has its own half."""
    if not bool(run.W.any()):
        return {}
    last = max(run.kept)
    at = {TRIED, STEPS[0], half_of(last), last} & run.kept.keys()
    return {
        str(step): {norm: norm_margin(data, run.kept[step], norm) / largest[norm] for norm in NORMS}
        for step in sorted(at)
    }
