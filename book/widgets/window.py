"""A slider that moves the window of a fitted power law."""

import math

import numpy as np

from attnbias.dynamics.rates import fit_rate
from attnbias.errors import RangeError

from .panel import Panel, decades
from .picture import HUES, Control, Picture, stroke


def slider_window(
    step, value, *, label: str, series: str = "value", name: str | None = None
) -> str:
    """A power law fitted on a window that the reader moves.

    Parameters
    ----------
    step, value : (R,) array
        As in `fit_rate`: iterations above 0, in order, and a positive quantity.
    label : str
        What the figure shows; read out by screen readers.
    series : str
        Name of the quantity.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. Windows begin at sixths of a decade and are half a decade
        to four decades long, or end with the run; the exponent is `fit_rate`'s.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError
        Those of `fit_rate`, also when a window holds too few records.

    Examples
    --------
    >>> import numpy as np
    >>> from book.widgets import slider_window
    >>> step = np.unique(np.geomspace(100, 10**5, 200).round())
    >>> "exponent -2.00" in slider_window(step, step**-2.0, label="Exponent")
    True
    """
    fit_rate(step, value)  # refuses what has no power law
    step, value = np.asarray(step, dtype=float), np.asarray(value, dtype=float)
    windows, begins, lengths = windows_of(step)
    if len(lengths) < 2 or len(begins) < 2:
        raise RangeError(
            "step",
            expected="more than a decade",
            got=f"steps {step[0]:g} to {step[-1]:g}",
            remedy="pass a longer run",
        )
    fits = [fit_rate(step, value, window=window) for window in windows]
    controls = [
        Control("window begins at step", [f"{begin}" for begin in begins], 0),
        Control("and is long, in decades", [f"{length:g}" for length in lengths], 1),
    ]
    picture = Picture(controls, (420, 330))
    ends = value.min(), value.max()
    panel = Panel((52, 30, 356, 250), (step[0], step[-1]), (ends[0] / 3, 3 * ends[1]), "xy")
    picture.add(panel.frame("step t", series, decades(*panel.x), decades(*panel.y)))
    boxes = [_box(panel, *window) for window in windows]
    picture.follow(
        "path", "d", boxes, (0, 1), style=f"fill:{HUES['vermillion']}", fill_opacity=0.18
    )
    picture.add(
        f'<polyline points="{panel.line(step, value)}" fill="none" stroke="currentColor" '
        'stroke-width="2"/>'
    )
    lines = [_fitted(panel, step, value, *each) for each in zip(windows, fits, strict=True)]
    picture.follow("polyline", "points", lines, (0, 1), **stroke("vermillion", dashes="7 4"))
    texts = [_fit_said(window, fit) for window, fit in zip(windows, fits, strict=True)]
    return picture.markup(label, texts, name=name)


def windows_of(step) -> tuple[list[tuple[int, int]], list[int], list[float]]:
    """Windows of `slider_window` in the order of its controls, their begins and their lengths."""
    first, last = math.log10(step[0]), math.log10(step[-1])
    lengths = [length for length in (0.5, 1, 1.5, 2, 3, 4) if length <= last - first + 1e-9]
    marks = np.arange(math.ceil(6 * first - 1e-9), math.floor(6 * (last - 0.5) + 1e-9) + 1) / 6
    begins = [round(10**mark) for mark in marks]
    windows = [
        (begin, round(10 ** min(last, mark + length)))
        for begin, mark in zip(begins, marks, strict=True)
        for length in lengths
    ]
    return windows, begins, lengths


def _box(panel: Panel, low: float, high: float) -> str:
    (left, top), (right, bottom) = panel.place([low, high], [panel.y[1], panel.y[0]])
    return f"M {left:.1f} {top:.1f} H {right:.1f} V {bottom:.1f} H {left:.1f} Z"


def _fitted(panel: Panel, step, value, window, fit) -> str:
    """The fitted line, through the middle of the window's records in log step."""
    inside = (step >= window[0]) & (step <= window[1])
    x, y = np.log(step[inside]), np.log(value[inside])
    weight = np.gradient(x)
    height = np.average(y, weights=weight) - fit.exponent * np.average(x, weights=weight)
    ends = np.array(window, dtype=float)
    return panel.line(ends, np.exp(height + fit.exponent * np.log(ends)))


def _fit_said(window, fit) -> str:
    low, high = fit.interval
    return (
        f"steps {window[0]} to {window[1]}: exponent {fit.exponent:.2f}, "
        f"slopes inside {low:.2f} to {high:.2f}"
    )
