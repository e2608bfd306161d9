"""What the experiments on trained networks share: optimizers, the grid, the runs, the files.

With a folder given, each finished run is kept there and the one under way has a checkpoint, so
the same command goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..._provenance import provenance
from ..._records import read_json, write_json
from ..._validate import require_choices, require_flag, require_int, require_number, require_type
from ...errors import DivergedError, FileFormatError, NonFiniteError, RangeError
from ...nets.log import TrainingLog
from ...nets.loop import fit
from ...nets.optim import SNGD, SPS
from ..runs import seed_list
from .claims import judged
from .result import NetworkResult

if TYPE_CHECKING:
    from .figures import NetworkFigure

GRID_SEED = 10_000  # of the short runs that choose the step size, none of the runs' own
HALF = "SPS, c=1/2"  # the constant of Loizou et al. in place of the paper's 2 [b]
OPTIMIZERS: dict[str, Callable] = {
    "SGD": lambda value: lambda parameters: torch.optim.SGD(parameters, lr=value),
    "SNGD": lambda value: lambda parameters: SNGD(parameters, lr=value),
    "SPS": lambda value: lambda parameters: SPS(parameters, lr=value),
    HALF: lambda value: lambda parameters: SPS(parameters, lr=value, c=0.5),
    "Adam": lambda value: lambda parameters: torch.optim.Adam(parameters, lr=value),
}


@dataclass(frozen=True)
class Recipe:
    """One figure as it is asked for: what is trained on what.

    Attributes
    ----------
    figure : NetworkFigure
    build : callable
        From a seed to a model.
    train, test : examples
    batch_size : int
    settings : dict
        What the caller chose beyond the arguments of `train_all`, for the record.
    substitutes : sequence of str
        What stands in for the paper's data or model, in words; empty where nothing does.
    """

    figure: NetworkFigure
    build: Callable
    train: Sized
    test: Sized
    batch_size: int
    settings: dict
    substitutes: Iterable[str] = ()


def train_all(
    recipe: Recipe, seeds, *, epochs: float | None = None, steps: int | None = None,
    records: int = 20, eval_examples: int = 1000, grid_steps: int = 100,
    step_sizes: dict[str, float] | None = None, optimizers=None,
    device: str = "cpu", precision: str = "no", out=None, progress: bool = False,
) -> NetworkResult:  # fmt: skip
    """Choose the step sizes on the grid, train with each optimizer on each seed, judge.

    Parameters
    ----------
    recipe : Recipe
    seeds : int or sequence of int
        How many, or which: start, batches and dropout.
    epochs : float, optional
        Passes over the training set; the paper's by default.
    steps : int, optional
        Iterations in place of epochs.
    records : int
        How often losses are recorded along a run.
    eval_examples : int
        Examples of each set that they are measured on.
    grid_steps : int
        Iterations of each short run of the grid, whose training loss at the end decides.
    step_sizes : dict of str to float, optional
        Values that skip the grid, by optimizer.
    optimizers : sequence of str, optional
        Which to run; the figure's own four by default. "SPS, c=1/2" is one more.
    device : str
        "cpu" or "cuda", as in `fit`.
    precision : {"no", "bf16"}
        bf16 runs the matrix products in it.
    progress : bool
        Show a progress bar on standard error.
    out : path, optional
        Folder for the result and, until it is there, for what is done of it.

    Returns
    -------
    NetworkResult

    Raises
    ------
    DivergedError
        Each value of a grid diverged, or a full run did.
    RangeError, DtypeError, FileFormatError, MemoryLimitError, MissingExtraError
    """
    seeds = seed_list(seeds)
    require_flag("progress", progress)
    figure, per_epoch = recipe.figure, len(recipe.train) // recipe.batch_size
    total = _steps(epochs, steps, figure.epochs, per_epoch)
    known = figure.GRIDS | ({HALF: figure.GRIDS["SPS"]} if "SPS" in figure.GRIDS else {})
    asked = figure.GRIDS if optimizers is None else optimizers
    labels = require_choices("optimizers", asked, known)
    grids = {label: known[label] for label in labels}
    example = "for example {'SGD': 0.1}"
    step_sizes = {} if step_sizes is None else step_sizes
    require_type("step_sizes", step_sizes, dict, "numbers by optimizer", example)
    given = require_choices("step_sizes", step_sizes, labels) if step_sizes else []
    fixed = {label: require_number(f"step size of {label}", step_sizes[label], low=0, open_low=True)
             for label in given}  # fmt: skip
    common = {"batch_size": recipe.batch_size, "eval_examples": eval_examples, "device": device,
              "precision": precision}  # fmt: skip
    settings = recipe.settings | common | {
        "steps": total, "records": require_int("records", records, low=1),
        "grid_steps": require_int("grid_steps", grid_steps, low=1), "step_sizes": fixed,
        "grids": {label: list(values) for label, values in grids.items()},
    }  # fmt: skip
    desk = Desk(out, figure.name, settings)

    def run(label, value, seed, length, every):
        job = f"{label}-{value:g}-{seed}-{length}"
        return desk.once(job, lambda checkpoint: fit(
            recipe.build(seed), recipe.train, recipe.test, OPTIMIZERS[label](value),
            steps=length, record_every=every, seed=seed, checkpoint=checkpoint,
            progress=progress, label=f"{figure.name} {label} {value:g}, seed {seed}", **common,
        ))  # fmt: skip

    def tried(label, value):
        """Training loss at the end of a short run; infinite where it diverges."""
        try:
            log = run(label, value, GRID_SEED, grid_steps, grid_steps)
        except (DivergedError, NonFiniteError):
            return math.inf
        return float(log["train_loss"][-1])

    grid = {
        label: {f"{value:g}": tried(label, value) for value in values}
        for label, values in grids.items() if label not in fixed
    }  # fmt: skip
    chosen = {label: fixed.get(label) or _best(label, grid[label]) for label in grids}
    every = max(1, total // records)
    logs = {
        label: tuple(run(label, value, seed, total, every) for seed in seeds)
        for label, value in chosen.items()
    }
    substitutes = [words for words in recipe.substitutes if words]
    if total != figure.epochs * per_epoch:
        words = f"{total} steps, {total / per_epoch:.3g} epochs"
        substitutes.append(f"{words}, in place of the paper's {figure.epochs}")
    result = NetworkResult(
        figure.name, figure.TITLE, logs, seeds, settings, chosen, grid, tuple(substitutes),
        judged(figure.claims, logs), provenance(device),
    )  # fmt: skip
    desk.close(result)
    return result


def _steps(epochs, steps, usual: int, per_epoch: int) -> int:
    """Iterations of a run, whether epochs, steps or neither is given."""
    if steps is None:
        epochs = usual if epochs is None else epochs
        epochs = require_number("epochs", epochs, low=0, open_low=True, high=1e6)
        return max(1, round(epochs * per_epoch))
    if epochs is not None:
        raise RangeError(
            "epochs and steps", expected="one of the two at most", got="both",
            remedy="give epochs=40, say, or steps=1000",
        )  # fmt: skip
    return require_int("steps", steps, low=1)


def _best(label: str, losses: dict[str, float]) -> float:
    value = min(losses, key=losses.get)
    if math.isinf(losses[value]):
        raise DivergedError(
            f"{label} on the grid", expected="one value that trains", got="a diverged run for each",
            remedy="give smaller ones",
        )  # fmt: skip
    return float(value)


class Desk:
    """What is done of an experiment, in a folder; without a folder, nothing is kept."""

    def __init__(self, out, name: str, settings: dict) -> None:
        self.folder = self.target = None
        if out is None:
            return
        self.target = Path(out) / f"{name}.json"
        self.folder = Path(out) / f"{name}.part"
        self.folder.mkdir(parents=True, exist_ok=True)
        noted, settings = self.folder / "settings.json", json.loads(json.dumps(settings))
        if not noted.exists():
            write_json(noted, "settings", {"settings": settings})
        elif read_json(noted, "settings")["settings"] != settings:
            raise FileFormatError(
                str(self.folder), expected="the unfinished work of these settings",
                got="that of others", remedy="finish it with its own settings, or delete it",
            )  # fmt: skip

    def once(self, job: str, work: Callable) -> TrainingLog:
        """The log of a job, from the folder where it is done; `work` takes its checkpoint."""
        if self.folder is None:
            return work(None)
        stem = hashlib.sha256(job.encode()).hexdigest()[:12]
        done, checkpoint = self.folder / f"{stem}.json", self.folder / f"{stem}.npz"
        if done.exists():
            return TrainingLog.from_json(read_json(done, "training log")["log"])
        log = work(checkpoint)
        if _writes():
            write_json(done, "training log", {"job": job, "log": log.to_json()})
            checkpoint.unlink(missing_ok=True)
        return log

    def close(self, result: NetworkResult) -> None:
        """Put the result in its place and the parts away."""
        if self.folder is not None and _writes():
            result.save(self.target)
            shutil.rmtree(self.folder)


def _writes() -> bool:
    """Whether this is the first of the processes of `accelerate launch`, or the only one."""
    return os.environ.get("RANK", "0") == "0"
