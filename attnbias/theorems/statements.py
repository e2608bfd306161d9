"""What all checks share: statements before they are measured, hypotheses, what rounding allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..checks import Check, CheckTable
from ..data import Dataset
from ..dynamics.trace import Trace
from ..geometry.svm import SVMSolution
from .hypotheses import Hypothesis, fails
from .rounding import MEASURED
from .run import TraceView

Checks = Iterator[Check]  # what the measuring part of a check yields
_REAL = int | float | np.integer | np.floating
NO_STEP = "no step after the start is recorded"


class Statement(NamedTuple):
    """What a Check says, before anything is measured.

    Attributes
    ----------
    key : str
        The name of its Check within a table.
    statement : str
        What is compared with what.
    source, sense, provenance : str
        As in a Check.
    """

    key: str
    statement: str
    source: str
    sense: str = "<="
    provenance: str = "c"

    def along(
        self, run, values, bounds, keep=None, *, empty="", rounding=0.0, trivial=None, **rest
    ) -> Check:
        """The statement at the recorded steps in `keep`; not applicable, for `empty`, if none is.

        Parameters
        ----------
        run : TraceView
        values : (R,) array
        bounds, rounding : (R,) arrays or floats
        keep : (R,) bool, optional
            By default all.
        empty : str
            Why there may be no step to look at.
        trivial : float, optional
            What every value satisfies: the check is vacuous unless some bound is better.
        """
        keep = np.ones(len(run.step), dtype=bool) if keep is None else keep
        if not keep.any():
            return self.refused(empty)
        bounds = np.broadcast_to(bounds, keep.shape)[keep]
        rounding = np.broadcast_to(rounding, keep.shape)[keep]
        if trivial is not None:
            better = bounds < trivial if self.sense == "<=" else bounds > trivial
            rest["vacuous"] = not better.any()
        rest |= {"step": run.step[keep], "values": values[keep], "bounds": bounds}
        return Check.along(rounding=rounding, **self._asdict(), **rest)

    def later(self, run, values, bounds, share: float = MEASURED, **rest) -> Check:
        """The statement at the recorded steps after the start, measured to a share of the bound."""
        rest = {"rounding": share * np.abs(bounds), "empty": NO_STEP} | rest
        return self.along(run, values, bounds, run.step > 0, **rest)

    def where(self, run, values, bounds, keep=True, *, never: str, empty="", rounding=0.0) -> Check:
        """The statement where `values` are finite; vacuous, saying `never`, if they never are."""
        some = np.isfinite(values) & keep
        if some.any():
            return self.along(run, values, bounds, some, rounding=rounding)
        keep = np.broadcast_to(keep, some.shape)
        return self.along(run, values, bounds, keep, empty=empty, vacuous=True, reason=never)

    def once(self, value, bound, *, rounding=0.0, **rest) -> Check:
        """The statement about data or a start alone: a single value beside its bound."""
        value, bound, rounding = float(value), float(bound), float(rounding)
        return Check(value=value, bound=bound, rounding=rounding, **self._asdict(), **rest)

    def refused(self, reason: str) -> Check:
        """The statement where a hypothesis fails."""
        return Check.not_applicable(reason=reason, **self._asdict())


def at_least(key: str, statement: str, source: str) -> Statement:
    """A statement of sense ">="."""
    return Statement(key, statement, source, ">=")


def refused(statements, reason: str) -> CheckTable:
    """All of the statements, none of them applicable."""
    return CheckTable(statement.refused(reason) for statement in statements)


def table(reason: str, statements, rows: Callable[..., Iterable[Check]], *given) -> CheckTable:
    """The rows that `rows(*given)` measures; where a hypothesis fails, why none is measured."""
    if reason:
        return refused(statements, reason)
    with np.errstate(all="ignore"):  # NaN never holds, so that numpy need not warn of it
        return CheckTable(rows(*given))


class RunCheck(Protocol):
    """What checks of a run look like to their callers."""

    def __call__(
        self, data: Dataset, trace: Trace, *, svm: SVMSolution | None = None
    ) -> CheckTable: ...


def run_check(
    *statements: Statement, given: Iterable[Hypothesis], view: type[TraceView] = TraceView
) -> Callable[[Callable[[Any], Iterable[Check]]], RunCheck]:
    """Make a check of data and trace from what it measures of a `TraceView`.

    Parameters
    ----------
    *statements : Statement
        Those that are measured, in order.
    given : tuple
        The hypotheses, in the order in which `fails` asks for them.
    view : type
        What is measured: a TraceView, or a kind of it.
    """

    def complete(measure: Callable[[Any], Iterable[Check]]) -> RunCheck:
        def check(data: Dataset, trace: Trace, *, svm: SVMSolution | None = None) -> CheckTable:
            run = view(data, trace, svm)
            return table(fails(run, *given), statements, measure, run)

        return named_like(measure, check)

    return complete


def named_like(measure: Callable, check: Callable) -> Callable:
    """The check under the name, module and docstring of what it measures, but its own signature."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(check, name, getattr(measure, name))
    return check


def made_by(data, maker: str, *names: str) -> bool:
    """Whether the data are of this maker, with the positive numbers `names` in their meta."""
    made = [data.meta.get(name) for name in names]
    return data.meta.get("maker") == maker and all(isinstance(x, _REAL) and x > 0 for x in made)
