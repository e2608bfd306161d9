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
from .looks import COLOURS, HALO, INK, WIDTH, new_figure, styled

MOST_PANELS = 6
FEW = 12  # steps that are drawn as points as well
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
    >>> from attnbias.figures import plot_check
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
    """Each line named beside itself, in the middle, where text to either side fits."""
    place, inside = axis.transData.transform, axis.transAxes.inverted().transform
    spots = [place(np.column_stack([step, side])) for side in (value, bound)]
    across = np.abs(inside(place(np.column_stack([step, 0.0 * step])))[:, 0] - 0.47)
    at = int(np.where(np.isfinite(value) & np.isfinite(bound), across, across + 1).argmin())
    first = spots[0][at, 1] >= spots[1][at, 1]
    looks = (
        ("measured", value, "blue", first),
        (f"bound, {sense}", bound, "vermillion", not first),
    )
    for (text, side, colour, above), spot in zip(looks, spots, strict=True):
        if np.isfinite(side[at]):
            rise = spot[min(at + 5, len(spot) - 1), 1] - spot[max(at - 5, 0), 1]
            # off a slope the text goes to the side on which it does not cross its line
            sideways = {True: "right", False: "left"}[bool(rise > 0) == above]
            axis.annotate(
                text, (step[at], side[at]), xytext=(0, 6 if above else -6),
                textcoords="offset points", va="bottom" if above else "top",
                ha="center" if abs(rise) < 4 else sideways,
                color=COLOURS[colour], fontsize=11, path_effects=HALO, zorder=6,
            )  # fmt: skip
