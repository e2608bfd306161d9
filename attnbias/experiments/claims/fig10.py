"""What the text says on Figure 10, claim by claim, and how far that is from Assumption 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...checks import CheckTable
from ..cosines import random_within
from .compare import at_least

if TYPE_CHECKING:
    from ..result import ExperimentResult

TEXT = "Appendix C.3, text on Fig. 10"
NEAR = 0.2  # of 0, at least 78 degrees apart [d]
ALLOWED = 1 / 15  # Assumption 1, version A1, for tokens of equal norms
PAIRS = {"text": "different pieces", "positions": "all positions"}


def claims(result: ExperimentResult) -> CheckTable:
    """What the text says on Fig. 10, and how far that is from Assumption 1.

    Parameters
    ----------
    result : ExperimentResult
        Of `fig10.run`.

    Returns
    -------
    CheckTable
        The text gives no numbers: "small" is within 0.2 and "significant" is half [d].
    """
    checks, d = [], result.dimension
    for corpus, kinds in result.cosines.items():
        near = f"a significant fraction near 0: share of |cosine| <= {NEAR}, {corpus}"
        checks += [
            at_least(
                f"near/{corpus}, {kind}",
                f"{near}, {name}",
                kinds[kind].within(NEAR),
                0.5,
                TEXT,
                "a",
                reason="0.2 and half are ours",
            )
            for kind, name in PAIRS.items()
        ] + [
            at_least(
                f"random/{corpus}",
                f"as near as random directions: share of |cosine| <= 0.1, {corpus}",
                kinds["text"].within(0.1),
                random_within(0.1, d),
                TEXT,
                reason=f"random directions in {d} dimensions",
            ),
            at_least(
                f"proof/{corpus}",
                f"as near as a proof needs: share of |cosine| <= 1/15, {corpus}",
                kinds["text"].within(ALLOWED),
                1.0,
                "Assumption 1, version A1",
                "c",
                reason="for tokens of equal norms",
            ),
        ]
    return CheckTable(checks)
