"""Runs of stacks of matrices: heads, layers, factors, data sets trained at once."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from ..._validate import require_type, short
from ...dynamics.loop import iterate
from ...dynamics.trace import Trace
from ...errors import DivergedError, RangeError, ShapeError
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


def one_of(trace: Trace, b: int) -> Trace:
    """The run on one of several data sets that were trained at once."""
    series = {name: values[:, b] for name, values in trace.series.items()}
    return dataclasses.replace(trace, W=trace.W[:, b], series=series)


def one_each(name: str, given, count: int) -> list:
    """What is given for each of so many data sets; None of each by default.

    Raises
    ------
    ShapeError
    """
    each = [None] * count if given is None else given
    if len(each) != count:
        wanted = f"{count} starts" if name == "W0" else f"{count} of them"
        raise ShapeError(name, expected=wanted, got=str(len(each)), remedy="one a data set")
    return each


def require_one_shape(datas, shapes) -> None:
    """Refuse data sets of which one has another shape than the first.

    Raises
    ------
    ShapeError
    """
    for data, shape in zip(datas, shapes, strict=True):
        if shape != shapes[0]:
            raise ShapeError(
                "datas",
                expected=f"data sets of one shape, {datas[0]!r}",
                got=repr(data),
                remedy="train other shapes apart",
            )


def stacked(bases) -> torch.Tensor:
    """(B, d^2, r) bases of spans, with columns of zeros to a common r."""
    width = max(basis.shape[1] for basis in bases)
    pad = torch.nn.functional.pad
    return torch.stack([pad(basis, (0, width - basis.shape[1])) for basis in bases])


def projected(basis: torch.Tensor, G: torch.Tensor) -> torch.Tensor:
    """(B, d, d) matrices on the spans of (B, d^2, r) bases."""
    return (basis @ (basis.mT @ G.flatten(1)[..., None])).reshape(G.shape)


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
