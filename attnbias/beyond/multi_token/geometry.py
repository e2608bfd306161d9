"""Attention that keeps several tokens: the selected sets, their SVM, and their finite part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..._validate import as_float_tensor, as_tensor, dtype_name, require_number, require_shape
from ...dataset import Dataset, require_dataset
from ...errors import DtypeError, InfeasibleError, RangeError
from ...geometry.svm import SVMSolution, across, solve
from ...geometry.tokens import VectorRows

PROBLEM = "several-token SVM"
NONE = torch.zeros(0, 0, dtype=torch.float64)
_CONSISTENT = 1e-9  # relative residual of log-ratio equations that only rounding leaves


@dataclass(frozen=True, eq=False)
class SeveralRows(VectorRows):
    """Rows (k_ref - k_t) q' of tokens t outside the sets, less their part in the ties' span F.

    F is the span of (k_s - k_t) q' with s, t in one set, so that the rows do not depend on which
    member of the set is k_ref.

    Attributes
    ----------
    sets : (n, T) bool
        The selected tokens of each sequence.
    raw : (N, d^2) float64
        The rows before the projection, with the first member of the set as k_ref.
    """

    basis: torch.Tensor = NONE
    sets: torch.Tensor = NONE
    raw: torch.Tensor = NONE

    @property
    def d(self) -> int:
        """Features of a token."""
        return self.shape[0]


def selected_sets(log_attention, threshold: float = 1e-3, clear: float = 1e3) -> torch.Tensor:
    """The tokens that attention keeps: softmax at least `threshold`, the rest far below.

    Parameters
    ----------
    log_attention : (n, T)
        Logarithms of the softmax; -inf at padding.
    threshold : float in (0, 1]
    clear : float, at least 1
        The least quotient between a kept token of a sequence and one that is not.

    Returns
    -------
    (n, T) bool tensor
        At least one token in each sequence.

    Raises
    ------
    DtypeError, ShapeError
    RangeError
        Where a sequence has no token of that softmax, or a quotient is smaller: run longer.

    Notes
    -----
    Source: ours [d]; the code of Tarzanagh et al. 2023 has two absolute thresholds, 1e-3 and
    1e-6 [b]. Why such a rule is right late in a run [c]: along R W_mm + bounded the log-softmax
    of selected tokens stays bounded and that of the others is at most -R + bounded, so that the
    quotient passes any number, and no threshold below the smallest selected weight can fail
    from then on.

    Examples
    --------
    >>> selected_sets(torch.tensor([[0.6, 0.4, 1e-9]]).log()).tolist()
    [[True, True, False]]
    """
    threshold = require_number("threshold", threshold, low=0, high=1, open_low=True)
    clear = math.log(require_number("clear", clear, low=1))
    log_p = as_float_tensor("log_attention", log_attention).detach().double()
    require_shape("log_attention", log_p, (None, None), "(n, T)")
    inside = log_p >= math.log(threshold)
    least = log_p.masked_fill(~inside, torch.inf).amin(dim=1)
    most = log_p.masked_fill(inside, -torch.inf).amax(dim=1)
    gap = least - most  # +inf where nothing is left out, -inf or inf where nothing is in
    bad = (~inside.any(dim=1)) | ~(gap >= clear)
    if bool(bad.any()):
        i = int(bad.nonzero()[0])
        raise RangeError(
            "log_attention",
            expected=f"in each sequence a softmax of {threshold:g} or more, and any other "
            f"{math.exp(clear):g} times smaller",
            got=f"{int(bad.sum())} sequences without, first {i}",
            remedy="run longer; or the sets are not decided: a token's weight tends to 0 slowly",
        )
    return inside


def several_rows(data: Dataset, sets) -> SeveralRows:
    """The constraints of the several-token SVM.

    Parameters
    ----------
    data : Dataset
        With its own queries and keys, if it has them.
    sets : (n, T) bool

    Returns
    -------
    SeveralRows

    Raises
    ------
    DtypeError, ShapeError, RangeError
    InfeasibleError
        Where no token is left out, or the row of one lies in F.

    Examples
    --------
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> several_rows(data, [[True, True, False]]).basis.shape
    torch.Size([9, 1])
    """
    sets = _sets(data, sets)
    sequence, token = (data.mask & ~sets).nonzero().T
    raw = VectorRows(_rows(data, sets, sequence, token), sequence, token, (data.d, data.d))
    rows = across(raw, _rows(data, sets, *_others(sets)), PROBLEM)
    return SeveralRows(**vars(rows), sets=sets, raw=raw.rows)


def solve_several_svm(data: Dataset, sets) -> SVMSolution:
    """The smallest W that puts each selected set before the rest and leaves it tied within.

    Minimise |W| subject to (k_s - k_t)' W q >= 1 for s in the set and t outside, and = 0 for
    both in the set, in each sequence.

    Parameters
    ----------
    data : Dataset
    sets : (n, T) bool
        With one token a sequence it is `solve_w_svm`.

    Returns
    -------
    SVMSolution
        `rows` is a SeveralRows; weights (d, d), dual (N,) and both bounds.

    Raises
    ------
    InfeasibleError, SolverError, DtypeError, ShapeError, RangeError

    Notes
    -----
    Source: the generalised SVM of Tarzanagh et al. 2023 [b]; how its
    equalities are met: `project_rows`.

    Examples
    --------
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> svm = solve_several_svm(data, [[True, True, False]])
    >>> [round(x, 4) for x in svm.weights[:, 0].tolist()], svm.is_optimal(1e-12)
    ([0.3333, 0.3333, -0.6667], True)
    """
    return solve(several_rows(data, sets), problem=PROBLEM)


def finite_part(data: Dataset, log_attention, sets) -> torch.Tensor:
    """W_fin: the smallest W whose softmax has the given ratios within the sets.

    Minimise |W| subject to (k_s - k_t)' W q = log attention_s - log attention_t for s, t in one
    set; it lies in the ties' span F.

    Parameters
    ----------
    data : Dataset
    log_attention : (n, T)
        Finite on the sets.
    sets : (n, T) bool

    Returns
    -------
    (d, d) float64
        0 where all sets are single tokens.

    Raises
    ------
    InfeasibleError
        Where the equations contradict each other: tokens in more sets than features allow.
    DtypeError, ShapeError, NonFiniteError

    Notes
    -----
    Source: W_fin of Tarzanagh et al. 2023 [b], by least squares.

    Examples
    --------
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> share = torch.tensor([[0.75, 0.25, 0.0]]).log()
    >>> [round(x, 4) for x in finite_part(data, share, [[True, True, False]])[:, 0].tolist()]
    [0.5493, -0.5493, 0.0]
    """
    sets = _sets(data, sets)
    log_p = as_float_tensor("log_attention", log_attention).detach().double()
    require_shape("log_attention", log_p, tuple(sets.shape), "(n, T)")
    kept, member = _others(sets)
    first = sets.long().argmax(dim=1)[kept]
    ties, wanted = _rows(data, sets, kept, member), log_p[kept, first] - log_p[kept, member]
    if not bool(torch.isfinite(wanted).all()):
        raise RangeError(
            "log_attention",
            expected="finite logarithms on the sets",
            got="infinite ones",
            remedy="leave tokens of weight 0 out of the sets",
        )
    if len(ties) == 0:
        return ties.new_zeros(data.d, data.d)
    W = torch.linalg.lstsq(ties, wanted[:, None], driver="gelsd").solution[:, 0]
    off = float((ties @ W - wanted).norm())
    if off > _CONSISTENT * max(float(wanted.norm()), 1.0):
        raise InfeasibleError(
            "finite part",
            expected="log-ratios that one W can have",
            got=f"equations that are off by {off:.2g}",
            remedy="add features: n (T - 1) <= d^2 is not enough where tokens depend on each other",
        )
    return W.reshape(data.d, data.d)


def _others(sets: torch.Tensor):
    """Sequence and token of every selected token but the first of its set."""
    rest = sets.clone()
    rest[torch.arange(len(sets)), sets.long().argmax(dim=1)] = False
    return rest.nonzero().T


def _rows(data: Dataset, sets: torch.Tensor, sequence, token) -> torch.Tensor:
    """(N, d^2) rows (k_first - k_token) q', flattened, with the first token of each set."""
    keys, first = data.keys.double(), sets.long().argmax(dim=1)[sequence]
    difference = keys[sequence, first] - keys[sequence, token]
    return torch.einsum("na,nb->nab", difference, data.queries.double()[sequence]).flatten(1)


def _sets(data: Dataset, sets) -> torch.Tensor:
    require_dataset(data, cross=True)
    sets = as_tensor("sets", sets)
    if sets.dtype != torch.bool:
        raise DtypeError(
            "sets",
            expected="booleans",
            got=dtype_name(sets),
            remedy="True at the selected tokens: selected_sets(log_attention)",
        )
    require_shape("sets", sets, (data.n, data.T), "(n, T)")
    if bool((sets & ~data.mask).any()) or not bool(sets.any(dim=1).all()):
        raise RangeError(
            "sets",
            expected="at least one token a sequence, none at padding",
            got=f"sets of {sets.sum(dim=1).tolist()[:8]} tokens",
            remedy="mark them in each row",
        )
    return sets
