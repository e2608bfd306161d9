"""Lemma 6: Example 1 satisfies Assumption 1 in high dimension; Assumption 1 makes W_mm exist."""

from __future__ import annotations

import math

import torch

from ..._validate import require_number
from ...checks import CheckTable
from ...data import Dataset
from ...dataset import require_dataset
from ...errors import InfeasibleError
from ...geometry.assumptions import assumption1_table, example1_threshold, log_term
from ...geometry.constants import token_constants
from ...geometry.svm import SVMSolution, resolve_svm, solve_w_svm
from ...geometry.tokens import gap_rows
from ..run import EPS
from ..statements import Statement, assumption1_fails, at_least, made_by, refused

LARGE = Statement(
    "noise_high", "largest |nu|^2 of a noise token, against 1.63 sigma^2 d", "Lemma 6"
)
SMALL = at_least("noise_low", "smallest |nu|^2, against sigma^2 d / 2", "Lemma 6")
NOISE = Statement("noise_products", "largest |<nu, nu'>|, against 1.9 sigma^2 sqrt(d l)", "Lemma 6")
MEANS = Statement("mean_products", "largest |<mean, nu>|, against U sigma sqrt(2 l)", "Lemma 6")
COUPLING = Statement("coupling", "mu, against 1.9 sigma^2 sqrt(d l)", "Lemma 6")
NEAR = Statement("near_orthogonality", "near orthogonality: mu / b_o^2", "Lemma 6, Assumption 1")
WEAK = Statement(
    "weak_coupling", "weak coupling: n kappa (B/b_1)^2 mu / b_o^2", "Lemma 6, Assumption 1"
)
DRAW = (LARGE, SMALL, NOISE, MEANS)
TOKENS = (COUPLING, NEAR, WEAK)


def check_lemma6(data: Dataset, *, delta: float = 0.1, phi: float | None = None) -> CheckTable:
    """Lemma 6: what holds of Example 1's tokens with probability 1 - delta, in this draw.

    With l = log(6 (n T)^2 / delta) and d >= 16 l: squared norms of noise tokens lie in
    [1/2, 1.63] sigma^2 d, their inner products are at most 1.9 sigma^2 sqrt(d l), those with
    the means U sigma sqrt(2 l). With U = sigma sqrt(d) and d from `example1_threshold` on,
    Assumption 1 follows.

    Parameters
    ----------
    data : Dataset
        Of `make_example1`, whose meta holds sigma and U.
    delta : float in (0, 1)
        Probability that the event fails.
    phi : float in (0, 1], optional
        Smallest softmax score of an optimal token at the start; 1/T, of W_0 = 0, by default.

    Returns
    -------
    CheckTable
        The four inequalities of the event, mu, and Assumption 1's two. What d is too small
        for is not applicable, and says which d it takes.

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Lemma 6 [a] with constants [c] (Laurent and Massart's tails). The bounds allow for
    the worst of all draws: of 2000 at d = 16 l and delta = 1/2, 0.25% failed.

    Examples
    --------
    >>> from attnbias import make_example1
    >>> [check.verdict for check in check_lemma6(make_example1(n=3, T=2, d=1000))][:5]
    ['holds', 'holds', 'holds', 'holds', 'holds']
    """
    require_dataset(data)
    delta = require_number("delta", delta, low=0, high=1, open_low=True, open_high=True)
    reason, logs = "", log_term(data.n, data.T, delta)
    if not made_by(data, "make_example1", "sigma", "signal"):
        reason = "for data of make_example1, whose sigma and U are known"
    elif data.d < 16 * logs:
        reason = f"d = {data.d} is below 16 l = {math.ceil(16 * logs)}"
    if reason:
        return refused((*DRAW, *TOKENS), reason)
    return CheckTable([*_draw(data, logs), *_assumption1(data, logs, delta, phi)])


def _draw(data, logs: float) -> list:
    sigma, rows, X = data.meta["sigma"], gap_rows(data), data.X.double()
    means, tokens = X[torch.arange(data.n), rows.opt], X[rows.sequence, rows.token]
    products = tokens @ tokens.T
    squares = products.diagonal().clone()
    products.fill_diagonal_(0)
    variance, largest = sigma**2, (means @ tokens.T).abs().max()
    sides = (
        (squares.max(), 1.63 * variance * data.d),
        (squares.min(), 0.5 * variance * data.d),
        (products.abs().max(), 1.9 * variance * math.sqrt(data.d * logs)),
        (largest, data.meta["signal"] * sigma * math.sqrt(2 * logs)),
    )
    pairs = zip(DRAW, sides, strict=True)
    return [each.once(*both, rounding=64 * EPS * both[1]) for each, both in pairs]


