"""Claims about data or a start alone, measured once."""

from __future__ import annotations

from ..checks import Check
from .steps import Claim


def once(claim: Claim, value: float, bound: float, *, rounding: float = 0.0, **rest) -> Check:
    """The claim with a single value beside its bound."""
    return Check(
        claim.statement, float(value), float(bound), claim.sense, claim.source, claim.provenance,
        rounding=float(rounding), **rest,
    )  # fmt: skip
