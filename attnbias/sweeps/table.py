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
SETTINGS = {
    "rule": "str", "rule_name": "str", "eta": "float64", "momentum": "float64",
    "max_step": "float64", "loss_name": "str", "W0_norm": "float64", "start": "str",
    "train_u": "bool",
}  # fmt: skip
RECORDED = ("step", *SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score")
RESERVED = {"run", "point", "model", "status", "error", *SETTINGS, *FACTS, *RECORDED}


def columns(grid: Grid) -> dict[str, str]:
    """Name and dtype of every column."""
    import pandas

    given = pandas.DataFrame([arguments(point) for point in grid.points])
    # one of numbers and missing ones is float64; of other mixtures each is written out
    own = {
        name: str(values.dtype) if values.dtype.kind in "bif" and values.notna().any() else "str"
        for name, values in given.items()
    }
    before = {"run": "int64", "point": "int64", "model": "str"}
    after = {"status": "str", "error": "str", **dict.fromkeys(FACTS, "float64"), "step": "int64"}
    return before | own | SETTINGS | after | dict.fromkeys(RECORDED[1:], "float64")


def arguments(point: Point) -> dict:
    """Columns of a data set's arguments; one named like another column takes data_ before it."""
    return {f"data_{k}" if k in RESERVED else k: _cell(v) for k, v in point.arguments}


def part(
    training: Training, number: int, point: Point, facts: dict, outcomes: list[Outcome], dtypes
) -> pandas.DataFrame:
    """The rows of all runs on one data set."""
    import pandas

    runs = [_recorded(outcome) for outcome in outcomes]
    counts = [len(run["step"]) for run in runs]
    constants = {"point": number, "model": point.model, **arguments(point), **facts}
    ends = enumerate(zip(training.settings, outcomes, strict=True), start=number * len(outcomes))
    each = pandas.DataFrame([
        {"run": run, **setting.columns(), "status": outcome.status, "error": outcome.error}
        for run, (setting, outcome) in ends
    ])  # fmt: skip
    made = {name: np.concatenate([run[name] for run in runs]) for name in RECORDED}
    frame = each.loc[each.index.repeat(counts)].reset_index(drop=True).assign(**constants, **made)
    frame = frame.reindex(columns=list(dtypes))
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
