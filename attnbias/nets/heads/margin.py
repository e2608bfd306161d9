"""A matrix W held against W_mm, the max-margin matrix that selects the same tokens.

A set of sentences sees of W only its part in the span of the rows (x_opt - x_t) x_1' of the
W-SVM: what lies outside changes no logit gap. Both are compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..._validate import as_floats
from ...data import Dataset
from ...errors import RangeError
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import GapRows, gap_rows

__all__ = ["Comparison"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far a matrix W lies from W_mm.

    Attributes
    ----------
    svm : SVMSolution
        W_mm.
    cosine : float
        Between W and W_mm.
    cosine_span : float
        The same for W's part in the span of the constraint rows.
    share : float
        Norm of that part over the norm of W.
    dimension : int
        Of the span; a matrix drawn at random has a cosine_span of about dimension^-1/2.
    margin : float
        Smallest (x_opt - x_t)' W x_1 over the norm of W's part in the span: at most
        svm.margin, and negative if W selects another token somewhere.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> found = compare(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), make_separation_pair())
    >>> round(found.share, 6), found.dimension
    (0.6, 1)
    """

    svm: SVMSolution
    cosine: float
    cosine_span: float
    share: float
    dimension: int
    margin: float

    def __repr__(self) -> str:
        return (
            f"Comparison(cosine {self.cosine:.3f}, {self.cosine_span:.3f} in the span of "
            f"dimension {self.dimension}, margin {self.margin:.3g} of {self.svm.margin:.3g})"
        )


def compare(W, data: Dataset, opt=None) -> Comparison:
    """W against the W_mm of the data.

    Parameters
    ----------
    W : (d, d)
        A key-query matrix, not orthogonal to all constraint rows.
    data : Dataset
    opt : (n,) integers, optional
        Optimal tokens; those of the data by default.

    Returns
    -------
    Comparison

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, DeviceError, RangeError
    InfeasibleError, SolverError, TiedTokensError, MissingDecoderError
        As `solve_w_svm`.

    Notes
    -----
    Source: (W-SVM) [a], norm and orientation [d]; the part in the span [c]. Computed from the N'
    logit gaps and the Gram matrix of the rows: |W's part|^2 = g' G^+ g and <W_mm, W> = alpha' g.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> from attnbias.nets.heads.margin import compare
    >>> compare(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), make_separation_pair())
    Comparison(cosine 0.600, 1.000 in the span of dimension 1, margin 1 of 1)
    """
    rows = gap_rows(data, opt)
    W = as_floats("W", W, (data.d, data.d), "(d, d)", data.X.device).double()
    gaps = rows.gaps(W)
    if not bool(gaps.any()):
        raise RangeError(
            "W",
            expected="a logit gap other than 0",
            got="none: these sequences see nothing of W",
            remedy="compare a trained matrix, or on other sequences",
        )
    svm, (part, dimension) = solve_w_svm(data, opt), _visible(rows, gaps)
    inner, norm = float(svm.dual @ gaps), float(torch.linalg.norm(W))
    return Comparison(
        svm=svm,
        cosine=inner / (svm.norm * norm),
        cosine_span=inner / (svm.norm * part),
        share=part / norm,
        dimension=dimension,
        margin=float(gaps.min()) / part,
    )


def _visible(rows: GapRows, gaps: torch.Tensor) -> tuple[float, int]:
    """Norm of W's projection on the rows' span, (g' G^+ g)^1/2 with g = <z_k, W>, and the rank."""
    values, vectors = torch.linalg.eigh(rows.gram())
    kept = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    part = (vectors.T @ gaps)[kept] ** 2 / values[kept]
    return math.sqrt(float(part.sum())), int(kept.sum())


def decoder_of(X: torch.Tensor, inside: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """(d,) the smallest u with u'x_t = the scores (n, T) of the tokens (n, T, d) inside."""
    X, scores = X[inside], scores[inside].double()
    inverse = torch.linalg.pinv(X)
    u = inverse @ scores
    for _ in range(2):  # to the last digits: scores meant to be equal are to be so
        u = u + inverse @ (scores - X @ u)
    if (X @ u - scores).abs().max() > 1e-4 * scores.abs().max():  # of values in float32
        raise RangeError(
            "readout",
            expected="scores that a decoder of these tokens can give",
            got=f"{len(X)} tokens in {X.shape[1]} features, or equal ones",
            remedy="take fewer sequences",
        )
    return u
