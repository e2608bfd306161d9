"""Axes that plots share: steps with a place for 0, powers of ten far below the smallest float."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter as FuncFormatter
from matplotlib.ticker import MaxNLocator as MaxNLocator
from matplotlib.ticker import NullLocator

from .theme import WIDTH, Given, new_figure

# Exponents of ten beyond this are put on a log scale of their own.
DEEP = -30.0
ROW = 60  # letters of a legend that fit into the width of a figure
POINTS = 90  # on a line at most, which keeps an SVG small


def deep_axis(axis, lowest: float, highest: float) -> None:
    """The exponent of ten on a log scale, linear from 10 to 1/10."""
    axis.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    below, above = (
        [10.0**k for k in range(int(np.ceil(np.log10(end))) + 1)] if end > 1 else []
        for end in (-lowest, highest)
    )
    axis.set_yticks([*(-each for each in reversed(below)), 0.0, *above])
    axis.yaxis.set_minor_locator(NullLocator())
    side = 0.03 if lowest < -highest else 0.97  # where curves that fall or rise leave room
    axis.text(
        side,
        0.04,
        "exponent on a log scale",
        transform=axis.transAxes,
        ha="left" if side < 0.5 else "right",
        color="#5f5f5f",
        fontsize=9.5,
    )


def exponent_axis(axis, exponents) -> None:
    """Ticks for values that are exponents of ten: powers, on a scale of their own if deep, and
    round numbers where they are close together.
    """
    exponents = np.ravel(exponents)
    exponents = exponents[np.isfinite(exponents)]
    low, high = float(exponents.min(initial=0.0)), float(exponents.max(initial=0.0))
    if low < DEEP or high > -DEEP:
        deep_axis(axis, low, high)
    elif exponents.size and np.ptp(exponents) <= 3:
        ticks = _round_numbers(exponents.min() - 0.03, exponents.max() + 0.03)
        axis.set_yticks(np.log10(ticks), [f"{tick:.3g}" for tick in ticks])
        return
    else:
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_formatter(FuncFormatter(power_of_ten))


def _round_numbers(low: float, high: float) -> list[float]:
    """Ticks between 10^low and 10^high, which are less than four decades apart."""
    if high - low < 0.7:
        ticks = np.asarray(MaxNLocator(5).tick_values(10.0**low, 10.0**high))
    else:
        decades = 10.0 ** np.arange(math.floor(low), math.ceil(high))
        ticks = np.outer(decades, (1, 2, 5) if high - low < 2 else (1, 3)).ravel()
    return [tick for tick in ticks if 10.0**low <= tick <= 10.0**high]


def power_of_ten(exponent: float, _position) -> str:
    return f"$10^{{{exponent:g}}}$" if exponent else "1"


def thinned(step: np.ndarray) -> np.ndarray:
    """Indices of at most POINTS steps, evenly spaced on a log axis, the first and last too."""
    late = np.flatnonzero(step >= 1)
    if late.size <= POINTS:
        return np.arange(len(step))
    wanted = np.geomspace(step[late[0]], step[late[-1]], POINTS)
    chosen = late[0] + np.searchsorted(step[late], wanted).clip(max=late.size - 1)
    return np.union1d([0], chosen)


def step_axis(axis, step: np.ndarray) -> None:
    """A log scale where steps span a factor of 30, with a stretch from 0 to 1 if 0 is there."""
    axis.set_xmargin(0.04)
    if step[-1] == step[0]:
        axis.set_xticks([step[0]])
    elif step[-1] < 30 * max(step[0], 1):
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    elif step[0] < 1:
        axis.set_xscale("symlog", linthresh=1.0, linscale=0.5)
        decades = 10.0 ** np.arange(math.floor(math.log10(step[-1])) + 1)
        axis.set_xticks([0.0, *decades[:: 1 + len(decades) // 6]])
        axis.xaxis.set_major_formatter(FuncFormatter(_step_text))
    else:
        axis.set_xscale("log")


def _step_text(step: float, _position) -> str:
    return f"$10^{{{math.log10(step):.0f}}}$" if step >= 1 else "0"


def panel_axes(count: int, ax=None, *, height: float = 2.6, single: float = 4.2, **shared):
    """A figure and its panels, two a row; its height by row, and that of a single panel. In `ax`,
    axes of the caller's own, one a panel.
    """
    columns = min(count, 2) if ax is None else 1
    rows = -(-count // columns)
    fig = new_figure((WIDTH, single if count == 1 else 0.7 + height * rows), ax)
    axes = fig.subplots(rows, columns, squeeze=False, **shared).ravel()
    for axis in axes[count:]:
        axis.remove()
    return fig, axes[:count]


def draw_panels(
    panels: Iterable,
    draw: Callable[[Axes, Any], None],
    ax: Given = None,
    *,
    title: str = "",
    xlabel: str = "step t",
    handlelength: float | None = 3.2,
    **size: Any,
) -> Figure:
    """A figure with a panel each, drawn by `draw`, and one legend above them."""
    panels = [*panels]
    fig, axes = panel_axes(len(panels), ax, **size)
    for axis, panel in zip(axes, panels, strict=True):
        draw(axis, panel)
    for axis in axes[-2:]:
        axis.set_xlabel(xlabel or axis.get_xlabel())
    shared_legend(fig, axes, title=title, handlelength=handlelength)
    return fig


def band_line(axis, x, values, label: str, look: dict, phase: float) -> tuple[np.ndarray, ...]:
    """The median over the rows as a line, with a band from the least to the largest: all three.

    Markers are staggered by a phase below 1, so that equal lines show as two.
    """
    low, middle, high = ends = values.min(axis=0), np.median(values, axis=0), values.max(axis=0)
    axis.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
    every = max(1, len(x) // 6)
    axis.plot(x, middle, label=label, markevery=(int(phase * every), every), **look)
    return ends


def shared_legend(fig, axes, columns: int | None = None, title: str = "", **look) -> None:
    """One legend above the panels, with each label that any of them has, up to four a row, and
    fewer where they would reach beyond the figure; what is longer than a row is broken.
    """
    named: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    labels = [textwrap.fill(label, ROW) for label in named]
    for ncols in range(columns or (len(named) if len(named) <= 4 else 3), 0, -1):
        legend = fig.legend(named.values(), labels, loc="outside upper center", ncols=ncols, **look)
        if ncols == 1 or legend.get_window_extent().width <= fig.bbox.width:
            break
        legend.remove()
    if title:
        fig.suptitle(title)
