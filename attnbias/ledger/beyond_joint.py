"""Claims of our own on joint training without decay and without a zero start."""

from __future__ import annotations

import numpy as np

from ..checks import Check
from ..data.dm import make_dm
from ..data.even import make_even_tokens, make_loud_pair
from ..dynamics.rules import GD, NGD, Polyak
from ..dynamics.starts import random_decoder, small_start
from ..dynamics.train import train
from ..geometry.attended import with_attended
from ..geometry.moving_margin import moving_margin
from ..geometry.svm import solve_u_svm, solve_w_svm
from ..theorems.joint_even import check_common_step, check_own_step
from .claim import Claim, Finding, judge
from .evidence import Evidence

STEPS, SEEDS = 20_000, 5
SHARED = NGD(0.1, normalise="shared")


def _even(e: Evidence) -> Finding:
    checks = []
    for T in (2, 4):
        data = make_even_tokens(3, T)
        for rule in (SHARED, GD(0.1), Polyak()):
            checks += check_common_step(data, train(data, rule, STEPS, train_u=True))
        checks += check_own_step(data, train(data, NGD(0.1), STEPS, train_u=True))
    return judge(checks, note="orthogonal tokens of two sizes, T = 2 and 4")


def _slope(e: Evidence) -> Finding:
    checks = []
    for seed in range(SEEDS):
        data = make_dm(4, T=3, d=60, seed=seed)
        svm = solve_w_svm(data)
        W0 = small_start(60, 1.0, seed)
        run = train(data, SHARED, STEPS, train_u=True, W0=W0, svm=svm, record=40)
        late = run.step >= STEPS // 10
        slope = np.polyfit(np.log(run.u_norm[late]), svm.margin * run.W_norm[late], 1)[0]
        checks.append(Check("slope of Xi |W| on log |u|, less 2, in size", abs(slope - 2), 0.1))
    return judge(checks, note=f"(DM), T = 3, random W_0, {SEEDS} seeds")


def _chosen(e: Evidence) -> Finding:
    checks, moved = [], 0
    for seed in range(SEEDS):
        data = make_dm(4, T=3, d=60, seed=seed)
        u0 = random_decoder(60, 10.0, seed)
        run = train(data, NGD(0.1), STEPS, train_u=True, u0=u0, record=2)
        seen = with_attended(data, run.W)
        moved += int((seen.opt != data.opt).any())
        for now, svm in ((run.W, solve_w_svm(seen)), (run.u, solve_u_svm(seen))):
            cosine = float((now * svm.weights).sum()) / float(now.norm()) / svm.norm
            checks.append(Check("1 - cosine with the SVM of the attended tokens", 1 - cosine, 1e-3))
    checks.append(Check("seeds that attend to other than the optimal tokens", moved, 1, ">="))
    return judge(checks, note=f"(DM), T = 3, |u_0| = 10, {SEEDS} seeds")


def _loud(e: Evidence) -> Finding:
    data = make_loud_pair()
    speeds = solve_u_svm(data)
    run = train(data, NGD(0.1), STEPS, train_u=True, record=2)
    V = moving_margin(data, speeds.margins / speeds.norm)
    error = 1 - float((V * run.W).sum()) / float(run.W.norm())
    checks = [
        Check("1 - cosine of W with the moving margin's direction", error, 1e-4),
        Check("1 - cosine of W with W_mm", float(run.W_alignment_error[-1]), 0.05, ">="),
    ]
    return judge(checks, note="two sequences, the second does not support u_mm; no decay")


JOINT_OPEN = (
    Claim(
        "joint-common-step",
        "On even tokens a common step size makes |W| grow like (2 / Xi) log |u|, its own like t.",
        "ours",
        "chap-joint-open",
        "c",
        _even,
    ),
    Claim(
        "joint-log-slope",
        "On random tokens too, |W| has slope 2 / Xi in log |u| under joint-NGD.",
        "ours",
        "chap-joint-open",
        "d",
        _slope,
    ),
    Claim(
        "joint-chosen",
        "From a large u_0 joint NGD may settle on other tokens, and goes to their SVMs.",
        "ours",
        "chap-joint-open",
        "d",
        _chosen,
    ),
    Claim(
        "joint-moving-margin",
        "Without decay W may miss W_mm where a sequence does not support u_mm.",
        "ours",
        "chap-joint-open",
        "d",
        _loud,
    ),
)
