"""What the experiments on trained networks share: optimizers, the grid, the runs, the files.

Every run has the full length, those that choose a step size as well: what is best after a hundred
steps may be too long for the rest. With a folder given, each finished run is kept there and the
one under way has a checkpoint, so a command goes on where one was stopped, with other optimizers,
step sizes or seeds too.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ..._marks import digest
from ..._records import provenance
from ..._validate import (
    require_choice,
    require_choices,
    require_flag,
    require_int,
    require_number,
    require_type,
)
from ...errors import DivergedError, NonFiniteError, RangeError
from ...nets.batches import known_by
from ...nets.checkpoint import identity_of_model
from ...nets.log import TrainingLog
from ...nets.training import PRECISIONS, fit
from ...optim import SNGD, SPS
from ..claims.networks import CLIPPED, HALF
from ..result import ExperimentResult
from ..runs import exact_word, seed_list
from .desk import Desk, desk_at

if TYPE_CHECKING:
    from .figures import NetworkFigure

__all__ = ["Plan"]


def _clipped(norm: float) -> Callable:
    """SGD whose gradients are clipped at a norm: it is SNGD with the lr of SGD as its cap."""
    return lambda value: functools.partial(SNGD, lr=norm * value, max_step=value)


def _at_lr(kind: Callable[..., torch.optim.Optimizer], **options: float) -> Callable:
    return lambda value: functools.partial(kind, lr=value, **options)


OPTIMIZERS: dict[str, Callable] = {
    "SGD": _at_lr(torch.optim.SGD),
    CLIPPED: _clipped(1.0),
    "SGD, clipped at 0.3": _clipped(0.3),
    "SGD, clipped at 3": _clipped(3.0),
    "SNGD": _at_lr(SNGD),
    "SPS": _at_lr(SPS),
    HALF: _at_lr(SPS, c=0.5),
    "Adam": _at_lr(torch.optim.Adam),
}


@dataclass(frozen=True)
class Plan:
    """What a dry run says: the runs that there would be, none of which is made.

    Attributes
    ----------
    title : str
    train, test : int
        Examples of both sets.
    runs : int
        How many there are at most: every value by one seed, three of each optimizer by all.
    steps : int
        Of each.

    Examples
    --------
    >>> from attnbias.experiments.networks.figures import fig6
    >>> print(fig6.run(1, dry_run=True, epochs=2))
    Figure 6: a ViT on MNIST: a dry run, nothing is trained and nothing written
      data   60,000 training and 10,000 test examples
      runs   at most 36 of 936 steps
    """

    title: str
    train: int
    test: int
    runs: int
    steps: int

    def __str__(self) -> str:
        return (
            f"{self.title}: a dry run, nothing is trained and nothing written\n"
            f"  data   {self.train:,} training and {self.test:,} test examples\n"
            f"  runs   at most {self.runs} of {self.steps:,} steps"
        )


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
    recipe: Recipe,
    seeds,
    *,
    epochs: float | None = None,
    steps: int | None = None,
    records: int = 20,
    eval_examples: int = 1000,
    step_sizes: dict | None = None,
    optimizers=None,
    device: str = "cpu",
    precision: str = "no",
    out=None,
    progress: bool = False,
    dry_run: bool = False,
) -> ExperimentResult | Plan:
    """Choose each optimizer's step size by runs of full length, train on each seed, judge.

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
    step_sizes : dict of str to float or sequence of float, optional
        By optimizer, the values to try in place of the figure's own, or the one to take.
    optimizers : sequence of str, optional
        Which to run; by default the figure's four, "SGD, clipped" at norm 1 and "SPS, c=1/2". There
        are also "SGD, clipped at 0.3" and "SGD, clipped at 3".
    device : str
        "cpu" or "cuda", as in `fit`, which has not run on a GPU yet.
    precision : {"no", "bf16"}
        bf16 runs the matrix products in it.
    progress : bool
        Show a progress bar on standard error.
    out : path, optional
        Folder for the result and, until it is there, for what is done of it. A result that is there
        is never written over.
    dry_run : bool
        Say which runs there would be: none is made, nothing is written.

    Returns
    -------
    ExperimentResult, or the Plan of a dry run

    Raises
    ------
    RangeError, DtypeError, FileFormatError, FileAccessError, MemoryLimitError, MissingExtraError

    Notes
    -----
    Every value is tried with the first seed; the best one and its two neighbours with all seeds,
    and the least median of the training losses at the end is chosen [d]. A run that diverges is a
    result: its losses are infinite from there on.
    """
    seeds = seed_list(seeds)
    require_flag("progress", progress)
    figure, per_epoch = recipe.figure, len(recipe.train) // recipe.batch_size
    total = _steps(epochs, steps, figure.epochs, per_epoch)
    tried = _values(figure.GRIDS, optimizers, step_sizes)
    common = {
        "batch_size": recipe.batch_size,
        "eval_examples": eval_examples,
        "device": device,
        "precision": precision,
    }
    settings = (
        recipe.settings
        | common
        | {"steps": total, "records": require_int("records", records, low=1)}
    )
    if require_flag("dry_run", dry_run):
        others = len(seeds) - 1  # at the best value and its neighbours
        runs = sum(len(values) + min(len(values), 3) * others for values in tried.values())
        _require_common(common, len(recipe.train))
        return Plan(figure.TITLE, len(recipe.train), len(recipe.test), runs, total)
    settings |= {"data": digest([known_by(recipe.train), known_by(recipe.test)])}
    with desk_at(out, figure.name, settings, device) as desk:
        every = max(1, total // records)
        options = common | {"steps": total, "record_every": every, "progress": progress}
        log = functools.partial(_log, recipe, desk, options)
        losses, chosen = _chosen(log, tried, seeds)
        logs = {
            label: tuple(log(label, value, seed) for seed in seeds)
            for label, value in chosen.items()
        }
        substitutes = [words for words in recipe.substitutes if words]
        if total != figure.epochs * per_epoch:
            words = f"{total} steps, {total / per_epoch:.3g} epochs"
            substitutes.append(f"{words}, in place of the paper's {figure.epochs}")
        settings |= {"start": desk.starts}
        made = provenance(device) | {"commits of the runs": sorted(desk.commits)}
        data = {
            "logs": logs,
            "seeds": seeds,
            "step_sizes": chosen,
            "losses": losses,
            "substitutes": tuple(substitutes),
        }
        result = ExperimentResult(figure.FORM, data, settings, made)
        desk.close(result)
    return result


def _log(
    recipe: Recipe, desk: Desk, options: dict, label: str, value: float, seed: int
) -> TrainingLog:
    """That of one optimizer at one step size from one seed; `options` are those of `fit`."""
    word = exact_word(value)

    def work(checkpoint):
        model = recipe.build(seed)
        desk.require_start(seed, digest(identity_of_model(model)))
        told = f"{recipe.figure.name} {label} {word}, seed {seed}"
        given = options | {"seed": seed, "checkpoint": checkpoint, "label": told}
        try:
            return fit(model, recipe.train, recipe.test, OPTIMIZERS[label](value), **given)
        except (DivergedError, NonFiniteError) as error:
            if not hasattr(error, "log"):
                raise
            steps = options["steps"]
            return error.log.diverged([*range(0, steps, options["record_every"]), steps])

    return desk.once(f"{label}-{word}-{seed}", seed, work)


def _chosen(log: Callable[..., TrainingLog], tried: dict, seeds) -> tuple[dict, dict]:
    """By optimizer: the losses at the end, by value and seed, and the value that is taken."""

    def ends(label, value, seeds):
        return [float(log(label, value, seed)["train_loss"][-1]) for seed in seeds]

    losses, chosen = {}, {}
    for label, values in tried.items():
        first = [ends(label, value, seeds[:1]) for value in values]
        best = first.index(min(first))
        near = range(len(values))[max(best - 1, 0) : best + 2]
        every_seed = {k: ends(label, values[k], seeds) for k in near}
        medians = {k: statistics.median(found) for k, found in every_seed.items()}
        least = min(medians, key=medians.__getitem__)
        chosen[label] = values[least]
        losses[label] = {
            exact_word(value): every_seed.get(k, first[k]) for k, value in enumerate(values)
        }
    return losses, chosen


def merged(results: Sequence[ExperimentResult]) -> ExperimentResult:
    """One result of runs of different optimizers that agree in all else.

    Parameters
    ----------
    results : sequence of ExperimentResult
        Of one network's figure.

    Returns
    -------
    ExperimentResult
        Its provenance has that of each result under "parts".

    Raises
    ------
    RangeError
        An optimizer is in two of them, or they differ in figure, seeds or settings.
    """
    first, owner = results[0], {label: each for each in results for label in each.logs}
    alike = [{"figure": each.name, "seeds": each.seeds} | each.settings for each in results]
    keys = sorted({key for each in alike for key in each})
    other = [key for key in keys if any(each.get(key) != alike[0].get(key) for each in alike)]
    labels = [label for each in results for label in each.logs]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if other or twice:
        raise RangeError(
            "results",
            expected="equal figures, seeds and settings, and each optimizer once",
            got="different " + ", ".join(other) if other else ", ".join(twice) + " twice",
            remedy="run what is missing with the settings of the others, for other optimizers",
        )
    whole = {
        name: {label: getattr(owner[label], name)[label] for label in OPTIMIZERS if label in owner}
        for name in ("logs", "losses", "step_sizes")
    }
    made = provenance() | {"parts": [each.provenance for each in results]}
    return replace(first.with_data(**whole), provenance=made)


def _values(grids: Mapping, optimizers, step_sizes) -> dict[str, list[float]]:
    """The values to try, by optimizer: one after a comma has the grid of what is before it."""
    known = [label for label in OPTIMIZERS if label.split(",")[0] in grids]
    usual = [label for label in known if " at " not in label]
    labels = require_choices("optimizers", usual if optimizers is None else optimizers, known)
    given = {} if step_sizes is None else step_sizes
    require_type("step_sizes", given, dict, "numbers by optimizer", "for example {'SGD': 0.1}")
    if given:
        require_choices("step_sizes", given, labels)
    values = {label: given.get(label, grids[label.split(",")[0]]) for label in labels}
    return {
        label: sorted(
            {
                require_number(f"step size of {label}", value, low=0, open_low=True)
                for value in (found if isinstance(found, list | tuple) and found else [found])
            }
        )
        for label, found in values.items()
    }


def _require_common(common: dict, count: int) -> None:
    """Refuse what `fit` would."""
    require_int("batch_size", common["batch_size"], low=1, high=count)
    require_int("eval_examples", common["eval_examples"], low=1)
    require_choice("device", common["device"], ("cpu", "cuda"))
    require_choice("precision", common["precision"], PRECISIONS)


def _steps(epochs, steps, usual: int, per_epoch: int) -> int:
    """Iterations of a run, whether epochs, steps or neither is given."""
    if steps is None:
        epochs = usual if epochs is None else epochs
        epochs = require_number("epochs", epochs, low=0, open_low=True, high=1e6)
        return max(1, round(epochs * per_epoch))
    if epochs is not None:
        raise RangeError(
            "epochs and steps",
            expected="one of the two at most",
            got="both",
            remedy="give epochs=40, say, or steps=1000",
        )
    return require_int("steps", steps, low=1)
