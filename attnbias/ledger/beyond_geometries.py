"""Claims of our own on steepest descent in several norms, on small runs of their own."""

from __future__ import annotations

from ..checks import Check
from ..data import make_example1
from ..dynamics.factors import make_factors, train_factors
from ..dynamics.steepest import train_adam, train_steepest
from ..geometry.norm_svm import NORMS, norm_margin, solve_norm_svm
from .claim import Claim, Finding, judge

SEEDS = (0, 1)
STEPS = 800
NOTE = f"{STEPS} steps, two seeds, four sequences of three tokens in twelve dimensions"


def _data(seed: int):
    return make_example1(4, 3, 12, sigma=0.3, seed=seed)


def _share(data, W, norm: str) -> float:
    return norm_margin(data, W, norm) / solve_norm_svm(data, norm).margin


def _each_its_own(e) -> Finding:
    eta = e["step_size"] if isinstance(e, dict) else 0.1
    checks = []
    for seed in SEEDS:
        data = _data(seed)
        for norm in NORMS:
            run = train_steepest(data, norm, eta, STEPS, record=[STEPS])
            words = f"share of the largest {norm} margin"
            checks.append(Check(words, _share(data, run.W[-1], norm), 0.98, ">="))
    return judge(checks, note=NOTE)


def _factors(e) -> Finding:
    checks = []
    for seed in SEEDS:
        data = _data(seed)
        run = train_factors(data, *make_factors(12, 12, seed=seed), 0.1, STEPS, record=[STEPS])
        share = _share(data, run.W[-1], "nuclear")
        checks.append(Check("share of the largest nuclear margin", share, 0.98, ">="))
    return judge(checks, note=NOTE)


def _adam(e) -> Finding:
    data = _data(0)
    best, checks = solve_norm_svm(data, "max").margin, []
    for speed, sense in ((0.9, ">="), (8.0, "<=")):
        eta = speed * 0.0256466 / best  # -log(0.95) / 2
        run = train_adam(data, eta, 3000, betas=(0.9, 0.95), record=[3000])
        share = norm_margin(data, run.W[-1], "max") / best
        checks.append(Check(f"share at {speed:g} of the limiting speed", share, 0.93, sense))
    return judge(checks, note="beta_2 = 0.95, one seed, 3000 steps")


def _claim(key: str, text: str, find) -> Claim:
    return Claim(key, text, "ours", "chap-geometries", "d", find)


GEOMETRIES = (
    _claim("each-norm-its-svm", "Normalised steepest descent in a norm nears the largest margin "
           "of that norm, with short steps.", _each_its_own),
    _claim("factors-nuclear", "NGD on factors of W = K Q' of full width from a small start nears "
           "the largest margin of the nuclear norm.", _factors),
    _claim("adam-speed", "Adam nears the largest max-norm margin if its gaps need not grow by more "
           "than -log(beta_2) / 2 a step.", _adam),
)  # fmt: skip
