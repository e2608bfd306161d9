"""A check made along a run: the measured value beside its bound at every recorded step."""

from __future__ import annotations

import math
import re
import textwrap

import numpy as np

from .._validate import short
from ..checks import Check
from ..errors import DtypeError, RangeError
from .axes import exponent_axis, step_axis, thinned
from .theme import COLOURS, HALO, INK, WIDTH, new_figure, styled

MOST_PANELS = 6
FEW = 12  # steps that are drawn as points as well
NAME_SIZE, GAP = 11, 6  # points: the names of the two lines, and their distance from them
PLACES = 25  # along a panel, at which a name may stand
# "log (1 - softmax)" and "Theorem 8: log L" are powers of ten; "-log L" and "the norm, against
# log(...)" are numbers like others
_LOGARITHM = re.compile(r"(?:^|: )log\b(?! t\b)")


@styled
def plot_check(checks, *, logs: bool | None = None, titles=None, ylabel: str = ""):
    """The measured value and its bound at every recorded step, one panel a check.

    Parameters
    ----------
    checks : Check, or sequence of Check
        Made with `Check.along`. Of a sequence those of a single value are left out; six
        panels at most.
    logs : bool, optional
        Whether the two sides are natural logarithms, which are drawn as powers of ten. By
        default those whose statement begins with "log" are.
    titles : str or sequence of str, optional
        Over the panels; by default the checks' statements.
    ylabel : str
        What is measured, the same for all panels.

    Returns
    -------
    matplotlib.figure.Figure
        The side on which the bound allows the value is shaded, and steps at which the check
        is violated are crossed. Steps are on a log scale with a place for step 0. Values
        that are all positive are on a log scale where they span a factor of 5 or more; there
        a value of 0 leaves a gap.

    Raises
    ------
    DtypeError, RangeError
        Among others for a check without values along a run, such as one not applicable.

    Examples
    --------
    >>> from attnbias import Check
    >>> from attnbias.plots import plot_check
    >>> check = Check.along("the norm is at most t", [1, 10, 100], [1, 8, 90], [1, 10, 100])
    >>> fig = plot_check(check)
    >>> [text.get_text() for text in fig.axes[0].texts]
    ['measured', 'bound, at most']
    """
    drawn = _drawable(checks)
    titles = [titles] if isinstance(titles, str) else titles
    titles = [check.statement for check in drawn] if titles is None else [str(t) for t in titles]
    if len(titles) != len(drawn):
        raise RangeError(
            "titles", expected=f"one a panel, {len(drawn)}", got=str(len(titles)),
            remedy="leave them out to see the statements",
        )  # fmt: skip
    columns = 1 if len(drawn) == 1 else 2
    rows = -(-len(drawn) // columns)
    titles = [textwrap.fill(title, 62 if columns == 1 else 29) for title in titles]
    lines = max(title.count("\n") for title in titles) + 1
    fig = new_figure((WIDTH, 0.4 + rows * ((3.4 if columns == 1 else 2.5) + 0.2 * lines)))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for axis, check, title in zip(axes, drawn, titles, strict=False):
        axis.set_title(title)
        as_logs = bool(_LOGARITHM.search(check.statement)) if logs is None else logs
        _check_panel(axis, check, as_logs, ylabel)
    for axis in axes[len(drawn) :]:
        axis.remove()
    for axis in axes[max(0, len(drawn) - columns) : len(drawn)]:
        axis.set_xlabel("step t")
    return fig


def _drawable(checks) -> list[Check]:
    single = isinstance(checks, Check)
    try:
        entries = [checks] if single else [*checks]
    except TypeError:
        entries = [checks]
    for entry in entries:
        if not isinstance(entry, Check):
            raise DtypeError(
                "checks", expected="a Check, or several", got=short(entry),
                remedy="pass the checks of a check_... function",
            )  # fmt: skip
    drawn = [entry for entry in entries if entry.step is not None]
    if not 1 <= len(drawn) <= MOST_PANELS:
        reason = f" ({entries[0].verdict}: {entries[0].reason})" if single else ""
        raise RangeError(
            "checks",
            expected=f"1 to {MOST_PANELS} checks with a value at every recorded step",
            got=f"{len(drawn)}{reason}",
            remedy="choose those made with Check.along",
        )
    return drawn


def _check_panel(axis, check: Check, logs: bool, ylabel: str) -> None:
    kept = thinned(check.step)
    step, *sides = (array[kept] for array in (check.step, check.values, check.bounds))
    broken = ~_allowed(check)[kept]
    exponents, value, bound = _drawn(*sides, logs)
    step_axis(axis, step)
    axis.margins(y=0.2)
    few = {"linewidth": 2.2, "marker": "o" if len(step) <= FEW else ""}
    axis.plot(step, bound, "--", color=COLOURS["vermillion"], **few)
    axis.plot(step, value, "-", color=COLOURS["blue"], **few)
    axis.plot(step[broken], value[broken], "x", color=INK, markersize=7, zorder=4)
    if exponents:
        exponent_axis(axis, np.concatenate([value, bound]))
    low, high = axis.get_ylim()
    axis.fill_between(
        step, bound, low if check.sense == "<=" else high,
        color=COLOURS["vermillion"], alpha=0.08, linewidth=0, zorder=0,
    )  # fmt: skip
    axis.set_ylim(low, high)
    axis.set_ylabel(ylabel or "value")
    _name_lines(axis, step, value, bound, "at most" if check.sense == "<=" else "at least")


def _allowed(check: Check) -> np.ndarray:
    """(R,) whether the inequality holds at each step, with the check's allowance."""
    if check.sense == "<=":
        return check.values <= check.bounds + check.rounding
    return check.values >= check.bounds - check.rounding


def _drawn(value, bound, logs: bool) -> tuple[bool, np.ndarray, np.ndarray]:
    """Both sides as exponents of ten (for logarithms, and where all is positive and far apart).

    What has no place on the axis is NaN: infinities, and 0 among powers of ten.
    """
    value, bound = (np.where(np.isfinite(side), side, np.nan) for side in (value, bound))
    if logs:
        return True, value / math.log(10), bound / math.log(10)
    both = np.concatenate([value, bound])
    positive = both[both > 0]
    if positive.size == 0 or np.nanmin(both) < 0 or positive.max() <= 5 * positive.min():
        return False, value, bound
    with np.errstate(divide="ignore"):
        sides = [np.log10(side) for side in (value, bound)]
    return True, *(np.where(np.isfinite(side), side, np.nan) for side in sides)


def _name_lines(axis, step, value, bound, sense: str) -> None:
    """Each line named beside itself, on the side away from the other, inside the panel."""
    spots = [axis.transData.transform(np.column_stack([step, side])) for side in (value, bound)]
    spots = [spot[np.isfinite(spot).all(axis=1)] for spot in spots]
    middle = axis.bbox.x0 + axis.bbox.width / 2
    heights = [np.interp(middle, *spot.T) if len(spot) else -math.inf for spot in spots]
    first = heights[0] >= heights[1]
    looks = (("measured", "blue", first), (f"bound, {sense}", "vermillion", not first))
    for (text, colour, above), own, other in zip(looks, spots, reversed(spots), strict=True):
        if len(own):
            size = np.array([0.65 * len(text), 1.3]) * NAME_SIZE * axis.figure.dpi / 72
            spot = _free_spot(axis.bbox, own, other, size, above)
            axis.annotate(
                text, axis.transData.inverted().transform(spot),
                xytext=(0, GAP if above else -GAP), textcoords="offset points",
                va="bottom" if above else "top", ha="center",
                color=COLOURS[colour], fontsize=NAME_SIZE, path_effects=HALO, zorder=6,
            )  # fmt: skip


def _free_spot(box, own, other, size, above: bool) -> tuple[float, float]:
    """Where a text of this size clears its own line, in pixels.

    Of places along the panel the one where it stays inside and off the other line, is near its
    own line and near the middle, in this order.
    """
    (width, height), sign = size, 1 if above else -1
    best, found = math.inf, (0.0, 0.0)
    for x in np.linspace(box.x0 + width / 2, box.x1 - width / 2, PLACES):
        under = np.linspace(x - width / 2, x + width / 2, PLACES)
        line = sign * np.interp(under, *own.T)
        y = sign * line.max()
        far = sorted((y, y + sign * height))
        outside = far[0] < box.y0 or far[1] > box.y1
        rival = np.interp(under, *other.T) if len(other) else np.full(PLACES, np.nan)
        crossed = bool(((rival > far[0]) & (rival < far[1])).any())
        away = line.max() - line.min() + max(own[0, 0] - x, x - own[-1, 0], 0.0)
        away += abs(x - box.x0 - box.width / 2) / 4
        cost = 1e4 * (outside + crossed) + away
        if cost < best:
            best, found = cost, (float(x), float(y))
    return found
