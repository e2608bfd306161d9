"""Feasibility of the W-SVM by counting: d^2 unknowns against n (T - 1) constraints."""

from __future__ import annotations

import math

import torch

from ..._validate import require_int
from ...checks import CheckTable
from ...data import Dataset
from ...errors import InfeasibleError
from ...geometry.solution import require_svm
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import gap_rows
from ...theorems.statements import Statement, refused

MARGIN = Statement(
    "margin", "margin Xi, against sqrt(least eigenvalue of K / N')", "independent rows, ours", ">="
)
_DEPENDENT = 1e-10  # share of K's largest eigenvalue under which the least one counts as zero


def most_feasible_sequences(T: int, d: int) -> int:
    """Number of sequences for which almost all tokens are feasible, whatever is optimal.

    Parameters
    ----------
    T, d : int
        Tokens a sequence, T >= 2, and features.

    Returns
    -------
    int
        d floor(d / (T - 1)); 0 where T - 1 > d, of which this says nothing.

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: ours [c]. Up to so many sequences the rows of the W-SVM are linearly independent
    for Lebesgue-almost all tokens. Sufficient, not necessary.

    Examples
    --------
    >>> most_feasible_sequences(4, 6), most_feasible_sequences(2, 6)
    (12, 36)
    """
    T, d = require_int("T", T, low=2), require_int("d", d, low=1)
    return d * (d // (T - 1))


def wendel_share(rows: int, dimension: int) -> float:
    """Probability that random half-spaces through the origin have a point in common.

    Parameters
    ----------
    rows : int
        Half-spaces, whose normals are in general position and have signs that are fair and
        independent.
    dimension : int

    Returns
    -------
    float
        2^(1 - rows) sum_{k < dimension} binomial(rows - 1, k): 1 up to rows = dimension and
        1/2 at rows = 2 dimension.

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: Wendel (1962), Cover (1965) [b]. With T = 2 and Gaussian tokens of which a coin
    tells the optimal one, it is exactly the probability that the W-SVM is feasible, at
    rows = n and dimension = d^2 [c].

    Examples
    --------
    >>> wendel_share(4, 4), wendel_share(8, 4)
    (1.0, 0.5)
    """
    rows = require_int("rows", rows, low=1, high=100_000)
    dimension = require_int("dimension", dimension, low=1)
    if rows <= dimension:
        return 1.0
    term = total = 1
    for k in range(1, dimension):  # binomials, each from the one before
        term = term * (rows - k) // k
        total += term
    return total / 2 ** (rows - 1)


def check_independent_rows(data: Dataset, opt=None, *, svm: SVMSolution | None = None):
    """Independent rows make the W-SVM feasible, with an explicit margin.

    With K the rows' Gram matrix, Xi >= sqrt(least eigenvalue of K / N').

    Parameters
    ----------
    data : Dataset
    opt : (n,) integers, optional
        Optimal tokens; those of the data by default.
    svm : SVMSolution, optional
        Of these tokens; solved here by default. Data that turn out infeasible have Xi = 0.

    Returns
    -------
    CheckTable
        One check; not applicable where the rows are dependent, as they are for N' > d^2.

    Raises
    ------
    MissingDecoderError, TiedTokensError, ShapeError, DtypeError, RangeError

    Notes
    -----
    Source: ours [c]. W = sum_k beta_k z_k with K beta = 1 has all gaps 1, and
    |W|^2 = 1' K^-1 1 is at most N' over the least eigenvalue.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.overparam.geometry import check_independent_rows
    >>> check_independent_rows(make_separation_pair()).all_hold
    True
    """
    rows = gap_rows(data, opt)
    K = rows.gram()
    values = torch.linalg.eigvalsh(K)
    if not float(values[0]) > _DEPENDENT * float(values[-1]):
        return refused([MARGIN], "the rows are linearly dependent, or nearly so")
    try:
        margin = (solve_w_svm(data, opt) if svm is None else require_svm(svm, rows)).margin
    except InfeasibleError:
        margin = 0.0
    bound = math.sqrt(float(values[0]) / len(K))
    return CheckTable([MARGIN.once(margin, bound, rounding=1e-9 * bound)])
