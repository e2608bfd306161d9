"""What statements ask of a run, in words, and how far rounding may move what is measured of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._validate import require_choice
from ..dynamics.trace import Trace
from ..geometry.assumptions import assumption1_table

# Exact runs agree with multiprecision to 1e-9 relative; what is measured is known no better.
MEASURED = 1e-9
EPS = float(np.finfo(float).eps)
# What rounding leaves of |P_t| / |W_t| where W_t is along W_mm, and of 1 - cosine.
NO_OFFSET = 1e-12
FLOOR = NO_OFFSET**2
# Softmax scores under this one are not recorded as numbers that bounds could use.
SMALLEST_SOFTMAX = 1e-300
# A path under this one may leave |W| and all gaps recorded as zero.
SHORTEST_PATH = 1e-140
# Powers of L - L* and of |grad L| in a rule's step size.
KINDS = {(0.0, 0.0): "GD", (0.0, -1.0): "NGD", (1.0, -2.0): "Polyak"}
# What Eq. 14 in the form of Assumption 2 asks for, Lemma 5, and M1.
GRADIENT = ("fixed_decoder", "exponential", "assumption2")
NGD_RUN = (*GRADIENT, "NGD", "start", "full_steps")
M1 = (*GRADIENT, "plain_steps", "start", "alignment", "softmax")


class Hypotheses:
    """The part of a `TraceView` that says which hypotheses its run has: '' or why it has not."""

    trace: Trace
    phi: float | None
    step: np.ndarray
    W_norm: np.ndarray

    @property
    def rule(self) -> dict:
        """The fields of the rule that `train` kept."""
        return self.trace.meta["rule_parameters"]

    @property
    def step_size(self) -> float:
        """The step size eta of GD and NGD."""
        return math.exp(self.rule["log_scale"])

    @property
    def kind(self) -> str:
        """'GD', 'NGD' or 'Polyak'; the powers of any other rule."""
        powers = self.rule["gap_power"], self.rule["norm_power"]
        if None in powers:  # a rule of the reader's own
            return self.rule["name"]
        return KINDS.get(powers, "a rule of powers {:g} and {:g}".format(*powers))

    def fails(self, *given: str | Callable[[Any], str]) -> str:
        """The first of these hypotheses that fails, in words; empty if all hold.

        "start" asks `needs_start`, "NGD" whether that is the rule; a function is asked with self.
        """

        def reason(each) -> str:
            if callable(each):
                return each(self)
            if isinstance(each, str) and each in KINDS.values():
                return self.needs_rule(each)
            asked = [name.removeprefix("needs_") for name in dir(self) if name[:6] == "needs_"]
            return getattr(self, f"needs_{require_choice('given', each, asked)}")()

        return self.needs_norms() or next(filter(None, map(reason, given)), "")

    def needs_norms(self) -> str:
        """Every recorded |W| is finite, and zero only where no step has moved W away from zero."""
        path, norm, gaps = self.trace.path_length, self.W_norm, np.abs(self.gaps)
        # gaps over the rounding of steps that cancel, or a path so short that they underflow too
        lost = (gaps > NO_OFFSET * gaps.max(initial=0.0)).any(axis=1) | (path < SHORTEST_PATH)
        lost &= (norm == 0) & (path > 0)
        lost |= ~np.isfinite(norm) & np.isfinite(path)
        if not lost.any():
            return ""
        at = int(lost.argmax())
        words = f"|W| is recorded as {norm[at]:g} at t = {self.step[at]}, where the path is"
        return f"{words} {path[at]:.3g} long: such a norm is not known"

    def needs_exponential(self) -> str:
        name = self.trace.meta["loss"]
        return "" if name == "exponential" else f"exponential loss needed, not {name}"

    def needs_assumption2(self) -> str:
        return "" if self.assumption2 else "Assumption 2 fails: non-optimal scores differ"

    def needs_rule(self, kind: str) -> str:
        if self.kind != require_choice("kind", kind, tuple(KINDS.values())):
            return f"for {kind}, not {self.kind}"
        return self.needs_plain_steps()

    def needs_plain_steps(self) -> str:
        if self.rule["gap_power"] is None:
            return f"for steps along the gradient, not {self.kind}"
        return "for a rule without momentum" if self.rule["momentum"] else ""

    def needs_fixed_decoder(self) -> str:
        return "for a fixed decoder" if self.joint else ""

    def needs_joint(self) -> str:
        return "" if self.joint else "for joint training of W and u"

    def needs_start(self) -> str:
        return "" if self.step[0] == 0 else "step 0 is not recorded"

    def needs_zero_start(self) -> str:
        if self.needs_start():
            return self.needs_start()
        if self.W_norm[0] or (self.joint and self.trace.u_norm[0]):
            return "u_0 = 0 and W_0 = 0 needed" if self.joint else "W_0 = 0 needed"
        return ""

    def needs_alignment(self) -> str:
        """The run was made with W_mm, so that |P_t| is known."""
        if np.isfinite(self.trace.W_alignment_error[self.W_norm > 0]).all():
            return ""
        return "1 - cosine was not recorded: train with the W-SVM's solution"

    def needs_full_steps(self) -> str:
        """Every step was of NGD's full length: no cap on the step size bound."""
        path = self.step_size * self.step
        if np.allclose(self.trace.path_length, path, rtol=MEASURED, atol=0.0):
            return ""
        return "not every step has the length step_size: the cap on the step size bound"

    def needs_softmax(self) -> str:
        """phi, by default the smallest softmax score of the run, bounds all of them from below."""
        least, words = float(self.trace.least_opt_score[-1]), "an optimal token's softmax score"
        if not least > SMALLEST_SOFTMAX:
            return f"{words} falls below {SMALLEST_SOFTMAX:g}"
        if self.phi is not None and not least >= self.phi:
            return f"{words} falls to {least:.3g}, under phi = {self.phi:.3g}"
        return ""


def assumption1_fails(constants) -> str:
    """'' or the inequality of Assumption 1 that fails."""
    for check in assumption1_table(constants, exact=True):
        if not check.holds:
            sides = f"{check.value:.3g}, above {check.bound:.3g}"
            return f"Assumption 1 fails: {check.statement} = {sides}"
    return ""
