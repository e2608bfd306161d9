"""What all checks share: statements before they are measured, and what they ask of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..checks import Check, CheckTable
from ..data import Dataset
from ..dynamics.trace import Trace
from ..geometry.assumptions import assumption1_table
from ..geometry.constants import Constants
from ..geometry.svm import SVMSolution
from .run import MEASURED, NO_OFFSET, SHORTEST_PATH, SMALLEST_SOFTMAX, TraceView

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


# What statements ask of a run: functions that say '' or, in words, why a run has it not.

Hypothesis = Callable[[Any], str]  # of a TraceView, or of a kind of it


def fails(run: TraceView, *given: Hypothesis) -> str:
    """The first of these hypotheses that fails, in words; empty if all hold.

    That norms are known is asked of every run, and first.
    """
    return next(filter(None, (each(run) for each in (needs_norms, *given))), "")


def needs_norms(run: TraceView) -> str:
    """Every recorded |W| is finite, and zero only where no step has moved W away from zero."""
    path, norm, gaps = run.path, run.W_norm, np.abs(run.gaps)
    # gaps over the rounding of steps that cancel, or a path so short that they underflow too
    lost = (gaps > NO_OFFSET * gaps.max(initial=0.0)).any(axis=1) | (path < SHORTEST_PATH)
    lost &= (norm == 0) & (path > 0)
    lost |= ~np.isfinite(norm) & np.isfinite(path)
    if not lost.any():
        return ""
    at = int(lost.argmax())
    words = f"|W| is recorded as {norm[at]:g} at t = {run.step[at]}, where the path is"
    return f"{words} {path[at]:.3g} long: such a norm is not known"


def needs_exponential(run: TraceView) -> str:
    """The exponential loss."""
    name = run.trace.meta["loss"]
    return "" if name == "exponential" else f"exponential loss needed, not {name}"


def needs_assumption2(run: TraceView) -> str:
    """Assumption 2, at every record."""
    return "" if run.assumption2 else "Assumption 2 fails: non-optimal scores differ"


def needs_fixed_decoder(run: TraceView) -> str:
    """W alone was trained."""
    return "for a fixed decoder" if run.joint else ""


def needs_joint(run: TraceView) -> str:
    """u was trained too."""
    return "" if run.joint else "for joint training of W and u"


def needs_plain_steps(run: TraceView) -> str:
    """Steps along the gradient, without momentum."""
    if run.rule["gap_power"] is None:
        return f"for steps along the gradient, not {run.kind}"
    return "for a rule without momentum" if run.rule["momentum"] else ""


def _needs_kind(run: TraceView, kind: str) -> str:
    return needs_plain_steps(run) if run.kind == kind else f"for {kind}, not {run.kind}"


def needs_gd(run: TraceView) -> str:
    """Plain steps of GD."""
    return _needs_kind(run, "GD")


def needs_ngd(run: TraceView) -> str:
    """Plain steps of NGD."""
    return _needs_kind(run, "NGD")


def needs_polyak(run: TraceView) -> str:
    """Plain Polyak steps."""
    return _needs_kind(run, "Polyak")


def needs_start(run: TraceView) -> str:
    """Step 0 is recorded."""
    return "" if run.step[0] == 0 else "step 0 is not recorded"


def needs_zero_start(run: TraceView) -> str:
    """Step 0 is recorded, and W and a trained u are zero there."""
    missing = needs_start(run)
    if not missing and (run.W_norm[0] or (run.joint and run.trace.u_norm[0])):
        return "u_0 = 0 and W_0 = 0 needed" if run.joint else "W_0 = 0 needed"
    return missing


def needs_alignment(run: TraceView) -> str:
    """The run was made with W_mm, so that |P_t| is known."""
    if np.isfinite(run.error[run.W_norm > 0]).all():
        return ""
    return "1 - cosine was not recorded: train with the W-SVM's solution"


def needs_full_steps(run: TraceView) -> str:
    """Every step was of NGD's full length: no cap on the step size bound."""
    path = run.step_size * run.step
    if np.allclose(run.path, path, rtol=MEASURED, atol=0.0):
        return ""
    return "not every step has the length step_size: the cap on the step size bound"


def needs_softmax(run: TraceView) -> str:
    """phi, by default the smallest softmax score of the run, bounds all of them from below."""
    least, words = float(run.trace.least_opt_score[-1]), "an optimal token's softmax score"
    if not least > SMALLEST_SOFTMAX:
        return f"{words} falls below {SMALLEST_SOFTMAX:g}"
    if run.phi is not None and not least >= run.phi:
        return f"{words} falls to {least:.3g}, under phi = {run.phi:.3g}"
    return ""


# What Eq. 14 in the form of Assumption 2 asks for, Lemma 5, and M1.
GRADIENT = (needs_fixed_decoder, needs_exponential, needs_assumption2)
NGD_RUN = (*GRADIENT, needs_ngd, needs_start, needs_full_steps)
M1 = (*GRADIENT, needs_plain_steps, needs_start, needs_alignment, needs_softmax)


def assumption1_fails(constants: Constants) -> str:
    """'' or the inequality of Assumption 1 that fails."""
    for check in assumption1_table(constants, exact=True):
        if not check.holds:
            sides = f"{check.value:.3g}, above {check.bound:.3g}"
            return f"Assumption 1 fails: {check.statement} = {sides}"
    return ""
