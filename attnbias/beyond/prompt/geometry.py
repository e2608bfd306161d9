"""Where W goes when sequences need no margin, or their margins grow beside it."""

from __future__ import annotations

import numpy as np
import torch

from ..._validate import as_float_tensor, require_flag, require_shape
from ...dataset import Dataset, require_dataset
from ...errors import RangeError
from ...geometry.active_set import coordinates, least_distance
from ...geometry.svm import SVMSolution, solve
from ...geometry.tokens import gap_rows
from ..common.arguments import as_finite

_HALVINGS = 60


def solve_relaxed_svm(data: Dataset, right, opt=None) -> SVMSolution:
    """The smallest W with (x_{i,opt} - x_{i,t})' W x_{i,1} >= b_i for all i and t != opt_i.

    Parameters
    ----------
    data : Dataset
        Queries and keys of its own are taken.
    right : (n,) tensor
        b_i >= 0, one a sequence, not all 0: ones are the W-SVM, and a 0 asks of a sequence
        only that its optimal token is not behind.
    opt : (n,) integers, optional
        Optimal tokens; those of the data by default.

    Returns
    -------
    SVMSolution
        Its `right` has one entry a constraint.

    Raises
    ------
    InfeasibleError
        With Farkas' certificate: weights a >= 0, 1'a = 1, for which the rows cancel and
        b'a > 0.
    SolverError
        At the edge of infeasibility.
    RangeError, ShapeError, DtypeError, NonFiniteError, MissingDecoderError, TiedTokensError

    Notes
    -----
    Source: right sides 0 and 1 are the relaxed problem of Tarzanagh et al. (2023) for joint
    training [b]; certificate and solver are ours [c].

    Examples
    --------
    >>> from attnbias import Dataset
    >>> from attnbias.beyond.prompt.data import prompt_keys, prompt_of
    >>> X = [[[0.0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1.5]]]
    >>> data = prompt_keys(Dataset(X, [1, -1, 1], opt=[1, 1, 1]))
    >>> for right in ([1.0, 1, 1], [1.0, 1, 0]):
    ...     p = prompt_of(solve_relaxed_svm(data, right).weights)
    ...     print([abs(round(x, 6)) for x in p.tolist()])
    [1.25, 0.25]
    [1.0, 0.0]
    """
    rows = gap_rows(data, opt)
    b = as_float_tensor("right", right).double()
    require_shape("right", b, (data.n,), "(n,)")
    return solve(rows, b.to(rows.sequence.device)[rows.sequence], problem="relaxed W-SVM")


def moving_margin(data: Dataset, speed, *, attended: bool = False) -> torch.Tensor:
    """The unit V with the largest min_k (<z_k, V> + speed_i), for rows k of sequence i.

    In joint training the weight of row k is exp(-y_i Phi_i - g_k) up to bounded factors. If
    the margins y_i Phi_i grow like speed_i times the norm of W, the rows that balance are those
    of this problem and not of (W-SVM). Equal speeds give the direction of W_mm.

    Parameters
    ----------
    data : Dataset
        With optimal tokens.
    speed : (n,) tensor
        Growth of each sequence's margin per unit of the norm of W.
    attended : bool
        Ask for <z_k, V> >= 0 as well: speeds are those of margins that attention gives, so
        that a sequence cannot run ahead while its optimal token loses attention. For equal
        speeds nothing changes; as one sequence's speed grows, its right side becomes 0 and V
        the direction of `solve_relaxed_svm`.

    Returns
    -------
    (d, d) tensor
        Float64, of norm 1.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, RangeError

    Notes
    -----
    Source: ours [c] for the problem; that training goes there is an estimate. The largest level
    m for which the smallest V with <z_k, V> >= m - speed_i has norm at most 1, by bisection;
    each V by non-negative least squares.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_dm, solve_w_svm
    >>> from attnbias.beyond.prompt.geometry import moving_margin
    >>> data = make_dm(n=3, d=40)
    >>> svm = solve_w_svm(data)
    >>> V = moving_margin(data, torch.ones(3))
    >>> bool(1 - (V * svm.weights).sum() / svm.norm < 1e-9)
    True
    """
    require_dataset(data, cross=True)
    attended = require_flag("attended", attended)
    speed = as_finite("speed", speed, (data.n,), "(n,)")
    rows = gap_rows(data)
    Z = coordinates(rows.gram().cpu().numpy())
    offsets = speed[rows.sequence].cpu().numpy()
    low, high = float(offsets.min()), float(offsets.max() + np.linalg.norm(Z, axis=1).max())
    dual = np.zeros(len(Z))
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        right = level - offsets
        right = right.clip(min=0) if attended else right
        met, weights = bool((right <= 0).all()), np.zeros(len(Z))
        if not met:
            left, weights = least_distance(Z, right)
            size = float(np.linalg.norm(Z.T @ weights))
            met = size <= left  # the smallest V has a norm of at most 1
        if met:
            low, dual = level, weights
        else:
            high = level
    if not dual.any():
        raise RangeError(
            "data",
            expected="rows that some V separates from zero",
            got="none",
            remedy="see solve_w_svm for the reason",
        )
    V = rows.combine(torch.from_numpy(dual).to(rows.differences))
    return V / V.norm()
