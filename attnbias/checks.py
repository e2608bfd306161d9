"""A statement held against a measurement, and a table of such."""

from __future__ import annotations

import html
import math
import numbers
from dataclasses import dataclass

from ._validate import require_choice, short
from .errors import DtypeError

PROVENANCE = {
    "a": "forced by the paper's surviving text",
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
    """

    statement: str
    value: float
    bound: float
    sense: str = "<="
    source: str = ""
    provenance: str = "c"
    applicable: bool = True
    reason: str = ""

    def __post_init__(self) -> None:
        require_choice("sense", self.sense, ("<=", ">="))
        require_choice("provenance", self.provenance, tuple(PROVENANCE))
        for name in ("value", "bound"):
            if not isinstance(getattr(self, name), numbers.Real):
                raise DtypeError(
                    name,
                    expected="a real number (NaN never holds)",
                    got=short(getattr(self, name)),
                    remedy="pass a float",
                )

    @property
    def holds(self) -> bool:
        """True only if applicable and the inequality is satisfied (NaN never is)."""
        if not self.applicable:
            return False
        return self.value <= self.bound if self.sense == "<=" else self.value >= self.bound

    @property
    def slack(self) -> float:
        """Relative room: 1 - value/bound for "<=", 1 - bound/value for ">="; negative if violated.

        With a non-positive side it is 0 at equality and otherwise plus or minus infinity.
        """
        small, large = (self.value, self.bound) if self.sense == "<=" else (self.bound, self.value)
        if math.isnan(small) or math.isnan(large):
            return math.nan
        if small == large:
            return 0.0
        if large <= 0 or small < 0:
            return math.copysign(math.inf, large - small)
        return 1 - small / large

    @property
    def verdict(self) -> str:
        """'holds', 'fails' or 'not applicable'."""
        if not self.applicable:
            return "not applicable"
        return "holds" if self.holds else "fails"

    def __str__(self) -> str:
        text = f"{self.verdict}: {self.statement}: {self.value:.4g} {self.sense} {self.bound:.4g}"
        text += f" (slack {self.slack:.3g})" if self.applicable else ""
        text += f"; {self.reason}" if self.reason else ""
        return text + (f" [{self.source}]" if self.source else "")


class CheckTable(tuple):
    """Checks that print as a table, in a terminal and in a notebook.

    Parameters
    ----------
    checks : iterable of Check

    Raises
    ------
    DtypeError
        For an entry that is no Check.
    """

    __slots__ = ()
    HEAD = ("statement", "value", "", "bound", "slack", "verdict", "source")

    def __new__(cls, checks=()):
        try:
            iterator = iter(checks)
        except TypeError:
            raise _no_check(checks) from None
        entries = tuple(iterator)
        for entry in entries:
            if not isinstance(entry, Check):
                raise _no_check(entry)
        return super().__new__(cls, entries)

    @property
    def all_hold(self) -> bool:
        """True if every check applies and holds."""
        return all(check.holds for check in self)

    def rows(self) -> list[tuple[str, ...]]:
        """Cells as text, one tuple a check."""
        return [
            (
                check.statement,
                f"{check.value:.4g}",
                check.sense,
                f"{check.bound:.4g}",
                f"{check.slack:.3g}" if check.applicable else "",
                check.verdict + (f" ({check.reason})" if check.reason else ""),
                f"{check.source} [{check.provenance}]",
            )
            for check in self
        ]

    def __repr__(self) -> str:
        table = [self.HEAD, *self.rows()]
        widths = [max(len(row[j]) for row in table) for j in range(len(self.HEAD))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows())
        return (
            '<table class="attnbias-checks"><thead>'
            + row(self.HEAD, "th")
            + f"</thead><tbody>{body}</tbody></table>"
        )


def _no_check(value) -> DtypeError:
    return DtypeError(
        "checks",
        expected="Checks, in a list or another iterable",
        got=short(value),
        remedy="build each with Check(statement, value, bound)",
    )
