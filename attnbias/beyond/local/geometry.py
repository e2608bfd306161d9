"""Selections of tokens at which training can end though they are not the best."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..._validate import require_flag
from ...checks import CheckTable
from ...dataset import Dataset, require_dataset
from ...errors import InfeasibleError
from ...geometry.solution import require_svm
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import gap_rows, optimal_tokens, resolve_opt, token_scores
from ...geometry.tokens import selected_tokens as selected_tokens
from ...theorems.statements import Statement, refused
from ..common.arguments import Typed
from ..common.geometry import selections, svm_if_any

ACTIVE = 1e-7  # a margin of at most 1 + this is a neighbour's
UNBEATEN = Statement(
    "unbeaten",
    "neighbours that the selected tokens do not beat",
    "local optimality, Tarzanagh et al. (2023)",
    provenance="b",
)


def score_margins(
    data: Dataset, opt, u=None, *, svm: SVMSolution | None = None, neighbours: bool = True
) -> torch.Tensor:
    """Score of the selected token minus that of each other one, infinite unless a neighbour.

    Parameters
    ----------
    data : Dataset
    opt : (n,) integers
        The selected tokens.
    u : (d,) tensor, optional
    svm : SVMSolution, optional
        `solve_w_svm(data, opt)`; solved here by default.
    neighbours : bool
        False gives the leads over all tokens, none infinite.

    Returns
    -------
    (N',) float64 tensor
        In the order of the SVM's constraints. A neighbour is a token whose constraint is
        active: margin 1, up to 1e-7.

    Raises
    ------
    InfeasibleError
        When no W selects these tokens; and the errors of `solve_w_svm` and `token_scores`.

    Examples
    --------
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.beyond.local.geometry import score_margins
    >>> score_margins(make_score_trap(0.25), [2]).tolist()
    [inf, 0.25]
    """
    opt = resolve_opt(data, opt)
    scores = token_scores(data, u)
    neighbours = require_flag("neighbours", neighbours)
    rows = gap_rows(data, opt)
    svm = solve_w_svm(data, opt) if svm is None else require_svm(svm, rows)
    lead = scores[rows.sequence, opt[rows.sequence]] - scores[rows.sequence, rows.token]
    return lead.masked_fill(svm.margins > 1 + ACTIVE, torch.inf) if neighbours else lead


def check_locally_optimal(data: Dataset, opt, u=None, *, svm: SVMSolution | None = None):
    """Whether selected tokens beat all their neighbours, so that training can end at them.

    Parameters
    ----------
    data : Dataset
    opt : (n,) integers
        One token a sequence.
    u : (d,) tensor, optional
    svm : SVMSolution, optional
        `solve_w_svm(data, opt)`; solved here by default.

    Returns
    -------
    CheckTable
        One check: how many neighbours have a score at least that of the selected token,
        against 0. Not applicable where no W selects these tokens.

    Raises
    ------
    MissingDecoderError, ShapeError, DtypeError, RangeError, NonFiniteError, SolverError

    Notes
    -----
    Source: the definition of Tarzanagh et al. (2023) in probable form [b]: neighbours are
    the tokens with active constraints in the W-SVM of the selection. Optimal tokens always
    pass. The test that they beat is exact.

    Examples
    --------
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.beyond.local.geometry import check_locally_optimal
    >>> data = make_score_trap(0.3)
    >>> [check_locally_optimal(data, [token]).all_hold for token in range(3)]
    [True, False, True]
    """
    opt = resolve_opt(data, opt)
    try:
        leads = score_margins(data, opt, u, svm=svm)
    except InfeasibleError:
        return refused([UNBEATEN], "no W selects these tokens: their SVM is infeasible")
    words = f"{int(torch.isfinite(leads).sum())} neighbours, least lead {float(leads.min()):.3g}"
    return CheckTable([UNBEATEN.once((leads <= 0).sum(), 0.0, reason=words)])


@dataclass(frozen=True, eq=False)
class Selection(Typed):
    """One token a sequence, and what its W-SVM says.

    Attributes
    ----------
    tokens : (n,) long
    svm : SVMSolution
    locally_optimal : bool

    Examples
    --------
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> trap = wrong_selections(make_score_trap(0.3))[1]
    >>> trap.tokens.tolist(), trap.svm.is_optimal(), trap.locally_optimal
    ([2], True, True)
    """

    tokens: torch.Tensor
    svm: SVMSolution
    locally_optimal: bool


def wrong_selections(data: Dataset, u=None, *, most: int = 4096) -> list[Selection]:
    """All selections but the optimal one that some W makes, each with its SVM.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
    most : int
        Refuse more selections than this.

    Returns
    -------
    list of Selection
        In lexicographic order, infeasible ones left out.

    Raises
    ------
    RangeError
        When there are too many; and the errors of `check_locally_optimal`.

    Examples
    --------
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.beyond.local.geometry import wrong_selections
    >>> [(each.tokens.tolist(), each.locally_optimal)
    ...  for each in wrong_selections(make_score_trap(0.3))]
    [([1], False), ([2], True)]
    """
    require_dataset(data, cross=True)
    best, found = optimal_tokens(data, u), []
    for opt in selections(data, most):
        svm = None if torch.equal(opt, best) else svm_if_any(data, opt)
        if svm is not None:
            table = check_locally_optimal(data, opt, u, svm=svm)
            found.append(Selection(opt, svm, table.all_hold))
    return found
