"""Orders of decay as checks: no explicit constant, so none that could be vacuous."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from attnbias import Check, Trace
from attnbias.theorems import check_order


def no_slower(
    statement: str, step, values, rate: Callable | ArrayLike, *, tolerance: float = 0.05
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

    Examples
    --------
    >>> step = np.geomspace(1, 1e6, 61)
    >>> no_slower("1/t", step, 3 / step, lambda t: 1 / t).holds
    True
    >>> no_slower("stalled", step, np.full(61, 0.5), lambda t: 1 / t).holds
    False
    """
    words = f"{statement}, largest over the rate: last decade over the one before"
    found = check_order(step, values, rate, statement=words, tolerance=0.0)
    if not found.applicable:
        return found
    return Check(words, found.value / found.bound if found.bound else np.inf, 1 + tolerance)


def theorem1_rate(t):
    """(log t)^2 / t."""
    return np.log(t) ** 2 / t


def gd_limit_rate(t):
    """1 / log t, which M1 gives for GD."""
    return 1 / np.log(t)


def gd_rate(t):
    """1 / (log t)^2, the order of GD's 1 - cosine."""
    return np.log(t) ** -2.0


def turns(run: Trace, rate: Callable, name: str = "1 - cosine", **options) -> Check:
    """That 1 - cosine is O(rate(t))."""
    return no_slower(name, run.step, run.W_alignment_error, rate, **options)


def saturates_fast(run: Trace) -> Check:
    """That the optimal tokens' softmax tends to 1 exponentially, as Lemma 1 says."""
    rest = -1 / run.log_nonopt_score
    return no_slower("-1 / log(1 - softmax)", run.step, rest, lambda t: 1 / t)
