"""The paper's claims on where W and u go in joint training: Theorems 3 and 4."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from ..checks import Check
from ..data import Dataset
from ..dynamics.rules import GD, NGD
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..geometry.svm import solve_u_svm
from ..theorems import check_theorem3, check_theorem4
from .claim import Claim, Finding, Refutation, judge, undecided
from .evidence import Evidence
from .joint_instances import DM, LIMIT, MOVING, RUNS, Runs, dm_data
from .joint_loss import falls_like, grows_like, over, path
from .order import no_slower
from .tamper import bent, each, series, stalls, stops


def log(t):
    """log t, as a rate."""
    return np.log(t)


def per_log(t):
    """1 / log t, as a rate."""
    return 1 / np.log(t)


def error_of_W(run: Trace) -> np.ndarray:
    return run.W_alignment_error


def error_of_u(run: Trace) -> np.ndarray:
    return run.u_alignment_error


def _theorem3(e: Evidence) -> Finding:
    turning = falls_like(e.joint_moving, "1 - cosine of W over 1 / log t", error_of_W, per_log)
    sharper = falls_like(
        e.joint_moving, "1 - cosine of W over 1 / log^2 t", error_of_W, lambda t: log(t) ** -2
    )
    return judge(
        [*turning, *over(e.joint_limit(), check_theorem3)],
        sharper=sharper,
        show="1 - cosine of W over 1 / log t",
        note=f"{MOVING}; within Condition 2, on {LIMIT}, Eq. 55 holds, but W hardly turns and the "
        "explicit bound is vacuous; sharper: 1 / log^2 t",
    )


def _gd(e: Evidence) -> Finding:
    runs = []
    for seed in range(RUNS):
        data, _ = dm_data(seed)
        rule = GD((0.02, 0.05, 0.1)[seed % 3])
        runs.append((data, e.run(train, data, rule, 10**5, train_u=True, record=80)))
    ends = [float(run.W_alignment_error[-1]) for _, run in runs]
    words = "1 - cosine of W over 1 / log log t"
    return judge(
        falls_like(runs, words, error_of_W, lambda t: 1 / np.log(log(t))),
        note=f"1 - cosine {min(ends):.2g} to {max(ends):.2g} at the end; GD, eta = .02 to .1, 10^5 "
        "steps, (DM), d = 300, ten seeds; the theorems of Section 4 are on Eq. 10, and none gives "
        "GD a rate",
    )


def _norm_grows_like_log(e: Evidence) -> Finding:
    def norm(run):
        return run.W_norm

    limit = [c for c in over(e.joint_limit(), check_theorem3) if c.statement.startswith("|W_t|")]
    runs = [*e.joint_moving, *e.joint_dm["p = 2/3"]]
    return judge(
        [*grows_like(runs, "|W| over log t", norm, log), *limit],
        show="|W| over log t",
        note=f"{MOVING}; {DM}; Eq. 55 with constants on {LIMIT}",
    )


def _slower_than_fixed(e: Evidence) -> Finding:
    errors = []
    for seed, (data, joint) in enumerate(e.joint_dm["p = 2/3"]):
        fixed = data.with_decoder(solve_u_svm(data).weights)
        alone = e.run(train, fixed, NGD(dm_data(seed)[1]), int(joint.step[-1]), record=2)
        errors.append((float(joint.W_alignment_error[-1]), float(alone.W_alignment_error[-1])))
    return judge(
        [
            Check(
                "1 - cosine of W at the end, Eq. 10 over W alone: least",
                min(joint / alone for joint, alone in errors),
                1.0,
                ">=",
            )
        ],
        note=f"alone: NGD with the decoder u_mm, on the same tokens; {DM}",
    )


def margin_part(data: Dataset, run: Trace) -> np.ndarray:
    """(R,) smallest y_i u_t'x_{i,opt} / |u_t| as a part of the largest margin; NaN at u_0 = 0."""
    rows = np.arange(data.n)
    top = run.scores[:, rows, data.opt.numpy()].min(axis=1)
    with np.errstate(invalid="ignore"):
        return top / run.u_norm / float(solve_u_svm(data).margin)


def _theorem4(e: Evidence) -> Finding:
    checks = over(e.joint_limit(), check_theorem4)
    checks += over(e.joint_moving, check_theorem4, assume_conditions=True)
    for data, run in (*e.joint_limit(), *e.joint_moving):
        part = margin_part(data, run)[1:]
        checks.append(
            no_slower("largest margin over that of u", run.step[1:], 1 / part, np.ones_like)
        )
    return judge(
        checks,
        show="smallest y_i u_t'x_{i,opt} / |u_t|, against",
        note=f"on {LIMIT}, and on {MOVING}",
    )


def _direction_of_u(e: Evidence) -> Finding:
    runs = e.joint_moving
    end = max(run.u_alignment_error[-1] for _, run in runs)
    return judge(
        falls_like(runs, "1 - cosine of u over 1 / log t", error_of_u, per_log),
        note=f"1 - cosine {end:.1g} at most at the end; {MOVING}",
    )


def _rate_of_u(e: Evidence) -> Finding:
    runs = [*e.joint_moving, *e.joint_dm["p = 2/3"]]
    words = "1 - cosine of u over t^(-1/3)"
    return judge(
        falls_like(runs, words, error_of_u, lambda t: 1 / path(2 / 3)(t)),
        note=f"the text's formula is lost; t^(-1/3) is one over the path of u; {MOVING}; {DM}",
    )


