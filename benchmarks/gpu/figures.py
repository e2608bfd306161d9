"""Figures 6 and 7 at the paper's size, as far as the time reaches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from attnbias import experiments
from scripts.fetch_packages import folder_of as cached
from tools.files import ROOT

from ..record import Row
from .data import folder_of
from .runner import MissingPart, Options, path_of, read

EPOCHS = "epochs that the time reaches"
TIMED = 10  # steps
CARRIED_ON = 0.6  # of the time that is left: what the timed steps say the epochs may take


def figure_jobs(name: str, options: Options) -> dict[str, Callable[[], Iterator[Row]]]:
    return {
        "a step": partial(step_of, name, options, time.monotonic()),
        "the run": partial(run_of, name, options),
    }


def settings_of(name: str, options: Options) -> dict:
    """The paper's size, with the files that were given; tiny on the CPU."""
    # There is no time to choose them there: those of the usual ViT, where it has been run.
    recorded = ROOT / "book" / "results"
    usual = recorded / "usual"
    folder = usual if (usual / f"{name}.json").is_file() else recorded
    sizes = experiments.load(name, folder).step_sizes
    chosen = {"optimizers": [*sizes], "step_sizes": sizes}
    if options.tiny:
        tiny = {"source": "bundled", "size": "small", "batch_size": 16}
        return chosen | tiny | {"records": 1, "eval_examples": 20}
    images = {"fig6": "mnist", "fig7": "cifar10"}[name]
    data = cached().as_posix() if options.data is None else options.data
    return chosen | {"source": str(folder_of(data, images, options.out)), "device": options.device}


def step_of(name: str, options: Options, began: float) -> Iterator[Row]:
    """How long a step is, and how many of the paper's epochs the time reaches."""
    settings, figure = settings_of(name, options), experiments.module_of(name)
    for split in ("train", "test"):
        figure.load(split, source=settings["source"])  # refuses by name where files are missing
    plan = experiments.run(name, seeds=1, **settings, dry_run=True)
    short = settings | {"optimizers": ["SGD"], "step_sizes": {"SGD": 0.1}, "records": 1}
    (log,) = experiments.run(name, seeds=1, steps=TIMED, **short).logs["SGD"]
    second = float(log["seconds"][-1]) / TIMED
    data = f"{plan.train:,} training and {plan.test:,} test examples"
    yield Row("one step", second, unit=" s", facts={"data": data})
    left = CARRIED_ON * (options.seconds - (time.monotonic() - began))
    share = left / (plan.runs * plan.steps * second)
    epochs = figure.epochs if share > 1 else max(0.01, round(figure.epochs * share, 2))
    if options.tiny:
        epochs = 0.01
    yield Row(EPOCHS, epochs, facts={"predicted": f"{figure.epochs}"})


def run_of(name: str, options: Options) -> Iterator[Row]:
    """The experiment itself, one seed; its own file is the result, and goes on after a kill."""
    rows = read(path_of(options.out, name))["jobs"]["a step"]["rows"]
    epochs = [row["value"] for row in rows if row["name"] == EPOCHS]
    if not epochs:
        raise MissingPart(f"no {EPOCHS}: see the job before")
    result = experiments.run(
        name, seeds=1, epochs=epochs[0], out=options.out, **settings_of(name, options)
    )
    for label, (log,) in result.logs.items():
        facts = {
            "step size": result.step_sizes[label],
            "seconds": float(log["seconds"][-1]),
            "test accuracy": float(log["test_accuracy"][-1]),
        }
        yield Row(f"{label}: training loss", float(log["train_loss"][-1]), facts=facts)
    for check in result.claims:
        facts = {
            "predicted": f"{check.sense} {check.bound:.3g}",
            "verdict": f"{check.verdict}, at {epochs[0]:g} epochs",
        }
        yield Row(check.statement.rpartition(": ")[0], float(check.value), facts=facts)
