"""Small data sets on which a hypothesis of the rates fails."""

from __future__ import annotations

from .._validate import require_number
from ..dataset import Dataset


def make_degenerate(slope: float = 0.0) -> Dataset:
    """One sequence whose W-SVM has an active constraint with a zero dual variable.

    Three tokens in the plane: x_1 = (1, 0), query and optimal, x_2 = (0, 0) and
    x_3 = (slope, -1); y = 1, u = (1, slope), so that scores are (1, 0, 0). At slope 0 strict
    complementarity fails: W_mm = e_1 e_1', and the constraint of x_3 is active without
    supporting it. A positive slope makes it support W_mm, a negative one leaves it idle;
    either restores strict complementarity.

    Parameters
    ----------
    slope : float in [-10, 10]

    Returns
    -------
    Dataset
        n = 1, T = 3, d = 2.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c], the case that M2 leaves out.

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.data.degenerate import make_degenerate
    >>> solve_w_svm(make_degenerate()).strictly_complementary
    False
    >>> solve_w_svm(make_degenerate(0.2)).strictly_complementary
    True
    """
    slope = require_number("slope", slope, low=-10, high=10)
    X = [[[1.0, 0.0], [0.0, 0.0], [slope, -1.0]]]
    meta = {"maker": "make_degenerate", "slope": slope}
    name = "degenerate triple" if slope == 0 else f"triple with slope {slope:g}"
    return Dataset(X, [1], [1.0, slope], name=name, meta=meta)


def make_two_sample_trap() -> Dataset:
    """Two sequences on which training from W_0 = 0 never turns to W_mm.

    X_1 = ((2, 0), (0, 1)) with the second token optimal, X_2 = ((2, 0), (1, 1)) with the
    first; y = (1, -1), u = (0, 2). The W-SVM is feasible and Assumption 2 holds, as there are
    two tokens each, but Assumption 1 fails: the tokens are far from orthogonal, and the
    softmax at one optimal token falls to zero.

    Returns
    -------
    Dataset
        n = 2, T = 2, d = 2.

    Notes
    -----
    Source: ours [c]. It shows that the rates need the softmax scores of optimal tokens to
    stay up, as Lemma 3 has it under Assumption 1.

    Examples
    --------
    >>> from attnbias import check_assumption1, solve_w_svm
    >>> from attnbias.data.degenerate import make_two_sample_trap
    >>> data = make_two_sample_trap()
    >>> check_assumption1(data).all_hold, round(solve_w_svm(data).margin, 4)
    (False, 0.5547)
    """
    X = [[[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]]
    meta = {"maker": "make_two_sample_trap"}
    return Dataset(X, [1, -1], [0.0, 2.0], name="two-sample trap", meta=meta)


def make_score_lock(gap: float = 0.01) -> Dataset:
    """Three tokens in the plane, the second nearly as good as the first, and it wins.

    x_1 = (1, 0), query, optimal and longest, x_2 = (-0.2, 0.97) and x_3 = (0.1, -0.1), with
    y = 1 and u = (1, (1.2 - gap) / 0.97): the scores are 1, 1 - gap, and about 0. All inner
    products are at most 0.2 in size and W_mm exists. From W_0 = 0 training ends on x_2 for gaps
    up to 0.04.

    Parameters
    ----------
    gap : float in (0, 1)
        Between the two largest scores.

    Returns
    -------
    Dataset
        n = 1, T = 3, d = 2.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c]. It shows that near orthogonality in units of the optimal token does
    not replace Assumption 2.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.data import make_score_lock
    >>> [train(make_score_lock(gap), NGD(0.1), 1000).selected.tolist() for gap in (0.01, 0.1)]
    [[1], [0]]
    """
    gap = require_number("gap", gap, low=0, high=1, open_low=True, open_high=True)
    X = [[[1.0, 0.0], [-0.2, 0.97], [0.1, -0.1]]]
    meta = {"maker": "make_score_lock", "gap": gap}
    return Dataset(X, [1], [1.0, (1.2 - gap) / 0.97], name=f"score lock {gap:g}", meta=meta)
