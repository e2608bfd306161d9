"""Where a decoder goes under a loss with a polynomial tail."""

from __future__ import annotations

import math

import torch

from ..._validate import require_number
from ...dataset import Dataset, require_dataset
from ...errors import RangeError
from ...geometry.limit import settled_offset
from ...geometry.svm import solve_u_svm
from ...geometry.tokens import gap_rows, resolve_opt

_NEWTON = 200


def tail_direction(data: Dataset, power: float, opt=None) -> torch.Tensor:
    """The unit u with the least sum of (y_i u'x_{i,opt})^-power.

    For a loss with the tail z^-power this is the direction of the minimisers of the loss over
    balls as they grow. As the power grows it tends to u_mm.

    Parameters
    ----------
    data : Dataset
    power : float in [0.01, 100]
    opt : (n,) long tensor, optional
        Optimal tokens; those of the data by default.

    Returns
    -------
    (d,) tensor
        Float64, of norm 1.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError, InfeasibleError

    Notes
    -----
    Source: for linear classifiers Ji, Dudik, Schapire and Telgarsky (2020) [b]. Computed as the
    minimiser of sum z^-power / power + |u|^2 / 2, which has the same direction because the
    first summand is homogeneous, by Newton's method in the span of the optimal tokens.

    Examples
    --------
    Two orthogonal optimal tokens of norms 1 and 2 share u as 1 to 2^(-k / (k + 2)):

    >>> from attnbias import Dataset
    >>> from attnbias.beyond.losses.geometry import tail_direction
    >>> X = [[[1.0, 0, 0, 0], [0, 0, 1, 0]], [[0, 2.0, 0, 0], [0, 0, 0, 1]]]
    >>> u = tail_direction(Dataset(X, [1, 1], opt=[0, 0]), 2)
    >>> round(float(u[1] / u[0]), 6), round(2**-0.5, 6)
    (0.707107, 0.707107)
    """
    require_dataset(data)
    k = require_number("power", power, low=0.01, high=100)
    opt = resolve_opt(data, opt)
    signed = data.y.double()[:, None] * data.X[torch.arange(data.n), opt].double()
    start = solve_u_svm(data, opt).weights.double()
    basis = torch.linalg.qr(signed.T).Q
    rows = signed @ basis
    margins = rows @ (basis.T @ start)
    coordinates = basis.T @ start * math.exp(-float(margins.log().mean()))
    direction = basis @ _newton(rows, coordinates, k)
    return direction / direction.norm()


def _newton(rows: torch.Tensor, v: torch.Tensor, k: float) -> torch.Tensor:
    """Damped Newton steps on sum (rows v)^-k / k + |v|^2 / 2 from a v with positive margins."""

    def value(v):
        z = rows @ v
        return float((z**-k).sum() / k + v @ v / 2) if bool((z > 0).all()) else math.inf

    for _ in range(_NEWTON):
        z = rows @ v
        gradient = v - rows.T @ z ** (-k - 1)
        if float(gradient.norm()) <= 1e-13 * (1 + float(v.norm())):
            return v
        hessian = torch.eye(len(v), dtype=v.dtype, device=v.device)
        hessian = hessian + (k + 1) * (rows.T * z ** (-k - 2)) @ rows
        move, length = torch.linalg.solve(hessian, gradient), 1.0
        now, fall = value(v), float(gradient @ move)
        bound = now + 1e-15 * abs(now)  # the last steps gain less than a sum's rounding
        while not value(v - length * move) <= bound - 0.1 * length * fall and length > 1e-12:
            length /= 2
        if length <= 1e-12:
            break
        v = v - length * move
    if float(gradient.norm()) <= 1e-8 * (1 + float(v.norm())):
        return v
    raise RangeError(
        "data, power",
        expected="margins that Newton's method can balance in float64",
        got=f"a remaining gradient of {float(gradient.norm()):.1e}",
        remedy="use a smaller power, or optimal tokens of more even sizes",
    )


def tail_offset(data: Dataset, svm, power: float = math.inf) -> float | None:
    """Norm of the part of W across W_mm that joint training with a given tail settles at.

    Parameters
    ----------
    data : Dataset
        With optimal tokens.
    svm : SVMSolution
        Solution of the W-SVM.
    power : float
        Of the tail; infinite, the default, for exponential tails.

    Returns
    -------
    float or None
        None where `settled_offset` has none, and for exponential tails where some sequence
        does not support u_mm, since its weight then vanishes.

    Notes
    -----
    Source: ours [c] for the fixed point: with u along its limit direction the weight of row
    (i, tau) is -l' times the score gap, where -l' is z_i^(-power - 1) up to a common factor,
    or the dual variable of u_mm for exponential tails. That runs reach it is an estimate.

    Examples
    --------
    >>> from attnbias import make_dm, solve_w_svm
    >>> from attnbias.beyond.losses.geometry import tail_offset
    >>> data = make_dm(n=3, d=100, seed=0)
    >>> svm = solve_w_svm(data)
    >>> tail_offset(data, svm) > 0 and tail_offset(data, svm, 1) > 0
    True
    """
    rows = gap_rows(data)
    signed = data.y.double()[:, None] * data.X[torch.arange(data.n), rows.opt].double()
    if math.isinf(power):
        solution = solve_u_svm(data)
        u, log_slope = solution.weights.double(), solution.dual.log()
    else:
        u = tail_direction(data, power)
        log_slope = -(power + 1) * (signed @ u).log()
    score_gap = data.y.double()[rows.sequence] * (rows.differences @ u)
    return settled_offset(rows, log_slope[rows.sequence] + score_gap.log(), svm)
