"""The paper's claims on where W goes in joint training: Theorem 3."""

from __future__ import annotations

import numpy as np

from ..checks import Check
from ..dynamics.rules import GD, NGD
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..geometry.svm import solve_u_svm
from ..theorems import check_theorem3
from .claim import Claim, Finding, Refutation, judge, undecided
from .evidence import Evidence
from .joint_instances import DM, LIMIT, MOVING, RUNS, dm_data
from .joint_loss import falls_like, grows_like, over
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
    ends, order = [], []
    for seed, (data, joint) in enumerate(e.joint_dm["p = 2/3"]):
        fixed = data.with_decoder(solve_u_svm(data).weights)
        rule, step = NGD(dm_data(seed)[1]), joint.step
        alone = e.run(train, fixed, rule, int(step[-1]), record=step)
        part = alone.W_alignment_error[2:] / joint.W_alignment_error[2:]
        ends.append(1 / float(part[-1]))
        order.append(no_slower("W alone over Eq. 10, against 1/t", step[2:], part, lambda t: 1 / t))
    words = "1 - cosine of W at the end, Eq. 10 over W alone: least"
    return judge(
        [Check(words, min(ends), 1.0, ">="), *order],
        show="1 - cosine of W at the end",
        note=f"alone: NGD with the decoder u_mm, on the same tokens; {DM}",
    )


def _fast(run: Trace, _) -> np.ndarray:
    return 1e-2 / np.maximum(run.step, 1.0) ** 2


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
        "b",
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
            Refutation(
                "both stay at 1 - cosine .5",
                {
                    "joint_dm": each(series(W_alignment_error=0.5)),
                    "train": each(series(W_alignment_error=0.5)),
                },
            ),
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
