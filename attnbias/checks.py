"""A statement held against a measurement, and a table of such."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from ._validate import as_numbers, require_choice, require_flag, require_type, short
from .errors import DtypeError, RangeError, ShapeError

if TYPE_CHECKING:
    import pandas

__all__ = ["Check", "CheckTable"]

PROVENANCE = {
    "a": "fixed by the paper's text",
    "b": "recalled, not verifiable from the text",
    "c": "derived and proved here",
    "d": "a choice made where the text leaves freedom",
}


@dataclass(frozen=True)
class Check:
    """One measured value beside its bound.

    Parameters
    ----------
    statement : str
        What is claimed, in words.
    value, bound : float
        The measured side and the claimed side.
    sense : {"<=", ">="}
        How value should stand to bound.
    source : str
        The statement's number in the paper, or where ours is proved.
    provenance : {"a", "b", "c", "d"}
    applicable : bool
        False when a hypothesis fails; such a check never holds.
    reason : str
        Why it is not applicable, or a remark.
    rounding : float
        Absolute allowance for the rounding of the measurement, >= 0.
    vacuous : bool
        True where the bound says nothing at this size; `reason` says where it begins to.
    key : str
        Its name within a table, which stays when the sentence is put differently.

    Attributes
    ----------
    step, values, bounds : (R,) arrays or None
        The two sides at every recorded step, of a check made with `along`.

    Examples
    --------
    >>> check = Check("longest step", 0.1, 0.2, source="Theorem 6")
    >>> check.holds, check.slack
    (True, 0.5)
    >>> print(check)
    holds: longest step: 0.1 <= 0.2 (slack 0.5) [Theorem 6]
    """

    statement: str
    value: float
    bound: float
    sense: str = "<="
    source: str = ""
    provenance: str = "c"
    applicable: bool = True
    reason: str = ""
    rounding: float = 0.0
    vacuous: bool = False
    key: str = field(default="", kw_only=True)
    step: np.ndarray | None = field(default=None, repr=False, compare=False)
    values: np.ndarray | None = field(default=None, repr=False, compare=False)
    bounds: np.ndarray | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_choice("sense", self.sense, ("<=", ">="))
        require_choice("provenance", self.provenance, tuple(PROVENANCE))
        for name in ("statement", "source", "reason", "key"):
            require_type(name, getattr(self, name), str, "a text", "pass a str")
        for name in ("applicable", "vacuous"):
            require_flag(name, getattr(self, name))
        for name in ("value", "bound", "rounding"):
            given, real = getattr(self, name), float | int | np.floating | np.integer
            require_type(name, given, real, "a real number (NaN never holds)", "pass a float")
            as_numbers(name, given)  # nor a difference of times, nor more than float64 holds
        series = (self.step, self.values, self.bounds)
        if any(each is not None for each in series):
            shapes = [getattr(each, "shape", None) for each in series]
            if shapes[0] is None or len(shapes[0]) != 1 or len(set(shapes)) > 1:
                raise ShapeError(
                    "step",
                    expected="step, values and bounds as three (R,) arrays, or none",
                    got=f"shapes {', '.join(map(str, shapes))}",
                    remedy="use Check.along",
                )

    @classmethod
    def along(
        cls,
        statement: str,
        step: ArrayLike,
        values: ArrayLike,
        bounds: ArrayLike,
        sense: str = "<=",
        *,
        rounding: ArrayLike = 0.0,
        source: str = "",
        provenance: str = "c",
        applicable: bool = True,
        reason: str = "",
        vacuous: bool = False,
        key: str = "",
    ) -> Check:
        """The two sides at every recorded step; value and bound are those with least room.

        Parameters
        ----------
        statement, sense
            As in a Check.
        step, values : (R,) arrays
        bounds : (R,) array or float
        rounding : (R,) array or float
            Allowance at each step.
        source, provenance, applicable, reason, vacuous, key
            As in a Check.

        Raises
        ------
        ShapeError
            Without a step, or with arrays of different lengths.
        DtypeError, RangeError
        """
        require_choice("sense", sense, ("<=", ">="))
        step = np.atleast_1d(as_numbers("step", step))
        values = np.atleast_1d(as_numbers("values", values, dtype=float))
        if step.size == 0 or step.ndim != 1 or step.shape != values.shape:
            raise ShapeError(
                "values",
                expected="one value a step, and at least one step",
                got=f"{values.shape} values at {step.shape} steps",
                remedy="record the steps that the check needs",
            )
        bounds = as_numbers("bounds", bounds, values.shape, float).copy()
        allowance = as_numbers("rounding", rounding, values.shape, float)
        with np.errstate(invalid="ignore"):
            room = bounds - values if sense == "<=" else values - bounds
            room = np.where(values == bounds, 0.0, room) + allowance
        worst = _least_room(room, values, bounds)
        return cls(
            statement,
            float(values[worst]),
            float(bounds[worst]),
            sense,
            source,
            provenance,
            applicable,
            reason,
            float(allowance[worst]),
            vacuous,
            step,
            values,
            bounds,
            key=key,
        )

    @classmethod
    def not_applicable(
        cls,
        statement: str,
        reason: str,
        *,
        source: str,
        provenance: str = "c",
        sense: str = "<=",
        key: str = "",
    ) -> Check:
        """A check whose hypotheses fail, and why; it never holds."""
        return cls(
            statement,
            math.nan,
            math.nan,
            sense,
            source,
            provenance,
            applicable=False,
            reason=reason,
            key=key,
        )

    @property
    def holds(self) -> bool:
        """True only if applicable and the inequality is satisfied (NaN never is)."""
        if self.sense == "<=":
            return self.applicable and self.value <= self.bound + self.rounding
        return self.applicable and self.value >= self.bound - self.rounding

    @property
    def slack(self) -> float:
        """Relative room: 1 - value/bound for "<=", 1 - bound/value for ">="; negative if violated.

        With a non-positive side it is 0 at equality and otherwise plus or minus infinity.
        """
        return _slack(self.value, self.bound, self.sense)

    @property
    def verdict(self) -> str:
        """'holds', 'holds, vacuous', 'fails' or 'not applicable'."""
        if not self.holds:
            return "fails" if self.applicable else "not applicable"
        return "holds, vacuous" if self.vacuous else "holds"

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame of step, value, bound and slack, for a check made with `along`.

        Raises
        ------
        ShapeError
            For a check of a single value.
        """
        import pandas

        if self.step is None or self.values is None or self.bounds is None:
            raise ShapeError(
                "check",
                expected="a check with a value at every recorded step",
                got=f"one of a single value: {self.statement}",
                remedy="read .value and .bound",
            )
        pairs = zip(self.values, self.bounds, strict=True)
        slack = [_slack(value, bound, self.sense) for value, bound in pairs]
        columns = {"step": self.step, "value": self.values, "bound": self.bounds, "slack": slack}
        return pandas.DataFrame(columns)

    def __str__(self) -> str:
        text = f"{self.verdict}: {self.statement}: {self.value:.4g} {self.sense} {self.bound:.4g}"
        text += f" (slack {self.slack:.3g})" if self.applicable else ""
        text += f"; {self.reason}" if self.reason else ""
        return text + (f" [{self.source}]" if self.source else "")


