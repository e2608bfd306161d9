"""A table of attention heads against W_mm, with heads at a random start beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._validate import require_choice, require_flag
from ...experiments.forms import AS_IT_IS, Codec
from ...experiments.result import ExperimentResult, require_result

COLUMNS = (
    "layer",
    "head",
    "favourite",
    "share",
    "attention",
    "cosine",
    "cosine_span",
    "dimension",
    "margin",
    "query",
    "first",
)
DIGITS = 6


def column(result: ExperimentResult, name: str, random: bool = False) -> np.ndarray:
    """One column of a result of "heads", of its heads or of the random ones.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias.beyond.heads.experiments import run
    >>> column(run(model="tiny", sentences=4, random=1), "layer").tolist()
    [0, 0, 1, 1]
    """
    require_choice("name", name, COLUMNS)
    require_result(result, "rows", 'run or load the experiment "heads"')
    rows = result.random if require_flag("random", random) else result.rows
    return np.array([row[name] for row in rows])


def _packed(rows: Sequence[dict]) -> list[list]:
    return [[_short(row[key]) for key in COLUMNS] for row in rows]


def _short(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _unpacked(stored: list[list]) -> tuple[dict, ...]:
    return tuple(dict(zip(COLUMNS, row, strict=True)) for row in stored)


def _same(columns: list[str]) -> tuple[str, ...]:
    if tuple(columns) != COLUMNS:
        raise ValueError(f"columns {columns!r}")
    return COLUMNS


ROWS: Codec = (_packed, _unpacked)
CODECS: dict[str, Codec] = {
    "name": AS_IT_IS,
    "title": AS_IT_IS,
    "settings": AS_IT_IS,
    "provenance": AS_IT_IS,
    "columns": (list, _same),
    "rows": ROWS,
    "random": ROWS,
}


def words(result: ExperimentResult) -> list[str]:
    """Model and sentences, and a line on the heads and on those at a random start."""
    model, count = (result.settings[key] for key in ("model", "sentences"))
    lines = [f"{result.title}: {model}, {count} sentences"]
    for kind, random in (("heads", False), ("random", True)):
        cosine, margin = (column(result, key, random) for key in ("cosine_span", "margin"))
        lines.append(
            f"  {len(cosine)} {kind}: median cosine in the span {np.median(cosine):.3f}, "
            f"median share of the best margin {np.median(margin):.3f}"
        )
    return lines
