"""Comparisons of runs from which the claims on a figure are made, each over the worst seed."""

from __future__ import annotations

import math

import numpy as np

from ..checks import Check
from ..dynamics.rates import fit_rate

# panel of the figure: log10 of its quantity, signed so that larger is further along
PANELS = {
    "loss gap L - L*": lambda trace: -trace.log_loss_gap / math.log(10),
    "norm of W": lambda trace: _log10(trace.W_norm),
    "1 - softmax at the optimal token": lambda trace: -trace.log_nonopt_score / math.log(10),
    "1 - cosine with W_mm": lambda trace: -_log10(trace.W_alignment_error),
}
ALIGNMENT = "1 - cosine with W_mm"
# the panels of Fig. 3, whose loss goes to 0
JOINT_PANELS = {
    "train loss": lambda trace: -trace.log_loss / math.log(10),
    "norm of W": PANELS["norm of W"],
    "norm of u": lambda trace: _log10(trace.u_norm),
    "1 - softmax at the optimal token": PANELS["1 - softmax at the optimal token"],
    "1 - cosine with W_mm": PANELS[ALIGNMENT],
    "1 - cosine with u_mm": lambda trace: -_log10(trace.u_alignment_error),
}
_POSITIONS = PANELS | JOINT_PANELS
TIE = 1e-12  # decades: rules that start alike differ by rounding alone, of some 1e-16


def _log10(values) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log10(values)


def lead(ahead, behind, panel: str, first: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Steps from `first` on, and by how many decades `ahead` leads there, (seeds, steps)."""
    position, step = _POSITIONS[panel], ahead[0].step
    moved = step >= first  # a start at W_0 = 0 has no direction and no logarithm
    pairs = zip(ahead, behind, strict=True)
    rows = [_difference(position(a)[moved], position(b)[moved]) for a, b in pairs]
    return step[moved], np.array(rows)


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b, and 0 where both are the same infinity."""
    return np.subtract(a, b, out=np.zeros_like(a), where=a != b)


def ahead_from(step: np.ndarray, decades: np.ndarray) -> str:
    """From which recorded step on every seed leads, in words."""
    behind = np.flatnonzero((decades <= TIE).any(axis=0))
    if behind.size == 0:
        return f"ahead at every recorded step from {step[0]}"
    if behind[-1] == len(step) - 1:
        return "not ahead in every seed at the end"
    return f"ahead in every seed from step {step[behind[-1] + 1]} on"


def check_lead(statement: str, ahead, behind, panel: str, bound: float, **fields) -> Check:
    """How many decades `ahead` leads on a panel at the last step, in the worst seed."""
    step, decades = lead(ahead, behind, panel, fields.pop("first", 1))
    note = fields.pop("reason", "") or ahead_from(step, decades)
    worst = float(decades[:, -1].min())
    return Check(f"{statement}: {panel}, decades", worst, bound, ">=", reason=note, **fields)


def late_exponents(traces, window) -> np.ndarray:
    """(seeds,) exponents of 1 - cosine on a window."""
    return np.array(
        [fit_rate(trace.step, trace.W_alignment_error, window).exponent for trace in traces]
    )


def theorem1_exponent(trace, window) -> float:
    """Exponent of (log t)^2 / t on the same records: what Theorem 1's form predicts there."""
    step = np.maximum(trace.step, 2)
    return fit_rate(trace.step, np.log(step) ** 2 / step, window).exponent


def span(values) -> str:
    """Smallest to largest, in three digits."""
    return f"{min(values):.3g} to {max(values):.3g}"


def cap_step(trace, max_step: float) -> int | None:
    """First recorded step that the cap decides; None if it never does."""
    bound = np.flatnonzero(trace.log_step_size >= math.log(max_step) - 1e-12)
    return int(trace.step[bound[0]]) if bound.size else None
