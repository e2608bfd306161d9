"""The W-SVM of a second layer, whose queries a first layer selects among the tokens."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

import torch

from ..._validate.sequences import as_token_indices
from ...dataset import Dataset, require_dataset
from ...errors import ShapeError
from ...geometry.svm import SVMSolution
from ...geometry.tokens import GapRows, resolve_opt
from ..common.arguments import require_svm
from ..common.geometry import selections, svm_if_any

LEVEL = 1e-9  # leads below this share of the sum of dual weights are rounding


def selected_queries(data: Dataset, tokens) -> torch.Tensor:
    """(n, d) the chosen token of each sequence, in float64.

    Parameters
    ----------
    data : Dataset
    tokens : (n,) integers

    Raises
    ------
    RangeError, ShapeError, DtypeError

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.depth.queries import selected_queries
    >>> selected_queries(make_separation_pair(), [0]).tolist()
    [[1.0, 0.0]]
    """
    require_dataset(data)
    tokens = as_token_indices("tokens", tokens, data.lengths)
    return data.X.double()[torch.arange(data.n, device=data.X.device), tokens]


def with_queries(data: Dataset, tokens) -> Dataset:
    """The same sequences, each asking with the chosen token: `solve_w_svm` of them is layer two's.

    Parameters
    ----------
    data : Dataset
    tokens : (n,) integers

    Raises
    ------
    RangeError, ShapeError, DtypeError

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> from attnbias.beyond.depth.queries import with_queries
    >>> data = make_cue_pair()  # no W serves both first tokens
    >>> round(solve_w_svm(with_queries(data, [2, 2])).margin ** 2, 9)
    0.75
    """
    return dataclasses.replace(data, query=selected_queries(data, tokens).to(data.X.dtype))


def query_margins(data: Dataset, svm: SVMSolution, tokens) -> torch.Tensor:
    """What each token would add as query: the slope of -norm^2 / 2 of the SVM towards it.

    Parameters
    ----------
    data : Dataset
    svm : SVMSolution
        `solve_w_svm(with_queries(data, tokens))`.
    tokens : (n,) integers

    Returns
    -------
    (n, T) float64 tensor
        0 at the selected token and at padding.

    Raises
    ------
    ShapeError, RangeError, DtypeError

    Notes
    -----
    Source: ours [c]. With W = sum_k alpha_k d_k q_k', moving q_i towards x_t changes
    norm^2 / 2 at the rate -sum over rows k of sequence i of alpha_k d_k' W (x_t - q_i): the
    rows' derivatives weighted by the dual. Layer one follows the same numbers.

    Examples
    --------
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.depth.queries import query_margins, with_queries
    >>> data = make_cue_pair()
    >>> svm = solve_w_svm(with_queries(data, [2, 2]))
    >>> bool((query_margins(data, svm, [2, 2])[:, :2] < 0).all())
    True
    """
    chosen = selected_queries(data, tokens)
    rows = require_svm("svm", svm, GapRows, "solve_w_svm(with_queries(data, tokens))")
    if rows.queries.shape != chosen.shape or not torch.equal(rows.queries, chosen):
        raise ShapeError(
            "svm",
            expected="the SVM of the queries that these tokens select",
            got="another one",
            remedy="solve_w_svm(with_queries(data, tokens))",
        )
    c = torch.zeros_like(chosen)
    c.index_add_(0, rows.sequence, svm.dual[:, None] * rows.differences)
    gains = ((data.X.double() - chosen[:, None]) @ (c @ svm.weights)[..., None])[..., 0]
    return gains.masked_fill(~data.mask, 0.0)


def contrary_pairs(data: Dataset, opt=None) -> list[tuple[int, int]]:
    """Pairs of sequences that no single layer serves: one query, and contrary wishes.

    Sequences i and j with the same x_1 whose different optimal tokens both stand in both.

    Parameters
    ----------
    data : Dataset
    opt : (n,) integers, optional

    Returns
    -------
    list of (i, j)
        Empty does not prove that one layer is feasible: `solve_w_svm` decides that.

    Raises
    ------
    MissingDecoderError, TiedTokensError, RangeError, ShapeError, DtypeError

    Notes
    -----
    Source: ours [c]. The rows (o_i - o_j) x_1' and (o_j - o_i) x_1' add up to zero.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> from attnbias.beyond.depth.queries import contrary_pairs
    >>> contrary_pairs(make_cue_pair()), contrary_pairs(make_separation_pair())
    ([(0, 1)], [])
    """
    opt, lengths = resolve_opt(data, opt), data.lengths.tolist()
    best = [tuple(x) for x in selected_queries(data, opt).tolist()]
    tokens = [[tuple(x) for x in data.X[i, :length].tolist()] for i, length in enumerate(lengths)]
    return [
        (i, j)
        for i, j in itertools.combinations(range(data.n), 2)
        if tokens[i][0] == tokens[j][0] and best[i] != best[j]
        if best[j] in tokens[i] and best[i] in tokens[j]
    ]


@dataclass(frozen=True, eq=False)
class QuerySelection:
    """One token a sequence as the query of layer two, and what both layers' SVMs say.

    Attributes
    ----------
    tokens : (n,) long
    first : SVMSolution or None
        Of layer one, which must make these tokens win; None if no W_1 does.
    second : SVMSolution
        Of layer two, with these tokens as queries.
    leads : (n, T) float64
        `query_margins`.
    """

    tokens: torch.Tensor
    first: SVMSolution | None
    second: SVMSolution
    leads: torch.Tensor

    @property
    def stationary(self) -> bool:
        """True if no other token leads: moving a query towards one does not help the margin."""
        return bool((self.leads <= LEVEL * self.second.dual.sum()).all())

    def __repr__(self) -> str:
        return (
            f"QuerySelection({self.tokens.tolist()}: margin {self.second.margin:.4g}, "
            f"{'stationary' if self.stationary else 'a query would move'}"
            f"{'' if self.first else ', out of reach of layer one'})"
        )


def query_selections(data: Dataset, *, most: int = 4096) -> list[QuerySelection]:
    """All selections of queries with which layer two is feasible, largest margin first.

    Parameters
    ----------
    data : Dataset
        With a decoder, or with opt.
    most : int
        Refuse more selections than this.

    Returns
    -------
    list of QuerySelection

    Raises
    ------
    RangeError
        When there are too many.
    MissingDecoderError, TiedTokensError, SolverError

    Examples
    --------
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> from attnbias.beyond.depth.queries import query_selections
    >>> found = query_selections(make_cue_pair(2.0))
    >>> len(found), found[0].tokens.tolist(), sum(each.first is not None for each in found)
    (7, [2, 2], 5)
    """
    require_dataset(data)
    found = []
    for tokens in selections(data, most):
        second = svm_if_any(with_queries(data, tokens))
        if second is not None:
            leads = query_margins(data, second, tokens)
            found.append(QuerySelection(tokens, svm_if_any(data, tokens), second, leads))
    return sorted(found, key=lambda each: -each.second.margin)
