"""Where W goes when sequences' margins grow at different speeds beside it."""

from __future__ import annotations

import numpy as np
import torch

from ..._validate import as_float_tensor, require_finite, require_flag, require_shape
from ...data import Dataset
from ...dataset import require_dataset
from ...errors import RangeError
from ...geometry.relaxed import row_coordinates, smallest_above
from ...geometry.tokens import gap_rows

_HALVINGS = 60


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
    speed = as_float_tensor("speed", speed).double()
    require_shape("speed", speed, (data.n,), "(n,)")
    require_finite("speed", speed)
    rows = gap_rows(data)
    Z = row_coordinates(rows)
    offsets = speed[rows.sequence].cpu().numpy()
    low, high = float(offsets.min()), float(offsets.max() + np.linalg.norm(Z, axis=1).max())
    dual = np.zeros(len(Z))
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        right = level - offsets
        size, weights = smallest_above(Z, right.clip(min=0) if attended else right)
        if size <= 1:
            low, dual = level, weights
        else:
            high = level
    if not dual.any():
        raise RangeError(
            "data", expected="rows that some V separates from zero", got="none",
            remedy="see solve_w_svm for the reason",
        )  # fmt: skip
    V = rows.combine(torch.from_numpy(dual).to(rows.differences))
    return V / V.norm()
