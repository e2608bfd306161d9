"""What the study of exponents gives: a row a run, and claims."""

from __future__ import annotations

from dataclasses import dataclass

from ...experiments.result import TableResult


@dataclass(frozen=True, eq=False, repr=False)
class ExponentResult(TableResult):
    """Exponents of many runs.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a run: part ("map" or "margins"), the geometry of its data, its rule;
        exponent_k and norm_k, the exponent of 1 - cosine and the geometric mean of |W| over
        steps 10^k to 10^(k+1); settled and settled_norm, the step and |W| from which the local
        exponent stays within 0.05 of -2 (infinite if it never does); error and norm, the last
        1 - cosine and |W|; settling_rate, of `attnbias.beyond.exponents.transient`; law_settled
        and law_limit, what `slack_law` predicts of settled and of the offset of W from W_mm.
    settings : dict
    claims : CheckTable
    provenance : list of dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> experiments.load("exponents")
    Exponents of 1 - cosine: 900 runs of the map, 320 runs of the margins; 8 of 8 claims hold
    """

    def __repr__(self) -> str:
        runs = self.table.groupby("part").size().to_dict()
        words = ", ".join(f"{count:,} runs of the {part}" for part, count in runs.items())
        return f"Exponents of 1 - cosine: {words}; {self.verdict}"
