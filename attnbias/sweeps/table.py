"""The tidy table: one row a recorded iteration of a run, the same columns in every part."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.trace import SERIES, Trace
from ..errors import printable
from .axes import plain
from .grid import Grid
from .models import Point
from .settings import Setting, Training

if TYPE_CHECKING:
    import pandas

FACTS = ("rows", "margin", "support", "least_slack", "least_dual", "duality_gap")
OUTCOME = {"status": "str", "error": "str", "selected_optimal": "float64"}
SETTINGS = {
    "rule": "str", "rule_name": "str", "eta": "float64", "momentum": "float64",
    "max_step": "float64", "loss_name": "str", "W0_norm": "float64", "start": "str",
    "train_u": "bool",
}  # fmt: skip
RECORDED = ("step", *SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score")
NOTHING = {"step": np.zeros(1, np.int64)} | dict.fromkeys(RECORDED[1:], np.full(1, np.nan))
RESERVED = {"run", "point", "model", *OUTCOME, *SETTINGS, *FACTS, *RECORDED}
RULE = "rule_"  # before the arguments of a rule of one's own
LONGEST_ERROR = 1000  # characters of it that the table keeps


def columns(grid: Grid) -> dict[str, str]:
    """Name and dtype of every column."""
    before = {"run": "int64", "point": "int64", "model": "str"}
    own = _own_columns([arguments(point) for point in grid.points])
    rules = _own_columns([rule_arguments(setting) for setting in grid.training.settings])
    after = {**OUTCOME, **dict.fromkeys(FACTS, "float64"), "step": "int64"}
    return before | own | SETTINGS | rules | after | dict.fromkeys(RECORDED[1:], "float64")


def _own_columns(rows: list[dict]) -> dict[str, str]:
    """Names and dtypes of arguments."""
    import pandas

    # one of numbers and missing ones is float64; of other mixtures each is written out
    return {
        name: str(values.dtype) if values.dtype.kind in "bif" and values.notna().any() else "str"
        for name, values in pandas.DataFrame(rows).items()
    }


def arguments(point: Point) -> dict:
    """Columns of a data set's arguments; one named like another column takes data_ before it."""
    return {
        f"data_{k}" if k in RESERVED or k.startswith(RULE) else k: _cell(v)
        for k, v in point.arguments
    }


def rule_arguments(setting: Setting) -> dict:
    """Columns of what a function of one's own made the rule of."""
    return {RULE + k: _cell(v) for k, v in setting.arguments}


def recorded(trace: Trace, selected_optimal: int) -> dict:
    """What the table keeps of a run; one that recorded nothing has a row of step 0 all the same."""
    series = {name: getattr(trace, name) for name in RECORDED} if len(trace.step) else NOTHING
    return {"status": trace.status, "error": "", "selected_optimal": selected_optimal, **series}


def failed(error: BaseException) -> dict:
    """What the table keeps of a run that could not start, or that own code has ended."""
    try:
        reason = str(error)
    except Exception:  # a message of its own that fails
        reason = "without a message"
    reason = printable(f"{type(error).__name__}: {reason}")[:LONGEST_ERROR]
    return {"status": "failed", "error": reason, "selected_optimal": np.nan, **NOTHING}


def part(
    training: Training, number: int, point: Point, facts: dict, outcomes: list[dict], dtypes
) -> pandas.DataFrame:
    """The rows of all runs on one data set."""
    import pandas

    counts = [len(outcome["step"]) for outcome in outcomes]
    constants = {"point": number, "model": point.model, **arguments(point), **facts}
    runs = range(number * len(outcomes), (number + 1) * len(outcomes))
    each = pandas.DataFrame([
        {"run": run, **columns, **rule_arguments(setting), **{k: outcome[k] for k in OUTCOME}}
        for run, columns, setting, outcome in zip(
            runs, training.columns(), training.settings, outcomes, strict=True
        )
    ])  # fmt: skip
    made = {name: np.concatenate([outcome[name] for outcome in outcomes]) for name in RECORDED}
    frame = each.loc[each.index.repeat(counts)].reset_index(drop=True).assign(**constants, **made)
    frame = frame.reindex(columns=list(dtypes))
    # asked column by column: a conversion of all copies them all
    return frame.astype({k: v for k, v in dtypes.items() if frame[k].dtype != v})


def _cell(value):
    """A value as a column holds it: numbers and words, anything else written out.

    NaN and None are as well: a cell that is empty is that of a model without this argument.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, numbers.Real):
        return value if value == value else "nan"
    return value if isinstance(value, str) else repr(plain(value))
