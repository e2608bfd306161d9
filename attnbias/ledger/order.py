"""Orders of decay as checks: no explicit constant, so none that could be vacuous."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import Check


def no_slower(
    statement: str, step, values, rate: Callable, *, tolerance: float = 0.05, source: str = ""
) -> Check:
    """That values are O(rate(step)): their ratio does not grow over the last two decades.

    Parameters
    ----------
    statement : str
    step, values : (R,) arrays
    rate : callable
        Of the steps, such as `lambda t: np.log(t) ** 2 / t`.
    tolerance : float
        What a ratio that tends to its limit from below may still grow by.
    source : str

    Examples
    --------
    >>> step = np.geomspace(1, 1e6, 61)
    >>> no_slower("1/t", step, 3 / step, lambda t: 1 / t).holds
    True
    >>> no_slower("stalled", step, np.full(61, 0.5), lambda t: 1 / t).holds
    False
    """
    step, values = np.asarray(step, dtype=float), np.asarray(values, dtype=float)
    last = step > step[-1] / 10
    before = (step > step[-1] / 100) & ~last
    ratio = values / rate(np.maximum(step, 2.0))
    grown = float(ratio[last].max() / ratio[before].max())
    words = f"{statement}, largest over the rate: last decade over the one before"
    return Check(words, grown, 1 + tolerance, "<=", source)
