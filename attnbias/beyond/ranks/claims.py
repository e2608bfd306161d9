"""What the study of ranks says, judged over all of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._validate import require_int
from ...checks import Check, CheckTable

if TYPE_CHECKING:
    import pandas

    from ...experiments.result import ExperimentResult

SOURCE = "the study of ranks"
MOST_OPEN = 0.05  # share of feasible instances that may stay undecided [d]


def claims(result: ExperimentResult) -> CheckTable:
    """Checks of the study's table.

    Parameters
    ----------
    result : ExperimentResult
        Of "ranks".

    Returns
    -------
    CheckTable
    """
    table = result.table
    frobenius, nuclear = (table[table[f"{norm}_status"] == "solved"] for norm in "FN")
    certain, low = decided(table, "F"), decided(table, "N")
    rank = low["N_lower"]
    return CheckTable(
        [
            _none(
                "frobenius/rank",
                "Frobenius: ranks other than min(sequences with support rows, d)",
                certain["F_lower"] != certain[["F_sequences", "d"]].min(axis=1),
            ),
            _share(
                "frobenius/open",
                "Frobenius: share undecided",
                frobenius["F_lower"] != frobenius["F_upper"],
            ),
            _none(
                "nuclear/rank",
                "nuclear: ranks r with r(r + 1)/2 above the active constraints",
                rank * (rank + 1) / 2 > low["N_rows"],
            ),
            _none(
                "nuclear/lower",
                "nuclear: ranks above the Frobenius solution's",
                rank > low["F_upper"],
            ),
            _share(
                "nuclear/open",
                "nuclear: share undecided",
                nuclear["N_lower"] != nuclear["N_upper"],
            ),
            _none(
                "feasible",
                "infeasible or undecided although n <= d",
                table[table["n"] <= table["d"]]["F_status"] != "solved",
            ),
        ]
    )


def decided(table: pandas.DataFrame, norm: str) -> pandas.DataFrame:
    """The rows whose bounds on the rank in a norm, F or N, meet."""
    return table[table[f"{norm}_lower"] == table[f"{norm}_upper"]]


def mean_ranks(table: pandas.DataFrame, T: int = 5) -> pandas.DataFrame:
    """Columns n, d, Frobenius and nuclear: mean ranks at one T, where both are proved."""
    both, T = decided(table, "N"), require_int("T", T, low=2)
    both = both[both["T"] == T].groupby(["n", "d"])
    names = ["Frobenius", "nuclear"]
    return both[["F_lower", "N_lower"]].mean().set_axis(names, axis=1).reset_index()


def _none(key: str, statement: str, exceptions: pandas.Series) -> Check:
    count, words = int(exceptions.sum()), f"of {len(exceptions)}"
    return Check(statement, count, 0, "<=", SOURCE, "d", reason=words, key=key)


def _share(key: str, statement: str, exceptions: pandas.Series) -> Check:
    return Check(
        statement,
        float(exceptions.mean()),
        MOST_OPEN,
        "<=",
        SOURCE,
        "d",
        applicable=len(exceptions) > 0,
        reason=f"{int(exceptions.sum())} of {len(exceptions)}",
        key=key,
    )
