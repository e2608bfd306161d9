"""Hard margins of several heads: in a norm of each, or of the one matrix of which they are blocks.

The norm of several matrices is the largest of theirs; fused, it is that of the whole matrix. Both
are problems of `attnbias.geometry.svm.solve`: one a matrix, or one whose rows stand in the block
of their head.
"""

from __future__ import annotations

import math

import torch

from ..._validate import require_choice, require_type
from ...data import Dataset
from ...errors import ShapeError
from ...geometry.certificate import matrix_norm
from ...geometry.svm import SVMSolution, solve
from ...geometry.tokens import GapRows, gap_rows, optimal_tokens
from ..common.arguments import as_finite, listed
from ..norms.geometry import STACKED
from .dynamics import as_decoders, as_groups, through


def head_rows(data: Dataset, decoders, *, keys=None, queries=None, groups=None) -> list[GapRows]:
    """What is asked of each matrix: the rows of the W-SVM of all heads that have it.

    Parameters
    ----------
    data, decoders, keys, queries, groups
        As in `train_heads`.

    Returns
    -------
    list of GapRows
        One a matrix (k, q), with margins (K_h (x_opt - x_t))' W Q_h x_1.

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, TiedTokensError

    Examples
    --------
    >>> from attnbias import make_example1
    >>> data = make_example1(n=4, T=3, d=20, seed=0)
    >>> [len(rows.token) for rows in head_rows(data, data.u.repeat(2, 1))]
    [8, 8]
    >>> [len(rows.token) for rows in head_rows(data, data.u.repeat(3, 1), groups=[0, 0, 1])]
    [16, 8]
    """
    u = as_decoders(data, decoders)
    groups = as_groups(groups, len(u))
    each = [gap_rows(data, optimal_tokens(data, decoder)) for decoder in u]
    left = through("keys", keys, torch.stack([rows.differences for rows in each]))
    right = through("queries", queries, torch.stack([rows.queries for rows in each]))
    return [
        _joined([_rows(left[h], right[h], each[h]) for h in (groups == g).nonzero().flatten()])
        for g in range(int(groups.max()) + 1)
    ]


def solve_heads(rows: list[GapRows], norm: str, fused: str | None = None) -> list[SVMSolution]:
    """The matrices of least norm with all margins of `head_rows` at least 1.

    Parameters
    ----------
    rows : list of GapRows
    norm : {"frobenius", "max", "spectral", "nuclear"}
    fused : {"rows", "columns"}, optional
        The norm is that of one matrix, of which the heads' are blocks of rows, as in the
        weights of torch's query projection, or of columns. By default it is the largest of
        the heads' norms, and each head's problem is one of its own.

    Returns
    -------
    list of SVMSolution
        One a matrix, or that of the fused one. The least of their margins is the largest margin
        of the heads in this norm.

    Raises
    ------
    InfeasibleError, MissingExtraError, SolverError, RangeError
        As `solve_norm_svm`.

    Notes
    -----
    Source: ours [c]. Per head the largest margin is that of the worst head; fused, 1 / margin
    is between that head's and, for the spectral norm, the root of the sum of the heads' squares.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> pair = make_separation_pair()
    >>> rows = head_rows(pair, torch.stack([pair.u, pair.u]))
    >>> per_head, (fused,) = solve_heads(rows, "spectral"), solve_heads(rows, "spectral", "rows")
    >>> round(min(svm.margin for svm in per_head), 6), round(fused.margin, 4)  # 1 / sqrt(2)
    (1.0, 0.7071)
    """
    return [solve(each, norm=norm, problem="W-SVM") for each in _fused(rows, fused)]


def heads_margin(rows: list[GapRows], W, norm: str, fused: str | None = None) -> float:
    """The least margin of all heads over the norm: what fused or per-head steps maximise.

    Parameters
    ----------
    rows, norm, fused
        As in `solve_heads`.
    W : (G, k, q)
        One matrix for each of the rows.

    Returns
    -------
    float
        NaN for W = 0.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> pair = make_separation_pair()
    >>> rows, W = head_rows(pair, torch.stack([pair.u, pair.u])), torch.zeros(2, 2, 2)
    >>> W[:, 0, 0] = 3
    >>> round(heads_margin(rows, W, "spectral"), 6)
    1.0
    """
    rows = _alike(rows)
    W = as_finite("W", W, (len(rows), None, None), "(G, k, q), one a matrix")
    whole = [*W] if fused is None else [torch.cat([*W], STACKED.index(_as_side(fused)))]
    size = max(matrix_norm(each, norm) for each in whole)
    least = min(float(each.gaps(part).min()) for each, part in zip(rows, W, strict=True))
    return least / size if size > 0 else math.nan


def _fused(rows: list[GapRows], fused: str | None) -> list[GapRows]:
    """The rows themselves, or those of the one matrix: each row stands in its head's block."""
    rows = _alike(rows)
    if fused is None:
        return rows
    side = ("differences", "queries")[STACKED.index(_as_side(fused))]
    whole = torch.block_diag(*(getattr(each, side) for each in rows))
    return [_joined(rows, **{side: whole})]


def _alike(rows) -> list[GapRows]:
    """Rows of matrices of one shape."""
    rows, remedy = listed("rows", rows, _as_rows), "pass head_rows(data, u)"
    shapes = {tuple(side.shape[1] for side in each.factors) for each in rows}
    if len(shapes) > 1:
        got, expected = f"(k, q) = {sorted(shapes)}", "those of matrices of one shape"
        raise ShapeError("rows", expected=expected, got=got, remedy=remedy)
    return rows


def _as_rows(name: str, value) -> GapRows:
    return require_type(name, value, GapRows, "a list of GapRows", "pass head_rows(data, u)")


def _as_side(fused) -> str:
    return require_choice("fused", fused, STACKED)


def _rows(differences: torch.Tensor, queries: torch.Tensor, rows: GapRows) -> GapRows:
    return GapRows(differences, queries, rows.sequence, rows.token, rows.opt)


def _joined(rows: list[GapRows], **whole: torch.Tensor) -> GapRows:
    """Rows below one another, the sequences of one after those of another."""
    names = ("differences", "queries", "token", "opt")
    parts = {name: torch.cat([getattr(each, name) for each in rows]) for name in names}
    starts = [sum(len(each.opt) for each in rows[:i]) for i in range(len(rows))]
    sequence = torch.cat([each.sequence + i for each, i in zip(rows, starts, strict=True)])
    return GapRows(**parts | whole, sequence=sequence)