def _least_room(room: np.ndarray, values: np.ndarray, bounds: np.ndarray) -> int:
    """The step to report: a NaN, else the worst violation, else the least relative room."""
    if not room.min() >= 0:
        return int(room.argmin())  # that of the first NaN, where there is one
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = room / np.maximum(np.abs(values), np.abs(bounds))
    return int(np.nan_to_num(relative, nan=0.0, posinf=np.inf).argmin())


def _entries(checks) -> tuple:
    try:
        each = iter(checks)
    except (TypeError, RuntimeError):  # nothing to iterate over; a sparse tensor
        return (checks,)
    return tuple(each)


def _slack(value: float, bound: float, sense: str) -> float:
    small, large = (value, bound) if sense == "<=" else (bound, value)
    if math.isnan(small) or math.isnan(large):
        return math.nan
    if small == large:
        return 0.0
    if large <= 0 or small < 0:
        return math.copysign(math.inf, large - small)
    return 1 - small / large


def _cells(check: Check) -> tuple[str, ...]:
    value, bound = (
        "" if math.isnan(side) and not check.applicable else f"{side:.4g}"
        for side in (check.value, check.bound)
    )
    slack = f"{check.slack:.3g}" if math.isfinite(check.slack) else ""
    verdict = check.verdict + (f" ({check.reason})" if check.reason else "")
    source = f"{check.source} [{check.provenance}]"
    return check.statement, value, check.sense, bound, slack, verdict, source


