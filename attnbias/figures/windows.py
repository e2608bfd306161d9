"""Fitted exponents in windows that slide over a run, beside proved ones."""

from __future__ import annotations

import math

import numpy as np

from .._validate import require_choice, require_number
from ..dynamics.rates import fit_rate
from ..dynamics.trace import Trace
from ..errors import RangeError
from .looks import HALO, INK, WIDTH, label_styles, new_figure, styled
from .numbers import SERIES, gather

PER_DECADE = 4  # windows that begin in each decade
FEWEST = 8  # records that `fit_rate` asks of a window


def exponent_windows(trace: Trace, series: str = "alignment", width: float = 1.0):
    """Exponents of a series in t on windows that slide over the run.

    Parameters
    ----------
    trace : Trace
    series : str
        As in `plot_runs`. Of series kept as logarithms (such as "loss" and "nonopt") it is
        the exponent of minus the logarithm: 1/3 for a loss like exp(-t^(1/3)).
    width : float
        Of a window, in decades.

    Returns
    -------
    middle, exponent, low, high : (K,) arrays
        Geometric middle of each window that holds eight records, and what `fit_rate` gives.

    Raises
    ------
    RangeError, DtypeError
        Among others when no window holds eight records.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> from attnbias.figures import exponent_windows
    >>> trace = train(make_separation_pair(), NGD(0.1), 10_000, W0=[[0.0, 0.3], [0.0, 0.0]])
    >>> round(float(exponent_windows(trace)[1][-1]), 2)
    -2.0
    """
    require_choice("series", series, tuple(SERIES))
    width = require_number("width", width, low=0, open_low=True, high=20)
    found = SERIES[series]
    value = getattr(trace, found.attribute)
    value = -value if found.is_log else value
    good = (trace.step >= 1) & np.isfinite(value) & (value > 0)
    step, value = trace.step[good], value[good]
    rows = []
    for start in _starts(step, width):
        window = (start, start * 10**width)
        inside = (step >= window[0]) & (step <= window[1])
        if inside.sum() >= FEWEST:
            fit = fit_rate(step, value, window)
            rows.append((start * 10 ** (width / 2), fit.exponent, *fit.interval))
    if not rows:
        raise RangeError(
            "width",
            expected=f"windows with {FEWEST} records at which {series!r} is positive",
            got=f"none among {len(step)} such records",
            remedy="record more steps, or widen the windows",
        )
    return tuple(np.array(rows).T)


def _starts(step: np.ndarray, width: float) -> np.ndarray:
    """Where windows begin: evenly on a log scale, the last so that it ends with the run."""
    if step.size == 0:
        return np.empty(0)
    first, last = math.log10(step[0]), math.log10(step[-1]) - width
    if last < first:
        return np.empty(0)
    count = max(1, math.floor((last - first) * PER_DECADE + 1e-9))
    # a hair early, so that rounding leaves the run's last record inside
    return 10 ** (last - np.arange(count, -1, -1) / PER_DECADE) * (1 + 1e-12)


@styled
def plot_exponent_windows(runs, series: str = "alignment", proved=None, width: float = 1.0):
    """Fitted exponents in sliding windows, with their intervals, beside proved ones.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
        By label; of several seeds the median exponent and the widest interval are drawn.
    series, width
        As in `exponent_windows`.
    proved : dict of str to float, optional
        Exponents to compare with, by the name to write beside them, such as
        {"M2": -2, "Theorem 1's form": -1}.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.figures import plot_exponent_windows
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 1000)
    >>> len(plot_exponent_windows({"NGD": trace}, proved={"M2": -2}).axes)
    1
    """
    groups = gather(runs)
    fig = new_figure((WIDTH, 4.2))
    axis = fig.subplots()
    axis.set_xscale("log")
    for label, look in label_styles(groups).items():
        parts = np.array([exponent_windows(trace, series, width) for trace in groups[label]])
        middle, exponent = parts[0, 0], np.median(parts[:, 1], axis=0)
        low, high = parts[:, 2].min(axis=0), parts[:, 3].max(axis=0)
        axis.fill_between(middle, low, high, color=look["color"], alpha=0.18, linewidth=0)
        axis.plot(middle, exponent, label=label, **look)
    for text, power in (proved or {}).items():
        power = require_number("proved", power)
        axis.axhline(power, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axis.annotate(
            f"{text}: {power:.3g}", (0.99, power), xycoords=("axes fraction", "data"),
            xytext=(0, -6), textcoords="offset points", ha="right", va="top",
            fontsize=11, path_effects=HALO,
        )  # fmt: skip
    axis.margins(y=0.12)
    axis.set_xlabel("middle of the window, step t")
    axis.set_ylabel("exponent of t")
    axis.set_title(_what(series, width))
    fig.legend(loc="outside upper center", ncols=min(len(groups), 3), handlelength=3.2)
    return fig


def _what(series: str, width: float) -> str:
    name = SERIES[series].label
    name = f"minus the log of {name}" if SERIES[series].is_log else name
    decades = "1 decade" if width == 1 else f"{width:g} decades"
    return f"{name}, windows of {decades}"
