"""Statements before they are measured, hypotheses that several share, and what rounding allows."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ..checks import Check, CheckTable

# Exact runs agree with multiprecision to 1e-9 relative; what is measured is known no better.
MEASURED = 1e-9
EPS = float(np.finfo(float).eps)
# What rounding leaves of |P_t| / |W_t| where W_t is along W_mm, and of 1 - cosine.
NO_OFFSET = 1e-12
FLOOR = NO_OFFSET**2
# Softmax scores under this one are not recorded as numbers that bounds could use.
SMALLEST_SOFTMAX = 1e-300
NO_STEP = "no step after the start is recorded"


class Statement(NamedTuple):
    """What a Check says, before anything is measured.

    Attributes
    ----------
    words : str
        What is compared with what.
    source, sense, provenance : str
        As in a Check.
    """

    words: str
    source: str
    sense: str = "<="
    provenance: str = "c"

    def along(
        self, run, values, bounds, keep=None, *, empty: str = "", rounding=0.0, **rest
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
        """
        keep = np.ones(len(run.step), dtype=bool) if keep is None else np.asarray(keep)
        if not keep.any():
            return self.refused(empty)
        bounds = np.broadcast_to(np.asarray(bounds, dtype=float), keep.shape)[keep]
        rounding = np.broadcast_to(np.asarray(rounding, dtype=float), keep.shape)[keep]
        return Check.along(
            self.words, run.step[keep], np.asarray(values)[keep], bounds, self.sense,
            rounding=rounding, source=self.source, provenance=self.provenance, **rest,
        )  # fmt: skip

    def later(self, run, values, bounds, **rest) -> Check:
        """The statement at the recorded steps after the start, both sides measured to 1e-9."""
        rest = {"rounding": MEASURED * np.abs(bounds), "empty": NO_STEP} | rest
        return self.along(run, values, bounds, run.step > 0, **rest)

    def where(self, run, values, bounds, keep, *, never: str, rounding=0.0) -> Check:
        """The statement where `values` are finite; vacuous, saying `never`, if they never are."""
        some = keep & np.isfinite(values)
        if some.any():
            return self.along(run, values, bounds, some, rounding=rounding)
        return self.along(run, values, bounds, keep, vacuous=True, reason=never)

    def once(self, value, bound, *, rounding=0.0, **rest) -> Check:
        """The statement about data or a start alone: a single value beside its bound."""
        return Check(
            self.words, float(value), float(bound), self.sense, self.source, self.provenance,
            rounding=float(rounding), **rest,
        )  # fmt: skip

    def refused(self, reason: str) -> Check:
        """The statement where a hypothesis fails."""
        return Check.not_applicable(
            self.words, reason, source=self.source, provenance=self.provenance, sense=self.sense
        )


def refused(statements, reason: str) -> CheckTable:
    """All of the statements, none of them applicable."""
    return CheckTable(statement.refused(reason) for statement in statements)


def table(reason: str, statements, rows: Callable[..., Iterable[Check]], *given) -> CheckTable:
    """The rows that `rows(*given)` measures; where a hypothesis fails, why none is measured."""
    return refused(statements, reason) if reason else CheckTable(rows(*given))


def made_by(data, maker: str, *names: str) -> bool:
    """Whether the data are of this maker, with the positive numbers `names` in their meta."""
    numbers_kept = (data.meta.get(name) for name in names)
    return data.meta.get("maker") == maker and all(
        isinstance(number, numbers.Real) and number > 0 for number in numbers_kept
    )


def alignment_recorded(run) -> str:
    """'' or that the run was made without W_mm, so that |P_t| is not known."""
    if np.isfinite(run.trace.W_alignment_error[run.W_norm > 0]).all():
        return ""
    return "1 - cosine was not recorded: train with the W-SVM's solution"


def full_steps(run) -> str:
    """'' or why some step was not of NGD's full length: a cap on the step size bound."""
    path = run.step_size * run.step
    if np.allclose(run.trace.path_length, path, rtol=MEASURED, atol=0.0):
        return ""
    return "not every step has the length step_size: the cap on the step size bound"


def softmax_stays_up(run, phi) -> str:
    """'' or why `phi` (None: the smallest score of the run) is no lower bound on the scores."""
    least = float(run.trace.least_opt_score[-1])
    if not least > SMALLEST_SOFTMAX:
        return f"an optimal token's softmax score falls below {SMALLEST_SOFTMAX:g}"
    if phi is not None and not least >= phi:
        return f"an optimal token's softmax score falls to {least:.3g}, under phi = {phi:.3g}"
    return ""


def weight_rounding(run) -> np.ndarray:
    """(R,) relative rounding of the weights p: an exponential's argument is right to EPS of it."""
    return 64 * EPS * (1 + np.abs(run.log_scale) + np.abs(run.gaps).min(axis=1))


def norm_rounding(run) -> float:
    """Relative rounding of |grad L|, a root of sums that (G) bounds below, and of Xi."""
    cancellation = (2 * run.constants().B ** 2 / run.Xi) ** 2
    return 16 * EPS * cancellation + max(0.0, float(run.svm.duality_gap))


def gap_rounding(run) -> np.ndarray:
    """(R,) rounding of a logit gap: a sum of products of size |z| |W|, with |z| <= 2 B^2."""
    return 64 * EPS * 2 * run.constants().B ** 2 * run.W_norm