def _assumption1(data, logs: float, delta: float, phi) -> list:
    sigma, d = data.meta["sigma"], data.d
    if not math.isclose(data.meta["signal"], sigma * math.sqrt(d), rel_tol=1e-9):
        return list(refused(TOKENS, "for signal = sigma sqrt(d)"))
    c = token_constants(data, phi=phi)
    coupling = COUPLING.once(c.mu, 1.9 * sigma**2 * math.sqrt(d * logs))
    needed = example1_threshold(data.n, data.T, c.kappa, c.phi_low, delta)
    if d < needed:
        return [coupling, *refused(TOKENS[1:], f"proved from d = {needed} on, not at d = {d}")]
    found = assumption1_table(c, exact=True)
    return [coupling, *(x.once(y.value, y.bound) for x, y in zip(TOKENS[1:], found, strict=True))]


ROWS = at_least(
    "rows",
    "least <z_k, V>, V = sum_k z_k / (T_i - 1), against (b_o^2 - 3 mu) b_1^2 - 1.2 (n - 1) mu B^2",
    "Assumption 1 gives feasibility",
)
FLOOR = at_least("floor", "the same, against 0.4 b_o^2 b_1^2", "Assumption 1 gives feasibility")
MARGIN = at_least(
    "margin", "Xi, against 0.2 b_o^2 b_1^2 / (n B^2)", "Assumption 1 gives feasibility"
)


def check_assumption1_feasible(data: Dataset, *, svm: SVMSolution | None = None) -> CheckTable:
    """Assumption 1 implies that the W-SVM is feasible, and how large its margin is at least.

    The matrix V that adds up all rows z_k, each divided by the number T_i - 1 of rows of its
    sequence, separates:

        <z_k, V> >= (b_o^2 - 3 mu) b_1^2 - 1.2 (n - 1) mu B^2 >= 0.4 b_o^2 b_1^2 > 0,

    and as |V| <= 2 n B^2, Xi >= 0.2 b_o^2 b_1^2 / (n B^2).

    Parameters
    ----------
    data : Dataset
        With a decoder.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default. Data that turn out infeasible have Xi = 0.

    Returns
    -------
    CheckTable
        Not applicable unless Assumption 1 holds at phi_* = 1/4, the weakest it asks for
        anywhere, and no query token is zero.

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. The proof is that of Lemma 3's inner products: own terms are at least
    (b_o^2 - 3 mu) b_1^2, cross terms at least -1.2 mu B^2, and Assumption 1 gives
    n mu B^2 <= b_o^2 b_1^2 / 3. With T_i = T this is sum_k z_k over T - 1.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> check_assumption1_feasible(make_separation_pair()).all_hold
    True
    """
    c = token_constants(data, phi=1.0)
    if svm is not None:
        svm = resolve_svm(svm, data, gap_rows(data))
    reason = assumption1_fails(c) if c.b_1 else "a query token is zero"
    if reason:
        return refused((ROWS, FLOOR, MARGIN), reason)
    least, own = least_alignment(data), (c.b_o**2 - 3 * c.mu) * c.b_1**2
    size = c.b_o**2 * c.b_1**2
    # products of up to N' rows, each right to a few EPS of B^4
    room = 64 * EPS * c.n * c.B**4
    try:
        margin = float((svm or solve_w_svm(data)).margin)
    except InfeasibleError:
        margin = 0.0
    return CheckTable(
        (
            ROWS.once(least, own - 1.2 * (c.n - 1) * c.mu * c.B**2, rounding=room),
            FLOOR.once(least, 0.4 * size, rounding=room),
            MARGIN.once(margin, 0.2 * size / (c.n * c.B**2)),
        )
    )


def least_alignment(data) -> float:
    """Smallest <z_k, V> for V = sum_k z_k / (T_i - 1)."""
    rows, _ = gap_rows(data).thin()
    weights = 1 / torch.bincount(rows.sequence, minlength=data.n).double()
    return float(rows.gaps(rows.combine(weights[rows.sequence])).min())
