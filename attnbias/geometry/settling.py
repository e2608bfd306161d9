"""How fast a run's offset from W_mm settles, from the SVM alone."""

from __future__ import annotations

import torch

from ..data import Dataset
from .constants import support_mask
from .slack import least_slack, solution_of
from .solution import SVMSolution

RANK = 1e-10  # eigenvalues below this share of the largest count as 0: rounding is 1e-14


def settling_rate(data: Dataset, solution: SVMSolution | None = None) -> float:
    """Rate at which the offset of W from W_mm settles, per unit of height.

    The height of W is Xi <W, unit W_mm>, about Xi |W|: the gap that supporting rows have. Late
    in a run the offset differs from its limit by about exp(-rate height).

    Parameters
    ----------
    data : Dataset
        With a feasible (W-SVM).
    solution : SVMSolution, optional
        Of the W-SVM of these data.

    Returns
    -------
    float
        The smaller of `least_slack`, with which idle rows fall silent, and the smallest
        non-zero eigenvalue of A^(1/2) (K - 1 1' / |W_mm|^2) A^(1/2), with which supporting rows
        find their balance; K is the Gram matrix of the supporting rows, A holds their weights.
        Infinite when one row alone supports W_mm and none is idle.

    Raises
    ------
    InfeasibleError, ShapeError, DtypeError, TiedTokensError, MissingDecoderError

    Notes
    -----
    Source: ours [c], for small steps along the gradient, under Assumption 2 and strict
    complementarity. In height, the part Q of W across W_mm obeys
    dQ = sum_k w_k (z_k - W_mm / |W_mm|^2), with w_k in proportion to the rows' weights in the
    gradient, of sum |W_mm|^2. At the limit w = alpha. With x_k = <z_k, Q - limit>,
    w_k = alpha_k exp(-x_k) up to a common factor, and (K - 1 1' / |W_mm|^2) alpha = 0, so
    dx = -(K - 1 1' / |W_mm|^2) A x to first order. An idle row of slack delta adds a force
    of size exp(-delta height).

    Examples
    --------
    >>> from attnbias.data.degenerate import make_degenerate
    >>> round(settling_rate(make_degenerate(-0.1)), 12)
    0.1
    """
    solution = solution_of(data, solution)
    support = support_mask(solution)
    across = solution.rows.gram()[support][:, support] - 1.0 / solution.norm**2
    root = solution.dual[support].sqrt()
    rates = torch.linalg.eigvalsh(root[:, None] * across * root)
    lengths = torch.linalg.eigvalsh(across)
    rank = int((lengths > RANK * solution.rows.gram().diagonal().max()).sum())
    slowest = float(rates[len(rates) - rank]) if rank else float("inf")
    return min(least_slack(data, solution), slowest)
