"""Unit tokens of several sequences whose inner products all help one wrong token."""

import numpy as np
import torch
from scipy.optimize import bisect

from attnbias import Dataset


def make_crossed(n: int, T: int, size: float) -> tuple[Dataset, list[int]]:
    """Unit tokens with inner products of `size` in absolute value, and a selection that they help.

    The selection has the second-best token of the first sequence, its query, and the optimal
    tokens of the others, their queries. It is against the first sequence's optimal token.

    Parameters
    ----------
    n, T : int
    size : float

    Returns
    -------
    Dataset, list of n integers

    Examples
    --------
    >>> from attnbias.beyond.local.geometry import check_locally_optimal
    >>> [check_locally_optimal(*make_crossed(2, 3, size)).all_hold for size in (0.22, 0.23)]
    [False, True]
    """
    side = -np.ones((n, T))  # 1: a row away from the selected token pushes for the selection
    side[:, 0], side[0] = 1, 1
    side[0, 1] = -1  # the optimal token of the first sequence
    signs = np.outer(side, side)
    for i in range(n):
        own = signs[i * T : (i + 1) * T, i * T : (i + 1) * T]
        own[:] = -1
        own[0, 1:] = own[1:, 0] = 1
        if i == 0:
            own[1, 2:] = own[2:, 1] = 1
            own[0, 1] = own[1, 0] = -1
    gram = size * signs
    np.fill_diagonal(gram, 1)
    tokens = np.linalg.cholesky(gram).reshape(n, T, n * T)
    scores = np.tile(np.r_[1, np.linspace(0, 0.1, T - 1)], (n, 1))
    scores[0, :2] = 0.5, 1
    u = np.linalg.solve(tokens.reshape(n * T, -1), scores.ravel())
    return Dataset(tokens, torch.ones(n), u), [0] * n


def free_up_to(n: int, T: int) -> float:
    """The size of inner products up to which unit tokens with different scores do not lock.

    Examples
    --------
    >>> round(free_up_to(1, 3), 6), round(free_up_to(2, 3), 3)
    (0.333333, 0.165)
    """

    def room(size: float) -> float:
        turn = (1 - (4 * T - 9) * size) / (T - 2)
        own = 1 - 3 * size + (1 + size) / (T - 1)
        return turn * own - 4 * n * (n > 1) * size**2 * (2 * turn + 1 + 3 * size)

    return bisect(room, 0, 1 / (4 * T - 9))
