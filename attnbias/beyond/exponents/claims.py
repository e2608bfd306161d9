"""What the study of exponents says, judged over its worst runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...checks import Check, CheckTable

if TYPE_CHECKING:
    import pandas

    from ...experiments.result import ExperimentResult

SETTLED = 10.0  # settling_rate Xi |W| past which what is left is below exp(-10) [d]
UNSETTLED = 0.01  # and before which it has hardly begun [d]
NEAR = 0.05
SOURCE = "the study of exponents"


def claims(result: ExperimentResult) -> CheckTable:
    """Checks of the study's table.

    Parameters
    ----------
    result : ExperimentResult
        Of "exponents".

    Returns
    -------
    CheckTable
    """
    table = result.table
    last = max(int(name.removeprefix("exponent_")) for name in table if "exponent_" in name)
    late = table.assign(exponent=table[f"exponent_{last}"])
    # momentum takes 1 / (1 - beta) steps to its full speed, which bends the first decades
    decades = range(2, last + 1)
    made = [_settled(table, "NGD", 0.0, decades), _settled(table, "NGD", 0.9, decades[1:])]
    made += [_settled(table, "Polyak", 0.0, decades), _unsettled(table, decades)]
    return CheckTable([*made, _gd(late, last), *_law(table), _degenerate(late)])


def heights(runs: pandas.DataFrame, decades) -> pandas.DataFrame:
    """Columns height = settling_rate Xi |W| and exponent, a row a run and decade."""
    import pandas

    parts = [
        pandas.DataFrame(
            {
                "height": runs["settling_rate"] * runs["margin"] * runs[f"norm_{k}"],
                "exponent": runs[f"exponent_{k}"],
                "rule": runs["rule"],
            }
        )
        for k in decades
    ]
    return pandas.concat(parts, ignore_index=True)


def _judged(
    key: str,
    words: str,
    found: pandas.Series,
    bound: float,
    sense: str = "<=",
    none: str = "no such run",
) -> Check:
    """The worst of many numbers against a bound."""
    count = len(found)
    worst = float(found.max() if sense == "<=" else found.min()) if count else np.nan
    reason = "" if count else none
    return Check(words, worst, bound, sense, SOURCE, applicable=count > 0, reason=reason, key=key)


def _settled(table: pandas.DataFrame, rule: str, momentum: float, decades) -> Check:
    """Exponent -2 wherever the offset has settled."""
    runs = table[(table["rule_name"] == rule) & (table["momentum"] == momentum)]
    found = heights(runs, decades)
    done = found[found["height"] > SETTLED]
    name = rule + (f" with momentum {momentum:g}" if momentum else "")
    return _judged(
        f"settled/{name}",
        f"{name}: where rate |W| Xi > {SETTLED:g} the exponent over a decade is -2 within "
        f"{NEAR}, from step {10 ** decades[0]:,} on, worst of {len(done)} decades of "
        f"{len(runs)} runs",
        (done["exponent"] + 2).abs(),
        NEAR,
        none="no run is as far",
    )


def _unsettled(table: pandas.DataFrame, decades) -> Check:
    """Where runs have not settled yet the exponent is still above -2."""
    runs = table[(table["rule_name"] == "NGD") & (table["momentum"] == 0)]
    found = heights(runs, decades)
    early = found[found["height"] < UNSETTLED]
    return _judged(
        "unsettled",
        f"NGD: where rate |W| Xi < {UNSETTLED:g} the exponent over a decade is above -2 by "
        f"{2 * NEAR:g}, worst of {len(early)} decades",
        early["exponent"],
        -2 + 2 * NEAR,
        ">=",
        "no run is so early",
    )


def _gd(late: pandas.DataFrame, last: int) -> Check:
    """1/log^2 t has the local exponent -2 / log t or less in size."""
    runs = late[late["rule_name"] == "GD"]
    return _judged(
        "gd",
        "GD: no power law, the exponent over the last decade is not below -2 / log t at its "
        f"start, worst of {len(runs)} runs",
        runs["exponent"],
        float(-2 / np.log(10.0**last)),
        ">=",
    )


def _law(table: pandas.DataFrame) -> list[Check]:
    """Time to -2 and the frozen offset against `slack_law`."""
    if "law_settled" not in table:
        return []
    runs = table[np.isfinite(table["law_settled"]) & np.isfinite(table["settled"])]
    small = runs[(runs["slack"] <= 0.03) & (runs["slack"] > 0)]
    ratio = small["settled"] / small["law_settled"]
    offset = small["norm"] * np.sqrt(2 * small["error"]) / small["law_limit"]
    return [
        _judged(
            "law/step",
            "NGD: the step from which the exponent stays near -2, over the law of one idle row, "
            f"is 1 within 25% for slacks up to 0.03, worst of {len(small)} runs",
            (ratio - 1).abs(),
            0.25,
        ),
        _judged(
            "law/offset",
            "NGD: W's offset from W_mm freezes at the law's value within 5%, worst of "
            f"{len(small)} runs",
            (offset - 1).abs(),
            0.05,
        ),
    ]


def _degenerate(late: pandas.DataFrame) -> Check:
    """Without strict complementarity the exponent stays above -2."""
    runs = late[(late["slack"] == 0) & (late["rule_name"] == "NGD")]
    return _judged(
        "degenerate",
        "NGD without strict complementarity: the exponent over the last decade is still above "
        f"-2 by 0.05, worst of {len(runs)} runs",
        runs["exponent"],
        -2 + NEAR,
        ">=",
    )
