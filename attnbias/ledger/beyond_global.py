"""What happens without Assumption 2: ours."""

from __future__ import annotations

from ..checks import Check
from ..data.spread import make_score_trap, make_spread
from ..dynamics.rules import NGD
from ..dynamics.starts import start_against
from ..dynamics.train import train
from ..geometry.local import check_locally_optimal, selected_tokens
from ..geometry.svm import solve_w_svm
from ..theorems.score_trap import check_score_trap, lock_threshold, trap_threshold
from .claim import Claim, Finding, judge
from .evidence import Evidence

SCORES = (0.01, 0.1, 0.3, 0.7)
SEEDS = range(20)
FAR = 100.0  # norm of a start against W_mm


def _trap_runs(factor: float, threshold) -> list[Check]:
    """The theorem's checks on starts at a multiple of a threshold."""
    checks = []
    for score in SCORES:
        data = make_score_trap(score)
        svm = solve_w_svm(data)
        distance = factor * threshold(score)
        start = start_against(svm, distance / svm.margin)
        checks += check_score_trap(data, train(data, NGD(0.2), 2000, W0=start, svm=svm), svm=svm)
    return checks


def _score_trap(e: Evidence) -> Finding:
    note = f"three tokens, scores {SCORES[0]} to {SCORES[-1]}, starts below and above"
    return judge(_trap_runs(0.9, trap_threshold) + _trap_runs(1.1, lock_threshold), note=note)


def _equal_scores(e: Evidence) -> Finding:
    data = make_score_trap(0.0)
    svm = solve_w_svm(data)
    start = start_against(svm, FAR / svm.margin)
    error = train(data, NGD(0.2), 10_000, W0=start, svm=svm).W_alignment_error[-1]
    return judge(
        [Check("1 - cosine from 100 margins against W_mm", float(error), 1e-2)],
        note="the same tokens with equal scores; proved for every start",
    )


def _where_runs_end(e: Evidence) -> Finding:
    checks, locked = [], 0
    for seed in SEEDS:
        data = make_spread(3, 4, 30, spread=0.3, correlation=0.9, seed=seed)
        svm = solve_w_svm(data)
        W = train(data, NGD(0.5), 20_000, W0=start_against(svm, FAR), svm=svm, record=[0]).W
        tokens = selected_tokens(data, W)
        if (tokens != svm.rows.opt).any():
            locked += 1
            local = solve_w_svm(data, tokens)
            cosine = float((W * local.weights).sum() / (W.norm() * local.norm))
            checks += [*check_locally_optimal(data, tokens, svm=local)]
            checks.append(Check("1 - cosine with the SVM of the selected tokens", 1 - cosine, 1e-3))
    note = f"{locked} of {len(SEEDS)} runs lock, all at locally optimal tokens"
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
    ),
    Claim(
        "equal-scores-free",
        "With equal scores the same tokens trap no start.",
        "ours",
        "chap-global",
        "c",
        _equal_scores,
    ),
    Claim(
        "locks-are-local",
        "A run that locks does so at locally optimal tokens, in the direction of their SVM.",
        "ours",
        "chap-global",
        "d",
        _where_runs_end,
    ),
)
