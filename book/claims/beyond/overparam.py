"""What dimension alone does: ours."""

import functools
import itertools

from attnbias import NGD, Check, InfeasibleError, solve_w_svm, train
from attnbias.beyond.overparam.data import drop_signal_feature, make_weak_signal
from attnbias.beyond.overparam.geometry import wendel_share
from attnbias.dynamics.problem import adversarial_init

from ..claim import Section, refuted
from ..tamper import series

claim = Section("Beyond the paper", 240, source="ours", chapter="chap-global")

SEEDS = range(100, 120)
SHAPES = ((6, 4), (3, 3), (4, 2), (8, 2), (2, 5))  # n, T
STEPS, FAR = 3000, 10.0


@functools.cache
def count_feasible(n: int, correlation: float, seed: int) -> int:
    """How many of the choices of optimal tokens of n pairs in the plane are feasible."""
    data = drop_signal_feature(make_weak_signal(n, 2, 2, correlation=correlation, seed=seed))
    return sum(_feasible(data, opt) for opt in itertools.product((0, 1), repeat=n))


def _feasible(data, opt) -> bool:
    try:
        return bool(solve_w_svm(data, list(opt)))
    except InfeasibleError:
        return False


def _final_scores(e, correlation: float) -> list[float]:
    """Softmax at the optimal tokens at the end of runs that start against W_mm."""
    ends = []
    for seed in SEEDS:
        n, T = SHAPES[seed % len(SHAPES)]
        data = make_weak_signal(n, T, 4 * n * T, correlation=correlation, seed=seed)
        svm = solve_w_svm(data)
        start = adversarial_init(svm, FAR)
        run = e.run(train, data, NGD(0.5), STEPS, W0=start, svm=svm, record=[STEPS])
        ends.append(float(run.opt_score[-1]))
    return ends


_NOTE = f"five shapes n, T to 8, 2 and 2, 5, d = 4 nT, seeds 100 to 119, norm {FAR:g} against W_mm"


@claim("c", "data = drop_signal_feature(make_weak_signal(n, 2, 2, correlation=rho, seed=n))")
@refuted("two choices more are feasible", count_feasible=lambda count: count + 2)
def feasible_counting(e):
    """For two tokens a sequence the W-SVM is feasible for Wendel's share of the choices."""
    for k in range(12):
        n = 4 + k % 4
        off = abs(e.run(count_feasible, n, 0.25 * (k % 3), 100 + k) - 2**n * wendel_share(n, 4))
        yield Check("feasible choices of optimal tokens minus predicted", off, 1e-9)
    return "all choices on twelve draws, n = 4 to 7, T = 2, d = 2"


@claim("d", '"data": {"model": make_weak_signal, "n": 6, "T": 4, "d": dims, "correlation": rhos')
@refuted("runs end with half the softmax", train=series(log_nonopt_score=-0.69))
def overparam_plain(e):
    """At d = 4 nT independent features bring even starts against W_mm home."""
    least = min(_final_scores(e, 0.0))
    yield Check("least softmax at the optimal tokens", least, 0.99, ">=")
    return _NOTE


@claim("d", '"data": {"model": make_weak_signal, "n": 6, "T": 4, "d": dims, "correlation": rhos')
@refuted("all runs come home", train=series(log_nonopt_score=-9.0))
def overparam_correlated(e):
    """With features that share an axis dimension alone is not enough."""
    lost = sum(score < 0.9 for score in _final_scores(e, 0.9))
    check = Check("runs that do not end right, correlation 0.9", lost, 1, ">=")
    yield check
    return f"as d grows K has a limit; {_NOTE}"
