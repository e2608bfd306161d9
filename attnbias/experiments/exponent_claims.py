"""What the study of exponents says, judged over its worst runs."""

from __future__ import annotations

import numpy as np
import pandas

from ..checks import Check, CheckTable

SETTLED_HEIGHT = 10.0  # slack |W| Xi from which an idle row's weight is below exp(-10) [d]
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
    late = table.assign(exponent=table[f"exponent_{last}"], at=table[f"norm_{last}"])
    made = [_reaches(late, "NGD", 0.0), _reaches(late, "NGD", 0.9), _reaches(late, "Polyak", 0.0)]
    made += [_gd(late, last), *_law(table), _degenerate(late)]
    return CheckTable(made)


def _reaches(late: pandas.DataFrame, rule: str, momentum: float) -> Check:
    """Exponent -2 wherever the nearest idle row is done with."""
    runs = late[(late["rule_name"] == rule) & (late["momentum"] == momentum)]
    done = runs[runs["least_slack"] * runs["margin"] * runs["at"] > 10 * SETTLED_HEIGHT]
    name = rule + (f" with momentum {momentum:g}" if momentum else "")
    off = (done["exponent"] + 2).abs()
    return Check(
        f"{name}: where slack |W| Xi > {10 * SETTLED_HEIGHT:g}, the exponent over the last decade "
        f"is -2 within {NEAR}, worst of {len(done)} runs of {len(runs)}",
        float(off.max()) if len(done) else np.nan, NEAR, source=SOURCE,
        applicable=len(done) > 0, reason="" if len(done) else "no run is as far",
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
            f"NGD: W's offset from W_mm freezes at the law's value within 5%, worst of "
            f"{len(small)} runs",
            float((offset - 1).abs().max()), 0.05, source=SOURCE, **none,
        ),
    ]  # fmt: skip


def _degenerate(late: pandas.DataFrame) -> Check:
    """Without strict complementarity the exponent stays above -2."""
    runs = (
        late[(late["slack"] == 0) & (late["rule_name"] == "NGD")] if "slack" in late else late[:0]
    )
    return Check(
        "NGD without strict complementarity: the exponent over the last decade is still above "
        f"-2 by 0.05, worst of {len(runs)} runs",
        float(runs["exponent"].min()) if len(runs) else np.nan, -2 + NEAR, sense=">=",
        source=SOURCE, applicable=len(runs) > 0, reason="" if len(runs) else "no such run",
    )  # fmt: skip
