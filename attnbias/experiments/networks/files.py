"""What the result of an experiment on networks is like in a file, in words and as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...nets.log import TrainingLog
from ..forms import AS_IT_IS, AS_TUPLE, Codec
from ..result import ExperimentResult

if TYPE_CHECKING:
    import pandas

DIGITS = 6  # of the curves on disk; a record is read, never gone on from


def _losses(change: Callable[[Any], Any]) -> Callable[[dict], dict]:
    """The same of every loss of the grid."""
    return lambda losses: {
        label: {value: [change(loss) for loss in found] for value, found in row.items()}
        for label, row in losses.items()
    }


def _logs(change: Callable[[Any], Any], kind: type) -> Callable[[dict], dict]:
    """The same of every log."""
    return lambda logs: {label: kind(map(change, found)) for label, found in logs.items()}


#: Infinite losses are those of runs that diverged.
CODECS: dict[str, Codec] = {
    "name": AS_IT_IS,
    "title": AS_IT_IS,
    "settings": AS_IT_IS,
    "step_sizes": AS_IT_IS,
    "provenance": AS_IT_IS,
    "seeds": AS_TUPLE,
    "substitutes": AS_TUPLE,
    "losses": (_losses(lambda loss: loss if math.isfinite(loss) else "inf"), _losses(float)),
    "logs": (
        _logs(lambda log: log.to_json(DIGITS), list),
        _logs(TrainingLog.from_json, tuple),
    ),
}


def frame(result: ExperimentResult) -> pandas.DataFrame:
    """Where each optimizer ends: medians over the seeds, and the spread of the loss."""
    import pandas

    curves = ("test_loss", "train_accuracy", "test_accuracy")
    rows = {}
    for label in result.logs:
        losses = result.curves(label, "train_loss")[:, -1]
        rows[label] = {
            "step size": result.step_sizes[label],
            "train loss": np.median(losses),
            "lowest": losses.min(),
            "highest": losses.max(),
        } | {name.replace("_", " "): _last(result, label, name) for name in curves}
    return pandas.DataFrame.from_dict(rows, orient="index")


def _last(result: ExperimentResult, label: str, name: str) -> float:
    """The median of a curve over the seeds, at its end."""
    return np.median(result.curves(label, name)[:, -1])


def words(result: ExperimentResult) -> Iterator[str]:
    """A line on the claims, what stands in, and one line an optimizer."""
    last = next(iter(result.logs.values()))[0].step[-1]
    yield f"{result.title}: {len(result.seeds)} seeds, {last} steps, {result.verdict}"
    yield from (f"  {stand_in}" for stand_in in result.substitutes)
    for label in result.logs:
        loss, accuracy = (_last(result, label, name) for name in ("train_loss", "test_accuracy"))
        yield (
            f"  {label} at {result.step_sizes[label]:g}: train loss {loss:.3g}, "
            f"test accuracy {accuracy:.3f}"
        )
