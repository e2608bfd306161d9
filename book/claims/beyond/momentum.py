"""Claims of our own on momentum, on small runs of their own."""

import functools
import math

import numpy as np

from attnbias import NGD, Check, Trace, make_example1, make_separation_pair, solve_w_svm, train
from attnbias.beyond.exponents.transient import max_stable_step, offset_parts
from attnbias.beyond.momentum.checks import (
    check_momentum_path,
    check_momentum_triple,
    check_single_row,
)
from attnbias.beyond.momentum.dynamics import train_accelerated
from attnbias.data.degenerate import make_degenerate
from attnbias.geometry.constants import limit_offset

from ..claim import Section, refuted
from ..draws import normal
from ..seeds import SEEDS
from ..tamper import retold, series, swaps

claim = Section("Beyond the paper", 200, source="ours", chapter="chap-momentum")

STEPS = 20_000
BALL, DUAL = "heavy ball", "dual acceleration"
ETAS = (0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
BETAS = (0.9, 0.5, 0.95, 0.8, 0.6, 0.9, 0.3, 0.7, 0.85, 0.4)
SHAPES = ((2, 3, 6), (3, 2, 8), (2, 2, 5), (3, 3, 12), (2, 4, 10))


@functools.cache
def _instance(seed: int):
    data = make_example1(*SHAPES[seed % len(SHAPES)], sigma=0.5, seed=seed)
    return data, solve_w_svm(data)


@functools.cache
def _seeds(full: bool) -> list[int]:
    """The first ten fresh ones in which every row supports W_mm, or some row does not."""
    svms = {seed: _instance(seed)[1] for seed in SEEDS["same-offset"].fresh}
    fits = [seed for seed, svm in svms.items() if (len(svm.support) == len(svm.dual)) == full]
    return fits[:10]


@functools.cache
def pair_runs(k: int) -> dict:
    """Both methods on the pair of Section 3.3, the k-th step size and a random start."""
    data = make_separation_pair()
    W0 = normal(k, 2, 2) / 2
    return {
        BALL: train(data, NGD(ETAS[k], momentum=BETAS[k]), STEPS, W0=W0),
        DUAL: train_accelerated(data, ETAS[k], STEPS, W0=W0),
    }


@functools.cache
def offset_runs(seed: int) -> dict:
    """Both methods with steps of 0.1."""
    data, svm = _instance(seed)
    return {
        BALL: train(data, NGD(0.1, momentum=0.9), STEPS, svm=svm, record=[STEPS]),
        DUAL: train_accelerated(data, 0.1, STEPS, svm=svm, record=[STEPS]),
    }


@functools.cache
def idle_run(seed: int) -> Trace:
    """Dual acceleration with steps of 0.1, recorded twice early and at the end."""
    data, svm = _instance(seed)
    return train_accelerated(data, 0.1, STEPS, svm=svm, record=[1000, 1001, STEPS])


def _off(seed: int, run) -> float:
    """How far the last offset is from its prediction, relatively."""
    offset = run.W_norm[-1] * math.sqrt(2 * run.W_alignment_error[-1])
    return abs(float(offset) / limit_offset(*_instance(seed)) - 1)


@functools.cache
def settling_runs(seed: int) -> dict:
    """Dual acceleration with steps just below and just above the threshold."""
    data, svm = _instance(seed)
    top = max_stable_step(svm, DUAL)
    return {
        share: train_accelerated(data, share * top, 5000, svm=svm, record=[5000])
        for share in (0.95, 1.05)
    }


_STALLS = series(W_alignment_error=0.5)
_FROZEN = series(W_alignment_error=lambda run, old: 0.5 / np.maximum(run.W_norm, 1) ** 2)
_LOGARITHMIC = retold(gaps=lambda run, old: np.outer(np.log1p(run.step), old[-1]) / old[-1].max())
_LINEAR = retold(gaps=lambda run, old: np.outer(run.step, old[-1]) / old[-1].max() / 100)
_LONGER = series(W_alignment_error=lambda run, old: 1.1 * old)
_IDLE_STOPS = series(gaps=lambda run, old: np.vstack([old[:2], old[1:2]]))


@claim("c", "check_single_row(pair, each)", show="exponent")
@refuted("both stay at 1 - cosine 0.5", pair_runs=_STALLS)
@refuted("the two methods change places", pair_runs=swaps(BALL, DUAL))
def momentum_pair(e):
    """On one constraint a heavy ball and dual acceleration have closed forms, with the exponents -2
    and -4."""
    data = make_separation_pair()
    for k in range(10):
        for (name, run), power in zip(e.run(pair_runs, k).items(), (2, 4), strict=True):
            yield from check_single_row(data, run)
            late = run.step >= STEPS // 10
            slope = np.polyfit(np.log(run.step[late]), np.log(run.W_alignment_error[late]), 1)[0]
            words = f"exponent of 1 - cosine, {name}, plus {power}, in size"
            yield Check(words, abs(float(slope) + power), 0.05, key="exponent")
    return f"the pair of Section 3.3, ten step sizes, momenta and random starts, {STEPS} steps"


@claim("c", "check_momentum_path(pair, each)", show="along_low")
@refuted("with a heavy ball |W| grows like log t", train=_LOGARITHMIC)
@refuted("with dual acceleration |W| grows like t", train_accelerated=_LINEAR)
def momentum_path(e):
    """Under Assumption 2 W grows along W_mm at least in proportion to t / (1 - beta) with a heavy
    ball, to t^2 with dual acceleration."""
    for k, seed in enumerate(range(200, 210)):
        data, svm = _instance(seed)
        ball = e.run(train, data, NGD(ETAS[k], momentum=BETAS[k]), 1000, svm=svm)
        dual = e.run(train_accelerated, data, ETAS[k], 1000, svm=svm)
        yield from [c for run in (ball, dual) for c in check_momentum_path(data, run, svm=svm)]
    return "ten data sets of five shapes, ten step sizes and momenta"


@claim("d", "offset = each.W_norm[-1] * math.sqrt(2 * each.W_alignment_error[-1])")
@refuted("1 - cosine ends a tenth higher", offset_runs=_LONGER)
def same_offset(e):
    """Where every row supports W_mm, momentum with steps of 0.1 leaves the offset's limit where it
    is."""
    yield from [
        Check(f"offset over its prediction, minus 1, {name}", _off(seed, run), 1e-4)
        for seed in _seeds(True)
        for name, run in e.run(offset_runs, seed).items()
    ]
    return "the first ten seeds where it is so"


@claim("d", "parts = offset_parts(svm, each.gaps[each.step >= 1000])")
@refuted("gaps stop at step 1,001", idle_run=_IDLE_STOPS)
def idle_logarithm(e):
    """Idle rows make the offset of dual acceleration grow like log t."""
    for seed in _seeds(False):
        beyond = offset_parts(_instance(seed)[1], e.run(idle_run, seed).gaps).beyond
        ahead = beyond[0] + 1001 * (beyond[1] - beyond[0]) * math.log(STEPS / 1000)
        away = float((beyond[2] - ahead).norm() / ahead.norm())
        yield Check("idle part of the offset against its logarithm", away, 5e-3)
    return "the first ten seeds with idle rows"


@claim("d", "max_stable_step(")
@refuted("the short and the long steps change places", settling_runs=swaps(0.95, 1.05))
@refuted("1 - cosine ends a tenth higher", settling_runs=_LONGER)
def settling_step(e):
    """The offset of dual acceleration settles up to the step size 4 / (3 chi) and no further."""
    for seed in _seeds(True):
        for share, run in e.run(settling_runs, seed).items():
            words = f"distance to the fixed point at {share:g} of the step size"
            yield Check(words, _off(seed, run), 1e-3, "<=" if share < 1 else ">=")
    return "5000 steps, the first ten seeds without idle rows"


@claim("c", "check_momentum_triple(triple, ball)")
@refuted("the offset stays at 1", train=_FROZEN)
@refuted("1 - cosine stays at 0.5", train=_STALLS)
def momentum_triple(e):
    """On the degenerate triple a heavy ball's offset grows like log t."""
    data = make_degenerate()
    for eta, beta in zip(ETAS, BETAS, strict=True):
        run = e.run(train, data, NGD(eta, momentum=beta), STEPS)
        yield from check_momentum_triple(data, run)
    return f"ten step sizes and momenta, {STEPS} steps"
