"""Runs on one data set that share the Gram matrix, against the same runs one by one."""

from __future__ import annotations

import numpy as np

from attnbias import NGD
from attnbias.dynamics.engines import CompiledEngine
from attnbias.dynamics.problem import Problem
from attnbias.dynamics.recording import RECORDS
from attnbias.dynamics.shared import SharedRuns

from .dynamics import make_data, problem_of
from .timing import interleave, steps_for

# n, T, d: N' = 50, 180, 500, 900, 1500, 3000
SIZES = [
    (10, 6, 100),
    (20, 10, 200),
    (50, 11, 600),
    (100, 10, 1000),
    (150, 11, 1600),
    (300, 11, 3100),
]


def alone(problem: Problem, steps: int) -> CompiledEngine:
    """A run by itself, all records taken at every iteration."""
    wanted, records = np.zeros(steps + 1, np.int32), np.empty((1, RECORDS + problem.N))
    return CompiledEngine(problem, NGD(0.1), "span", wanted, records)


def together(problem: Problem, steps: int, runs: int) -> SharedRuns:
    """The same, shared by `runs` runs."""
    wanted, records = np.zeros(steps + 1, np.int32), np.empty((runs, 1, RECORDS))
    return SharedRuns([problem] * runs, [NGD(0.1)] * runs, wanted, records)


def sharing(n: int, T: int, d: int, runs: int) -> dict:
    """Microseconds an iteration and run, alone and shared, and their ratio; no set-up."""
    problem = problem_of(make_data(n, T, d))
    steps = steps_for(lambda k: alone(problem, k).run(0, k))
    one, all_ = alone(problem, steps), together(problem, steps, runs)
    called = {"alone": lambda: one.run(0, steps), "shared": lambda: all_.run(0, steps)}
    times = interleave(called)
    micro = {"alone": 1e6 * times["alone"] / steps, "shared": 1e6 * times["shared"] / steps / runs}
    return {"N": problem.N, "runs": runs} | micro | {"ratio": micro["alone"] / micro["shared"]}
