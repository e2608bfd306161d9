"""How well float64 knows the quantities that the lemmas compare."""

from __future__ import annotations

import numpy as np

from .run import TraceView

EPS = float(np.finfo(float).eps)


def weight_rounding(run: TraceView) -> np.ndarray:
    """(R,) relative rounding of the weights p: an exponential's argument is right to EPS of it."""
    return 64 * EPS * (1 + np.abs(run.log_scale) + np.abs(run.gaps).min(axis=1))


def norm_rounding(run: TraceView) -> float:
    """Relative rounding of |grad L|, a root of sums that (G) bounds below, and of Xi."""
    cancellation = (2 * run.constants().B ** 2 / run.Xi) ** 2
    return 16 * EPS * cancellation + max(0.0, float(run.svm.duality_gap))


def gap_rounding(run: TraceView) -> np.ndarray:
    """(R,) rounding of a logit gap: a sum of products of size |z| |W|, with |z| <= 2 B^2."""
    return 64 * EPS * 2 * run.constants().B ** 2 * run.W_norm
