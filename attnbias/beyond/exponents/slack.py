"""Idle constraints of the W-SVM: how close they are to being active, and planting one."""

from __future__ import annotations

import torch

from ..._validate import dtype_name, require_int, require_number, require_type, short
from ...data import Dataset
from ...dataset import require_dataset
from ...errors import DtypeError, RangeError, ShapeError
from ...geometry.svm import SVMSolution, solve_w_svm
from ...geometry.tokens import resolve_opt
from ..common.arguments import seeded

# A query's image with a smaller share than this across u: the shift would be a million times the
# token, and its rounding would reach the score.
ALONG_DECODER = 1e-6


def plant_slack(data: Dataset, slack: float, row=None, seed: int = 0) -> Dataset:
    """The same data with one token moved so that its constraint has margin 1 + slack, idle.

    Parameters
    ----------
    data : Dataset
        In float64, with a feasible W-SVM and a sequence of at least three tokens.
    slack : float in [0, 1e6]
        0 makes the constraint active without supporting W_mm; the solver cannot tell a slack
        below 1e-9 from that.
    row : (int, int), optional
        Sequence and token of the constraint; neither the optimal token nor the query. Drawn
        from all such tokens by `seed` if left out.
    seed : int

    Returns
    -------
    Dataset
        Equal to `data` but for one token; its score, and so Assumption 2, is kept. meta
        holds planted_sequence, planted_token and planted_slack.

    Raises
    ------
    RangeError
        Also when W_mm x_{i,1} is along u, where a token's margin is decided by its score.
    InfeasibleError, ShapeError, DtypeError, NonFiniteError, TiedTokensError,
    MissingDecoderError

    Notes
    -----
    Source: ours [c]. Proposition. Let W with dual weights alpha solve the W-SVM of the data
    without the token x_{i,t}, let v = W x_{i,1}, let q be the part of v across u, not zero, and
    a = (1 + slack - (x_{i,opt} - x_{i,t})' v) / |q|^2. Then with x_{i,t} - a q in place of
    x_{i,t}

    1. W_mm = W; alpha, with 0 at the row (i, t), is a dual solution; the margin of (i, t) is
       1 + slack and all other margins are those of the data without the token;
    2. all scores, hence the optimal tokens and Assumption 2, are those of `data`;
    3. for slack > 0 every dual solution is 0 at (i, t); for slack = 0 every one is if the row
       isn't in the span of the other active rows, and then strict complementarity fails.

    Proof. x_{i,t} is neither query nor optimal, so it enters the one row
    z = (x_{i,opt} - x_{i,t}) x_{i,1}', and its move adds a q x_{i,1}' to it, whose product with
    W is a q'v = a |q|^2: the margin becomes 1 + slack >= 1. So W is feasible, and
    W = sum_k alpha_k z_k + 0 z with alpha >= 0 supported on margins of 1: the KKT conditions,
    sufficient for a convex problem. u'q = 0 keeps the score. For slack > 0 a positive weight
    would contradict complementary slackness. For slack = 0 two dual solutions have the same
    sum W, so the difference of their weights at z times z is in the span of the others.

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> data = plant_slack(make_example1(n=4, T=3, d=20, seed=1), 0.01)
    >>> round(least_slack(data), 12), solve_w_svm(data).strictly_complementary
    (0.01, True)
    """
    require_dataset(data)
    slack = require_number("slack", slack, low=0, high=1e6)
    generator = seeded(seed)
    if data.X.dtype != torch.float64:
        raise DtypeError(
            "data.X",
            expected="dtype float64, in which a margin is 1 + slack to 1e-15",
            got=dtype_name(data.X),
            remedy="convert with data.to(dtype=torch.float64)",
        )
    opt = resolve_opt(data)
    i, t = _choose_row(data, opt, row, generator)
    X = data.X.clone()
    X[i, t] = _shifted(data, opt, i, t, slack)
    meta = {"planted_sequence": i, "planted_token": t, "planted_slack": slack}
    name = f"{data.name}, slack {slack:g}".lstrip(", ")
    return Dataset(X, data.y, data.u, data.lengths, name, {**data.meta, **meta}, data.opt)


