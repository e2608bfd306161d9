"""What experiments share: checks of their arguments, small starts, and runs by rule and seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from .._validate import as_device, require_flag, require_int, require_number, short
from ..data import Dataset
from ..dynamics.loop import record_steps
from ..dynamics.problem import small_start
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import DtypeError, RangeError
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import Loss, as_loss
from ..rules import Rule

MOST_SEEDS = 1000
FEWEST_RECORDS = 8  # that `fit_rate` asks for


def seed_list(seeds) -> tuple[int, ...]:
    """So many seeds from 0, or the given ones, each once; a thousand at most."""
    if isinstance(seeds, int | np.integer):
        return tuple(range(require_int("seeds", seeds, low=1, high=MOST_SEEDS)))
    try:
        chosen = tuple(itertools.islice(seeds, MOST_SEEDS + 1))
    except TypeError:
        chosen = ()
    if not chosen or isinstance(seeds, str):
        raise DtypeError(
            "seeds",
            expected="how many, or a non-empty sequence of integers",
            got=short(seeds),
            remedy="for example seeds=5 or seeds=[3, 4]",
        )
    require_int("number of seeds", len(chosen), low=1, high=MOST_SEEDS)
    found = tuple(require_int("seeds", seed, low=0) for seed in chosen)
    if len(set(found)) < len(found):
        raise RangeError(
            "seeds",
            expected="each seed once: the same one gives the same run",
            got=short(chosen),
            remedy="for example seeds=5 or seeds=[3, 4]",
        )
    return found


def exact_word(value: float) -> str:
    """A number in six digits if these are all of it, else in as many as it takes."""
    short_form = f"{value:g}"
    return short_form if float(short_form) == value else repr(float(value))


class Common(NamedTuple):
    """What all experiments are asked for, checked; `record` holds the iterations."""

    seeds: tuple[int, ...]
    steps: int
    device: torch.device
    record: np.ndarray
    loss: Loss
    progress: bool


def require_common(asked: dict, windows=(), dense: int = 0) -> Common:
    """Refuse what no experiment can run with, before any work.

    Parameters
    ----------
    asked : dict
        The arguments of an experiment, among them seeds, steps, device, record and progress.
    windows : sequence of (first, last)
        Where exponents are fitted, besides the last decade.
    dense : int
        Every step up to here is recorded as well, where only the number of records is given.

    Raises
    ------
    RangeError, DtypeError, DeviceError
    """
    steps, seeds = require_int("steps", asked["steps"], low=1000), seed_list(asked["seeds"])
    device, loss = as_device("device", asked["device"]), as_loss(asked.get("loss", "exponential"))
    progress = require_flag("progress", asked["progress"])
    recorded = _recorded(asked["record"], steps, dense)
    for first, last in ((steps // 10, steps), *windows):
        count = int(((recorded >= first) & (recorded <= last)).sum())
        if count < FEWEST_RECORDS:
            wanted = f"at least {FEWEST_RECORDS} iterations in [{first}, {last}]"
            raise RangeError(
                "record",
                expected=f"{wanted}, where an exponent is fitted",
                got=str(count),
                remedy="record more iterations; the default is record=200",
            )
    return Common(seeds, steps, device, recorded, loss, progress)


def _recorded(record, steps: int, dense: int) -> np.ndarray:
    """Iterations to record; 1, 2, 3, 5, 10, 20, ... as well where only their number is given."""
    recorded = record_steps(record, steps)
    if not isinstance(record, int | np.integer):
        return recorded
    round_steps = np.multiply.outer(10 ** np.arange(10), [1, 2, 3, 5]).ravel()
    more = np.union1d(round_steps, np.arange(dense + 1 if dense else 0))
    return np.union1d(recorded, more[more <= steps])


def from_small_start(
    make: Callable[..., Dataset], norm: float, *, seed: int, **given
) -> tuple[Dataset, torch.Tensor]:
    """Data of a maker, and a start W_0 of a norm in a Gaussian direction of the seed's."""
    norm = require_number("start_norm", norm, low=0, high=1e6)
    data = make(**given, seed=seed)
    return data, small_start(data.d, norm, seed)


def solved(data: Dataset, W0: torch.Tensor, device) -> tuple[Dataset, torch.Tensor, SVMSolution]:
    """Data and start on the device, with the solution of (W-SVM)."""
    data = data.to(device)
    return data, W0.to(device), solve_w_svm(data)


def run_all(
    problems, rules: dict[str, Rule], common: Common, train_u: bool = False
) -> dict[str, tuple[Trace, ...]]:
    """Every rule on every (data, W0, svm), by the rule's label.

    Raises
    ------
    RangeError
        When a run stops early: its claims would be made on a part of it.
    """
    traces: dict[str, list[Trace]] = {label: [] for label in rules}
    options: dict[str, Any] = {"loss": common.loss, "record": common.record, "train_u": train_u}
    with tqdm(total=len(problems) * len(rules), disable=not common.progress, unit="run") as bar:
        for data, W0, svm in problems:
            for label, rule in rules.items():
                run = train(data, rule, common.steps, W0=W0, svm=svm, **options)
                _require_completed(run, rule)
                traces[label].append(run)
                bar.update()
    return {label: tuple(runs) for label, runs in traces.items()}


def _require_completed(run: Trace, rule: Rule) -> None:
    if run.status != "completed":
        last = f"step {run.step[-1]}" if len(run.step) else "its start"
        raise RangeError(
            repr(rule),
            expected="a run that reaches its last step",
            got=f"one that stops after {last}: {run.status}",
            remedy="take a smaller step size or start, or `train` to look at such a run",
        )
