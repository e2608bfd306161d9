"""The constants of joint training that the tokens alone decide, and sums of powers of t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import as_numbers, require_number
from ...data import Dataset
from ...errors import RangeError
from ...geometry.constants import largest_products, optimal_mask
from ...geometry.tokens import resolve_opt

__all__ = ["JointConstants", "joint_constants"]

LOSS_RATIO = 11.0  # C of Eq. 13
GAP_RATIO = 1100.0  # C_Delta of Lemma 11
_HEAD = 1024  # terms of a power sum added one by one


@dataclass(frozen=True)
class JointConstants:
    """What the bounds of Section 4 know about the tokens.

    Attributes
    ----------
    n : int
        Sequences.
    a, a_least : float
        Largest and smallest squared norm of an optimal token.
    b_plus, b_minus : float
        The same of the other tokens.
    nu : float
        Largest |<x, x'>| of two distinct tokens of the whole data set.

    Notes
    -----
    Source: Lemma 9 and Condition 2, [c].

    Examples
    --------
    >>> from attnbias import Dataset
    >>> constants = joint_constants(Dataset([[[3.0, 0.0], [0.5, 1.0]]], [1], opt=[0]))
    >>> constants.B, constants.speed
    (3.0, 3.0)
    """

    n: int
    a: float
    a_least: float
    b_plus: float
    b_minus: float
    nu: float

    @property
    def B(self) -> float:
        """Largest norm of a token; sqrt(a) under Condition 2."""
        return math.sqrt(max(self.a, self.b_plus))

    @property
    def speed(self) -> float:
        """sqrt(a / n), the scale of every rate in u."""
        return math.sqrt(self.a / self.n)

    @property
    def tau(self) -> float:
        """The separation 0.44 sqrt(a / n) of Lemma 12."""
        return 0.44 * self.speed

    def largest_step_size(self, p: float) -> float:
        """The largest eta of Eq. 10 under Condition 2, for the exponent p of u."""
        return largest_step_size(self.a, self.n, p)


def largest_step_size(a: float, n: int, p: float, unit: float = 1.0) -> float:
    """iv) of Condition 2: the largest eta for optimal tokens of squared norm a unit^2."""
    if a == 0:
        return math.inf  # all optimal tokens are zero
    root = math.sqrt(a)
    limits = (
        0.04 / root,
        0.0145 * (1 - p) / (a * math.sqrt(n)) / unit,
        0.08 / (root * math.sqrt(n) * (2.1 + 1.3 * root * unit)),
    )
    return min(limits) / unit


def unit_of(data: Dataset) -> float:
    """1, or a power of two about the largest entry where squares of it underflow or overflow."""
    largest = float(data.X.abs().max())
    power = int(math.log2(largest)) if largest else 0
    return 1.0 if abs(power) < 250 else 2.0**power


def joint_constants(data: Dataset, unit: float = 1.0) -> JointConstants:
    """The constants of a data set with known optimal tokens.

    Parameters
    ----------
    data : Dataset
    unit : float
        What tokens are divided by.

    Returns
    -------
    JointConstants

    Raises
    ------
    DtypeError, RangeError, NonFiniteError, MissingDecoderError, TiedTokensError

    Examples
    --------
    >>> from attnbias import Dataset
    >>> data = Dataset([[[3.0, 0.0], [0.5, 1.0]]], [1], opt=[0])
    >>> constants = joint_constants(data)
    >>> constants.a, constants.b_plus, constants.nu
    (9.0, 1.25, 1.5)
    """
    is_opt = optimal_mask(data, resolve_opt(data))
    X = data.X.double() / require_number("unit", unit, low=0, open_low=True)
    squares = X.square().sum(dim=2)
    chosen, others = squares[is_opt], squares[data.mask & ~is_opt]
    tokens = X[data.mask]
    return JointConstants(
        n=data.n,
        a=float(chosen.max()),
        a_least=float(chosen.min()),
        b_plus=float(others.max()),
        b_minus=float(others.min()),
        nu=largest_products(tokens, torch.arange(len(tokens), device=X.device))[0],
    )


def power_sum(t, p: float) -> np.ndarray:
    """sum_{s=1}^t s^-p for every entry of t, to about 1e-14 relative.

    The first 1024 terms one by one, the rest by Euler and Maclaurin's formula, whose first
    omitted term is under 1e-17 there.

    Parameters
    ----------
    t : (R,) integers or floats, >= 0
    p : float >= 0

    Returns
    -------
    (R,) array

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Examples
    --------
    >>> power_sum([0, 1, 4], 0.5).round(6).tolist()
    [0.0, 1.0, 2.784457]
    """
    t, p = as_numbers("t", t).astype(float), require_number("p", p, low=0)
    if not (t >= 0).all():
        raise RangeError(
            "t",
            expected="counts of terms, at least 0",
            got=f"{t.min():g}",
            remedy="pass iterations such as trace.step",
        )
    head = np.concatenate([[0.0], np.cumsum(np.arange(1.0, _HEAD + 1) ** -p)])
    late = np.maximum(t, _HEAD)
    log = np.log(late / _HEAD)
    area = log if p == 1 else _HEAD ** (1 - p) * np.expm1((1 - p) * log) / (1 - p)
    ends = (late**-p - _HEAD**-p) / 2
    slopes = p * (_HEAD ** (-p - 1.0) - late ** (-p - 1.0)) / 12
    bends = p * (p + 1) * (p + 2) * (_HEAD ** (-p - 3.0) - late ** (-p - 3.0)) / 720
    tail = head[-1] + area + ends + slopes - bends
    return np.where(t <= _HEAD, head[np.minimum(t, _HEAD).astype(int)], tail)


def first_step(total: float, p: float) -> float:
    """The smallest t with sum_{s=1}^t s^-p >= total, p < 1; infinite beyond 1e300."""
    low, high = 0.0, 1.0
    while high < 1e300 and power_sum(high, p) < total:
        low, high = high, 2 * high
    if high >= 1e300:
        return math.inf
    while high - low > max(1.0, 1e-12 * high):
        middle = (low + high) / 2
        low, high = (middle, high) if power_sum(middle, p) < total else (low, middle)
    return float(math.ceil(high))
