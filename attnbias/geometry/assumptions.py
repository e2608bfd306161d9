"""Assumptions 1 and 2 of the paper as checks of a data set."""

from __future__ import annotations

import math

from .._validate import TensorLike, require_int, require_number
from ..checks import Check, CheckTable
from ..data import Dataset
from .constants import Constants, token_constants
from .tokens import optimal_tokens, score_levels

__all__ = ["check_assumption1", "check_assumption2", "example1_threshold"]


def check_assumption1(
    data: Dataset, u: TensorLike | None = None, *, phi: float | None = None
) -> CheckTable:
    """Assumption 1 (nearly orthogonal tokens) with explicit constants.

    With mu the largest |<x, x'>| of a non-optimal token with any other token, b_o and b_1
    the smallest norms of an optimal and of a query token, B the largest norm, and
    phi_* = min(1/4, phi), it asks for

        mu <= b_o^2 / 15   and   n kappa B^2 mu <= (4/3) phi_* b_o^2 b_1^2.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
        The decoder; the data set's own by default.
    phi : float in (0, 1], optional
        Smallest softmax score of an optimal token at the start; that of W_0 = 0 by default.

    Returns
    -------
    CheckTable
        Two checks, one an inequality, each divided so that rescaling the tokens (and u
        inversely) leaves it alone.

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError,
    DeviceError, RangeError

    Notes
    -----
    Source: Assumption 1; this version, A1, is ours [c]. It needs nothing of the products
    of two optimal tokens, and it implies that the W-SVM is feasible if no query is zero.
    Under it the softmax scores of optimal tokens never fall under phi_* (Lemma 3).
    kappa compares scores: where Assumption 2 fails, the extremes over tokens stand in for
    the common score [d], and the check says so.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> check_assumption1(make_separation_pair()).all_hold
    True
    """
    constants = token_constants(data, u, phi=phi)
    _, second, last = score_levels(data, u)
    return assumption1_table(constants, exact=bool((second == last).all()))


def assumption1_table(constants: Constants, *, exact: bool) -> CheckTable:
    """Assumption 1 from constants already at hand; `exact` says whether Assumption 2 holds."""
    c = constants
    overlap = _ratio(_ratio(c.mu, c.b_o), c.b_o) if c.mu else 0.0
    coupling = c.n * c.kappa * _ratio(c.B, c.b_1) ** 2 * overlap if c.mu else 0.0
    reason = "" if exact else "kappa from the extreme scores, as Assumption 2 fails"
    cosine = f"largest |cosine| {c.largest_cosine:.3g}"
    sides = (
        ("near_orthogonality", "near orthogonality: mu / b_o^2", overlap, 1 / 15, cosine),
        (
            "weak_coupling",
            "weak coupling: n kappa (B/b_1)^2 mu / b_o^2",
            coupling,
            4 / 3 * c.phi_low,
            reason,
        ),
    )
    return CheckTable(
        Check(words, value, bound, source="Assumption 1, version A1", reason=remark, key=key)
        for key, words, value, bound, remark in sides
    )


def check_assumption2(data: Dataset, u: TensorLike | None = None) -> CheckTable:
    """Assumption 2: all non-optimal tokens of a sequence have one score.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional

    Returns
    -------
    CheckTable
        One check: the largest difference between two non-optimal scores of a sequence
        against 0. The comparison is exact, because token_scores makes scores equal that
        differ by rounding alone. Its reason gives the largest ratio to the score gap.

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError, DeviceError

    Notes
    -----
    Source: Assumption 2. With two tokens a sequence it always holds.

    Examples
    --------
    >>> from attnbias import make_example1
    >>> check_assumption2(make_example1(n=4, T=3, d=20)).all_hold
    True
    """
    optimal_tokens(data, u)  # refuses ties
    top, second, last = score_levels(data, u)
    spread, reason = second - last, ""
    if unequal := int((spread > 0).sum()):
        relative = float((spread / (top - second)).max())
        reason = f"up to {relative:.3g} of the score gap; {unequal} of {data.n} sequences"
    words, largest = "largest spread of non-optimal scores in a sequence", float(spread.max())
    check = Check(words, largest, 0.0, "<=", "Assumption 2", "a", reason=reason, key="spread")
    return CheckTable((check,))


def example1_threshold(
    n: int, T: int, kappa: float = math.e, phi: float | None = None, delta: float = 0.1
) -> int:
    """Dimension from which Example 1 satisfies Assumption 1 with probability 1 - delta.

    Parameters
    ----------
    n, T : int
        Sequences and tokens a sequence, T >= 2.
    kappa : float
        At least 1; e for make_example1's scores 1 and 0.
    phi : float in (0, 1], optional
        Smallest softmax score of an optimal token at the start; 1/T, of W_0 = 0, by default.
    delta : float in (0, 1)
        Probability of failure.

    Returns
    -------
    int
        For signal = sigma sqrt(d), make_example1's default. Of order n^2 T^2 kappa^2, up to
        a logarithm. Sufficient, and far from necessary.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Lemma 6, in the explicit form [c] d >= l max(16, 28.5^2, (4.7 n kappa / phi_*)^2)
    with l = log(6 (n T)^2 / delta), and d >= n (T - 1) + 2 for Assumption 2.

    Examples
    --------
    >>> example1_threshold(3, 2)
    180463
    """
    n = require_int("n", n, low=1)
    T = require_int("T", T, low=2)
    kappa = require_number("kappa", kappa, low=1, high=1e100)
    phi = 1 / T if phi is None else require_number("phi", phi, low=0, high=1, open_low=True)
    size = max(28.5, 4.7 * n * kappa / min(0.25, phi))
    d = log_term(n, T, delta) * (size * size)
    d = require_number("d of this phi, kappa and delta", d, high=1e300)
    return max(math.ceil(d), n * (T - 1) + 2)


def log_term(n: int, T: int, delta: float) -> float:
    """l = log(6 (n T)^2 / delta) of Lemmas 6 and 9: log(24 n^2 / delta) for two tokens each."""
    T = require_int("T", T, low=2)
    delta = require_number("delta", delta, low=0, high=1, open_low=True)
    ratio = 6 * (n * T) ** 2 / delta
    return math.log(ratio) if ratio < math.inf else math.log(6 * (n * T) ** 2) - math.log(delta)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf
