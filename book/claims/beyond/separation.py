"""How many steps NGD takes until all gaps are positive: ours."""

import functools
import math
from typing import NamedTuple

import numpy as np

from attnbias import NGD, Check, Dataset, SVMSolution, Trace, solve_w_svm, train
from attnbias.geometry.constants import token_constants

from ..claim import Section, refuted
from ..seeds import SEEDS
from ..tamper import retold

claim = Section("Beyond the paper", 185, source="ours", chapter="chap-master")

STEPS = 3000


class Problem(NamedTuple):
    """Data under Assumption 2 with its W_mm, and a step size."""

    data: Dataset
    svm: SVMSolution
    eta: float


@functools.cache
def gaussian(seed: int) -> Problem:
    """Gaussian tokens of a random shape whose score gaps differ up to 200-fold."""
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(2, 9)), int(rng.integers(2, 5))
    X = rng.standard_normal((n, T, n * T)) / math.sqrt(n * T)
    scores = np.tile(rng.uniform(-0.5, 0.5, (n, 1)), T)
    scores[np.arange(n), rng.integers(T, size=n)] += 10 ** rng.uniform(-2, 0.3, n)
    data = Dataset(X, np.ones(n), np.linalg.solve(X.reshape(n * T, -1), scores.ravel()))
    return Problem(data, solve_w_svm(data), 10 ** rng.uniform(0.5, 3))


@functools.cache
def pair(seed: int, gap: float = 0.0) -> tuple[Problem, float]:
    """The two sequences of the proof, scores 1 and a small random one, or `gap`; and that one."""
    rng = np.random.default_rng(seed)
    eta, delta = 10 ** rng.uniform(-1.5, 0.5), gap or 10 ** rng.uniform(-9, -7)
    side = 0.75**0.5
    X = np.zeros((2, 2, 3))
    X[:, :, 0] = 1
    X[0, 1, 1:], X[1, 1, 2] = (side, -0.5), 1
    data = Dataset(X, [1, 1], [0, (1 + delta / 2) / side, delta])
    return Problem(data, solve_w_svm(data), eta), delta


@functools.cache
def separation_runs(seed: int) -> dict[str, Trace]:
    """NGD from W_0 = 0, every step recorded; "equal" is the pair with both scores 1."""
    problems = {"gaussian": gaussian(seed), "late": pair(seed)[0], "equal": pair(seed, 1.0)[0]}
    return {
        name: train(data, NGD(eta), STEPS, svm=svm, record=range(STEPS + 1))
        for name, (data, svm, eta) in problems.items()
    }


def first_separated(run: Trace) -> float:
    """The first step at which all gaps are positive."""
    positive = (run.gaps > 0).all(axis=1)
    return int(run.step[positive.argmax()]) if positive.any() else math.inf


def step_bound(problem: Problem, floor: float) -> float:
    """The proposition's bound of it, where no attention to an optimal token is below the floor."""
    c = token_constants(problem.data, svm=problem.svm, phi=floor)
    longest = float(problem.svm.rows.gram().diagonal().max())
    return longest / c.Xi**2 * (1 + 2 * c.Lambda / (problem.eta * c.Xi))


@claim("c", "run = train(late, NGD(eta)", show="late")
@refuted(
    "some gap never becomes positive",
    separation_runs=retold(gaps=lambda run, old: np.minimum(old, 0)),
)
@refuted("the pair has equal scores", separation_runs=lambda runs: runs | {"late": runs["equal"]})
def separation_steps(e):
    """From W_0 = 0 NGD makes all gaps positive within the perceptron's number of steps times
    1 + 2 Lambda / (eta Xi), where Lambda needs a floor of attention; no number that depends on rows
    and step size alone will do."""
    for seed in SEEDS["separation-steps"].fresh:
        runs, (late, delta) = e.run(separation_runs, seed), pair(seed)
        for name, problem in (("gaussian", gaussian(seed)), ("late", late)):
            steps = first_separated(runs[name])
            before = runs[name].least_opt_score[runs[name].step < steps]
            words = "steps until all gaps are positive, over the bound by the run's least attention"
            yield Check(words, steps / step_bound(problem, float(before.min())), 1.0)
        # the second gap falls while p_2 < p_1 / 2, which holds up to this step, as p_2 / p_1 is at
        # most 4 e delta exp(g_1 + g_2) and the sum grows by at most eta a step
        least = math.log(1 / (8 * math.e * delta)) / late.eta
        words = "steps until all gaps are positive over log(1 / (8 e delta)) / eta, late pair"
        yield Check(words, first_separated(runs["late"]) / least, 1.0, ">=", key="late")
        yield Check("the same over the perceptron's bound", least / 4, 1.0, ">=")
    return (
        "Gaussian tokens, n 2 to 8, T 2 to 4, eta from 3 to 1000; and two sequences with rows of "
        "length 1 and Xi = 1/2, score gaps 1 and delta = 1e-9 to 1e-7, eta from 0.03 to 3"
    )
