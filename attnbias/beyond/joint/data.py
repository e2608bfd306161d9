"""Orthogonal tokens of two sizes, on which joint training from zero has three numbers."""

from __future__ import annotations

import torch

from ..._validate import require_int, require_number
from ...dataset import Dataset
from ..common.arguments import alternating


def make_orthogonal_two_norms(n: int = 3, T: int = 2, *, opt_norm=1.0, other_norm=1 / 3) -> Dataset:
    """n sequences of T orthogonal tokens: the query, optimal, of one norm, the others of another.

    By symmetry joint training from zero keeps all sequences alike: every logit gap is one
    number, and u has one part along all optimal tokens and one along all others.

    Parameters
    ----------
    n : int
        Sequences, with labels 1 and -1 in turn.
    T : int
        Tokens a sequence, at least 2; d = n T.
    opt_norm, other_norm : float > 0
        Norms of the optimal token and of the others.

    Returns
    -------
    Dataset
        With opt and without a decoder.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: [d].

    Examples
    --------
    >>> from attnbias.beyond.joint.data import make_orthogonal_two_norms
    >>> make_orthogonal_two_norms(2, 3).X.norm(dim=2).round(decimals=3).tolist()
    [[1.0, 0.333, 0.333], [1.0, 0.333, 0.333]]
    """
    n = require_int("n", n, low=1, high=500)
    T = require_int("T", T, low=2, high=500)
    r = require_number("opt_norm", opt_norm, low=0, high=1e50, open_low=True)
    s = require_number("other_norm", other_norm, low=0, high=1e50, open_low=True)
    X = torch.eye(n * T, dtype=torch.float64).reshape(n, T, n * T) * s
    X[:, 0] *= r / s
    meta = {"maker": "make_orthogonal_two_norms", "opt_norm": r, "other_norm": s}
    return Dataset(X, alternating(n), name="even tokens", meta=meta, opt=[0] * n)


def make_nonsupport_pair() -> Dataset:
    """Two sequences with optimal tokens e_1 and 2 e_1: the second does not support u_mm.

    The queries are the other tokens, e_2 and e_3, so that the rows of the W-SVM are orthogonal.

    Returns
    -------
    Dataset
        n = T = 2, d = 3, labels 1, without a decoder.

    Notes
    -----
    Source: ours [c].

    Examples
    --------
    >>> from attnbias import solve_u_svm
    >>> from attnbias.beyond.joint.data import make_nonsupport_pair
    >>> solve_u_svm(make_nonsupport_pair()).dual.round(decimals=12).tolist()
    [1.0, 0.0]
    """
    X = [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]]
    return Dataset(X, [1, 1], name="loud pair", meta={"maker": "make_nonsupport_pair"}, opt=[1, 1])
