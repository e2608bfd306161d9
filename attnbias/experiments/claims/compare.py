"""Comparisons of runs from which the claims on a figure are made, each over the worst seed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..._validate import require_choice
from ...checks import Check, CheckTable
from ...dynamics.rates import fit_rate
from ...dynamics.trace import Trace
from ...errors import RangeError

Runs: TypeAlias = Sequence[Trace]  # one a seed

ALIGNMENT, SOFTMAX = "1 - cosine with W_mm", "1 - softmax at the optimal token"
# panel of a figure: its series, and the sign by which larger is further along
SERIES = {
    "loss gap L - L*": ("log_loss_gap", -1),
    "train loss": ("log_loss", -1),
    "norm of W": ("W_norm", 1),
    "norm of u": ("u_norm", 1),
    SOFTMAX: ("log_nonopt_score", -1),
    ALIGNMENT: ("W_alignment_error", -1),
    "1 - cosine with u_mm": ("u_alignment_error", -1),
}
PANELS = ("loss gap L - L*", "norm of W", SOFTMAX, ALIGNMENT)  # of Fig. 2
JOINT_PANELS = tuple(panel for panel in SERIES if panel != PANELS[0])  # of Fig. 3
FULL, SHORT = 10_000, "the run is too short"  # steps of a figure by default
TIE = 1e-12  # decades: rules that start alike differ by rounding alone, of some 1e-16


def log10(values: ArrayLike) -> np.ndarray:
    """Exponents of ten; -inf for 0 and NaN below, which have no place on a log scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(values)


def log10_of(trace: Trace, name: str) -> np.ndarray:
    """log10 of a series of a trace; exact in the log domain of one that is a logarithm."""
    values = getattr(trace, name)
    return values / math.log(10) if name.startswith("log_") else log10(values)


def at_most(
    key: str, statement: str, values: ArrayLike, bound: float, source="", provenance="d", **fields
) -> Check:
    """That a number, or the largest of one a seed, is at most a bound."""
    value = float(np.max(values))
    return Check(statement, value, bound, "<=", source, provenance, key=key, **fields)


def at_least(
    key: str, statement: str, values: ArrayLike, bound: float, source="", provenance="d", **fields
) -> Check:
    """That a number, or the smallest of one a seed, is at least a bound."""
    value = float(np.min(values))
    return Check(statement, value, bound, ">=", source, provenance, key=key, **fields)


def keyed(checks: Iterable[Check], *keys: str) -> CheckTable:
    """Those of these keys; what is before a slash stands for all panels, rules or corpora.

    Raises
    ------
    RangeError
        For a key that no check has.
    """
    names = [(check, {check.key, check.key.partition("/")[0]}) for check in checks]
    known = {name for _, each in names for name in each}
    for key in keys:
        require_choice("key", key, sorted(known))
    return CheckTable(check for check, each in names if each & {*keys})


def unless_short(check: Check, settings: dict) -> Check:
    """The check; of a run shorter than the figure's own length, which can't refute it, one that
    does not apply where it would fail.
    """
    if check.holds or settings["steps"] >= FULL:
        return check
    reason = f"{SHORT}: {settings['steps']} steps, and this shows in {FULL}"
    return dataclasses.replace(check, applicable=False, reason=reason)


def gaps_of(trace: Trace) -> np.ndarray:
    """(R, rows) logit gaps of a run, which a file of it may lack."""
    if trace.gaps is None:
        raise RangeError(
            "gaps",
            expected="a run with its logit gaps",
            got="none",
            remedy="save the result with weights=True, or run the experiment again",
        )
    return trace.gaps


def lead(ahead: Runs, behind: Runs, panel: str, first: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Steps from `first` on, and by how many decades `ahead` leads there, (seeds, steps)."""
    (name, sign), step = SERIES[panel], ahead[0].step
    inside = step >= first  # a start at W_0 = 0 has no direction and no logarithm
    rows = []
    for a, b in zip(ahead, behind, strict=True):
        x, y = (sign * log10_of(trace, name)[inside] for trace in (a, b))
        rows.append(np.subtract(x, y, out=np.zeros_like(x), where=x != y))  # 0 at one infinity
    return step[inside], np.array(rows)


def ahead_from(step: np.ndarray, decades: np.ndarray) -> str:
    """From which recorded step on every seed leads, in words."""
    behind = np.flatnonzero((decades <= TIE).any(axis=0))
    if behind.size == 0:
        return f"ahead at every recorded step from {step[0]}"
    if behind[-1] == len(step) - 1:
        return "not ahead in every seed at the end"
    return f"ahead in every seed from step {step[behind[-1] + 1]} on"


def check_lead(
    key: str,
    statement: str,
    ahead: Runs,
    behind: Runs,
    panel: str,
    bound: float,
    source="",
    provenance="c",
    *,
    first: int = 1,
    reason: str = "",
) -> Check:
    """How many decades `ahead` leads on a panel at the last step, in the worst seed."""
    step, decades = lead(ahead, behind, panel, first)
    statement, reason = f"{statement}: {panel}, decades", reason or ahead_from(step, decades)
    return at_least(key, statement, decades[:, -1], bound, source, provenance, reason=reason)


def on_panel(name: str, panel: str) -> str:
    """The key of a claim on a panel of a figure."""
    return f"{name}/{SERIES[panel][0]}"


def exponents(
    traces: Runs,
    window: tuple[float, float],
    series: Callable[[Trace], np.ndarray] = lambda trace: trace.W_alignment_error,
) -> np.ndarray:
    """(seeds,) exponents of 1 - cosine, or of another series, on a window."""
    return np.array([fit_rate(trace.step, series(trace), window).exponent for trace in traces])


def span(values: Iterable[float]) -> str:
    """Smallest to largest, in three digits."""
    return f"{min(values):.3g} to {max(values):.3g}"
