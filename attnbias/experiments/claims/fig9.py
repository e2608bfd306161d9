"""What the text says on Figure 9, claim by claim, and our own additions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...checks import Check, CheckTable
from .compare import ALIGNMENT, at_least, at_most, check_lead, exponents, span

if TYPE_CHECKING:
    from ..result import ExperimentResult

TEXT = "Appendix C.2, text on Fig. 9"
PROJECTED = "NGD, projected noise"


def claims(result: ExperimentResult) -> CheckTable:
    """What the text says on Fig. 9, claim by claim, over the worst seed.

    Parameters
    ----------
    result : ExperimentResult
        Of `fig9.run`.

    Returns
    -------
    CheckTable
        Thresholds are ours [d]: to converge is to be within 0.01 of 1 in cosine and still
        falling; "faster" is ahead at the last step.
    """
    gd, ngd, projected = (result.traces[label] for label in ("GD", "NGD", PROJECTED))
    spread = result.measures["relative_spread"]
    tenfold = "NGD is significantly faster than GD (tenfold)"
    change = exponents(ngd, result.last_decade) - exponents(projected, result.last_decade)
    ends = [
        float(np.median([run.W_alignment_error[-1] for run in runs])) for runs in (ngd, projected)
    ]
    return CheckTable(
        [
            *_convergence(result, "GD"),
            *_convergence(result, "NGD"),
            check_lead("ngd/faster", "NGD is faster than GD", ngd, gd, ALIGNMENT, 0.0, TEXT, "a"),
            check_lead("ngd/tenfold", tenfold, ngd, gd, ALIGNMENT, 1.0, TEXT, "d"),
            at_least(
                "digit",
                "the digit is the token with the highest score: fraction of sequences",
                result.measures["digit_optimal_fraction"],
                1.0,
                TEXT,
                "a",
            ),
            at_most(
                "assumption2",
                "aligning with Assumption 2: largest spread of noise scores over the score gap",
                spread,
                0.0,
                TEXT,
                "a",
                reason=f"largest of a seed {span(spread)}",
            ),
            at_most(
                "projected/spread",
                "with noise projected off u Assumption 2 is exact: largest spread of noise scores",
                result.measures["projected_spread"],
                0.0,
                "Assumption 2",
            ),
            at_most(
                "projected/exponent",
                "breaking Assumption 2 this much leaves NGD's exponent: change by",
                abs(change),
                0.1,
                reason=f"median 1 - cosine at the end {ends[0]:.2g} against {ends[1]:.2g}",
            ),
        ]
    )


def _convergence(result: ExperimentResult, label: str) -> list[Check]:
    runs, (first, last) = result.traces[label], result.last_decade
    powers, ends = -exponents(runs, (first, last)), [run.W_alignment_error[-1] for run in runs]
    words = f"{label} converges in direction to W_mm: 1 - cosine at the end"
    return [
        at_most(f"converges/{label}", words, ends, 0.01, TEXT, "a"),
        at_least(
            f"falls/{label}",
            f"{label}'s is still falling: smallest p of t^-p, steps {first} to {last}",
            powers,
            0.0,
            TEXT,
            reason=f"p is {span(powers)}",
        ),
    ]
