"""What experiments share: checks of their arguments, small starts, and runs by rule and seed."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from .._validate import as_device, require_flag, require_int
from ..data import Dataset
from ..dynamics.request import record_steps
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import DtypeError, RangeError
from ..geometry.svm import SVMSolution
from ..losses import Loss, as_loss
from ..rules import Rule

MOST_SEEDS = 10**6
FEWEST_RECORDS = 8  # that `fit_rate` asks for


def seed_list(seeds) -> tuple[int, ...]:
    """So many seeds from 0, or the given ones; a million at most."""
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
            got=repr(seeds)[:60],
            remedy="for example seeds=5 or seeds=[3, 4]",
        )
    require_int("number of seeds", len(chosen), low=1, high=MOST_SEEDS)
    return tuple(require_int("seeds", seed, low=0) for seed in chosen)


class Common(NamedTuple):
    """What all experiments are asked for, checked; `record` holds the iterations."""

    seeds: tuple[int, ...]
    steps: int
    device: torch.device
    loss: Loss
    record: np.ndarray

    @property
    def settings(self) -> dict:
        """Those of an ExperimentResult."""
        return {"seeds": list(self.seeds), "steps": self.steps, "device": str(self.device),
                "record": len(self.record)}  # fmt: skip


def require_common(
    *, seeds, steps, device, record, progress, loss="exponential", windows=()
) -> Common:
    """Refuse what no experiment can run with, before any work.

    Parameters
    ----------
    seeds, steps, device, record, progress, loss
        As an experiment takes them.
    windows : sequence of (first, last)
        Where exponents are fitted, besides the last decade.

    Raises
    ------
    RangeError, DtypeError, DeviceError
    """
    steps, seeds = require_int("steps", steps, low=1000), seed_list(seeds)
    device, loss = as_device("device", device), as_loss(loss)
    require_flag("progress", progress)
    recorded = _recorded(record, steps)
    for first, last in ((steps // 10, steps), *windows):
        count = int(((recorded >= first) & (recorded <= last)).sum())
        if count < FEWEST_RECORDS:
            raise RangeError(
                "record",
                expected=f"at least {FEWEST_RECORDS} iterations in [{first}, {last}], "
                "where an exponent is fitted",
                got=str(count),
                remedy="record more iterations; the default is record=200",
            )
    return Common(seeds, steps, device, loss, recorded)


def run_all(
    problems: list[tuple[Dataset, torch.Tensor, SVMSolution]],
    rules: dict[str, Rule],
    *,
    progress: bool,
    **options,
) -> dict[str, tuple[Trace, ...]]:
    """Every rule on every (data, W0, svm); options go to `train`.

    Raises
    ------
    RangeError
        When a run stops early: its claims would be made on a part of it.
    """
    traces: dict[str, list[Trace]] = {label: [] for label in rules}
    with tqdm(total=len(problems) * len(rules), disable=not progress, unit="run") as bar:
        for data, W0, svm in problems:
            for label, rule in rules.items():
                run = train(data, rule, W0=W0, svm=svm, **options)
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


def _recorded(record, steps: int) -> np.ndarray:
    """Iterations to record; 1, 2, 3, 5, 10, 20, ... as well where only their number is given."""
    if not isinstance(record, int | np.integer):
        return record_steps(record, steps)
    round_steps = np.multiply.outer(10 ** np.arange(10), [1, 2, 3, 5]).ravel()
    return np.union1d(record_steps(record, steps), round_steps[round_steps <= steps])
