"""A check made along a run: the measured value beside its bound at every recorded step."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from .._validate import require_flag, require_type
from ..checks import Check
from ..errors import RangeError
from ..experiments.claims.compare import log10
from .axes import draw_panels, exponent_axis, step_axis, thinned
from .series import finite, several
from .theme import COLOURS, INK, Given, styled

SIDES = {"<=": "bound, at most", ">=": "bound, at least"}
MOST_PANELS = 6
FEW = 12  # steps that are drawn as points as well
# "log (1 - softmax)" and "Theorem 8: log L" are powers of ten; "-log L" and "the norm, against
# log(...)" are numbers like others
_LOGARITHM = re.compile(r"(?:^|: )log\b(?! t\b)")


@styled(logs=require_flag)
def plot_check(
    checks: Check | Iterable[Check],
    *,
    logs: bool | None = None,
    titles: str | Iterable[str] | None = None,
    ylabel: str | Iterable[str] = "",
    ax: Given = None,
) -> Figure:
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
    ylabel : str or sequence of str
        What is measured, the same for all panels or one each.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

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
    >>> [text.get_text() for text in fig.legends[0].texts]
    ['measured', 'bound, at most']
    """
    drawn = _drawable(checks)
    titles = [titles] if isinstance(titles, str) else titles
    titles = [check.statement for check in drawn] if titles is None else titles
    titles = _one_each("titles", several("titles", titles, "texts"), drawn, "the statements")
    named = [ylabel] * len(drawn) if isinstance(ylabel, str) else ylabel
    named = several("ylabel of plot_check", named, "texts")
    ylabels = _one_each("ylabel", named, drawn, "'value'")
    titles = [textwrap.fill(title, 62 if len(drawn) == 1 else 29) for title in titles]
    lines = 0.2 * (max(title.count("\n") for title in titles) + 1)
    senses = {check.sense for check in drawn}
    words = SIDES[senses.pop()] if len(senses) == 1 else "bound, allowed where shaded"

    def draw(axis, panel: tuple[Check, str, str]) -> None:
        check, title, measured = panel
        axis.set_title(title)
        as_logs = bool(_LOGARITHM.search(check.statement)) if logs is None else logs
        _check_panel(axis, check, as_logs, words)
        axis.set_ylabel(measured or "value")

    panels = zip(drawn, titles, ylabels, strict=True)
    return draw_panels(panels, draw, ax, height=2.5 + lines, single=4.0 + lines)


def _one_each(name: str, texts, drawn: list[Check], usual: str) -> list[str]:
    texts = [str(each) for each in texts]
    if len(texts) != len(drawn):
        raise RangeError(
            name,
            expected=f"one a panel, {len(drawn)}",
            got=str(len(texts)),
            remedy=f"leave them out to see {usual}",
        )
    return texts


def _drawable(checks) -> list[Check]:
    single = isinstance(checks, Check)
    # arrays of no axis are Iterable and can't be gone through
    many = isinstance(checks, Iterable) and getattr(checks, "ndim", 1) != 0
    entries = [*checks] if many else [checks]
    remedy = "pass the checks of a check_... function"
    for entry in entries:
        require_type("checks", entry, Check, "a Check, or several", remedy)
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


def _check_panel(axis, check: Check, logs: bool, words: str) -> None:
    along = [np.asarray(each) for each in (check.step, check.values, check.bounds)]
    step, value, bound = (array[thinned(along[0])] for array in along)
    upper = check.sense == "<="
    small, large = (value, bound) if upper else (bound, value)
    broken = ~(small <= large + check.rounding)
    exponents, value, bound = _drawn(value, bound, logs)
    step_axis(axis, step)
    axis.margins(y=0.2)
    look = {"linewidth": 2.2, "marker": "o" if len(step) <= FEW else ""}
    axis.plot(step, value, "-", color=COLOURS["blue"], label="measured", **look)
    axis.plot(step, bound, "--", color=COLOURS["vermillion"], label=words, **look)
    axis.plot(step[broken], value[broken], "x", color=INK, markersize=7, zorder=4)
    if exponents:
        exponent_axis(axis, np.concatenate([value, bound]))
    low, high = axis.get_ylim()
    axis.fill_between(
        step,
        bound,
        low if upper else high,
        color=COLOURS["vermillion"],
        alpha=0.08,
        linewidth=0,
        zorder=0,
    )
    axis.set_ylim(low, high)


def _drawn(value, bound, logs: bool) -> tuple[bool, np.ndarray, np.ndarray]:
    """Both sides as exponents of ten (for logarithms, and where all is positive and far apart).

    What has no place on the axis is NaN: infinities, and 0 among powers of ten.
    """
    value, bound = finite(value), finite(bound)
    if logs:
        return True, value / math.log(10), bound / math.log(10)
    both = np.concatenate([value, bound])
    positive = both[both > 0]
    if positive.size == 0 or np.nanmin(both) < 0 or positive.max() <= 5 * positive.min():
        return False, value, bound
    return True, finite(log10(value)), finite(log10(bound))
