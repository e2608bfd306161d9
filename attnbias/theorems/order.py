"""A claim of an order of growth or decay, put to a run in a way that a stalled run fails."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .._validate import as_numbers, require_choice, require_number
from ..checks import Check
from ..errors import DtypeError, RangeError, ShapeError
from .statements import Statement

DECADE = 10.0
MOST = 0.9  # a tolerance of 1 would let a stalled value pass
TOO_SHORT = "two decades are needed, and the last two hold {0} and {1} records"


def check_order(
    step: ArrayLike,
    values: ArrayLike,
    rate: Callable | ArrayLike,
    sense: str = "<=",
    *,
    statement: str = "value over its rate, in the last decade against the one before",
    source: str = "",
    provenance: str = "c",
    tolerance: float = 0.25,
    rounding: ArrayLike = 0.0,
    key: str = "order",
) -> Check:
    """Whether values keep pace with the order of growth or decay that is claimed for them.

    A finite run cannot decide values = O(rate), since the claim leaves its constant open. It can
    show whether the ratio of the two still grows: with sense "<=" the largest ratio of the
    last decade is held against the largest of the decade before, and with ">=", for
    values = Omega(rate), the smallest against the smallest. A value that stalls short of zero
    lets its ratio to a falling rate grow by as much as the rate falls, and is refused.

    Parameters
    ----------
    step : (R,) array
        Strictly increasing: iterations, or path lengths for a rate in those. Zero is passed over.
    values : (R,) array
        None negative; a NaN in the last two decades never holds.
    rate : callable or (R,) array
        Positive where it is used; a function of the array of steps, or its values.
    sense : {"<=", ">="}
        "<=" for O(rate), ">=" for Omega(rate). Both together are Theta(rate).
    statement, source, provenance
        As in a Check.
    tolerance : float in [0, 0.9]
        Part of the rate's own change over the last decade by which the ratio may still move
        the wrong way, in logarithms. The default refuses a decay like rate^(3/4) or slower,
        and leaves room for lower-order terms.
    rounding : (R,) array or float
        Absolute allowance for the rounding of the values.
    key : str
        As in a Check.

    Returns
    -------
    Check
        With the ratios of the last decade as its values. Not applicable if one of the last
        two decades holds no record.

    Raises
    ------
    ShapeError, RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: a choice of ours, [d]. A rate that is constant leaves no room at all, since no
    stalled value differs from a settled one there; `check_fast_rate` asks that question. Where
    the rate is in log t, lower-order terms count for long: under gradient descent 1 - cosine
    follows 1 / (log t + b)^2, and 1 / path_length^2 as the rate has the b in it.

    Examples
    --------
    >>> step = np.arange(1, 10**4 + 1)
    >>> def rate(t):
    ...     return np.log(t) ** 2 / t
    >>> check_order(step, 3 / step, rate).verdict
    'holds'
    >>> check_order(step, np.full(10**4, 0.5), rate).verdict
    'fails'
    """
    require_choice("sense", sense, ("<=", ">="))
    said = Statement(key, statement, source, sense, provenance)
    tolerance = require_number("tolerance", tolerance, low=0, high=MOST)
    step, values = _series(step, values)
    end = step[-1]
    last = (step > end / DECADE) & (step > 0)
    before = (step > end / DECADE**2) & ~last & (step > 0)
    if not (last.any() and before.any()):
        return said.refused(TOO_SHORT.format(before.sum(), last.sum()))
    used = last | before
    scale = _rates(rate, step, used)
    allowance = as_numbers("rounding", rounding, step.shape, float)[last] / scale[last]
    earlier, ratio = values[before] / scale[before], values[last] / scale[last]
    change = abs(math.log(scale[last][-1]) - math.log(scale[before][-1]))
    reference = earlier.max() if sense == "<=" else earlier.min()  # NaN if one is
    # a rate may change by more than float64 holds
    bound = reference * math.exp(min(tolerance * change, 709.0) * (1 if sense == "<=" else -1))
    sides = {"step": step[last], "values": ratio, "bounds": bound, "rounding": allowance}
    return Check.along(**sides, **said._asdict())


def _series(step, values) -> tuple[np.ndarray, np.ndarray]:
    step, values = as_numbers("step", step, dtype=float), as_numbers("values", values, dtype=float)
    if step.ndim != 1 or step.size == 0 or step.shape != values.shape:
        raise ShapeError(
            "values",
            expected="one value a step, and at least one step",
            got=f"{values.shape} values at {step.shape} steps",
            remedy="pass trace.step and one of the trace's series",
        )
    if not (np.isfinite(step).all() and (np.diff(step) > 0).all() and step[0] >= 0):
        raise RangeError(
            "step",
            expected="finite, none negative, and strictly increasing",
            got="others",
            remedy="pass trace.step, or path lengths at steps where they have grown",
        )
    if (values < 0).any():
        raise RangeError(
            "values",
            expected="none negative, as norms and 1 - cosine are",
            got=f"{float(np.nanmin(values)):g}",
            remedy="pass absolute values",
        )
    return step, values


def _rates(rate, step: np.ndarray, used: np.ndarray) -> np.ndarray:
    """(R,) the rate at the used steps, NaN elsewhere."""
    found = np.full(step.shape, np.nan)
    if callable(rate):
        try:
            given = rate(step[used])
        except (TypeError, ValueError) as error:
            raise DtypeError(
                "rate",
                expected="a function of an array of steps",
                got=f"one that says: {error}",
                remedy="write it with numpy's functions, or pass its values",
            ) from error
        found[used] = as_numbers("rate", given, (used.sum(),), float)
    else:
        found[used] = as_numbers("rate", rate, step.shape, float)[used]
    if not (np.isfinite(found[used]) & (found[used] > 0)).all():
        raise RangeError(
            "rate",
            expected="positive and finite in the last two decades",
            got="zero, a negative number, NaN or infinity there",
            remedy="start the window later: log t is positive from t = 2 on",
        )
    return found
