"""What statements ask of a run: functions that say '' or, in words, why a run has it not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..geometry.assumptions import assumption1_table
from ..geometry.constants import Constants
from .rounding import MEASURED, NO_OFFSET, SHORTEST_PATH, SMALLEST_SOFTMAX
from .run import TraceView

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
