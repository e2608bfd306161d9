"""Exponents of power laws, fitted on a window of a run."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._validate import require_number, short
from ..errors import DtypeError, NonFiniteError, RangeError, ShapeError
from .trace import Trace

LEVEL = 0.05  # a slope by which a value falls by a factor of 10 in 20 decades of steps


class _Fit(NamedTuple):
    exponent: float
    interval: tuple[float, float]


class RateFit(_Fit):
    """A fitted power law value ~ step ** exponent: a pair, which unpacks as one.

    Attributes
    ----------
    exponent : float
        Least-squares slope of log value on log step.
    interval : (float, float)
        Smallest and largest slope over sub-windows of half the length (in log step). A run
        has no noise, so what makes an exponent uncertain is curvature, and this shows it.
    flat : bool
        Whether the curve goes level, so that it has a limit and no exponent: its slope over the
        second half of the window is at most 1/20, and some slope inside is less than half of the
        exponent, while a power law, however slow, has one slope all along.

    Examples
    --------
    >>> step = np.arange(1, 1001)
    >>> fit = fit_rate(step, 3.0 / step**2)
    >>> round(fit.exponent, 6), fit.flat
    (-2.0, False)
    >>> fit_rate(step, 0.03 + 1e-3 / step, window=(10, 1000)).flat
    True
    """

    flat: bool

    def __new__(cls, exponent: float, interval: tuple[float, float], flat: bool = False) -> Self:
        fit = super().__new__(cls, exponent, interval)
        fit.flat = flat
        return fit

    def __repr__(self) -> str:
        words = ", flat: the curve goes level, so that no power law fits" if self.flat else ""
        return f"RateFit(exponent={self.exponent}, interval={self.interval}{words})"


def fit_rate(
    step: ArrayLike | Trace,
    value: ArrayLike | None = None,
    window: tuple[float, float] | None = None,
) -> RateFit:
    """Exponent of a power law on a window, with the range of slopes inside it.

    Parameters
    ----------
    step : (R,) array, or Trace
        Iterations; 0 is left out, since it has no logarithm. Of a trace its own.
    value : (R,) array
        Positive quantity, such as `trace.loss_gap`; of a trace `W_alignment_error` by default.
    window : (first, last), optional
        Iterations to fit on; all by default.

    Returns
    -------
    RateFit
        A pair (exponent, interval), whose `flat` says where the curve has no exponent because
        it goes level: a run may end on other tokens than the optimal ones, see `Trace.ending`.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError
        Among others, when the window holds fewer than 8 records or values not above zero.

    Notes
    -----
    Points are weighted so that each stretch of log step counts alike, whatever the spacing
    of the records. An early window misleads: see the chapter on Figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias import fit_rate
    >>> step = np.arange(1, 1001)
    >>> fit = fit_rate(step, 3.0 / step**2, window=(10, 1000))
    >>> round(fit.exponent, 6), tuple(round(x, 6) for x in fit.interval)
    (-2.0, (-2.0, -2.0))
    """
    if isinstance(step, Trace):
        value = step.series.get("W_alignment_error") if value is None else value
        step = step.step
    if value is None:
        raise DtypeError(
            "value",
            expected="a series beside the steps, or a Trace with W_alignment_error",
            got="none",
            remedy="any other of a trace goes by name: fit_rate(trace, trace.loss)",
        )
    step, value = _real("step", step), _real("value", value)
    x, y = _log_points(step, value, window)
    weight = np.gradient(x)
    middle = np.linspace(x[0], x[-1], 9)
    half = (x[-1] - x[0]) / 2
    tried = [_slope(x, y, weight, low, low + half) for low in middle[middle <= x[0] + half + 1e-9]]
    exponent = _slope(x, y, weight, x[0], x[-1])
    assert exponent is not None  # _log_points has found at least 8 records
    slopes = [exponent, *(slope for slope in tried if slope is not None)]
    low, high, last = min(slopes), max(slopes), slopes[-1]
    least = max(low, -high, 0.0)  # the slope nearest 0, which lies between slopes of both signs
    flat = abs(last) <= LEVEL and least <= max(abs(exponent) / 2, 1e-9)  # or all is rounding
    return RateFit(exponent, (low, high), flat)


def _slope(x, y, weight, low, high) -> float | None:
    inside = (x >= low - 1e-12) & (x <= high + 1e-12)
    if inside.sum() < 3:
        return None
    x, y, w = x[inside], y[inside], weight[inside]
    x = x - np.average(x, weights=w)
    return float((w * x * (y - np.average(y, weights=w))).sum() / (w * x * x).sum())


def _log_points(step, value, window) -> tuple[np.ndarray, np.ndarray]:
    if step.ndim != 1 or step.shape != value.shape:
        raise ShapeError(
            "value",
            expected=f"one number a step, shape {step.shape}",
            got=f"shape {value.shape}",
            remedy="pass two series of the same trace",
        )
    _require_finite("step", step, "check that these are iterations")
    low, high = _window(window, step)
    inside = (step >= low) & (step <= high) & (step > 0)
    step, value = step[inside], value[inside]
    _require_finite("value", value, "start the window later")
    count = len(np.unique(step))
    if count < 8:
        raise RangeError(
            "window",
            expected="at least 8 records inside",
            got=f"{count} in [{low:g}, {high:g}]",
            remedy="record more iterations or widen the window",
        )
    if value.min() <= 0:
        raise RangeError(
            "value",
            expected="positive numbers in the window",
            got=f"{value.min():g}",
            remedy="a power law has no zero; end the window earlier",
        )
    order = np.argsort(step, kind="stable")
    return np.log(step[order]), np.log(value[order])


def _real(name: str, given) -> np.ndarray:
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "iuf" and array.size:
            raise TypeError(f"entries of dtype {array.dtype}")
    except (TypeError, ValueError, RuntimeError) as error:
        raise DtypeError(
            name,
            expected="an array of real numbers",
            got=f"{type(given).__name__} ({str(error)[:60]})",
            remedy="pass trace.step and a series of the trace",
        ) from None
    return array.astype(np.float64)


def _require_finite(name: str, array: np.ndarray, remedy: str) -> None:
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise NonFiniteError(
            name,
            expected="finite numbers in the window",
            got=f"{bad} NaN or infinite",
            remedy=remedy,
        )


def _window(window, step) -> tuple[float, float]:
    if window is None:
        return (float(step.min()), float(step.max())) if step.size else (0.0, 0.0)
    try:
        low, high = window
    except (TypeError, ValueError):
        raise DtypeError(
            "window",
            expected="two iterations (first, last)",
            got=short(window),
            remedy="for example window=(1_000, 100_000)",
        ) from None
    low, high = require_number("window", low), require_number("window", high)
    if not low < high:
        raise RangeError(
            "window",
            expected="first < last",
            got=f"({low:g}, {high:g})",
            remedy="swap or widen them",
        )
    return low, high
