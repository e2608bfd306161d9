"""What plots are given, and the numbers behind them: series of traces as logarithms, over seeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._validate import require_choices, short
from ..dynamics.trace import Trace
from ..errors import DtypeError, RangeError
from ..experiments.claims import log10_of


class _Series(NamedTuple):
    """A plotted quantity: where it, or its logarithm, is in a Trace, and its name on an axis."""

    attribute: str
    label: str


SERIES = {
    "loss_gap": _Series("log_loss_gap", "loss gap $L - L^*$"),
    "loss": _Series("log_loss", "train loss $L$"),
    "W_norm": _Series("W_norm", r"norm $\|W_t\|$"),
    "nonopt": _Series("log_nonopt_score", "1 - softmax at opt"),
    "alignment": _Series("W_alignment_error", "1 - cosine with $W_{mm}$"),
    "u_norm": _Series("u_norm", r"norm $\|u_t\|$"),
    "u_alignment": _Series("u_alignment_error", "1 - cosine with $u_{mm}$"),
    "grad_norm": _Series("log_grad_norm", r"gradient norm $\|\nabla L\|$"),
    "step_size": _Series("log_step_size", r"step size $\eta_t$"),
}


def gather(given, name: str = "runs", part: str = "traces", kind: type = Trace) -> dict:
    """{label: traces} from a result, or from a dict of traces or of sequences of them."""
    groups = getattr(given, part, given)
    words = f"a result with {part}, or {{label: {kind.__name__} or several}}"
    require_dict(name, groups, f"{kind.__name__} or several", expected=words)
    lists = {}
    for label, entries in groups.items():
        entries = (entries,) if isinstance(entries, kind) else entries
        good = isinstance(entries, tuple | list) and entries
        if not good or not all(isinstance(entry, kind) for entry in entries):
            raise DtypeError(
                name, expected=words, got=f"{short(entries)} under {label!r}",
                remedy=f"give each label a {kind.__name__}, or a list of them",
            )  # fmt: skip
        lists[str(label)] = tuple(entries)
    return lists


def require_columns(table, *names: str) -> None:
    """Refuse a table that lacks one of these columns."""
    for name in names:
        if name not in table:
            raise RangeError(
                name, expected="a column of the table", got="none of that name",
                remedy="add it; there are " + ", ".join(map(str, table.columns)),
            )  # fmt: skip


def require_dict(name: str, given, values: str, expected: str = "a dict that is not empty") -> None:
    """Refuse what is no dict, or empty, where `values` are wanted by label."""
    if not isinstance(given, dict) or not given:
        raise DtypeError(
            name, expected=expected, got=type(given).__name__,
            remedy=f"{{label: {values}}}",
        )  # fmt: skip


def log10(values) -> np.ndarray:
    """Exponents of ten; -inf for 0 and NaN below, which have no place on a log scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(values)


def log10_series(trace: Trace, name: str) -> np.ndarray:
    """log10 of a series of a trace; exact where the value itself leaves float range."""
    return log10_of(trace, SERIES[name].attribute)


def band(traces, name: str):
    """Recorded steps from 1 on, and min, median and max over seeds of log10 of a series."""
    step = traces[0].step
    for trace in traces[1:]:
        step = np.intersect1d(step, trace.step)
    step = step[step >= 1]
    if step.size == 0:
        raise RangeError(
            "runs", expected="a step from 1 on that all traces of a label have recorded",
            got="none", remedy="record the same steps in each run",
        )  # fmt: skip
    values = finite([log10_series(trace, name)[np.isin(trace.step, step)] for trace in traces])
    if np.isnan(values).all():
        raise RangeError(
            "series", expected="one that these runs have",
            got=f"{name!r}, which is never a finite positive number",
            remedy='"u_alignment" needs train_u=True, "alignment" an SVM',
        )  # fmt: skip
    return step, values.min(axis=0), np.median(values, axis=0), values.max(axis=0)


def finite(values) -> np.ndarray:
    """With NaN, a gap in a line, for what is infinite."""
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def figure_numbers(runs, steps=(10, 100, 1000, 10_000), series="alignment", digits: int = 2):
    """The numbers behind a figure as a small table of text.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
    steps : sequence of int
        Columns; the nearest recorded step to each, among those the runs reach.
    series : str or sequence of str
        As in `plot_runs`; several make a table with two levels of rows.
    digits : int
        Significant digits.

    Returns
    -------
    pandas.DataFrame
        Medians over seeds as text such as "1.8e-06", because 10^-3000 is no float.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.plots import figure_numbers
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
            step, _, middle, _ = band(traces, name)
            chosen = _nearest(step, steps)
            columns = columns or [f"t = {step[index]}" for index in chosen]
            cells = [scientific(middle[index], digits) for index in chosen]
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
            "steps", expected="at least one step, each 1 or later", got=repr(wanted),
            remedy="for example steps=(10, 100, 1000)",
        )  # fmt: skip
    reached = [each for each in wanted if each <= 1.05 * step[-1]]
    indices = [int(np.abs(np.log(step / each)).argmin()) for each in reached]
    return sorted(set(indices))


def scientific(log10: float, digits: int = 2) -> str:
    """10^log10 as text, far outside float range as well: "0.37", "9.6", "1.8e-06", "5e-305"."""
    if not math.isfinite(log10):
        return {math.inf: "inf", -math.inf: "0"}.get(log10, "")
    if -300 < log10 < 300:
        return f"{float(f'{10.0**log10:.{digits}g}'):g}"
    exponent = math.floor(log10)
    mantissa = f"{10.0 ** (log10 - exponent):.{digits - 1}f}"
    if mantissa.startswith("10"):
        mantissa, exponent = f"{1:.{digits - 1}f}", exponent + 1
    return f"{mantissa}e{exponent:+d}"
