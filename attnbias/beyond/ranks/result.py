"""What the study of ranks gives: a row an instance, and claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..._validate import require_int
from ...checks import Check, CheckTable
from ..exponents.result import TableResult

if TYPE_CHECKING:
    import pandas

SOURCE = "the study of ranks"
MOST_OPEN = 0.05  # share of feasible instances that may stay undecided [d]
TOLERANCE = 1e-7  # below which the peers' notebook takes singular values for zero


@dataclass(frozen=True, eq=False, repr=False)
class RankResult(TableResult):
    """Proved bounds on the ranks of SVM solutions, over sizes and seeds.

    Attributes
    ----------
    table : pandas.DataFrame
        One row an instance: n, T, d, seed, and for each norm, F or N: F_status, "solved",
        "infeasible", "undecided" (at the edge of it) or "not asked"; F_lower and F_upper, bounds
        on the rank; F_rows and F_sequences, active constraints and the sequences they come
        from; F_least, the smallest singular value that counts over the largest; F_error, the
        bound on the distance from a solution, over the largest singular value as well; F_gap.
        N_room, 1 minus the largest singular value of G proved below 1; N_loose, singular values
        above 1e-7 in what the interior-point solver returned.
    settings : dict
    claims : CheckTable
    provenance : list of dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> experiments.load("ranks", "book/results")
    Ranks of SVM solutions: 2,747 and 1,375 of 4,000 solved; 6 of 6 claims hold
    """

    COLUMNS = {"n", "T", "d"} | {f"{norm}_{what}" for norm in "FN" for what in ("status", "lower")}

    def means(self, T: int = 5) -> pandas.DataFrame:
        """Columns n, d, Frobenius and nuclear: mean ranks at one T, where both are proved."""
        both, T = decided(self.table, "N"), require_int("T", T, low=2)
        both = both[both["T"] == T].groupby(["n", "d"])
        names = ["Frobenius", "nuclear"]
        return both[["F_lower", "N_lower"]].mean().set_axis(names, axis=1).reset_index()

    def __repr__(self) -> str:
        counts = [(self.table[f"{norm}_status"] == "solved").sum() for norm in "FN"]
        words = " and ".join(f"{count:,}" for count in counts)
        solved = f"{words} of {len(self.table):,} solved"
        return f"Ranks of SVM solutions: {solved}; {self.verdict}"


def claims(table: pandas.DataFrame) -> CheckTable:
    """Checks of a table of `RankResult`.

    Parameters
    ----------
    table : pandas.DataFrame

    Returns
    -------
    CheckTable
    """
    frobenius, nuclear = (table[table[f"{norm}_status"] == "solved"] for norm in "FN")
    certain, low = decided(table, "F"), decided(table, "N")
    rank = low["N_lower"]
    return CheckTable(
        [
            _none(
                "Frobenius: ranks other than min(sequences with support rows, d)",
                certain["F_lower"] != certain[["F_sequences", "d"]].min(axis=1),
            ),
            _share("Frobenius: share undecided", frobenius["F_lower"] != frobenius["F_upper"]),
            _none(
                "nuclear: ranks r with r(r + 1)/2 above the active constraints",
                rank * (rank + 1) / 2 > low["N_rows"],
            ),
            _none("nuclear: ranks above the Frobenius solution's", rank > low["F_upper"]),
            _share("nuclear: share undecided", nuclear["N_lower"] != nuclear["N_upper"]),
            _none(
                "infeasible or undecided although n <= d",
                table[table["n"] <= table["d"]]["F_status"] != "solved",
            ),
        ]
    )


def decided(table: pandas.DataFrame, norm: str) -> pandas.DataFrame:
    """The rows whose bounds on the rank in a norm, F or N, meet."""
    return table[table[f"{norm}_lower"] == table[f"{norm}_upper"]]


def _none(statement: str, exceptions) -> Check:
    return Check(
        statement, int(exceptions.sum()), 0, "<=", SOURCE, "d", reason=f"of {len(exceptions)}"
    )


def _share(statement: str, exceptions) -> Check:
    return Check(
        statement,
        float(exceptions.mean()),
        MOST_OPEN,
        "<=",
        SOURCE,
        "d",
        applicable=len(exceptions) > 0,
        reason=f"{int(exceptions.sum())} of {len(exceptions)}",
    )
