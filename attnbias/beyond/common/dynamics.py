"""Runs of stacks of matrices: heads, layers, factors, data sets trained at once."""

from __future__ import annotations

import torch

from ..._validate import short
from ...dynamics.iteration import Gradient, Vector
from ...dynamics.loop import Split, finite, iterate, require_plain
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...rules import Descent, Rule


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
    options = {"record": record, "progress": progress, "checkpoint": checkpoint}
    return finite(iterate(problem, require_plain(rule), steps, **options), maker)


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
            "split", expected=f"{kind.__name__}, with NGD", got=f"{short(rows)}, {rule!r}",
            remedy="pass the rows of the data, and NGD; GD normalises nothing: leave split out",
        )  # fmt: skip
    return Split(rule)
