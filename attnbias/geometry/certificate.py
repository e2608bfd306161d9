"""Bounds on a hard-margin solution's norm, proved by a primal and by a dual point."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch


class Bounds(NamedTuple):
    """Bounds on the optimal norm: `upper` from a feasible point, `lower` from a dual one."""

    upper: float
    lower: float

    @property
    def gap(self) -> float:
        """Relative duality gap upper/lower - 1, at least 0; infinite where undefined."""
        defined = 0 < self.lower < math.inf and self.upper < math.inf
        return max(self.upper / self.lower - 1, 0.0) if defined else math.inf

    @property
    def direction_error(self) -> float:
        """Bound sqrt(2 (1 - lower/upper)) on the distance of unit solution and unit optimum."""
        gap = self.gap
        return math.sqrt(2 * gap / (1 + gap)) if gap < math.inf else math.inf


def certificate(gram: torch.Tensor, dual: torch.Tensor) -> Bounds:
    """Bounds on the optimal norm that any weights a >= 0 prove, whoever found them.

    Parameters
    ----------
    gram : (N', N') float64
        H, the inner products of the constraint rows.
    dual : (N',) float64
        a. With a negative or non-finite entry it proves nothing: both bounds are void.

    Returns
    -------
    Bounds
        upper = sqrt(a'Ha) / min(Ha), lower = 1'a / sqrt(a'Ha), up to rounding.

    Notes
    -----
    Source: weak duality [c]. The unit solution is within `direction_error` of the unit
    optimum, because a feasible w has <w, w*> >= |w*|^2.
    """
    margins = gram @ dual
    norm = max(float(dual @ margins), 0.0) ** 0.5
    if not float(dual.min()) >= 0:
        return Bounds(math.inf, 0.0)
    return bounds(norm, float(margins.min()), float(dual.sum()), norm)


def bounds(norm: float, least_margin: float, dual_sum: float, dual_norm: float) -> Bounds:
    """The bounds of a point of that norm and least margin, and of weights with those sums."""
    upper = norm / least_margin if least_margin > 0 and math.isfinite(norm) else math.inf
    lower = dual_sum / dual_norm if dual_norm > 0 and math.isfinite(dual_sum) else 0.0
    return Bounds(upper, lower)
