"""Conditions 1 and 2 of joint training, the sizes they ask for, and Lemma 9: draws of (DM)."""

from __future__ import annotations

import math

import numpy as np

from ..._validate import TensorLike, require_flag, require_int, require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.arguments import initial_decoder, initial_matrix
from ...geometry.assumptions import log_term
from ...geometry.tokens import resolve_opt
from ...rules import NGD
from ..statements import Statement, at_least, made_by, refused
from .constants import joint_constants, largest_step_size, unit_of

ALPHA = 3.4  # ii) of Condition 1
COUPLING = 0.005  # iii) of Condition 2: n nu / b_-
# Roundings of squared norms and of a product of a few floats, relative: an instance may stand
# exactly on a limit, as a^2 = 9 b^2 does in the orthogonal family.
EXACT = 1e-12
NOT_DRAWN = "the tokens were not drawn from (DM) by make_dm"
_SOURCE = {1: "Condition 1", 2: "Condition 2"}
_LARGER = at_least("alpha", "ii) optimal tokens are larger: alpha", "Condition 1")
_FEATURES = at_least("dimension", "iii) features d", "Condition 1")
_STEP = Statement("step_size", "iv) step size eta", "Condition 1")


def check_condition1(
    data: Dataset,
    step_size: float,
    *,
    decay: tuple[float, float] = (2 / 3, 1),
    delta: float = 0.1,
    u0: TensorLike | None = None,
    W0: TensorLike | None = None,
) -> CheckTable:
    """Condition 1: zero start, alpha, d and the step size, for tokens drawn from (DM).

    It speaks of sizes alone. When it holds, the tokens satisfy Condition 2 with probability
    1 - delta, and then everything proved about joint training applies.

    Parameters
    ----------
    data : Dataset
        Of `make_dm`, whose meta holds alpha and sigma; of other data only the start is judged.
    step_size : float
        eta of Eq. 10.
    decay : (p, q)
        Exponents of Eq. 10, for u and for W. The limit on eta depends on p.
    delta : float in (0, 1)
        Probability of failure.
    u0 : (d,) tensor, optional
    W0 : (d, d) tensor, optional
        Start of the run; zero by default.

    Returns
    -------
    CheckTable
        i) zero start, ii) alpha >= 3.4, iii) d at least `dm_threshold`, iv) eta at most its
        limit for these sizes. A start that is not zero is a check that fails.

    Raises
    ------
    RangeError, DtypeError, ShapeError, NonFiniteError, DeviceError

    Notes
    -----
    Source: Condition 1. [a] its four items; [c] every constant, and that alpha^4 belongs in
    iii): a constant independent of alpha is not enough for the proof. Condition 2 is called
    the complete version of Condition 1. We give the first name to the sizes and the second to
    what the tokens must satisfy [d].

    Examples
    --------
    >>> from attnbias import make_dm
    >>> [check.holds for check in check_condition1(make_dm(), 1e-4)]
    [True, False, False, True]
    >>> large = make_dm(10, 2, 10**11, alpha=3.4, sigma=1e-6, span=True)
    >>> check_condition1(large, 1e-4).all_hold
    True
    """
    require_dataset(data)
    zero = _zero_start(data, u0, W0, 1)
    p = NGD(step_size, decay=decay).decay[0]
    if not made_by(data, "make_dm", "d", "alpha", "sigma"):
        return CheckTable((zero, *refused((_LARGER, _FEATURES, _STEP), NOT_DRAWN)))
    d, alpha, sigma = (data.meta[name] for name in ("d", "alpha", "sigma"))
    # 1.05 times for the largest squared norm of an optimal token
    limit = largest_step_size(1.05 * alpha**2 * sigma**2 * d, data.n, p)
    needed = dm_threshold(data.n, alpha, T=data.T, delta=delta)
    reason = f"with probability {1 - float(delta):g}; sufficient, not necessary"
    features = _FEATURES.once(d, needed, reason=reason)
    step = _STEP.once(step_size, limit, rounding=EXACT * limit)
    return CheckTable((zero, _LARGER.once(alpha, ALPHA), features, step))


