"""What the benchmarks measured: rows beside their targets, on the terminal and in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attnbias._files import read_text, write_text
from attnbias._records import provenance
from attnbias.errors import FileFormatError

KIND, FORMAT = "bench", 1
NUMBER, WORD = (int, float), (str,)


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes
    ----------
    name : str
    value : float
    target : float, optional
        None for a figure that stands beside others.
    at_least : bool
        Whether the target is a least value, not a greatest.
    unit : str
    facts : dict
        Sizes, and what else the figure was made of.
    """

    name: str
    value: float
    target: float | None = None
    at_least: bool = False
    unit: str = ""
    facts: dict = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def margin(self) -> float:
        """How many times better than its target a figure is; below 1 it is missed.

        >>> Row("a", 2.0, 4.0).margin
        2.0
        """
        least, value = (self.target, self.value) if self.at_least else (self.value, self.target)
        return math.inf if least == 0 else value / least

    def __str__(self) -> str:
        line = f"{self.name:58s} {self.value:10.4g}{self.unit}"
        if self.target is not None:
            sign, verdict = ">=" if self.at_least else "<=", "met" if self.met else "NOT MET"
            line += f"  target {sign} {self.target:g}{self.unit}  {verdict}"
        parts = [f"{name} {_short(value)}" for name, value in self.facts.items()]
        return line + ("  " + ", ".join(parts) if parts else "")


def _short(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_group(path, group: str, rows: Iterable[Row]) -> Path:
    """Put the rows of one group into the file, with their provenance, beside the other groups."""
    groups = read(path) if Path(path).exists() else {}
    listed = [{"group": group, **asdict(row)} for row in rows]
    groups[group] = {"provenance": provenance(), "rows": listed}
    whole = {"kind": KIND, "format": FORMAT, "groups": groups}
    _require(path, whole)
    return write_text(path, json.dumps(whole, indent=1, allow_nan=False) + "\n")


def read(path) -> dict[str, dict]:
    """The groups of a file, {name: {provenance, rows}}.

    Raises
    ------
    MissingFileError, FileAccessError, FileFormatError
    """
    try:
        whole = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise _refused(path, str(error)) from None
    _require(path, whole)
    return whole["groups"]


def all_rows(path) -> list[dict]:
    """The rows of all groups of a file, in its order."""
    return [row for group in read(path).values() for row in group["rows"]]


def _require(path, whole) -> None:
    """Refuse what is no file of benchmarks."""
    if not isinstance(whole, dict) or (whole.get("kind"), whole.get("format")) != (KIND, FORMAT):
        raise _refused(path, "another kind or format")
    groups = whole.get("groups")
    if not isinstance(groups, dict):
        raise _refused(path, "no groups")
    for name, group in groups.items():
        known = isinstance(group, dict) and isinstance(group.get("provenance"), dict)
        if not known or not isinstance(group.get("rows"), list):
            raise _refused(path, f"group {name!r} without provenance or rows")
        for row in group["rows"]:
            if not _is_row(row, name):
                raise _refused(path, f"a row of group {name!r}: {str(row)[:100]}")


def _is_row(row, group: str) -> bool:
    kinds = {
        "group": WORD,
        "name": WORD,
        "value": NUMBER,
        "target": (*NUMBER, type(None)),
        "at_least": (bool,),
        "unit": WORD,
        "facts": (dict,),
    }
    if not isinstance(row, dict) or set(row) != set(kinds) or row["group"] != group:
        return False
    if not all(type(row[key]) in allowed for key, allowed in kinds.items()):
        return False
    return all(math.isfinite(row[key]) for key in ("value", "target") if row[key] is not None)


def _refused(path, got: str) -> FileFormatError:
    return FileFormatError(
        str(path),
        expected=f"a file of benchmarks, format {FORMAT}, of finite numbers",
        got=got,
        remedy="write it anew with python -m benchmarks --write",
    )
