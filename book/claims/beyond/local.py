"""Where runs end without Assumption 2: ours."""

import functools

from attnbias import NGD, Check, Trace, solve_w_svm, train
from attnbias.beyond.local.checks import check_score_trap, lock_threshold, trap_threshold
from attnbias.beyond.local.data import make_score_trap, make_unequal_scores
from attnbias.beyond.local.geometry import check_locally_optimal, selected_tokens
from attnbias.dynamics.problem import adversarial_init

from ..claim import Section, refuted
from ..draws import normal
from ..tamper import altered, aside, retold, series, swaps

claim = Section("Beyond the paper", 230, source="ours", chapter="chap-global")

SCORES = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SEEDS = range(100, 120)
FAR = 100.0  # norm of a start against W_mm


@functools.cache
def trap_runs(score: float) -> dict[str, Trace]:
    """From just below the one threshold and just above the other, against W_mm."""
    data = make_score_trap(score)
    svm = solve_w_svm(data)
    starts = {"near": 0.95 * trap_threshold(score), "far": 1.05 * lock_threshold(score)}
    return {
        name: train(data, NGD(0.2), 2000, W0=adversarial_init(svm, R / svm.margin), svm=svm)
        for name, R in starts.items()
    }


@claim("c", "table = check_score_trap(data, trace, svm=svm)", show="softmax")
@refuted("near and far starts change places", trap_runs=swaps("near", "far"))
@refuted("gaps move the other way", trap_runs=retold(gaps=lambda run, old: 2 * old[0] - old))
def score_trap(e):
    """On three tokens any score s > 0 of the far one traps all starts that are far enough against
    W_mm, and frees those up to log(3/s - 1)."""
    for score in SCORES:
        data, runs = make_score_trap(score), e.run(trap_runs, score)
        for run in runs.values():
            yield from check_score_trap(data, run)
        near, far = (float(runs[name].opt_score[-1]) for name in ("near", "far"))
        yield Check(
            "softmax at the optimal token from the near start", near, 0.99, ">=", key="softmax"
        )
        yield Check("softmax at the optimal token from the far start", far, 0.01, key="softmax")
    return f"three tokens, ten scores from {SCORES[0]} to {SCORES[-1]}, starts 5% below and above"


@claim("c", "trace = train(equal, NGD(0.2)", show="cosine")
@refuted("the softmax stays at 0.1", train=series(log_nonopt_score=-0.105))
@refuted("1 - cosine stays at 0.5", train=series(W_alignment_error=0.5))
def equal_scores_free(e):
    """With equal scores the same tokens trap no start."""
    data = make_score_trap(0.0)
    svm = solve_w_svm(data)
    for k in range(10):
        W0 = normal(k, 2, 2)
        W0 = adversarial_init(svm, FAR / svm.margin) if k == 0 else W0 * (10 * k / W0.norm())
        run = e.run(train, data, NGD(0.2), 20_000, W0=W0, svm=svm)
        yield Check("1 - cosine at the end", float(run.W_alignment_error[-1]), 1e-2, key="cosine")
        yield Check("softmax at the optimal token", float(run.opt_score[-1]), 0.99, ">=")
    return (
        "the same tokens with equal scores, 100 margins against W_mm and nine random starts "
        "of norms to 90; proved for every start"
    )


@claim("d", '"local": check_locally_optimal(data, chosen, svm=other).all_hold', show="cosine")
@refuted("runs turn aside by 1 - cosine 0.01", train=altered(W=lambda run: aside(run.W, 0.01)))
def locks_are_local(e):
    """A run that locks does so at locally optimal tokens, in the direction of their SVM."""
    locked = 0
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
            yield from check_locally_optimal(data, tokens, svm=local)
            yield Check(
                "1 - cosine with the SVM of the selected tokens", 1 - cosine, 1e-3, key="cosine"
            )
    yield Check("runs that lock", locked, 10, ">=")
    return f"{locked} of seeds 100 to 119 lock, all at locally optimal tokens"