_OPT_NORMS = at_least(
    "opt_norms", "ii) least over largest squared norm of optimal tokens", "Condition 2"
)
_OTHER_NORMS = at_least("other_norms", "ii) the same of the others", "Condition 2")
_RATIO = at_least("ratio", "ii) optimal tokens are larger: a / b_+", "Condition 2")
_COUPLING = Statement("coupling", "iii) weak coupling: n nu / b_-", "Condition 2")
_STEP_SIZE = Statement("step_size", "iv) step size eta", "Condition 2")
_DECAY = at_least("decay", "iv) decay q of W", "Condition 2")


def check_condition2(
    data: Dataset,
    step_size: float,
    *,
    decay: tuple[float, float] = (2 / 3, 1),
    u0: TensorLike | None = None,
    W0: TensorLike | None = None,
) -> CheckTable:
    """Condition 2: what the tokens, the start and the step size must satisfy.

    With a the largest squared norm of an optimal token, b_- and b_+ the smallest and largest
    of the others, and nu the largest |<x, x'>| of two distinct tokens, it asks for

        |x_{i,opt}|^2 >= 0.9 a,  b_- >= 0.9 b_+,  a >= 9 b_+,  n nu <= 0.005 b_-,

    a zero start, p in [0, 1), q = 1 and a step size of at most

        min(0.04 / sqrt(a), 0.0145 (1 - p) / (a sqrt(n)), 0.08 / (sqrt(a n) (2.1 + 1.3 sqrt(a)))).

    Parameters
    ----------
    data : Dataset
        With optimal tokens, by construction or by its decoder. Any labels.
    step_size : float
        eta of Eq. 10.
    decay : (p, q)
    u0 : (d,) tensor, optional
    W0 : (d, d) tensor, optional
        Start of the run; zero by default.

    Returns
    -------
    CheckTable

    Raises
    ------
    RangeError, DtypeError, ShapeError, NonFiniteError, DeviceError, MissingDecoderError,
    TiedTokensError

    Notes
    -----
    Source: Condition 2: [a] the items, [c] the inequalities. Lemmas 11 to
    13 and Theorems 2 to 4 are proved under it for T = 2.

    Examples
    --------
    >>> from attnbias import make_dm
    >>> check_condition2(make_dm(10, 2, 10**11, alpha=3.4, sigma=1e-6, span=True), 1e-4).all_hold
    True
    """
    require_dataset(data)
    p, q = NGD(step_size, decay=decay).decay
    unit = unit_of(data)
    c = joint_constants(data, unit)
    limit = largest_step_size(c.a, c.n, p, unit)
    least = _over(c.a_least, c.a)
    reason = f"at most {COUPLING:g}; here cosines may reach {COUPLING / c.n:.2g}"
    items = (
        (_OPT_NORMS, least, 0.9, ""),
        (_OTHER_NORMS, _over(c.b_minus, c.b_plus), 0.9, ""),
        (_RATIO, _over(c.a, c.b_plus), 9.0, ""),
        (_COUPLING, _over(c.n * c.nu, c.b_minus), COUPLING, reason),
        (_STEP_SIZE, step_size, limit, ""),
        (_DECAY, q, 1.0, ""),
    )
    checks = (
        each.once(value, bound, rounding=EXACT * bound, reason=why)
        for each, value, bound, why in items
    )
    return CheckTable((_zero_start(data, u0, W0, 2), *checks))


_NORMS = Statement(
    "norms", "largest |norm^2 / (sigma^2 d) - 1| of a token, with alpha sigma if optimal", "Lemma 9"
)
_PRODUCTS = Statement(
    "products", "largest |<x, x'>| of two tokens, against 2 alpha^2 sigma^2 sqrt(d l)", "Lemma 9"
)


