"""Cosines of random directions, in closed form: what token cosines are held against."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc

from .._validate import require_int, require_number


def random_density(cosine, d: int) -> np.ndarray:
    """Density of the cosine of two random directions in d dimensions.

    Parameters
    ----------
    cosine : array
    d : int
        At least 3.

    Returns
    -------
    ndarray
        (1 - c^2)^((d - 3) / 2), normalised: mean 0, standard deviation d^-1/2.

    Examples
    --------
    >>> from attnbias.experiments.directions import random_density
    >>> random_density([0.0, 0.9], 3).round(12).tolist()
    [0.5, 0.5]
    """
    d = require_int("d", d, low=3)
    scale = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)
    return scale * (1 - np.square(np.asarray(cosine, dtype=float))) ** ((d - 3) / 2)


def random_within(bound: float, d: int) -> float:
    """Chance that two random directions in d dimensions have |cosine| below a bound.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> from attnbias.experiments.directions import random_within
    >>> round(random_within(0.2, 3), 12)
    0.2
    """
    bound = require_number("bound", bound, low=0, high=1)
    return float(betainc(0.5, (require_int("d", d, low=2) - 1) / 2, bound**2))


def random_mean_abs(d: int) -> float:
    """Mean absolute cosine of two random directions in d dimensions.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias.experiments.directions import random_mean_abs
    >>> round(random_mean_abs(3), 12)
    0.5
    """
    d = require_int("d", d, low=2)
    return math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
