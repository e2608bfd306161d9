"""Claims of our own on steepest descent in several norms, on small runs of their own."""

import dataclasses
import functools
import math

import numpy as np

from attnbias import Check, Trace, make_example1
from attnbias.beyond.norms.dynamics import train_adam, train_steepest
from attnbias.beyond.norms.geometry import NORMS, norm_margin, solve_norm_svm
from attnbias.beyond.ranks.factors import make_factors, train_factors

from ..claim import Section, refuted
from ..seeds import SEEDS
from ..tamper import altered, aside, each, swaps

claim = Section("Beyond the paper", 210, source="ours", chapter="chap-geometries")

FRESH = SEEDS["each-norm-its-svm"].fresh
SHAPES = (
    (4, 3, 12),
    (3, 4, 16),
    (5, 2, 10),
    (2, 5, 20),
    (4, 4, 20),
    (3, 3, 8),
    (6, 2, 12),
    (2, 3, 6),
    (5, 3, 15),
    (3, 2, 5),
)
NOTE = "ten shapes up to n, T, d = 6, 5, 20"
SPEED = -math.log(0.95) / 2  # the limit at beta_2 = 0.95


@functools.cache
def _instance(seed: int):
    """Data of one of the shapes, and the largest margin in each norm."""
    data = make_example1(*SHAPES[seed % 10], sigma=0.3, seed=seed)
    return data, {norm: solve_norm_svm(data, norm).margin for norm in NORMS}


@functools.cache
def steepest_runs(seed: int) -> dict[str, Trace]:
    """A thousand short steps in each norm."""
    data, _ = _instance(seed)
    step_size = {norm: 0.05 if norm == "max" else 0.1 for norm in NORMS}
    return {
        norm: train_steepest(data, norm, step_size[norm], 1000, record=[500, 1000])
        for norm in NORMS
    }


@functools.cache
def factor_run(seed: int) -> Trace:
    """Factors of full width from a small start."""
    data, _ = _instance(seed)
    start = make_factors(data.d, data.d, seed=seed)
    return train_factors(data, *start, 0.1, 800, record=[400, 800])


@functools.cache
def adam_runs(seed: int) -> dict[float, Trace]:
    """Adam at two multiples of the limiting speed."""
    data, best = _instance(seed)
    return {
        speed: train_adam(
            data, speed * SPEED / best["max"], 2000, betas=(0.9, 0.95), record=[1000, 2000]
        )
        for speed in (0.9, 8.0)
    }


def _shares(seed: int, run: Trace, norm: str) -> list[float]:
    data, best = _instance(seed)
    return [norm_margin(data, W, norm) / best[norm] for W in run.W]


def _stalled(run: Trace) -> Trace:
    """The direction at the last record is that at the one before."""
    W = run.W.clone()
    W[-1] = W[-2] * (W[-1].norm() / W[-2].norm())
    return dataclasses.replace(run, W=W)


_ASIDE = altered(W=lambda run: aside(run.W, 0.1))


@claim("d", "runs = {titles[norm]: train_steepest(", show="share")
@refuted("sign descent and NGD change places", steepest_runs=swaps("max", "frobenius"))
@refuted("runs turn aside by 1 - cosine 0.1", steepest_runs=_ASIDE)
@refuted("runs stop turning after 500 steps", steepest_runs=each(_stalled, Trace))
def each_norm_its_svm(e):
    """Normalised steepest descent in a norm comes within 10% of the largest margin of that norm in
    1,000 short steps, and goes on."""
    for seed in FRESH:
        for rule, run in e.run(steepest_runs, seed).items():
            first, last = _shares(seed, run, rule)
            words = f"share of the largest {rule} margin"
            yield Check(words, last, 0.9, ">=", key="share")
            yield Check(f"{words}, missing, over that at step 500", (1 - last) / (1 - first), 0.95)
    return NOTE


@claim("d", "runs = {titles[norm]: train_steepest(", show="lead")
@refuted("sign descent and NGD change places", steepest_runs=swaps("max", "frobenius"))
def own_norm_leads(e):
    """Each norm's own rule reaches the most of that norm's largest margin in 1,000 short steps; the
    best of the other rules reaches from less than half of it to over 90%."""
    others = []
    for seed in FRESH:
        runs = e.run(steepest_runs, seed)
        for norm in NORMS:
            shares = {rule: _shares(seed, run, norm)[-1] for rule, run in runs.items()}
            own = shares.pop(norm)
            others.append(max(shares.values()))
            words = f"lead of the {norm} norm's own rule on the best other, in shares of its margin"
            yield Check(words, own - others[-1], 1e-6, ">=", key="lead")
    yield Check("best share of another rule, least of all", min(others), 0.5)
    yield Check("best share of another rule, largest of all", max(others), 0.9, ">=")
    return f"the best of the others reaches {min(others):.2f} to {max(others):.3f}, {NOTE}"


@claim("d", "train_factors(\n        data, *make_factors(12, 12")
@refuted("runs turn aside by 1 - cosine 0.1", factor_run=_ASIDE)
def factors_nuclear(e):
    """NGD on factors of W = K Q' of full width from a small start comes within 10% of the largest
    margin of the nuclear norm in 800 steps."""
    for seed in FRESH:
        share = _shares(seed, e.run(factor_run, seed), "nuclear")[-1]
        yield Check("share of the largest nuclear margin", share, 0.9, ">=")
    return NOTE


@claim("d", "run = train_adam(data, eta", show="slow")
@refuted("the slow and the fast run change places", adam_runs=swaps(0.9, 8.0))
@refuted("gaps grow twice as fast", adam_runs=altered(gaps=lambda run: 2 * run.gaps))
def adam_speed(e):
    """Adam's gaps grow by at most -log(beta_2) / 2 a step; it reaches 90% of the largest max-norm
    margin where its step size asks for 0.9 of that, and less where it asks for eight times the
    limit."""
    for seed in FRESH:
        runs = e.run(adam_runs, seed)
        slow, fast = (_shares(seed, run, "max")[-1] for run in runs.values())
        growths = [float(np.diff(run.gaps.min(axis=1))[0]) / 1000 for run in runs.values()]
        yield Check("share at 0.9 of the limiting speed", slow, 0.9, ">=", key="slow")
        yield Check("share at 8 of the limiting speed over that at 0.9", fast / slow, 0.98)
        yield Check("growth of the least gap a step over its limit", max(growths) / SPEED, 1.01)
    return f"beta_2 = 0.95, 2000 steps, {NOTE}"
