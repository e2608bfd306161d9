"""Claims of our own on momentum, on small runs of their own."""

from __future__ import annotations

import math

from ..checks import Check
from ..data import make_example1, make_separation_pair
from ..data.degenerate import make_degenerate
from ..dynamics.accelerated import train_accelerated
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..geometry.constants import limit_offset
from ..geometry.settling import largest_settling_step, offset_parts
from ..geometry.svm import solve_w_svm
from ..theorems.momentum import check_momentum_path, check_momentum_triple, check_single_row
from .claim import Claim, Finding, judge

STEPS = 20_000
SEEDS = (0, 5, 6, 8)  # of the tokens below those where every row supports W_mm
TOKENS = "two sequences of three tokens in six dimensions"


def _data(seed: int):
    return make_example1(2, 3, 6, sigma=0.5, seed=seed)


def _pair(e) -> Finding:
    data, W0 = make_separation_pair(), [[-0.3, 0.2], [0.1, 0.4]]
    runs = (train(data, NGD(0.1, momentum=0.9), STEPS, W0=W0),
            train_accelerated(data, 0.1, STEPS, W0=W0))  # fmt: skip
    checks = [check for run in runs for check in check_single_row(data, run)]
    return judge(checks, note=f"the pair of Section 3.3, {STEPS} steps")


def _path(e) -> Finding:
    checks = []
    for seed in SEEDS:
        data = _data(seed)
        for run in (train(data, NGD(0.1, momentum=0.9), 1000), train_accelerated(data, 0.1, 1000)):
            checks += check_momentum_path(data, run)
    return judge(checks, show="<W_t", note=TOKENS)


def _same_offset(e) -> Finding:
    eta = e["step_size"] if isinstance(e, dict) else 0.1
    checks = []
    for seed in SEEDS:
        data = _data(seed)
        svm, last = solve_w_svm(data), [STEPS]
        runs = {
            "heavy ball": train(data, NGD(eta, momentum=0.9), STEPS, svm=svm, record=last),
            "dual acceleration": train_accelerated(data, eta, STEPS, svm=svm, record=last),
        }
        for name, run in runs.items():
            offset = run.W_norm[-1] * math.sqrt(2 * run.W_alignment_error[-1])
            away = abs(offset / limit_offset(data, svm) - 1)
            checks.append(Check(f"offset over its prediction, minus 1, {name}", away, 1e-4))
    return judge(checks, note=f"step size {eta:g}, {len(SEEDS)} seeds, all rows supporting")


def _logarithm(e) -> Finding:
    checks = []
    for seed in (2, 3, 9):
        data = _data(seed)
        svm = solve_w_svm(data)
        run = train_accelerated(data, 0.1, STEPS, svm=svm, record=[1000, 1001, STEPS])
        beyond = offset_parts(svm, run.gaps).beyond
        ahead = beyond[0] + 1001 * (beyond[1] - beyond[0]) * math.log(STEPS / 1000)
        away = float((beyond[2] - ahead).norm() / ahead.norm())
        checks.append(Check("idle part of the offset against its logarithm", away, 5e-3))
    return judge(checks, note=f"dual acceleration, three seeds with idle rows, {TOKENS}")


def _threshold(e) -> Finding:
    checks, last = [], [5000]
    for seed in (0, 5):
        data = _data(seed)
        svm = solve_w_svm(data)
        top, goal = largest_settling_step(svm, "dual acceleration"), limit_offset(data, svm)
        for share, sense in ((0.95, "<="), (1.05, ">=")):
            run = train_accelerated(data, share * top, 5000, svm=svm, record=last)
            offset = run.W_norm[-1] * math.sqrt(2 * run.W_alignment_error[-1])
            words = f"distance to the fixed point at {share:g} of the step size"
            checks.append(Check(words, abs(offset / goal - 1), 1e-3, sense))
    return judge(checks, note="dual acceleration, 5000 steps, two seeds")


def _triple(e) -> Finding:
    data = make_degenerate()
    return judge(check_momentum_triple(data, train(data, NGD(0.1, momentum=0.9), STEPS)))


def _claim(key: str, text: str, provenance: str, find) -> Claim:
    return Claim(key, text, "ours", "chap-momentum", provenance, find)


MOMENTUM = (
    _claim("momentum-pair", "On one constraint a heavy ball and dual acceleration have closed "
           "forms, with the exponents -2 and -4.", "c", _pair),
    _claim("momentum-path", "Under Assumption 2 W grows along W_mm at least in proportion to "
           "t / (1 - beta) with a heavy ball, to t^2 with dual acceleration.", "c", _path),
    _claim("same-offset", "Where every row supports W_mm, momentum leaves the offset's limit where "
           "it is.", "d", _same_offset),
    _claim("idle-logarithm", "Idle rows make the offset of dual acceleration grow like log t.",
           "d", _logarithm),
    _claim("settling-step", "The offset of dual acceleration settles up to the step size "
           "4 / (3 kappa) and no further.", "d", _threshold),
    _claim("momentum-triple", "On the degenerate triple a heavy ball's offset grows "
           "like log t.", "c", _triple),
)  # fmt: skip
