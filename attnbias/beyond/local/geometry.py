"""Selections of tokens at which training can end though they are not the best."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch

from ..._validate import as_float_tensor, require_device, require_finite, require_int, require_shape
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dataset import require_dataset
from ...errors import InfeasibleError, RangeError
from ...geometry.solution import require_optimal
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import optimal_tokens, resolve_opt, token_scores

ACTIVE = 1e-7  # a margin of at most 1 + this is a neighbour's
_STATEMENT = "neighbours that the selected tokens do not beat"
_SOURCE = "local optimality, Tarzanagh et al. (2023)"


def selected_tokens(data: Dataset, W) -> torch.Tensor:
    """The token with the largest logit of each sequence: where attention goes as W grows.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor

    Returns
    -------
    (n,) long tensor
        The first of them where logits tie.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.beyond.local.geometry import selected_tokens
    >>> data = make_score_trap(0.3)
    >>> selected_tokens(data, -solve_w_svm(data).weights).tolist()
    [2]
    """
    require_dataset(data, cross=True)
    W = as_float_tensor("W", W).detach().double()
    require_shape("W", W, (data.d, data.d), "(d, d)")
    require_device("W", W, data.X.device)
    require_finite("W", W)
    logits = torch.einsum("ntd,nd->nt", data.keys.double(), data.queries.double() @ W.T)
    return logits.masked_fill(~data.mask, -torch.inf).argmax(dim=1)


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
    svm = solve_w_svm(data, opt) if svm is None else require_optimal("svm", svm)
    rows = svm.rows
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
        refused = Check.not_applicable(
            _STATEMENT, "no W selects these tokens: their SVM is infeasible",
            source=_SOURCE, provenance="b",
        )  # fmt: skip
        return CheckTable((refused,))
    neighbours = int(torch.isfinite(leads).sum())
    check = Check(
        _STATEMENT, float((leads <= 0).sum()), 0.0, source=_SOURCE, provenance="b",
        reason=f"{neighbours} neighbours, least lead {float(leads.min()):.3g}",
    )  # fmt: skip
    return CheckTable((check,))


@dataclass(frozen=True, eq=False)
class Selection:
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
    most, lengths = require_int("most", most, low=1), data.lengths.tolist()
    count = 1
    for length in lengths:
        count *= length
    if count > most:
        raise RangeError("data", expected=f"at most {most} selections", got=str(count),
                         remedy="raise most, or look at fewer sequences")  # fmt: skip
    best, found = tuple(optimal_tokens(data, u).tolist()), []
    for tokens in itertools.product(*map(range, lengths)):
        if tokens == best:
            continue
        opt = torch.tensor(tokens, device=data.X.device)
        try:
            svm = solve_w_svm(data, opt)
        except InfeasibleError:
            continue
        table = check_locally_optimal(data, opt, u, svm=svm)
        found.append(Selection(opt, svm, table.all_hold))
    return found