def averages(data: Dataset) -> torch.Tensor:
    """Weights that separate the sequences' token averages with the largest margin."""
    mean = data.X.mean(dim=1, keepdim=True)
    seen = Dataset(torch.cat([mean, 0 * mean], dim=1), data.y, opt=[0] * data.n)
    return solve_u_svm(seen).weights


def _attended(e: Evidence) -> Finding:
    runs = e.joint_moving
    checks = falls_like(
        runs,
        "part of the attended tokens that is not optimal over 1 / log t",
        lambda run: np.exp(run.log_nonopt_score),
        per_log,
    )
    for data, run in runs:
        cosines = [
            float(torch.cosine_similarity(run.u, weights, dim=0))
            for weights in (solve_u_svm(data).weights, averages(data))
        ]
        words = "1 - cosine of u with u_mm, against a tenth of that with the averages' classifier"
        checks.append(Check(words, 1 - cosines[0], 0.1 * (1 - cosines[1])))
    return judge(checks, show="1 - cosine of u with u_mm", note=MOVING)


def _towards_averages(runs: Runs) -> Runs:
    return [(data, dataclasses.replace(run, u=averages(data))) for data, run in runs]


def _fast(run: Trace, _) -> np.ndarray:
    return 1e-2 / np.maximum(run.step, 1.0) ** 2


def _slow(run: Trace, _) -> np.ndarray:
    return 1e-2 / np.maximum(run.step, 1.0) ** 0.25


DIRECTIONS = (
    Claim(
        "theorem3",
        "W converges to W_mm in direction at rate 1 / log t.",
        "Theorem 3 = 9",
        "chap-joint-w",
        "c",
        _theorem3,
        "check_theorem3(",
        (
            Refutation("W is opposite to W_mm for ever", {"joint_moving": stalls(2.0)}),
            Refutation("W stays at 1 - cosine .01", {"joint_moving": stalls(0.01)}),
            Refutation("W stops turning", {"joint_moving": stops("W_alignment_error")}),
        ),
    ),
    Claim(
        "joint-gd",
        "On Gaussian tokens GD on W and u converges to W_mm in direction, globally.",
        "Section 1, contributions",
        "chap-figure3",
        "a",
        _gd,
        'experiments.run("fig3"',
        (
            Refutation("W stays at 1 - cosine .01", {"train": stalls(0.01)}),
            Refutation("W stops turning", {"train": stops("W_alignment_error")}),
        ),
    ),
    Claim(
        "norm-log",
        "The norm of W grows like log t.",
        "Section 4.2, Eq. 55",
        "chap-joint-w",
        "a",
        _norm_grows_like_log,
        "check_theorem3(",
        (
            Refutation("it grows like t^.1", {"joint_moving": bent(0.1, "W_norm")}),
            Refutation("it stops growing", {"joint_dm": stops("W_norm")}),
        ),
    ),
    Claim(
        "slower",
        "Convergence of W is slower than with a fixed decoder.",
        "Section 4.2",
        "chap-joint-w",
        "a",
        _slower_than_fixed,
        "with_decoder(",
        (
            Refutation(
                "in joint training 1 - cosine is t^-2 too",
                {"joint_dm": each(series(W_alignment_error=_fast))},
            ),
        ),
    ),
    Claim(
        "theorem4",
        "u reaches a constant fraction of the largest margin.",
        "Theorem 4 = 10",
        "chap-joint-u",
        "c",
        _theorem4,
        "check_theorem4(",
        (
            Refutation("the fraction falls like t^-.05", {"joint_moving": bent(-0.05, "scores")}),
            Refutation(
                "|u| is three times what it was",
                {"joint_moving": each(series(u_norm=lambda _, old: 3 * old))},
            ),
        ),
    ),
    Claim(
        "u-direction",
        "u converges to u_mm in direction.",
        "Section 1, contributions",
        "chap-decoder-direction",
        "a",
        _direction_of_u,
        "check_decoder_direction(",
        (
            Refutation(
                "u stays at 1 - cosine .01",
                {"joint_moving": each(series(u_alignment_error=0.01))},
            ),
        ),
    ),
    Claim(
        "u-rate",
        "It does so at a rate, t^{-1/3} as we read it.",
        "Section 1, contributions; Theorem 10",
        "chap-decoder-direction",
        "b",
        _rate_of_u,
        "fit_rate(direction.step",
        (
            Refutation(
                "1 - cosine falls like t^(-1/4)",
                {"joint_moving": each(series(u_alignment_error=_slow))},
            ),
        ),
    ),
    Claim(
        "attended",
        "The attended token tends to the optimal one, so u goes to the margin of the optimal "
        "tokens and not to that of the averages seen at the start.",
        "Section 4.2, before (u-SVM)",
        "chap-joint-u",
        "b",
        _attended,
        '"averages": solve_u_svm(averages)',
        (
            Refutation(
                "attention stays at 1/2",
                {"joint_moving": each(series(log_nonopt_score=math.log(0.5)))},
            ),
            Refutation("u goes to the averages' classifier", {"joint_moving": _towards_averages}),
        ),
    ),
    Claim(
        "remark3",
        "Like properties are known for other models: linear predictors, two-layer networks, "
        "multi-head attention.",
        "Remark 3",
        "chap-joint-loss",
        "a",
        undecided("a comment on other work; would be decided by the works that it cites"),
    ),
)
