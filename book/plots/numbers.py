"""The numbers behind a figure, as text."""

import math

import numpy as np

from attnbias._validate import require_choices
from attnbias.errors import RangeError
from attnbias.plots.series import SERIES, band, gather


def figure_numbers(runs, steps=(10, 100, 1000, 10_000), series="alignment"):
    """The numbers behind a figure as a small table of text.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
    steps : sequence of int
        Columns; the nearest recorded step to each, among those the runs reach.
    series : str or sequence of str
        As in `plot_runs`; several make a table with two levels of rows.

    Returns
    -------
    pandas.DataFrame
        Medians over seeds to two digits, as text such as "1.8e-06", because 10^-3000 is no float.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from book.plots import figure_numbers
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 100)
    >>> figure_numbers({"NGD": trace}, steps=[100], series="W_norm").loc["NGD", "t = 100"]
    '10'
    """
    import pandas

    names = require_choices("series", series, SERIES)
    groups, rows = gather(runs), {}
    columns: list[str] = []
    for name in names:
        for label, traces in groups.items():
            step, values = band(traces, name)
            middle = np.median(values, axis=0)
            chosen = _nearest(step, steps)
            columns = columns or [f"t = {step[index]}" for index in chosen]
            cells = [scientific(middle[index]) for index in chosen]
            key = label if isinstance(series, str) else (name, label)
            rows[key] = cells + [""] * (len(columns) - len(cells))
    table = pandas.DataFrame.from_dict(rows, orient="index", columns=columns)
    if not isinstance(series, str):
        table.index = pandas.MultiIndex.from_tuples(rows, names=("quantity", "rule"))
    return table


def _nearest(step: np.ndarray, wanted) -> list[int]:
    wanted = [int(each) for each in wanted]
    if not wanted or min(wanted) < 1:
        raise RangeError(
            "steps",
            expected="at least one step, each 1 or later",
            got=repr(wanted),
            remedy="for example steps=(10, 100, 1000)",
        )
    reached = [each for each in wanted if each <= 1.05 * step[-1]]
    indices = [int(np.abs(np.log(step / each)).argmin()) for each in reached]
    return sorted(set(indices))


def scientific(log10: float) -> str:
    """10^log10 to two digits, far outside float range as well: "0.37", "1.8e-06", "5e-305"."""
    if not math.isfinite(log10):
        return {math.inf: "inf", -math.inf: "0"}.get(log10, "")
    if -300 < log10 < 300:
        return f"{float(f'{10.0**log10:.2g}'):g}"
    exponent = math.floor(log10)
    mantissa = f"{10.0 ** (log10 - exponent):.1f}"
    if mantissa.startswith("10"):
        mantissa, exponent = "1.0", exponent + 1
    return f"{mantissa}e{exponent:+d}"
