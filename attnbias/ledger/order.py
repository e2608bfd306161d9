"""Orders of decay and growth as checks: no explicit constant, so none that could be vacuous."""

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


def grows_like_log(statement: str, step, values, *, tolerance: float = 0.25, source: str = ""):
    """That values grow linearly in log t: as much in the last decade as in the one before.

    A power of log t, 1 / (1 - cosine)^(1/2) under GD, say, has a ratio that tends to 1. The
    tolerance is for the approach to the limit: an exponent of log t off by one moves the ratio
    by (log 10 / log t), 17% at t = 10^6, and a stalled run has the ratio 0.

    Examples
    --------
    >>> step = np.geomspace(1, 1e6, 61)
    >>> [check.holds for check in grows_like_log("log", step, 2 + np.log(step))]
    [True, True]
    >>> [check.holds for check in grows_like_log("stalled", step, np.full(61, 0.5))]
    [True, False]
    """
    step, values = np.asarray(step, dtype=float), np.asarray(values, dtype=float)
    at = np.searchsorted(step, step[-1] * np.array([0.01, 0.1, 1.0]))
    early, middle, end = values[at]
    spans = np.log(step[at[1:]] / step[at[:-1]])
    first, second = (middle - early) / spans[0], (end - middle) / spans[1]
    grown = float(second / first) if first > 0 else 0.0
    words = f"{statement}, growth per log t: last decade over the one before"
    return (
        Check(words, grown, 1 + tolerance, "<=", source),
        Check(words, grown, 1 / (1 + tolerance), ">=", source),
    )
