"""Assumption 1 makes the W-SVM feasible, with an explicit margin: the tokens alone decide."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.request import resolve_svm
from ...errors import InfeasibleError
from ...geometry.assumptions import assumption1_table
from ...geometry.constants import token_constants
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import gap_rows
from ..rounding import EPS
from ..statements import Statement, refused

ROWS = Statement(
    "least <z_k, V>, V = sum_k z_k / (T_i - 1), against (b_o^2 - 3 mu) b_1^2 - 1.2 (n - 1) mu B^2",
    "Assumption 1 gives feasibility",
    ">=",
)
FLOOR = Statement("the same, against 0.4 b_o^2 b_1^2", "Assumption 1 gives feasibility", ">=")
MARGIN = Statement("Xi, against 0.2 b_o^2 b_1^2 / (n B^2)", "Assumption 1 gives feasibility", ">=")


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
    constants = token_constants(data, phi=1.0)
    if svm is not None:
        svm = resolve_svm(svm, data, SimpleNamespace(rows=gap_rows(data)))
    reason = _hypotheses(constants)
    if reason:
        return refused((ROWS, FLOOR, MARGIN), reason)
    c, least = constants, least_alignment(data)
    own = (c.b_o**2 - 3 * c.mu) * c.b_1**2
    size = c.b_o**2 * c.b_1**2
    # products of up to N' rows, each right to a few EPS of B^4
    room = 64 * EPS * c.n * c.B**4
    values = (
        (ROWS, least, own - 1.2 * (c.n - 1) * c.mu * c.B**2, room),
        (FLOOR, least, 0.4 * size, room),
        (MARGIN, _margin(data, svm), 0.2 * size / (c.n * c.B**2), 0.0),
    )
    return CheckTable(
        statement.once(value, bound, rounding=rounding)
        for statement, value, bound, rounding in values
    )


def least_alignment(data) -> float:
    """Smallest <z_k, V> for V = sum_k z_k / (T_i - 1)."""
    rows, _ = gap_rows(data).thin()
    weights = 1 / torch.bincount(rows.sequence, minlength=data.n).double()
    return float(rows.gaps(rows.combine(weights[rows.sequence])).min())


def _hypotheses(constants) -> str:
    if constants.b_1 == 0:
        return "a query token is zero"
    for check in assumption1_table(constants, exact=True):
        if not check.holds:
            return f"Assumption 1 fails: {check.statement} = {check.value:.3g}, above " + (
                f"{check.bound:.3g}"
            )
    return ""


def _margin(data, svm) -> float:
    try:
        return float(solve_w_svm(data).margin if svm is None else svm.margin)
    except InfeasibleError:
        return 0.0