class CheckTable(tuple[Check, ...]):
    """Checks that print as a table, in a terminal and in a notebook.

    Parameters
    ----------
    checks : iterable of Check

    Raises
    ------
    DtypeError
        For an entry that is no Check.
    RangeError
        When asked for a key that no check has, or several have.

    Examples
    --------
    >>> longest = Check("longest step", 0.1, 0.2, key="step")
    >>> table = CheckTable([longest, Check("least gap", 0.5, 1.0, ">=", key="gap")])
    >>> table.all_hold, table["gap"].holds
    (False, False)
    >>> table.to_dataframe()["verdict"].tolist()
    ['holds', 'fails']
    """

    __slots__ = ()
    _HEAD = ("statement", "value", "", "bound", "slack", "verdict", "source")
    COLUMNS = (
        "statement",
        "value",
        "sense",
        "bound",
        "slack",
        "verdict",
        "reason",
        "source",
        "provenance",
        "key",
    )

    def __new__(cls, checks: Iterable[Check] = ()) -> CheckTable:
        entries = _entries(checks)
        for entry in entries:
            if isinstance(checks, Check) or not isinstance(entry, Check):
                raise DtypeError(
                    "checks",
                    expected="Checks, in a list or another iterable",
                    got=short(entry),
                    remedy="build each with Check(statement, value, bound)",
                )
        return super().__new__(cls, entries)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Check: ...

    @overload
    def __getitem__(self, index: str) -> Check: ...

    @overload
    def __getitem__(self, index: slice) -> CheckTable: ...

    def __getitem__(self, index: SupportsIndex | str | slice) -> Check | CheckTable:
        """A check by its place or its key, or for a slice the table of some."""
        if isinstance(index, slice):
            return CheckTable(super().__getitem__(index))
        if not isinstance(index, str):
            return super().__getitem__(index)
        found = [check for check in self if check.key == index]
        if not index or len(found) != 1:
            counts = Counter(check.key for check in self if check.key)
            keys = [key for key, count in counts.items() if count == 1]
            raise RangeError(
                "key",
                expected="the key of one check: " + (", ".join(keys) or "none has one"),
                got=f"{index!r}, which {len(found) if index else 'no'} checks have",
                remedy="take one of these, or a check by its place",
            )
        return found[0]

    def __add__(self, other: Iterable[Check]) -> CheckTable:  # type: ignore[override]
        """Both tables as one."""
        return CheckTable([*self, *other])

    @property
    def all_hold(self) -> bool:
        """True if every check applies and holds."""
        return all(check.holds for check in self)

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame with one row a check: its sides, slack and verdict."""
        import pandas

        rows = [[getattr(check, name) for name in self.COLUMNS] for check in self]
        return pandas.DataFrame(rows, columns=self.COLUMNS)

    def __repr__(self) -> str:
        table = [self._HEAD, *map(_cells, self)]
        widths = [max(len(row[j]) for row in table) for j in range(len(self._HEAD))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in map(_cells, self))
        return (
            '<table class="attnbias-checks"><thead>'
            + row(self._HEAD, "th")
            + f"</thead><tbody>{body}</tbody></table>"
        )