def _choose_row(data: Dataset, opt: torch.Tensor, row, generator) -> tuple[int, int]:
    free = data.mask.clone()
    free[:, 0] = False
    free[torch.arange(data.n, device=opt.device), opt] = False
    free &= (data.lengths >= 3)[:, None]  # without the token a choice must be left
    candidates = free.nonzero()
    if len(candidates) == 0:
        raise ShapeError(
            "data",
            expected="a sequence of at least 3 tokens",
            got=f"at most {int(data.lengths.max())}",
            remedy="add tokens: the planted one is neither optimal nor the query",
        )
    if row is None:
        pick = torch.randint(len(candidates), (), generator=generator)
        i, t = candidates[pick].tolist()
        return i, t
    if not isinstance(row, tuple | list) or len(row) != 2:
        raise DtypeError(
            "row", expected="a pair: sequence, token", got=short(row), remedy="for example (0, 2)"
        )
    i = require_int("row[0], the sequence", row[0], low=0, high=data.n - 1)
    t = require_int("row[1], the token", row[1], low=0, high=data.T - 1)
    if not bool(free[i, t]):
        raise RangeError(
            "row",
            expected="a token of a sequence of at least 3, neither optimal nor its query",
            got=f"token {t} of sequence {i}, of {int(data.lengths[i])} tokens "
            f"with token {int(opt[i])} optimal",
            remedy="choose another, or leave row out",
        )
    return i, t


def _shifted(data: Dataset, opt: torch.Tensor, i: int, t: int, slack: float) -> torch.Tensor:
    """x_{i,t}, moved along W_mm x_{i,1} across u until its margin is 1 + slack."""
    image = solve_w_svm(_without(data, opt, i, t)).weights @ data.X[i, 0]
    across, token = image.clone(), data.X[i, t].clone()
    if (u := data.u) is not None:
        for _ in range(2):  # twice, so that rounding is projected off
            across -= (across @ u) / (u @ u) * u
    if not float(across.norm()) > ALONG_DECODER * float(image.norm()):
        raise RangeError(
            "data" if u is None else "row",
            expected="a query with a part of W_mm x_{i,1} across u",
            got=f"W_mm x_{{i,1}} along u in sequence {i}: the score decides the margin",
            remedy="choose a token of another sequence, or another decoder",
        )
    for _ in range(2):  # the second corrects the rounding of the first
        margin = (data.X[i, opt[i]] - token) @ image
        token -= (1 + slack - margin) / (across @ across) * across
    return token


def _without(data: Dataset, opt: torch.Tensor, i: int, t: int) -> Dataset:
    X, lengths, opt = data.X.clone(), data.lengths.clone(), opt.clone()
    X[i, t:-1] = data.X[i, t + 1 :]
    lengths[i] -= 1
    opt[i] -= int(opt[i] > t)
    return Dataset(X, data.y, lengths=lengths, opt=opt)


def least_slack(data: Dataset, solution: SVMSolution | None = None) -> float:
    """Smallest margin minus 1 among the constraints of dual weight 0; infinity if there is none.

    Unlike `SVMSolution.least_slack` it counts active constraints that don't support W_mm, so
    it is 0 without strict complementarity. What rounding leaves below 0 is 0.

    Raises
    ------
    InfeasibleError, ShapeError, DtypeError, TiedTokensError, MissingDecoderError

    Examples
    --------
    >>> from attnbias.data.degenerate import make_degenerate
    >>> least_slack(make_degenerate()), least_slack(make_degenerate(-0.25))
    (0.0, 0.25)
    """
    return max(0.0, float(solution_of(data, solution).idle_slack.min()))


def nearest_row(data: Dataset, solution: SVMSolution | None = None) -> tuple[int, int] | None:
    """Sequence and token of the constraint with `least_slack`; None if all support W_mm.

    Examples
    --------
    >>> from attnbias.data import make_degenerate
    >>> nearest_row(make_degenerate(-0.5))
    (0, 2)
    """
    solution = solution_of(data, solution)
    k = int(solution.idle_slack.argmin())
    if bool(solution.supports[k]):
        return None
    return int(solution.rows.sequence[k]), int(solution.rows.token[k])


def require_w_svm(name: str, value) -> SVMSolution:
    """A solution of a W-SVM."""
    expected, remedy = "an SVMSolution of the W-SVM", "pass solve_w_svm(data)"
    if require_type(name, value, SVMSolution, expected, remedy).problem != "W-SVM":
        raise DtypeError(name, expected=expected, got="a u-SVM's", remedy=remedy)
    return value


def solution_of(data: Dataset, solution) -> SVMSolution:
    """W_mm of these data: as given, or solved here."""
    require_dataset(data, cross=True)
    if solution is None:
        return solve_w_svm(data)
    require_w_svm("solution", solution)
    rows = int(data.lengths.sum()) - data.n
    if len(solution.dual) != rows:
        raise ShapeError(
            "solution",
            expected=f"one of these data, with {rows} dual weights",
            got=f"{len(solution.dual)}",
            remedy="pass solve_w_svm(data), or leave it out",
        )
    return solution
