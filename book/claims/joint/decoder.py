"""The paper's claims on where u goes in joint training: Theorem 4."""

import dataclasses
import math

import numpy as np
import torch

from attnbias import Check, Dataset, Trace, solve_u_svm
from attnbias.theorems import check_theorem4

from ..claim import Section, refuted
from ..order import gd_limit_rate, no_slower
from ..tamper import bent, series
from .instances import DM, LIMIT, MOVING, Runs
from .loss import error_of_u, falls_like, over, path

claim = Section("Joint training", 120)


def margin_part(data: Dataset, run: Trace) -> np.ndarray:
    """(R,) smallest y_i u_t'x_{i,opt} / |u_t| as a part of the largest margin; NaN at u_0 = 0."""
    rows = np.arange(data.n)
    top = run.scores[:, rows, data.opt.numpy()].min(axis=1)
    with np.errstate(invalid="ignore"):
        return top / run.u_norm / float(solve_u_svm(data).margin)


def averages(data: Dataset) -> torch.Tensor:
    """Weights that separate the sequences' token averages with the largest margin."""
    mean = data.X.mean(dim=1, keepdim=True)
    seen = Dataset(torch.cat([mean, 0 * mean], dim=1), data.y, opt=[0] * data.n)
    return solve_u_svm(seen).weights


def _towards_averages(runs: Runs) -> Runs:
    return [(data, dataclasses.replace(run, u=averages(data))) for data, run in runs]


def _slow(run: Trace, _) -> np.ndarray:
    return 1e-2 / np.maximum(run.step, 1.0) ** 0.25


@claim("c", "check_theorem4(", "Theorem 4 = 10", "chap-joint-w", show="margin")
@refuted("the fraction falls like t^-.05", joint_moving=bent(-0.05, "scores"))
@refuted("|u| is three times what it was", joint_moving=series(u_norm=lambda _, old: 3 * old))
def theorem4(e):
    """u reaches a constant fraction of the largest margin."""
    yield from over(e.joint_limit(), check_theorem4)
    yield from over(e.joint_moving, check_theorem4, assume_conditions=True)
    for data, run in (*e.joint_limit(), *e.joint_moving):
        part = margin_part(data, run)[1:]
        yield no_slower("largest margin over that of u", run.step[1:], 1 / part, np.ones_like)
    return f"on {LIMIT}, and on {MOVING}"


@claim("a", "check_decoder_direction(", "Section 1, contributions", "chap-joint-u")
@refuted("u stays at 1 - cosine .01", joint_moving=series(u_alignment_error=0.01))
def u_direction(e):
    """u converges to u_mm in direction."""
    runs = e.joint_moving
    end = max(run.u_alignment_error[-1] for _, run in runs)
    yield from falls_like(runs, "1 - cosine of u over 1 / log t", error_of_u, gd_limit_rate)
    return f"1 - cosine {end:.1g} at most at the end; {MOVING}"


@claim("b", "fit_rate(direction.step", "Section 1, contributions; Theorem 10", "chap-joint-u")
@refuted("1 - cosine falls like t^(-1/4)", joint_moving=series(u_alignment_error=_slow))
def u_rate(e):
    """It does so at a rate, t^{-1/3} as we read it."""
    runs = [*e.joint_moving, *e.joint_dm["p = 2/3"]]
    words = "1 - cosine of u over t^(-1/3)"
    yield from falls_like(runs, words, error_of_u, lambda t: 1 / path(2 / 3)(t))
    return f"the text's formula is lost; t^(-1/3) is one over the path of u; {MOVING}; {DM}"


@claim(
    "b",
    '"averages": solve_u_svm(averages)',
    "Section 4.2, before (u-SVM)",
    "chap-joint-w",
    show="nearer",
)
@refuted("attention stays at 1/2", joint_moving=series(log_nonopt_score=math.log(0.5)))
@refuted("u goes to the averages' classifier", joint_moving=_towards_averages)
def attended(e):
    """The attended token tends to the optimal one, so u goes to the margin of the optimal tokens
    and not to that of the averages seen at the start."""
    runs = e.joint_moving
    yield from falls_like(
        runs,
        "part of the attended tokens that is not optimal over 1 / log t",
        lambda run: np.exp(run.log_nonopt_score),
        gd_limit_rate,
    )
    for data, run in runs:
        cosines = [
            float(torch.cosine_similarity(run.u, weights, dim=0))
            for weights in (solve_u_svm(data).weights, averages(data))
        ]
        words = "1 - cosine of u with u_mm, against a tenth of that with the averages' classifier"
        yield Check(words, 1 - cosines[0], 0.1 * (1 - cosines[1]), key="nearer")
    return MOVING
