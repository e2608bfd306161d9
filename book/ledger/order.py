"""Orders of decay as checks: no explicit constant, so none that could be vacuous."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Check
from ..theorems import check_order


def no_slower(
    statement: str,
    step,
    values,
    rate: Callable | ArrayLike,
    *,
    tolerance: float = 0.05,
    source: str = "",
) -> Check:
    """That values are O(rate(step)): by `check_order`, their ratio does not grow.

    Its tolerance is a part of the rate's own change, so it leaves a constant rate no room; here
    it is a part of the ratio, one for all rates.

    Parameters
    ----------
    statement : str
    step, values : (R,) arrays
    rate : callable or (R,) array
        Of the steps, or its values, such as `lambda t: np.log(t) ** 2 / t`.
    tolerance : float
        What a ratio that tends to its limit from below may still grow by, from the last decade
        but one to the last.
    source : str

    Examples
    --------
    >>> step = np.geomspace(1, 1e6, 61)
    >>> no_slower("1/t", step, 3 / step, lambda t: 1 / t).holds
    True
    >>> no_slower("stalled", step, np.full(61, 0.5), lambda t: 1 / t).holds
    False
    """
    words = f"{statement}, largest over the rate: last decade over the one before"
    found = check_order(step, values, rate, statement=words, source=source, tolerance=0.0)
    if not found.applicable:
        return found
    grown = found.value / found.bound if found.bound else np.inf
    return Check(words, grown, 1 + tolerance, "<=", source)