def check_lemma9(
    data: Dataset, *, delta: float = 0.1, assume_conditions: bool = False
) -> CheckTable:
    """Lemma 9: tokens of (DM) are nearly orthogonal in high dimension.

    With l = log(6 (n T)^2 / delta) and d >= 1680 l, with probability at least 1 - delta all
    squared norms are within 5% of alpha^2 sigma^2 d (optimal tokens) or sigma^2 d (the
    others), and all products of distinct tokens are at most 2 alpha^2 sigma^2 sqrt(d l).

    Parameters
    ----------
    data : Dataset
        Of `make_dm`; of any other the lemma says nothing.
    delta : float in (0, 1)
    assume_conditions : bool
        Compare although d < 1680 l.

    Returns
    -------
    CheckTable
        One draw may fail, with probability delta.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: Lemma 9, [c] with the constant 1680; any T >= 2, l = log(24 n^2 / delta) for T = 2.

    Examples
    --------
    >>> from attnbias import make_dm
    >>> check_lemma9(make_dm(n=3, d=15_000)).all_hold
    True
    >>> check_lemma9(make_dm(n=3, d=100))[0].reason
    'd = 100 is under 1680 l = 12899'
    """
    require_dataset(data)
    assume = require_flag("assume_conditions", assume_conditions)
    logs = log_term(data.n, data.T, delta)
    reason = ""
    if not made_by(data, "make_dm", "d", "alpha", "sigma"):
        reason = NOT_DRAWN
    elif data.meta["d"] < 1680 * logs and not assume:
        reason = f"d = {data.meta['d']} is under 1680 l = {np.ceil(1680 * logs):.0f}"
    if reason:
        return refused((_NORMS, _PRODUCTS), reason)
    alpha, d = data.meta["alpha"], data.meta["d"]
    scale = data.meta["sigma"] ** 2 * d
    ratio = data.X.double().square().sum(dim=2).cpu().numpy() / scale
    ratio[np.arange(data.n), resolve_opt(data).cpu().numpy()] /= alpha**2
    products = 2 * alpha**2 * scale * math.sqrt(logs / d)
    words = f"with probability at least {1 - float(delta):g}"
    words += "; conditions not checked" if assume else ""
    norms = _NORMS.once(np.abs(ratio - 1).max(), 0.05, reason=words)
    return CheckTable((norms, _PRODUCTS.once(joint_constants(data).nu, products, reason=words)))


def dm_threshold(n: int, alpha: float, *, T: int = 2, delta: float = 0.1) -> int:
    """Features d from which tokens of (DM) satisfy ii) and iii) of Condition 2.

    Parameters
    ----------
    n : int
    alpha : float
        At least 3.4 for ii) to hold; iii) grows as alpha^4.
    T : int
        Tokens a sequence.
    delta : float in (0, 1)
        Probability of failure.

    Returns
    -------
    int
        Sufficient, not necessary: at alpha = 3.4 nine draws in ten satisfy iii) from d = 10^6
        on for n = 1, 6e7 for n = 2, 6e9 for n = 10.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Lemma 9 and iii) of Condition 1, [c]: d >= l max(1680, 1.8e5 alpha^4 n^2) with
    l = log(6 (n T)^2 / delta), since n nu <= 2 n alpha^2 sigma^2 sqrt(d l) must not exceed
    0.005 of b_- >= 0.95 sigma^2 d.

    Examples
    --------
    >>> f"{dm_threshold(1, 3.4):.2g}, {dm_threshold(10, 3.4):.2g}"
    '1.3e+08, 2.4e+10'
    """
    n = require_int("n", n, low=1)
    alpha = require_number("alpha", alpha, low=1e-30, high=1e30)
    return math.ceil(log_term(n, T, delta) * max(1680.0, 1.8e5 * alpha**4 * n**2))


def _zero_start(data: Dataset, u0, W0, number: int) -> Check:
    """Of the largest |entry|, whose squares might underflow; zero where no start is given."""
    starts = [] if u0 is None else [initial_decoder(u0, data)]
    starts += [] if W0 is None else [initial_matrix(W0, data)]
    largest = max((float(start.abs().max()) for start in starts), default=0.0)
    words = "i) zero start: largest |entry| of u_0 and W_0"
    return Statement("start", words, source=_SOURCE[number], provenance="a").once(largest, 0.0)


def _over(a: float, b: float) -> float:
    return a / b if b > 0 else (math.inf if a > 0 else math.nan)
