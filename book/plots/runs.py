"""Runs: exponents in windows that slide, where float64 ends, and groups of a sweep."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.ticker import NullLocator

from attnbias._validate import require_choice, require_number
from attnbias.dynamics.rates import fit_rate
from attnbias.dynamics.trace import Trace
from attnbias.errors import RangeError
from attnbias.plots.axes import shared_legend
from attnbias.plots.series import SERIES, gather, require_columns
from attnbias.plots.theme import (
    COLOURS,
    FAINT,
    HALO,
    INK,
    MARKS,
    WIDTH,
    label_styles,
    new_figure,
    styled,
)

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
    >>> from book.plots.runs import exponent_windows
    >>> trace = train(make_separation_pair(), NGD(0.1), 10_000, W0=[[0.0, 0.3], [0.0, 0.0]])
    >>> round(float(exponent_windows(trace)[1][-1]), 2)
    -2.0
    """
    require_choice("series", series, tuple(SERIES))
    width = require_number("width", width, low=0, open_low=True, high=20)
    found = SERIES[series]
    value = getattr(trace, found.attribute)
    value = -value if found.attribute.startswith("log_") else value
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
        parts = np.array([exponent_windows(trace, series, width) for trace in groups[label]])
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
    axis.set_title(_what(series, width))
    shared_legend(fig, fig.axes, columns=min(len(groups), 3), handlelength=3.2)
    return fig


def _what(series: str, width: float) -> str:
    name = SERIES[series].label
    name = f"minus the log of {name}" if SERIES[series].attribute.startswith("log_") else name
    decades = "1 decade" if width == 1 else f"{width:g} decades"
    return f"{name}, windows of {decades}"


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
            (wall, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-12, -4),
            textcoords="offset points",
            ha="right",
            va="top",
        )
    axis.margins(y=0.15)
    axis.set_xlabel("step t")
    axis.set_ylabel("1 - cosine with $W_{mm}$")
    return fig


@styled
def plot_groups(table, x: str, y: str, by: str, *, log=(True, True), names=("", ""), guide=None):
    """Median of a column over seeds, with its whole range, along another column.

    Parameters
    ----------
    table : pandas.DataFrame
        From `attnbias.sweep`, or a part of one.
    x, y : str
        Columns; y is drawn as the median of each group and a bar from least to largest.
    by : str
        Column that tells the lines apart.
    log : (bool, bool)
        Whether the axes are logarithmic.
    names : (str, str)
        Labels of the axes; the columns' names by default.
    guide : (float, str), optional
        A horizontal line, and what it is.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For a column that the table has not.

    Examples
    --------
    >>> import attnbias
    >>> from book.plots import plot_groups
    >>> table = attnbias.sweep({"data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40],
    ...                                  "seed": "0:3"}, "rule": "NGD(0.1)", "steps": 10})
    >>> len(plot_groups(table, "d", "margin", "T").axes)
    1
    """
    require_columns(table, x, y, by)
    fig = new_figure((WIDTH, 4.0))
    axis = fig.subplots()
    groups = {key: rows.groupby(x)[y] for key, rows in table.groupby(by)}
    for k, (key, group) in enumerate(groups.items()):
        middle = group.median()
        apart = 0.02 * (k - (len(groups) - 1) / 2)  # so that ranges don't hide each other
        place = (
            middle.index * (1 + apart) if log[0] else middle.index + apart * np.ptp(middle.index)
        )
        ends = (middle - group.min(), group.max() - middle)
        colour, marker = MARKS[k % len(MARKS)]
        axis.errorbar(
            place,
            middle,
            yerr=ends,
            label=f"{by} = {key}",
            color=COLOURS[colour],
            marker=marker,
            capsize=3,
            elinewidth=1.0,
        )
    if guide is not None:
        _guide(axis, *guide)
    for set_scale, is_log in ((axis.set_xscale, log[0]), (axis.set_yscale, log[1])):
        set_scale("log" if is_log else "linear")
    values = sorted(table[x].unique())
    if log[0] and len(values) <= 8:
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(names[0] or x)
    axis.set_ylabel(names[1] or y)
    shared_legend(fig, fig.axes, columns=min(len(groups), 3), handlelength=3.2)
    return fig


def _guide(axis, value: float, text: str) -> None:
    axis.axhline(value, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    axis.annotate(
        text,
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 5),
        textcoords="offset points",
        fontsize=11,
        path_effects=HALO,
    )
