"""NGD's rate on these tokens from W_0 = 0, in integers that Converges.v of the proofs checks.

Its hypotheses are the conditions for scores that differ, of which equal scores are a case.
Source: ours [c].
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count, permutations
from math import ceil, isqrt

from ..exact import dot
from .rational import IntegerTokens, RationalSolution

GRID, POWER = 2**16, 256  # exp x is at least (1 + x/POWER)^POWER, with x/POWER over GRID
SCORES = 250  # so that this is positive


def rate_of(found: RationalSolution, margin: Fraction) -> dict | str:
    """The constants by their letters in Converges.v, or the condition that fails.

    The margin is at least `margin`; steps are at most en/10^places.
    """
    data = found.data
    letters = _settled(data)
    if isinstance(letters, str):
        return letters
    n, T, _ = data.shape
    unit, high, low = data.scale**2, letters["high"], letters["low"]
    bb, zw, zroot, znu = (letters[name] for name in ("bb", "zw", "zroot", "znu"))
    step, places = min(1, Fraction(69 * zroot * unit, 300 * T * n * znu)) if znu else 1, 1
    while (en := int(step * 10**places)) < 10:
        places += 1
    spread, eta = max(map(Fraction, letters["dh"], letters["dl"])), Fraction(en, 10**places)
    lam = next(k for k in count(1) if 4 * (T - 1) * spread <= exp_below(Fraction(k, 16)))
    rows_kappa = Fraction(64 * n * (T - 1) * high, low)
    la = next(k for k in count(1) if rows_kappa <= k * exp_below(Fraction(k + 16, 16)))
    path = _shortened(Fraction(4 * T * n * high * bb**2 * unit * lam, low * zw) + 2 * eta)
    cost = _shortened(
        4 * (Fraction(path, 2) + eta + la / (8 * margin)) * (bb**2 / (unit * margin)) ** 2
    )
    return letters | {"en": en, "places": places, "lam": lam, "la": la, "path": path, "cost": cost}


def _settled(data: IntegerTokens) -> dict | str:
    """The constants of C1 and C2, or what fails."""
    n, T, _ = data.shape
    unit = data.scale**2
    if not data.has_optimal_tokens():
        return "it asks for a decoder whose optimal tokens these are"
    if max(abs(a) for s in data.scores for a in s) > SCORES * unit:
        return f"it is written for scores of at most {SCORES} in size"
    dl, dh, above, below, sizes, squares = ([] for _ in range(6))
    for x, scores, o in zip(data.tokens, data.scores, data.opt, strict=True):
        least, second, top = min(scores), sorted(scores)[-2], max(scores)
        lengths, r = [dot(a, a) for a in x], dot(x[o], x[o])
        if max(lengths) > r:
            return "it asks that no token is longer than the optimal one of its sequence"
        products = [abs(dot(a, b)) for k, a in enumerate(x) for b in x[:k]]
        if 8 * T * (top - least) * max(products) > (top - second) * r:
            return "C1 fails: products within a sequence are large beside its score gaps"
        dl.append(top - second)
        dh.append(top - least)
        above.append(dh[-1] / exp_below(Fraction(least, unit)))
        below.append(dl[-1] * exp_below(Fraction(-top, unit)))
        sizes.append(r * lengths[0])
        squares.append(r)
    low, over = 2**32, ceil(2**32 * unit / min(below))
    high, zw, znu = ceil(max(above) * over / unit), min(sizes), _harm(data)
    if 32 * T * (n - 1) * high * znu > zw * low:
        return "C2 fails: sequences lower each other's gaps too much"
    letters = {"dl": dl, "dh": dh, "bb": isqrt(max(squares) - 1) + 1, "zw": zw}
    return letters | {"zroot": isqrt(zw), "znu": znu, "high": high, "low": low, "over": over}


def _harm(data: IntegerTokens) -> int:
    """nu, as in `token_coherence`, times scale^4."""
    largest = 0
    for i, j in permutations(range(len(data.tokens)), 2):
        x, o, other = data.tokens[i], data.opt[i], data.tokens[j]
        for end in [other[data.opt[j]], *data.differences[j]]:
            c = [dot(token, end) * dot(x[0], other[0]) for token in x]
            largest = max(largest, max(c[:o] + c[o + 1 :]) - min(c))
    return (largest + 1) // 2


def exp_below(x: Fraction) -> Fraction:
    base = GRID + GRID * x.numerator // (POWER * x.denominator)
    return Fraction(base, GRID) ** POWER


def _shortened(value: Fraction) -> int:
    """Rounded up to three digits."""
    step = 10 ** max(len(str(ceil(value))) - 3, 0)
    return ceil(value / step) * step
