"""Plots of training runs."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .._validate import require_choice
from .axes import DEEP, deep_axis, power_of_ten, thinned
from .looks import COLOURS, FAINT, INK, WIDTH, label_styles, new_figure, styled
from .numbers import SERIES, band, gather


@styled
def plot_runs(runs, series=("loss_gap", "W_norm", "nonopt", "alignment"), title: str = ""):
    """Runs of several rules: one panel a quantity, median over seeds and min-max band.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
        By label.
    series : sequence of str, or str
        Any of "loss_gap", "loss", "W_norm", "nonopt" (1 minus the softmax at the optimal
        token), "alignment" (1 - cosine with W_mm), "grad_norm", "step_size"; in joint
        training "u_norm" and "u_alignment" (1 - cosine with u_mm) as well.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Both axes are logarithmic. A quantity that falls below 1e-30 has its exponent of ten on a
    log scale (ticks 1, 10^-1, 10^-10, 10^-100, ...), on which exponential decay in t is a
    straight line.

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.figures import plot_runs
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 100)
    >>> len(plot_runs({"NGD": trace}).axes)
    4
    """
    series = (series,) if isinstance(series, str) else tuple(series)
    for name in series:
        require_choice("series", name, tuple(SERIES))
    groups = gather(runs)
    columns = 1 if len(series) == 1 else 2
    rows = -(-len(series) // columns)
    fig = new_figure((WIDTH, 0.6 + 2.55 * rows) if columns == 2 else (WIDTH, 4.2))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(axes, series, strict=False):
        _panel(axis, groups, name)
    for axis in axes[len(series) :]:
        axis.remove()
    for axis in axes[max(0, len(series) - columns) : len(series)]:
        axis.set_xlabel("step t")
    _legend(fig, axes[0], len(groups))
    if title:
        fig.suptitle(title)
    return fig


@styled
def plot_alignment_rates(runs, guides=(-1, -2), window=None):
    """1 - cosine with W_mm along the runs, beside thin grey powers of t.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
    guides : sequence of float
        Exponents to draw for comparison.
    window : (first, last), optional
        Steps to shade, such as those on which exponents were fitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.figures import plot_alignment_rates
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 100)
    >>> plot_alignment_rates({"NGD": trace}).axes[0].get_xlabel()
    'step t'
    """
    groups = gather(runs)
    fig = new_figure((WIDTH, 4.4))
    axis = fig.subplots()
    _panel(axis, groups, "alignment")
    axis.set_xlabel("step t")
    limits = axis.get_xlim(), axis.get_ylim()
    last = max(trace.step[-1] for traces in groups.values() for trace in traces)
    for power in guides:
        _guide(axis, power, float(last), limits)
    if window is not None:
        axis.axvspan(*window, color="#f1f1f1", zorder=0)
    axis.set_xlim(limits[0])
    axis.set_ylim(limits[1])
    _legend(fig, axis, len(groups))
    return fig


def _guide(axis, power: float, last: float, limits) -> None:
    """A power law through the upper left of the axes, named where it leaves them."""
    (_, right), (low, high) = limits
    start = max(last**0.25, 3.0)
    top = 10 ** (high - 0.12 * (high - low))
    x = np.geomspace(start, 10**right if right < 50 else right, 60)
    y = np.log10(top * (x / start) ** power)
    axis.plot(x, y, color=FAINT, linewidth=1.0, zorder=1)
    seen = np.flatnonzero(y >= low + 0.04 * (high - low))[-1]
    spot = max(0, min(seen, 52))
    axis.annotate(
        f"$t^{{{power:g}}}$",
        (x[spot], y[spot]),
        xytext=(4, 4),
        textcoords="offset points",
        color="#5f5f5f",
        fontsize=11,
    )


def _legend(fig, axis, count: int) -> None:
    handles, labels = axis.get_legend_handles_labels()
    columns = count if count <= 4 else 3
    fig.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=3.2)


def _panel(axis, groups, name: str) -> None:
    axis.set_xscale("log")
    lowest = 0.0
    for index, (label, look) in enumerate(label_styles(groups).items()):
        values = band(groups[label], name)
        step, low, middle, high = (array[thinned(values[0])] for array in values)
        lowest = min(lowest, float(np.min(low, initial=0.0, where=np.isfinite(low))))
        axis.fill_between(step, low, high, color=look["color"], alpha=0.18, linewidth=0)
        every = max(1, len(step) // 6)  # markers staggered, so that equal lines show as two
        start = (2 * index + 1) * every // (2 * len(groups))
        axis.plot(step, middle, label=label, markevery=(start, every), **look)
    axis.set_ylabel(SERIES[name].label)
    if lowest < DEEP:
        deep_axis(axis, lowest)
    else:
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_formatter(FuncFormatter(power_of_ten))


@styled
def plot_wall(step, exact, float64, wall=None, reference=None):
    """1 - cosine along one run: exact in the log domain, and by a plain float64 loop.

    Parameters
    ----------
    step : (R,) array
    exact, float64 : (R,) arrays
        1 - cosine at these steps; NaN or 0 leaves a gap in the line.
    wall : int, optional
        The step from which the plain loop is wrong, to be marked.
    reference : (steps, values), optional
        A few values in high precision, drawn as circles.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from attnbias.figures import plot_wall
    >>> fig = plot_wall([1, 10, 100], [1e-1, 1e-3, 1e-5], [1e-1, 1e-3, 1e-2], wall=40)
    >>> fig.axes[0].get_ylabel()
    '1 - cosine with $W_{mm}$'
    """
    fig = new_figure((WIDTH, 4.0))
    axis = fig.subplots()
    looks = (
        ("plain float64", float64, COLOURS["vermillion"], "--"),
        ("log domain", exact, COLOURS["blue"], "-"),
    )
    for label, values, colour, line in looks:
        values = np.asarray(values, dtype=np.float64)
        values = np.where(values > 0, values, np.nan)
        axis.plot(step, values, line, color=colour, label=label)
    if reference is not None:
        circle = {"markerfacecolor": "none", "markeredgecolor": INK, "markersize": 8}
        axis.plot(*reference, "o", label="multiprecision", **circle)
    axis.set_xscale("log")
    axis.set_yscale("log")
    if wall is not None:
        axis.axvline(wall, color=FAINT, linewidth=1.2, linestyle=":")
        axis.annotate(
            f"step {wall}",
            (wall, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -12),
            textcoords="offset points",
            ha="right",
        )
    axis.set_xlabel("step t")
    axis.set_ylabel("1 - cosine with $W_{mm}$")
    fig.legend(loc="outside upper center", ncols=3)
    return fig
