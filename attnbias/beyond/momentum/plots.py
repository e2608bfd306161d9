"""Runs with and without momentum: their errors, and the offset that decides them."""

from __future__ import annotations

import numpy as np

from ...errors import RangeError
from ...plots.axes import FuncFormatter, MaxNLocator, power_of_ten, shared_legend
from ...plots.series import gather, has_series, numbers
from ...plots.theme import HALO, INK, WIDTH, Given, label_styles, new_figure, styled


@styled(guides=numbers)
def plot_momentum(traces, guides=(-2, -4), *, ax: Given = None):
    """1 - cosine and the size of the offset along runs, one line a run.

    Parameters
    ----------
    traces : Trace, sequence of Trace, or dict of str to such
        Runs with W_mm known, by label; without labels named by their rules.
    guides : sequence of float
        Exponents of short guide lines, each under the lowest line that ends with about that slope.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Where a run measured no alignment.

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.beyond.momentum.plots import plot_momentum
    >>> data = make_example1(n=2, T=3, d=20, seed=0)
    >>> len(plot_momentum({"NGD": train(data, NGD(0.1), 100)}).axes)
    2
    """
    groups = gather(traces, "traces")
    fig = new_figure((WIDTH, 6.2), ax)
    upper, lower = fig.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    looks = label_styles(groups)
    for label, trace in [(each, trace) for each in groups for trace in groups[each]]:
        look, (step, error, norm) = looks[label], _late(label, trace)
        every = {**look, "markevery": max(1, len(step) // 9), "markersize": 5}
        upper.plot(step, np.log10(error), label=label, **every)
        lower.plot(step, norm * np.sqrt(error * (2 - error)), **every)
    _guides(upper, guides)
    upper.set_xscale("log")
    upper.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    upper.yaxis.set_major_formatter(FuncFormatter(power_of_ten))
    upper.set_ylabel("1 - cosine")
    lower.set(xlabel="step t", ylabel="size of the offset", ylim=(0, None))
    shared_legend(fig, fig.axes, columns=2, handlelength=3.2)
    return fig


def _guides(axis, powers) -> None:
    lines = [(np.log10(line.get_xdata()), line.get_ydata()) for line in axis.get_lines()]
    for power in powers:
        ends = [(x[-1], y[-1]) for x, y in lines if abs(_last_slope(x, y) - power) < 0.1]
        if not ends:
            continue
        last, low = min(ends, key=lambda end: end[1])
        x = np.array([last - 1.2, last])
        y = low - 0.9 + power * (x - last)
        axis.plot(10**x, y, color=INK, linewidth=1, linestyle=(0, (1, 2)))
        axis.annotate(
            f"$t^{{{power:g}}}$",
            (10 ** x.mean(), y.mean()),
            fontsize=11,
            xytext=(-4, -6),
            textcoords="offset points",
            ha="right",
            va="top",
            path_effects=HALO,
        )


def _last_slope(x, y) -> float:
    """Over the last half decade."""
    late = x >= x[-1] - 0.5
    return float(np.polyfit(x[late], y[late], 1)[0]) if late.sum() > 1 else np.inf


def _late(label: str, trace):
    """Steps from 1 on, with the error and the norm there."""
    if not all(has_series(trace, name) for name in ("alignment", "W_norm")):
        raise RangeError(
            label,
            expected="a run that measured 1 - cosine above 0",
            got="none",
            remedy="train with its W-SVM, from a start off W_mm",
        )
    keep = (trace.step > 0) & (trace.W_alignment_error > 0)
    return trace.step[keep], trace.W_alignment_error[keep], trace.W_norm[keep]
