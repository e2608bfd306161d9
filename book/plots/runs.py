"""Runs: exponents in windows that slide, and where float64 ends."""

import math

import numpy as np

from attnbias._validate import require_choice, require_number
from attnbias.dynamics.rates import fit_rate
from attnbias.dynamics.trace import Trace
from attnbias.errors import RangeError
from attnbias.plots.axes import shared_legend
from attnbias.plots.series import SERIES, gather
from attnbias.plots.theme import (
    COLOURS,
    FAINT,
    HALO,
    INK,
    WIDTH,
    label_styles,
    new_figure,
    styled,
)

PER_DECADE = 4  # windows that begin in each decade
FEWEST = 8  # records that `fit_rate` asks of a window


def exponent_windows(trace: Trace, series: str = "alignment"):
    """Exponents of a series in t on windows of a decade that slide over the run.

    Parameters
    ----------
    trace : Trace
    series : str
        As in `plot_runs`. Of series kept as logarithms (such as "loss" and "nonopt") it is
        the exponent of minus the logarithm: 1/3 for a loss like exp(-t^(1/3)).

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
    >>> from book.plots.runs import exponent_windows
    >>> trace = train(make_separation_pair(), NGD(0.1), 10_000, W0=[[0.0, 0.3], [0.0, 0.0]])
    >>> round(float(exponent_windows(trace)[1][-1]), 2)
    -2.0
    """
    require_choice("series", series, tuple(SERIES))
    found = SERIES[series]
    value = getattr(trace, found.attribute)
    value = -value if found.attribute.startswith("log_") else value
    good = (trace.step >= 1) & np.isfinite(value) & (value > 0)
    step, value = trace.step[good], value[good]
    rows = []
    for start in _starts(step):
        window = (start, 10 * start)
        inside = (step >= window[0]) & (step <= window[1])
        if inside.sum() >= FEWEST:
            fit = fit_rate(step, value, window)
            rows.append((start * 10**0.5, fit.exponent, *fit.interval))
    if not rows:
        raise RangeError(
            "trace",
            expected=f"a decade with {FEWEST} records at which {series!r} is positive",
            got=f"none among {len(step)} such records",
            remedy="record more steps",
        )
    return tuple(np.array(rows).T)


def _starts(step: np.ndarray) -> np.ndarray:
    """Where windows begin: evenly on a log scale, the last so that it ends with the run."""
    if step.size == 0:
        return np.empty(0)
    first, last = math.log10(step[0]), math.log10(step[-1]) - 1
    if last < first:
        return np.empty(0)
    count = max(1, math.floor((last - first) * PER_DECADE + 1e-9))
    # a hair early, so that rounding leaves the run's last record inside
    return 10 ** (last - np.arange(count, -1, -1) / PER_DECADE) * (1 + 1e-12)


@styled
def plot_exponent_windows(runs, series: str = "alignment", proved=None):
    """Fitted exponents in sliding windows of a decade, with their intervals, beside proved ones.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
        By label; of several seeds the median exponent and the widest interval are drawn.
    series : str
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
    >>> from book.plots import plot_exponent_windows
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 1000)
    >>> len(plot_exponent_windows({"NGD": trace}, proved={"M2": -2}).axes)
    1
    """
    groups = gather(runs)
    fig = new_figure((WIDTH, 4.2))
    axis = fig.subplots()
    axis.set_xscale("log")
    for label, look in label_styles(groups).items():
        parts = np.array([exponent_windows(trace, series) for trace in groups[label]])
        middle, exponent = parts[0, 0], np.median(parts[:, 1], axis=0)
        low, high = parts[:, 2].min(axis=0), parts[:, 3].max(axis=0)
        axis.fill_between(middle, low, high, color=look["color"], alpha=0.18, linewidth=0)
        axis.plot(middle, exponent, label=label, **look)
    for text, power in (proved or {}).items():
        power = require_number("proved", power)
        axis.axhline(power, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axis.annotate(
            f"{text}: {power:.3g}",
            (0.99, power),
            xycoords=("axes fraction", "data"),
            xytext=(0, -6),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=11,
            path_effects=HALO,
        )
    axis.margins(y=0.12)
    axis.set_xlabel("middle of the window, step t")
    axis.set_ylabel("exponent of t")
    name = SERIES[series].label
    name = f"minus the log of {name}" if SERIES[series].attribute.startswith("log_") else name
    axis.set_title(f"{name}, windows of 1 decade")
    shared_legend(fig, fig.axes, columns=min(len(groups), 3), handlelength=3.2)
    return fig


@styled
def plot_wall(
    step,
    exact,
    float64,
    wall=None,
    reference=None,
    names=("plain float64", "log domain", "multiprecision"),
):
    """1 - cosine along one run: exact, and by a plain float64 loop, with names at the curves.

    Parameters
    ----------
    step : (R,) array
    exact, float64 : (R,) arrays
        1 - cosine at these steps; NaN or 0 leaves a gap in the line.
    wall : int, optional
        The step from which the plain loop is wrong, to be marked.
    reference : (steps, values), optional
        A few values found in another way, drawn as circles.
    names : (str, str, str)
        Of the plain loop, the exact one and the reference.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from book.plots import plot_wall
    >>> fig = plot_wall([1, 10, 100], [1e-1, 1e-3, 1e-5], [1e-1, 1e-3, 1e-2], wall=40)
    >>> fig.axes[0].get_ylabel()
    '1 - cosine with $W_{mm}$'
    """
    fig = new_figure((WIDTH, 4.0))
    axis = fig.subplots()
    axis.set_xscale("log")
    axis.set_yscale("log")
    colours = (COLOURS["vermillion"], COLOURS["blue"], INK)
    for values, colour, line in zip((float64, exact), colours, ("--", "-"), strict=False):
        values = np.asarray(values, dtype=np.float64)
        axis.plot(step, np.where(values > 0, values, np.nan), line, color=colour)
    if reference is not None:
        axis.plot(*reference, "o", markerfacecolor="none", markeredgecolor=INK, markersize=8)
    ends = [line.get_xydata()[np.isfinite(line.get_ydata())] for line in axis.lines]
    # above the end of the plain curve, below that of the exact one, below the first circle
    places = (ends[0][-1], (0, 8), "right"), (ends[1][-1], (0, -20), "right")
    places += ((ends[2][0], (-8, -17), "right"),) if reference is not None else ()
    for name, colour, (place, shift, side) in zip(names, colours, places, strict=False):
        axis.annotate(
            name,
            place,
            xytext=shift,
            textcoords="offset points",
            ha=side,
            color=colour,
            path_effects=HALO,
        )
    if wall is not None:
        axis.axvline(wall, color=FAINT, linewidth=1.2, linestyle=":")
        axis.annotate(
            f"from step {wall} on the\nsoftmax is stored as 1",
            (wall, 0.3),
            xycoords=("data", "axes fraction"),
            xytext=(-12, 0),
            textcoords="offset points",
            ha="right",
            va="center",
        )
    axis.margins(y=0.15)
    axis.set_xlabel("step t")
    axis.set_ylabel("1 - cosine with $W_{mm}$")
    return fig
