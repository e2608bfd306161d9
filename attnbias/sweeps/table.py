"""The tidy table: one row a recorded iteration of a run, the same columns in every part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..dynamics.trace import SERIES, Trace
from ..errors import printable
from .grid import Grid
from .models import Point
from .settings import RULE, Training

if TYPE_CHECKING:
    import pandas

FACTS = ("rows", "margin", "support", "least_slack", "least_dual", "duality_gap")
OUTCOME = {"status": "str", "error": "str", "selected_optimal": "float64"}
SETTINGS = {
    "rule": "str",
    "rule_name": "str",
    "eta": "float64",
    "momentum": "float64",
    "max_step": "float64",
    "loss_name": "str",
    "W0_norm": "float64",
    "start": "str",
    "train_u": "bool",
}
RECORDED = ("step", *SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score")
NOTHING = {"step": np.zeros(1, np.int64)} | dict.fromkeys(RECORDED[1:], np.full(1, np.nan))
RESERVED = {"run", "point", "model", *OUTCOME, *SETTINGS, *FACTS, *RECORDED}
LONGEST_ERROR = 1000  # characters of it that the table keeps


class Results(NamedTuple):
    """Of all settings on one data set.

    Attributes
    ----------
    facts : dict
        What the tokens decide: N', the SVM's margin, its support and its least slack.
    outcomes : list of dict
        One a setting, as `recorded` gives it. An error of the data or of the SVM is that of
        every run.
    marks : dict
        What the data set and the code are known by.
    """

    facts: dict
    outcomes: list[dict]
    marks: dict


def columns(grid: Grid) -> dict[str, str]:
    """Name and dtype of every column."""
    before = {"run": "int64", "point": "int64", "model": "str"}
    own = _own_columns([arguments(point) for point in grid.points])
    settings = SETTINGS | _own_columns(grid.training.columns()) | SETTINGS
    after = {**OUTCOME, **dict.fromkeys(FACTS, "float64"), "step": "int64"}
    return before | own | settings | after | dict.fromkeys(RECORDED[1:], "float64")


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
        f"data_{name}" if name in RESERVED or name.startswith(RULE) else name: cell
        for name, cell in point.cells.items()
    }


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
    training: Training, number: int, point: Point, found: Results, dtypes: dict[str, str]
) -> pandas.DataFrame:
    """The rows of all runs on one data set."""
    import pandas

    outcomes, counts = found.outcomes, [len(outcome["step"]) for outcome in found.outcomes]
    constants = {"point": number, "model": point.model, **arguments(point), **found.facts}
    runs = range(number * len(outcomes), (number + 1) * len(outcomes))
    each = pandas.DataFrame(
        [
            {"run": run, **columns, **{name: outcome[name] for name in OUTCOME}}
            for run, columns, outcome in zip(runs, training.columns(), outcomes, strict=True)
        ]
    )
    made = {name: np.concatenate([outcome[name] for outcome in outcomes]) for name in RECORDED}
    frame = each.loc[each.index.repeat(counts)].reset_index(drop=True).assign(**constants, **made)
    frame = frame.reindex(columns=list(dtypes))
    # asked column by column: a conversion of all copies them all
    return frame.astype({k: v for k, v in dtypes.items() if frame[k].dtype != v})
