"""Training runs: their series, their rates, and the steps to escape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._validate import require_choices
from ..dynamics.trace import Trace
from ..errors import DtypeError
from ..experiments.result import ExperimentResult
from .axes import band_line, draw_panels, exponent_axis, panel_axes, thinned
from .series import SERIES, band, gather, has_series, numbers, pair, text
from .theme import FAINT, Given, label_styles, rule_style, styled

Runs: TypeAlias = Trace | Sequence[Trace] | Mapping[str, Trace | Sequence[Trace]] | ExperimentResult
PANELS = ("loss_gap", "loss", "W_norm", "nonopt", "alignment")


@styled(title=text)
def plot_runs(
    runs: Runs, series: str | Sequence[str] | None = None, title: str = "", *, ax: Given = None
) -> Figure:
    """Runs of several rules: one panel a quantity, median over seeds and min-max band.

    Parameters
    ----------
    runs : Trace, sequence of Trace, dict of str to such, or ExperimentResult
        By label; without labels each is a line that is named by its rule.
    series : sequence of str, or str, optional
        Any of "loss_gap", "loss", "W_norm", "nonopt" (1 minus the softmax at the optimal
        token), "alignment" (1 - cosine with W_mm), "grad_norm", "step_size"; in joint
        training "u_norm" and "u_alignment" (1 - cosine with u_mm) as well. By default those of
        "loss_gap" (where a run lacks it "loss"), "W_norm", "nonopt" and "alignment" that a run
        recorded.
    title : str
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

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
    groups = gather(runs)
    panels, looks = _panels(groups, series), label_styles(groups)

    def draw(axis, name: str) -> None:
        _panel(axis, panels[name], name, looks)

    return draw_panels(panels, draw, ax, title=title)


def _panels(groups: dict, series) -> dict[str, dict]:
    """What each panel shows: all groups in those asked for, else those that have its series."""
    if series is not None:
        return dict.fromkeys(require_choices("series", series, SERIES), groups)
    panels = {
        name: {
            label: traces
            for label, traces in groups.items()
            if all(has_series(trace, name) for trace in traces)
        }
        for name in PANELS
    }
    if panels["loss"].keys() <= panels["loss_gap"].keys():
        del panels["loss"]
    found = {name: shown for name, shown in panels.items() if shown}
    return found or {PANELS[0]: groups}  # which says what is missing


@styled(guides=numbers, window=pair)
def plot_alignment_rates(
    runs: Runs,
    guides: Sequence[float] = (-1, -2),
    window: tuple[float, float] | None = None,
    *,
    ax: Axes | None = None,
) -> Figure:
    """1 - cosine with W_mm along the runs, beside thin grey powers of t.

    Parameters
    ----------
    runs : Trace, sequence of Trace, dict of str to such, or ExperimentResult
        As in `plot_runs`.
    guides : sequence of float
        Exponents to draw for comparison.
    window : (first, last), optional
        Steps to shade, such as those on which exponents were fitted.
    ax : Axes, optional
        Of a figure of one's own, whose look is kept.

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
    last = max(trace.step[-1] for traces in groups.values() for trace in traces)

    def draw(axis, name: str) -> None:
        _panel(axis, groups, name, label_styles(groups))
        limits = axis.get_xlim(), axis.get_ylim()
        for power in guides:
            _guide(axis, power, float(last), limits)
        if window is not None:
            axis.axvspan(*window, color="#f1f1f1", zorder=0)
        axis.set(xlim=limits[0], ylim=limits[1])

    return draw_panels(["alignment"], draw, ax)


def _guide(axis, power: float, last: float, limits) -> None:
    """A power law through the upper left of the axes, named where it leaves them."""
    (_, right), (low, high) = limits
    start = max(last**0.25, 3.0)
    top = 10 ** (high - 0.12 * (high - low))
    x = np.geomspace(start, 10**right if right < 50 else right, 60)
    y = np.log10(top * (x / start) ** power)
    axis.plot(x, y, color=FAINT, linewidth=1.0, zorder=1)
    seen = np.flatnonzero(y >= low + 0.04 * (high - low))[-1]
    beside = seen == len(x) - 1  # it leaves at the right, where no curve is
    axis.annotate(
        f"$t^{{{power:g}}}$",
        (x[seen], y[seen]),
        xytext=(4, 0) if beside else (4, 4),
        textcoords="offset points",
        va="center" if beside else "baseline",
        annotation_clip=False,
        color="#5f5f5f",
        fontsize=11,
    )


def _panel(axis, groups, name: str, looks: dict[str, dict]) -> None:
    axis.set_xscale("log")
    ends: list[np.ndarray] = []
    for k, (label, traces) in enumerate(groups.items()):
        step, values = band(traces, name)
        kept, phase = thinned(step), (k + 0.5) / len(groups)
        ends += band_line(axis, step[kept], values[:, kept], label, looks[label], phase)
    axis.set_ylabel(SERIES[name].label)
    exponent_axis(axis, np.concatenate(ends))


@styled
def plot_escape_steps(result: ExperimentResult, *, ax: Sequence[Axes] | None = None) -> Figure:
    """Steps until sequence 1 attends to its optimal token by more than half, over R.

    Parameters
    ----------
    result : ExperimentResult
        Of experiment fig8.
    ax : sequence of two Axes, optional
        Of a figure of one's own, whose look is kept.

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
    fig, axes = panel_axes(2, ax, height=2.7)
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
        axis.set(xlabel="R, norm of $W_0$", ylabel="steps to one half")
    return fig


def require_fig8(result) -> None:
    if not isinstance(result, ExperimentResult) or result.name != "fig8":
        raise DtypeError(
            "result",
            expected='an ExperimentResult of "fig8"',
            got=type(result).__name__,
            remedy='pass experiments.run("fig8")',
        )
