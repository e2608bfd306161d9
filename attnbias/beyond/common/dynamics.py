"""Runs of stacks of matrices: heads, layers, factors, data sets trained at once."""

from __future__ import annotations

import numpy as np
import torch

from ..._validate import require_type, short
from ...dynamics.loop import iterate
from ...dynamics.trace import Trace
from ...errors import DivergedError, RangeError
from ...rules import Descent, Gradient, Rule, Vector


class Stack:
    """A problem whose iterate is P matrices, each a part with a norm of its own."""

    coordinates, stops = "dense", False

    @staticmethod
    def norms(x: torch.Tensor) -> torch.Tensor:
        """(P,) Frobenius norms."""
        return torch.linalg.vector_norm(x, dim=(1, 2))

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """(P, 1, 1)"""
        return factors[:, None, None]

    def descent(self, parts: torch.Tensor, log_scale: torch.Tensor, **rest) -> Gradient:
        """The negative gradient, up to the exponential of (P,) logarithms."""
        return Gradient(Vector(parts, log_scale, self.norms(parts)), self.norms, **rest)


def run(problem, rule: Descent, steps: int, maker: str, record, progress, checkpoint) -> Trace:
    """A run of plain steps that did not diverge.

    Raises
    ------
    DtypeError, RangeError, DivergedError
    """
    rule = require_plain(rule)
    trace = iterate(problem, rule, steps, record=record, progress=progress, checkpoint=checkpoint)
    if trace.status == "diverged":
        last = trace.step[-1] if len(trace.step) else 0
        raise DivergedError(
            maker,
            expected="finite gradients and steps",
            got=f"others after step {last}",
            remedy="take a smaller step size",
        )
    return trace


def split_rule(rule: Descent, rows, kind: type) -> Descent:
    """The rule; or, with rows of each data set, NGD across them and GD in the ties' span.

    Raises
    ------
    RangeError
    """
    rule = require_plain(rule)
    if rows is None:
        return rule
    known = all(isinstance(each, kind) for each in rows)
    if not (known and isinstance(rule, Rule) and rule.norm_power):
        raise RangeError(
            "split",
            expected=f"{kind.__name__}, with NGD",
            got=f"{short(rows)}, {rule!r}",
            remedy="pass the rows of the data, and NGD; GD normalises nothing: leave split out",
        )
    return Split(rule)


def require_plain(rule) -> Descent:
    """GD, NGD without momentum, cap or decay, or a rule of one's own; others are refused."""
    if not isinstance(require_type("rule", rule, Descent, "a Rule", "NGD(0.1)"), Rule):
        return rule
    plain = (rule.gap_power, rule.norm_power) in ((0.0, 0.0), (0.0, -1.0))
    if not plain or rule.momentum or rule.log_max_step < np.inf or any(rule.decay):
        raise RangeError(
            "rule",
            expected="GD or NGD without momentum, cap or decay",
            got=rule.name,
            remedy="NGD(0.1)",
        )
    return rule


class Split(Descent):
    """NGD on one part of the gradient alone; the rest, `Gradient.rest`, moves as by GD."""

    def __init__(self, rule: Rule):
        self.base, self.name = rule, f"{rule.name}, split"

    def length(self, gradient, step):
        """As of NGD."""
        return self.base.length(gradient, step)

    def log_factor(self, gradient, step, along):
        """As of NGD."""
        return self.base.log_factor(gradient, step, along)

    def carry(self, move, gradient, step, memory):
        """The normalised step, and step size times the rest."""
        return move + np.exp(self.base.log_scale) * gradient.rest

    def parameters(self) -> dict:
        """Those of NGD."""
        return self.base.parameters() | {"name": self.name}
