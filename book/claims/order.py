"""Orders of decay as checks: no explicit constant, so none that could be vacuous."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from attnbias import Check, Trace
from attnbias.theorems import check_order

#: Of the runs that the ledger shows none rises by more than 11% above the decade before it, from
#: step 100 on; before that ratios still tend to their limits from below.
FIRST, RISE = 100, 0.15


def no_slower(
    statement: str,
    step,
    values,
    rate: Callable | ArrayLike,
    *,
    tolerance: float = 0.05,
    key: str = "order",
) -> Check:
    """That values are O(rate(step)): their ratio does not grow, in any of three ways.

    The largest ratio of the last decade is held against that of the decade before, as in
    `check_order`, whose tolerance is a part of the rate's own change and leaves a constant rate no
    room; here it is a part of the ratio, one for all rates. A value that falls once and then stalls
    passes that. So within the last decade the median growth of the ratio counts as well, by pairs
    of records a quarter of a decade apart: one fall, wherever it stands, moves few of the pairs.
    And from step 100 on, a ratio above all of the decade before it counts if it is so by `RISE`.

    Parameters
    ----------
    statement : str
    step, values : (R,) arrays
    rate : callable or (R,) array
        Of the steps, or its values, such as `lambda t: np.log(t) ** 2 / t`.
    tolerance : float
        What a ratio that tends to its limit from below may still grow by in a decade.
    key : str
        Of the Check.

    Examples
    --------
    >>> step = np.geomspace(1, 1e6, 61)
    >>> no_slower("1/t", step, 3 / step, lambda t: 1 / t).holds
    True
    >>> no_slower("stalled", step, np.full(61, 0.5), lambda t: 1 / t).holds
    False
    >>> late = np.where(step < 1e5, 1.2, 0.3)
    >>> no_slower("fell once", step, late, lambda t: 1 / np.log(t + 1)).holds
    False
    """
    words = f"{statement}, growth of its ratio to the rate in a decade"
    found = check_order(step, values, rate, statement=words, tolerance=0.0, key=key)
    if not found.applicable:
        return found
    t = np.asarray(step, float)
    used = t >= min(FIRST / 10, t[-1] / 100)
    scale = rate(t[used]) if callable(rate) else np.asarray(rate)[used]
    grown = _grown(np.log10(t[used]), np.asarray(values)[used] / scale)
    value = found.value / found.bound if found.bound else np.inf
    return Check(words, float(np.max([value, *grown])), 1 + tolerance, key=key)


def _grown(log_t, ratio) -> list[float]:
    """Median growth a decade in the last one, and rises above the decade before a record."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(ratio)
        first = np.flatnonzero(log_t >= log_t[-1] - 1)
        second = np.searchsorted(log_t, log_t[first] + 0.25 - 1e-9)
        pairs = second < len(log_t)
        first, second = first[pairs], second[pairs]
        slopes = (logs[second] - logs[first]) / (log_t[second] - log_t[first])
        grown = [10 ** float(np.median(slopes))] if len(slopes) else []
    start = np.searchsorted(log_t, log_t - 1)
    for late in np.flatnonzero(log_t >= np.log10(FIRST)):
        if start[late] < late:
            before = ratio[start[late] : late].max()
            if not ratio[late] <= (1 + RISE) * before:  # a NaN is a rise
                grown.append(ratio[late] / before)
    return grown


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
    return no_slower(name, run.step, run.W_alignment_error, rate, key="turns", **options)


def turns_by_path(run: Trace, power: float = 1.0) -> Check:
    """That 1 - cosine is O(1 / path length^power), from the first step on."""
    moved = run.path_length > 0
    rate, error = run.path_length[moved] ** -power, run.W_alignment_error[moved]
    words = "1 - cosine over 1 / path length" + (f"^{power:g}" if power != 1 else "")
    return no_slower(words, run.step[moved], error, rate, key="turns")


def saturates_fast(run: Trace) -> Check:
    """That the optimal tokens' softmax tends to 1 exponentially, as Lemma 1 says."""
    rest = -1 / run.log_nonopt_score
    return no_slower("-1 / log(1 - softmax)", run.step, rest, lambda t: 1 / t, key="saturates")
