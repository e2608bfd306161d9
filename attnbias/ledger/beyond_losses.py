"""Claims of our own on losses other than the exponential one."""

from __future__ import annotations

import math

import torch

from ..checks import Check
from ..data.dm import make_dm
from ..data.scored import stretched, with_scores
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..geometry.constants import limit_offset
from ..geometry.loss_constants import alignment_limit
from ..geometry.svm import solve_w_svm
from ..geometry.tail_direction import tail_direction
from ..tail_losses import polynomial_loss, smooth_hinge
from ..theorems.other_losses import check_any_loss
from .claim import Claim, Finding, judge
from .evidence import Evidence

STEPS, SEEDS = 400, 2


def _uneven(seed: int):
    tops = torch.linspace(1, 3, 4, dtype=torch.float64)
    return with_scores(make_dm(4, T=2, d=60, alpha=1.5, seed=seed), tops, 0 * tops)


def _constants(e: Evidence) -> Finding:
    checks = []
    for seed in range(SEEDS):
        data = _uneven(seed)
        svm = solve_w_svm(data)
        for loss in ("exponential", "logistic", polynomial_loss(1), smooth_hinge(4)):
            run = train(data, NGD(0.2), STEPS, loss=loss, svm=svm, record=2)
            found = run.W_norm[-1] ** 2 * run.W_alignment_error[-1]
            limit = alignment_limit(limit_offset(data, svm, loss=loss))
            error = abs(found / limit - 1)
            checks.append(Check("|W|^2 (1 - cosine) over the predicted, less 1", error, 0.01))
    return judge(checks, note=f"four losses, {SEEDS} seeds, unequal scores")


def _tail(e: Evidence) -> Finding:
    checks = []
    for seed in range(SEEDS):
        data = stretched(make_dm(3, d=40, seed=seed), 0.5, 2)
        run = train(data, NGD(0.1), STEPS, loss=polynomial_loss(1), train_u=True, record=2)
        cosine = float(run.u @ tail_direction(data, 1)) / float(run.u.norm())
        checks.append(Check("1 - cosine of u with the tail's direction", 1 - cosine, 1e-3))
        error = float(run.u_alignment_error[-1])
        checks.append(Check("1 - cosine of u with u_mm", error, 1e-2, ">="))
    return judge(checks, note=f"tail 1/z, tokens of sizes 1 to 4, NGD without decay, {SEEDS} seeds")


def _rates(e: Evidence) -> Finding:
    checks = []
    for loss in (polynomial_loss(1), smooth_hinge(4)):
        data = _uneven(0)
        run = train(data, NGD(0.2), STEPS, loss=loss, record=20)
        checks += check_any_loss(data, run, loss)
        exponent = math.log(run.W_alignment_error[-1] / run.W_alignment_error[-4])
        exponent /= math.log(run.step[-1] / run.step[-4])
        checks.append(Check("exponent of 1 - cosine, plus 2, in size", abs(exponent + 2), 0.05))
    return judge(checks, show="exponent", note="tail 1/z and smooth hinge")


LOSSES = (
    Claim(
        "loss-constants",
        "With u fixed another loss changes the limit of |W|^2 (1 - cosine) as its slopes say.",
        "ours",
        "chap-losses",
        "d",
        _constants,
    ),
    Claim(
        "loss-tail",
        "Jointly a polynomial tail sends u to another direction than u_mm.",
        "ours",
        "chap-losses",
        "d",
        _tail,
    ),
    Claim(
        "loss-rates",
        "With u fixed every decreasing loss with a slope that vanishes nowhere keeps M1 and M2.",
        "ours",
        "chap-losses",
        "c",
        _rates,
    ),
)
