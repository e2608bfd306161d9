"""Exponents of joint runs over the last stretch of a table: loss, norms and both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._validate import require_number
from ...dynamics.rates import fit_rate
from ...errors import DtypeError, RangeError

if TYPE_CHECKING:
    import pandas

QUANTITIES = {
    "log 1/L": lambda rows: -rows["log_loss"],
    "|u|": lambda rows: rows["u_norm"],
    "|W|": lambda rows: rows["W_norm"],
    "1 - cos u": lambda rows: rows["u_alignment_error"],
    "1 - cos W": lambda rows: rows["W_alignment_error"],
}


def joint_exponents(table, first: float = 1000) -> pandas.DataFrame:
    """One row a run: exponents in the step from `first` on, and where the run ended.

    Parameters
    ----------
    table : pandas.DataFrame
        Of `attnbias.sweep` with train_u=True, or of traces' `to_dataframe` with a column
        "run"; at least 8 records from `first` on.
    first : float
        Start of the window; it ends with the run.

    Returns
    -------
    pandas.DataFrame
        Indexed by run. Columns "log 1/L", "|u|", "|W|", "1 - cos u", "1 - cos W" hold
        exponents, NaN where a quantity is not positive throughout; "end u" and "end W" the
        last 1 - cosine, "W over log u" the slope of |W| times the margin of W_mm on log |u|,
        NaN without a column "margin".

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> import attnbias
    >>> from attnbias.beyond.joint.exponents import joint_exponents
    >>> table = attnbias.sweep({"data": {"model": "dm", "n": 2, "d": 40, "seed": 0},
    ...                         "rule": "NGD(0.1)", "train": {"train_u": True}, "steps": 2000})
    >>> float(joint_exponents(table, 200)["|u|"].round(1).iloc[0])
    1.0
    """
    first = require_number("first", first, low=1)
    needed = {
        "run",
        "step",
        "log_loss",
        "u_norm",
        "W_norm",
        "u_alignment_error",
        "W_alignment_error",
    }
    missing = sorted(needed - set(getattr(table, "columns", ())))
    if missing:
        raise RangeError(
            "table",
            expected="the columns of a sweep with train_u=True",
            got="a table without " + ", ".join(missing),
            remedy="attnbias.sweep(...)",
        )
    import pandas

    words = needed - {"run", *table.select_dtypes(["number", "bool"])}
    if words:
        raise DtypeError(
            "table",
            expected="columns of numbers",
            got=f"{sorted(words)} of others",
            remedy="attnbias.sweep(...)",
        )
    late = table[table["step"] >= first]

    return pandas.DataFrame({run: _row(rows) for run, rows in late.groupby("run")}).T


def _row(rows) -> dict:
    step = rows["step"].to_numpy()
    found = {}
    for name, quantity in QUANTITIES.items():
        values = quantity(rows).to_numpy(dtype=float)
        good = bool(np.isfinite(values).all() and (values > 0).all())
        found[name] = fit_rate(step, values).exponent if good else np.nan
    found["end u"] = rows["u_alignment_error"].iloc[-1]
    found["end W"] = rows["W_alignment_error"].iloc[-1]
    grows = np.isfinite(found["|u|"])
    slope = np.polyfit(np.log(rows["u_norm"]), rows["W_norm"], 1)[0] if grows else np.nan
    found["W over log u"] = slope * rows["margin"].iloc[0] if "margin" in rows else np.nan
    return found
