"""What the study of exponents says, judged over its worst runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...checks import Check, CheckTable

if TYPE_CHECKING:
    import pandas

SETTLED = 10.0  # settling_rate Xi |W| past which what is left is below exp(-10) [d]
UNSETTLED = 0.01  # and before which it has hardly begun [d]
NEAR = 0.05
SOURCE = "the study of exponents"


def claims(table: pandas.DataFrame) -> CheckTable:
    """Checks of a table of `ExponentResult`.

    Parameters
    ----------
    table : pandas.DataFrame

    Returns
    -------
    CheckTable
    """
    last = max(int(name.removeprefix("exponent_")) for name in table if "exponent_" in name)
    late = table.assign(exponent=table[f"exponent_{last}"])
    # momentum takes 1 / (1 - beta) steps to its full speed, which bends the first decades
    made = [_settled(table, "NGD", 0.0, range(2, last + 1))]
    made += [_settled(table, "NGD", 0.9, range(3, last + 1))]
    made += [_settled(table, "Polyak", 0.0, range(2, last + 1))]
    made += [
        _unsettled(table, range(2, last + 1)),
        _gd(late, last),
        *_law(table),
        _degenerate(late),
    ]
    return CheckTable(made)


def heights(runs: pandas.DataFrame, decades) -> pandas.DataFrame:
    """Columns height = settling_rate Xi |W| and exponent, a row a run and decade."""
    import pandas

    parts = [
        pandas.DataFrame({
            "height": runs["settling_rate"] * runs["margin"] * runs[f"norm_{k}"],
            "exponent": runs[f"exponent_{k}"], "rule": runs["rule"],
        })
        for k in decades
    ]  # fmt: skip
    return pandas.concat(parts, ignore_index=True)


def _settled(table: pandas.DataFrame, rule: str, momentum: float, decades) -> Check:
    """Exponent -2 wherever the offset has settled."""
    runs = table[(table["rule_name"] == rule) & (table["momentum"] == momentum)]
    found = heights(runs, decades)
    done = found[found["height"] > SETTLED]
    name = rule + (f" with momentum {momentum:g}" if momentum else "")
    off = (done["exponent"] + 2).abs()
    return Check(
        f"{name}: where rate |W| Xi > {SETTLED:g} the exponent over a decade is -2 within "
        f"{NEAR}, from step {10 ** decades[0]:,} on, worst of {len(done)} decades of "
        f"{len(runs)} runs",
        float(off.max()) if len(done) else np.nan, NEAR, source=SOURCE,
        applicable=len(done) > 0, reason="" if len(done) else "no run is as far",
    )  # fmt: skip


def _unsettled(table: pandas.DataFrame, decades) -> Check:
    """Where runs have not settled yet the exponent is still above -2."""
    runs = table[(table["rule_name"] == "NGD") & (table["momentum"] == 0)]
    found = heights(runs, decades)
    early = found[found["height"] < UNSETTLED]
    return Check(
        f"NGD: where rate |W| Xi < {UNSETTLED:g} the exponent over a decade is above -2 by "
        f"{2 * NEAR:g}, worst of {len(early)} decades",
        float(early["exponent"].min()) if len(early) else np.nan, -2 + 2 * NEAR, sense=">=",
        source=SOURCE, applicable=len(early) > 0, reason="" if len(early) else "no run is so early",
    )  # fmt: skip


def _gd(late: pandas.DataFrame, last: int) -> Check:
    """1/log^2 t has the local exponent -2 / log t or less in size."""
    runs = late[late["rule_name"] == "GD"]
    steepest = -2 / np.log(10.0**last)
    return Check(
        "GD: no power law, the exponent over the last decade is not below -2 / log t at its "
        f"start, worst of {len(runs)} runs",
        float(runs["exponent"].min()), float(steepest), sense=">=", source=SOURCE,
    )  # fmt: skip


def _law(table: pandas.DataFrame) -> list[Check]:
    """Time to -2 and the frozen offset against `slack_law`."""
    if "law_settled" not in table:
        return []
    runs = table[np.isfinite(table["law_settled"]) & np.isfinite(table["settled"])]
    small = runs[(runs["slack"] <= 0.03) & (runs["slack"] > 0)]
    ratio = small["settled"] / small["law_settled"]
    offset = small["norm"] * np.sqrt(2 * small["error"]) / small["law_limit"]
    none = {"applicable": len(small) > 0, "reason": "" if len(small) else "no such run"}
    return [
        Check(
            "NGD: the step from which the exponent stays near -2, over the law of one idle row, "
            f"is 1 within 25% for slacks up to 0.03, worst of {len(small)} runs",
            float((ratio - 1).abs().max()), 0.25, source=SOURCE, **none,
        ),
        Check(
            "NGD: W's offset from W_mm freezes at the law's value within 5%, worst of "
            f"{len(small)} runs",
            float((offset - 1).abs().max()), 0.05, source=SOURCE, **none,
        ),
    ]  # fmt: skip


def _degenerate(late: pandas.DataFrame) -> Check:
    """Without strict complementarity the exponent stays above -2."""
    runs = late[(late["slack"] == 0) & (late["rule_name"] == "NGD")]
    return Check(
        "NGD without strict complementarity: the exponent over the last decade is still above "
        f"-2 by 0.05, worst of {len(runs)} runs",
        float(runs["exponent"].min()) if len(runs) else np.nan, -2 + NEAR, sense=">=",
        source=SOURCE, applicable=len(runs) > 0, reason="" if len(runs) else "no such run",
    )  # fmt: skip
