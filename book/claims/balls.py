"""Inequalities with less room than float64's rounding, decided in ball arithmetic.

They hold at every matrix W, and are nearly equalities late in a run: there float64 sees them only
up to an allowance for its rounding. A ball leaves none, at an iterate taken as exact floats.
"""

from attnbias import Check
from attnbias._extras import need
from attnbias.geometry.exact import BITS, Balls, dot, down

WORDS = ("|grad L| / (Xi sum of Eq. 14's weights) - 1", "|grad L| / (Xi min phi (L - L*)) - 1")


def gradient_bounds(data, svm, W) -> tuple[Check, Check]:
    """|grad L| beside Xi times the sum of Eq. 14's weights, and beside Xi min_i phi_i (L - L*).

    Parameters
    ----------
    data : Dataset
        With the exponential loss; scores need not be equal.
    svm : SVMSolution
        Of the W-SVM.
    W : (d, d) tensor
        Any matrix; its entries are taken exactly.

    Returns
    -------
    two Checks
        The lower ends of both quotients less 1, with no allowance. An exact equality, as of
        one row for the first of them, is not decided.

    Notes
    -----
    With S = gamma_opt - m for the output m of a sequence, the weight of token tau is
    e^-m phi_tau (m - gamma_tau), and the sequence's share of L - L* is e^-gamma_opt (e^S - 1).

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> data = make_example1(n=2, T=3, d=8)
    >>> svm = solve_w_svm(data)
    >>> [check.holds for check in gradient_bounds(data, svm, 50 * svm.weights)]
    [True, True]
    """
    flint = need("flint", "exact")
    with flint.ctx.workprec(BITS):
        rows = Balls(flint, svm)
        gaps, _ = rows.of_point(W)
        tokens, places = svm.rows.token.tolist(), range(len(gaps))
        weights, loss_gap, least = [None for _ in places], 0, flint.arb(1)
        for i, opt in enumerate(svm.rows.opt.tolist()):
            scores = (rows.matrix(data.X[i]) * rows.matrix(data.u[:, None])).entries()
            scores = [score * int(data.y[i]) for score in scores]
            mine = [k for k in places if rows.sequence[k] == i]
            lead = {k: scores[opt] - scores[tokens[k]] for k in mine}
            odds = {k: (-gaps[k]).exp() for k in mine}
            phi = 1 / (1 + sum(odds.values()))
            short = phi * sum(odds[k] * lead[k] for k in mine)
            for k in mine:
                weights[k] = (short - scores[opt]).exp() * phi * odds[k] * (lead[k] - short)
            loss_gap += (-scores[opt]).exp() * short.expm1()
            least = least.min(phi)
        ratio = dot(weights, rows.margins(weights)).sqrt() / rows.proof().high
        lows = [down(flint, ratio / side - 1) for side in (sum(weights), least * loss_gap)]
        return tuple(Check(words, low, 0.0, ">=") for words, low in zip(WORDS, lows, strict=True))
