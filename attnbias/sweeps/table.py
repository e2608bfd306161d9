"""The tidy table: one row a recorded iteration of a run, the same columns in every part."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.trace import SERIES
from .grid import Grid, Training
from .models import Point
from .task import Outcome

if TYPE_CHECKING:
    import pandas

FACTS = ("rows", "margin", "support", "least_slack", "least_dual")
SETTINGS = ("rule", "rule_name", "eta", "momentum", "max_step", "loss_name", "W0_norm", "start",
            "train_u")  # fmt: skip
RECORDED = ("step", *SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score")
RESERVED = {"run", "point", "model", "status", "error", *SETTINGS, *FACTS, *RECORDED}


def columns(grid: Grid) -> dict[str, str]:
    """Name and dtype of every column."""
    first = grid.training.settings[0].columns()
    settings = {name: _dtype([value]) for name, value in first.items()}
    given = [arguments(point) for point in grid.points]
    values = {name: [each.get(name) for each in given] for each in given for name in each}
    own = {name: _dtype(found) for name, found in values.items()}
    before = {"run": "int64", "point": "int64", "model": "str"}
    after = {"status": "str", "error": "str", **dict.fromkeys(FACTS, "float64"), "step": "int64"}
    return before | own | settings | after | dict.fromkeys(RECORDED[1:], "float64")


def arguments(point: Point) -> dict:
    """Columns of a data set's arguments; one named like another column takes data_ before it."""
    return {f"data_{k}" if k in RESERVED else k: _cell(v) for k, v in point.arguments}


def _dtype(values: list) -> str:
    """The narrowest of bool, int64, float64 and str that holds them; None and NaN are missing."""
    known = [value for value in values if value is not None and value == value]
    whole = len(known) == len(values)
    if whole and all(isinstance(value, bool) for value in known):
        return "bool"
    if known and all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in known):
        return (
            "int64" if whole and all(isinstance(v, numbers.Integral) for v in known) else "float64"
        )
    return "str"


def part(
    training: Training, number: int, point: Point, facts: dict, outcomes: list[Outcome], dtypes
) -> pandas.DataFrame:
    """The rows of all runs on one data set."""
    runs = [_recorded(outcome) for outcome in outcomes]
    counts = [len(run["step"]) for run in runs]
    constants = {"point": number, "model": point.model, **arguments(point), **facts}
    first = number * len(outcomes)
    each = [
        {"run": first + s, **setting.columns(), "status": outcome.status, "error": outcome.error}
        for s, (setting, outcome) in enumerate(zip(training.settings, outcomes, strict=True))
    ]
    made = {name: np.concatenate([run[name] for run in runs]) for name in RECORDED}
    made |= {name: np.repeat([run[name] for run in each], counts) for name in each[0]}
    made |= {name: np.repeat([value], sum(counts)) for name, value in constants.items()}
    missing = np.full(sum(counts), np.nan)
    import pandas

    frame = pandas.DataFrame({name: made.get(name, missing) for name in dtypes})
    # asked column by column: a conversion of all copies them all
    return frame.astype({k: v for k, v in dtypes.items() if frame[k].dtype != v})


def _recorded(outcome: Outcome) -> dict[str, np.ndarray]:
    """Recorded quantities; for a run that did not start one row of step 0, without any."""
    trace = outcome.trace
    if trace is None or not len(trace.step):
        return {"step": np.zeros(1, np.int64)} | dict.fromkeys(RECORDED[1:], np.full(1, np.nan))
    return {name: getattr(trace, name) for name in RECORDED}


def _cell(value):
    """A value as a column holds it: numbers and words, anything else written out."""
    if value is None:
        return np.nan
    return value if isinstance(value, numbers.Real | str) else repr(value)
