"""Training runs: their series, their rates, the steps to escape, levels predicted for them."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .._validate import require_choice
from ..errors import DtypeError, RangeError
from ..experiments.result import ExperimentResult
from .axes import DEEP, deep_axis, power_of_ten, shared_legend, thinned
from .series import SERIES, band, gather
from .theme import COLOURS, FAINT, MARKS, WIDTH, label_styles, new_figure, rule_style, styled


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
    >>> from attnbias.plots import plot_runs
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
    shared_legend(fig, axes[:1], handlelength=3.2)
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
    >>> from attnbias.plots import plot_alignment_rates
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
    shared_legend(fig, [axis], handlelength=3.2)
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
def plot_escape_steps(result: ExperimentResult):
    """Steps until sequence 1 attends to its optimal token by more than half, over R.

    Parameters
    ----------
    result : ExperimentResult
        Of experiment fig8.

    Returns
    -------
    matplotlib.figure.Figure
        GD's count on a log scale, where e^(R / sqrt 2) is a straight line; NGD's beside
        R / (2 eta). Grey lines are these two, the first through the last of GD's points.

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments
    >>> from attnbias.plots import plot_escape_steps
    >>> len(plot_escape_steps(experiments.run("fig8", scales=[1, 2, 4], steps=1000)).axes)
    2
    """
    require_fig8(result)
    R = np.array(result.measures["scale"])
    fig = new_figure((WIDTH, 3.4))
    axes = fig.subplots(1, 2)
    for axis, rule in zip(axes, ("GD", "NGD"), strict=True):
        steps = np.array(result.measures[f"{rule}, steps to one half"])
        reached = np.isfinite(steps)
        if rule == "GD":
            axis.set_yscale("log")
            axis.set_title(r"GD, beside $e^{R/\sqrt{2}}$")
            last = np.flatnonzero(reached)[-1:]
            guide = [steps[k] * np.exp((R - R[k]) / math.sqrt(2)) for k in last]
        else:
            axis.set_title(r"NGD, beside $R / (2\eta)$")
            guide = [R / (2 * result.settings["ngd_step_size"])]
        for values in guide:
            axis.plot(R, values, color=FAINT, linewidth=1.4)
        axis.plot(R[reached], steps[reached], **rule_style(rule))
        axis.set_xlabel("R, norm of $W_0$")
        axis.set_ylabel("steps to one half")
    return fig


def require_fig8(result) -> None:
    if not isinstance(result, ExperimentResult) or result.name != "fig8":
        raise DtypeError(
            "result", expected='an ExperimentResult of "fig8"', got=type(result).__name__,
            remedy='pass experiments.run("fig8")',
        )  # fmt: skip


@styled
def plot_levels(panels, *, names, log=(True, True), height=3.9):
    """Lines over steps, each with its predicted level or curve dashed in the same colour.

    Parameters
    ----------
    panels : list of dict
        One panel each: a label to (x, y, predicted), arrays, and a number, an array or None.
        A label has the same colour and marker in every panel.
    names : list of (str, str)
        Labels of the two axes of each panel.
    log : (bool, bool) or list of such
        Whether the axes are logarithmic, for all panels or for each.
    height : float
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Without a panel, with more than seven labels, or with other than one pair of names a
        panel.

    Examples
    --------
    >>> from attnbias.plots import plot_levels
    >>> fig = plot_levels([{"a": ([1, 10], [3, 2], 2.0)}], names=[("step", "value")])
    >>> len(fig.axes)
    1
    """
    labels = list(dict.fromkeys(label for panel in panels for label in panel))
    if not panels or len(names) != len(panels) or not 0 < len(labels) <= len(MARKS):
        raise RangeError(
            "panels", expected="panels with one to seven labels, and names for each panel",
            got=f"{len(panels)} panels, {len(labels)} labels, {len(names)} pairs of names",
            remedy="draw fewer lines in one figure",
        )  # fmt: skip
    scales = [log] * len(panels) if isinstance(log, tuple) else log
    fig = new_figure((WIDTH, height))
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel, words, (log_x, log_y) in zip(axes, panels, names, scales, strict=True):
        for label, (x, y, predicted) in panel.items():
            colour, marker = MARKS[labels.index(label)]
            look = {"color": COLOURS[colour], "marker": marker, "markevery": 0.17}
            axis.plot(x, y, label=label, **look)
            if predicted is not None:
                level = np.broadcast_to(np.asarray(predicted, dtype=float), np.shape(x))
                axis.plot(x, level, color=COLOURS[colour], linestyle="--", linewidth=1.2)
        axis.set_xscale("log" if log_x else "linear")
        axis.set_yscale("log" if log_y else "linear")
        axis.set_xlabel(words[0])
        axis.set_title(words[1])
    shared_legend(fig, axes, columns=3)
    return fig
