"""The tidy table: one row a recorded iteration of a run, the same columns in every part."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.trace import SERIES, Trace
from ..errors import AttnBiasError
from .grid import Grid, Training
from .models import Point

if TYPE_CHECKING:
    import pandas

FACTS = ("rows", "margin", "support", "least_slack", "least_dual")
SETTINGS = {
    "rule": "str", "rule_name": "str", "eta": "float64", "momentum": "float64",
    "max_step": "float64", "loss_name": "str", "W0_norm": "float64", "start": "str",
    "train_u": "bool",
}  # fmt: skip
RECORDED = ("step", *SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score")
NOTHING = {"step": np.zeros(1, np.int64)} | dict.fromkeys(RECORDED[1:], np.full(1, np.nan))
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


def recorded(trace: Trace) -> dict:
    """What the table keeps of a run; one that recorded nothing has a row of step 0 all the same."""
    series = {name: getattr(trace, name) for name in RECORDED} if len(trace.step) else NOTHING
    return {"status": trace.status, "error": "", **series}


def failed(error: AttnBiasError) -> dict:
    """What the table keeps of a run that could not start."""
    return {"status": "failed", "error": f"{type(error).__name__}: {error}", **NOTHING}


def part(
    training: Training, number: int, point: Point, facts: dict, outcomes: list[dict], dtypes
) -> pandas.DataFrame:
    """The rows of all runs on one data set."""
    import pandas

    counts = [len(outcome["step"]) for outcome in outcomes]
    constants = {"point": number, "model": point.model, **arguments(point), **facts}
    runs = range(number * len(outcomes), (number + 1) * len(outcomes))
    each = pandas.DataFrame([
        {"run": run, **setting.columns(), "status": outcome["status"], "error": outcome["error"]}
        for run, setting, outcome in zip(runs, training.settings, outcomes, strict=True)
    ])  # fmt: skip
    made = {name: np.concatenate([outcome[name] for outcome in outcomes]) for name in RECORDED}
    frame = each.loc[each.index.repeat(counts)].reset_index(drop=True).assign(**constants, **made)
    frame = frame.reindex(columns=list(dtypes))
    # asked column by column: a conversion of all copies them all
    return frame.astype({k: v for k, v in dtypes.items() if frame[k].dtype != v})


def _cell(value):
    """A value as a column holds it: numbers and words, anything else written out."""
    if value is None:
        return np.nan
    return value if isinstance(value, numbers.Real | str) else repr(value)
