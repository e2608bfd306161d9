"""What happens without Assumption 2: ours."""

from __future__ import annotations

import functools

import torch

from ..beyond.local.checks import check_score_trap, lock_threshold, trap_threshold
from ..beyond.local.geometry import check_locally_optimal, selected_tokens
from ..checks import Check
from ..data.unequal_scores import make_score_trap, make_unequal_scores
from ..dynamics.starts import adversarial_init
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..geometry.svm import solve_w_svm
from ..rules import NGD
from .claim import Claim, Finding, Refutation, judge
from .tamper import altered, aside, each, retold, series, swaps

SCORES = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SEEDS = range(100, 120)
FAR = 100.0  # norm of a start against W_mm


@functools.cache
def trap_runs(score: float) -> dict[str, Trace]:
    """From just below the one threshold and just above the other, against W_mm."""
    data = make_score_trap(score)
    svm = solve_w_svm(data)
    starts = {"near": 0.95 * trap_threshold(score), "far": 1.05 * lock_threshold(score)}
    return {name: train(data, NGD(0.2), 2000, W0=adversarial_init(svm, R / svm.margin), svm=svm)
            for name, R in starts.items()}  # fmt: skip


def _score_trap(e) -> Finding:
    checks = []
    for score in SCORES:
        data, runs = make_score_trap(score), e.run(trap_runs, score)
        for run in runs.values():
            checks += check_score_trap(data, run)
        near, far = (float(runs[name].opt_score[-1]) for name in ("near", "far"))
        checks += [
            Check("softmax at the optimal token from the near start", near, 0.99, ">="),
            Check("softmax at the optimal token from the far start", far, 0.01),
        ]
    note = f"three tokens, ten scores from {SCORES[0]} to {SCORES[-1]}, starts 5% below and above"
    return judge(checks, show="softmax", note=note)


def _equal_scores(e) -> Finding:
    data, checks = make_score_trap(0.0), []
    svm = solve_w_svm(data)
    for k in range(10):
        W0 = torch.randn(2, 2, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
        W0 = adversarial_init(svm, FAR / svm.margin) if k == 0 else W0 * (10 * k / W0.norm())
        run = e.run(train, data, NGD(0.2), 20_000, W0=W0, svm=svm)
        checks += [
            Check("1 - cosine at the end", float(run.W_alignment_error[-1]), 1e-2),
            Check("softmax at the optimal token", float(run.opt_score[-1]), 0.99, ">="),
        ]
    return judge(
        checks,
        show="1 - cosine",
        note="the same tokens with equal scores, 100 margins against W_mm and nine random starts "
        "of norms to 90; proved for every start",
    )


def _where_runs_end(e) -> Finding:
    checks, locked = [], 0
    for seed in SEEDS:
        data = make_unequal_scores(3, 4, 30, spread=0.3, correlation=0.9, seed=seed)
        svm = solve_w_svm(data)
        start = adversarial_init(svm, FAR)
        W = e.run(train, data, NGD(0.5), 20_000, W0=start, svm=svm, record=[0]).W
        tokens = selected_tokens(data, W)
        if (tokens != svm.rows.opt).any():
            locked += 1
            local = solve_w_svm(data, tokens)
            cosine = float((W * local.weights).sum() / (W.norm() * local.norm))
            checks += [*check_locally_optimal(data, tokens, svm=local)]
            checks.append(Check("1 - cosine with the SVM of the selected tokens", 1 - cosine, 1e-3))
    checks.append(Check("runs that lock", locked, 10, ">="))
    note = f"{locked} of seeds 100 to 119 lock, all at locally optimal tokens"
    return judge(checks, show="1 - cosine", note=note)


BEYOND_GLOBAL = (
    Claim(
        "score-trap",
        "On three tokens any score s > 0 of the far one traps all starts that are far enough "
        "against W_mm, and frees those up to log(3/s - 1).",
        "ours",
        "chap-global",
        "c",
        _score_trap,
        calls="table = check_score_trap(data, trace, svm=svm)",
        refuted_by=(
            Refutation("near and far starts change places", {"trap_runs": swaps("near", "far")}),
            Refutation(
                "gaps move the other way",
                {"trap_runs": retold(gaps=lambda run, old: 2 * old[0] - old)},
            ),
        ),
    ),
    Claim(
        "equal-scores-free",
        "With equal scores the same tokens trap no start.",
        "ours",
        "chap-global",
        "c",
        _equal_scores,
        calls="trace = train(equal, NGD(0.2)",
        refuted_by=(
            Refutation(
                "the softmax stays at 0.1", {"train": each(series(log_nonopt_score=-0.105))}
            ),
            Refutation("1 - cosine stays at 0.5", {"train": each(series(W_alignment_error=0.5))}),
        ),
    ),
    Claim(
        "locks-are-local",
        "A run that locks does so at locally optimal tokens, in the direction of their SVM.",
        "ours",
        "chap-global",
        "d",
        _where_runs_end,
        calls='"local": check_locally_optimal(data, chosen, svm=other).all_hold',
        refuted_by=(
            Refutation(
                "runs turn aside by 1 - cosine 0.01",
                {"train": altered(Trace, W=lambda run: aside(run.W, 0.01))},
            ),
        ),
    ),
)
