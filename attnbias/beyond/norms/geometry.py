"""The W-SVM in other norms: max, spectral and nuclear, each with two-sided bounds."""

from __future__ import annotations

import math

import torch

from ...data import Dataset
from ...geometry.certificate import NORMS, matrix_norm
from ...geometry.svm import SVMSolution, solve
from ...geometry.tokens import gap_rows
from ..common.arguments import as_finite

__all__ = ["NORMS", "STACKED", "matrix_norm", "norm_margin", "solve_norm_svm"]

STACKED = ("rows", "columns")  # how several matrices are blocks of one


def norm_margin(data: Dataset, W: torch.Tensor, norm: str, opt=None) -> float:
    """Smallest logit gap of W over its norm: what a steepest descent in that norm maximises.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor
    norm : {"frobenius", "max", "spectral", "nuclear"}
    opt : (n,) integers, optional

    Returns
    -------
    float
        NaN for W = 0.

    Raises
    ------
    RangeError, MissingDecoderError, TiedTokensError

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> data = make_separation_pair()
    >>> norm_margin(data, solve_w_svm(data).weights, "nuclear")
    1.0
    """
    rows = gap_rows(data, opt)
    W = as_finite("W", W, (data.d, data.d), "(d, d)")
    size = matrix_norm(W, norm)
    return float(rows.gaps(W).min()) / size if size > 0 else math.nan


def solve_norm_svm(data: Dataset, norm: str, opt=None) -> SVMSolution:
    """The matrix W of least norm with (x_{i,opt} - x_{i,t})' W x_{i,1} >= 1 for all i, t != opt_i.

    Parameters
    ----------
    data : Dataset
    norm : {"frobenius", "max", "spectral", "nuclear"}
        "frobenius" is `solve_w_svm`; the others need the package cvxpy.
    opt : (n,) integers, optional

    Returns
    -------
    SVMSolution
        Scaled so that the smallest margin is 1.

    Raises
    ------
    InfeasibleError
        As `solve_w_svm`: feasibility is the same in all norms.
    MissingExtraError, SolverError
    RangeError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: ours [c] for the certificate: `certify`. The dual of the max norm is the sum of
    absolute values, that of the spectral norm the nuclear norm.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> solve_norm_svm(make_separation_pair(), "frobenius").margin
    1.0
    """
    return solve(gap_rows(data, opt), norm=norm, problem="W-SVM")
