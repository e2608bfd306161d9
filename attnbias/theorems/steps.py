"""Claims held against a run at chosen recorded steps, and hypotheses that step lengths decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..checks import Check, CheckTable

# Exact runs agree with multiprecision to 1e-9 relative; what is measured is known no better.
MEASURED = 1e-9
# What rounding leaves of |P_t| / |W_t| where W_t is along W_mm, and of 1 - cosine.
NO_OFFSET = 1e-12
FLOOR = NO_OFFSET**2
# Softmax scores under this one are not recorded as numbers that bounds could use.
SMALLEST_SCORE = 1e-300


class Claim(NamedTuple):
    """A statement before it is measured.

    Attributes
    ----------
    statement, source, sense, provenance : str
        As in a Check.
    """

    statement: str
    source: str
    sense: str = "<="
    provenance: str = "c"

    def along(self, run, values, bounds, keep, *, empty: str, rounding=0.0, **rest) -> Check:
        """The claim at the recorded steps in `keep`; not applicable, for `empty`, if none is.

        Parameters
        ----------
        run : Run
        values : (R,) array
        bounds, rounding : (R,) arrays or floats
        keep : (R,) bool
        empty : str
            Why there may be no step to look at.
        """
        keep = np.asarray(keep)
        if not keep.any():
            return self.refused(empty)
        bounds = np.broadcast_to(np.asarray(bounds, dtype=float), keep.shape)[keep]
        rounding = np.broadcast_to(np.asarray(rounding, dtype=float), keep.shape)[keep]
        return Check.along(
            self.statement, run.step[keep], np.asarray(values)[keep], bounds, self.sense,
            rounding=rounding, source=self.source, provenance=self.provenance, **rest,
        )  # fmt: skip

    def refused(self, reason: str) -> Check:
        """The claim where a hypothesis fails."""
        return Check.not_applicable(
            self.statement, reason, source=self.source, provenance=self.provenance, sense=self.sense
        )


def refused(claims, reason: str) -> CheckTable:
    """All of the claims, none of them applicable."""
    return CheckTable(claim.refused(reason) for claim in claims)


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


def score_stays_up(run, phi) -> str:
    """'' or why `phi` (None: the smallest score of the run) is no lower bound on the scores."""
    least = float(run.trace.least_opt_score[-1])
    if not least > SMALLEST_SCORE:
        return f"an optimal token's softmax score falls below {SMALLEST_SCORE:g}"
    if phi is not None and not least >= phi:
        return f"an optimal token's softmax score falls to {least:.3g}, under phi = {phi:.3g}"
    return ""
