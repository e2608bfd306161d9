"""Runs on one data set that share the Gram matrix, against the same runs one by one."""

from __future__ import annotations

import numpy as np
from attnbias.dynamics.products import symmetric_product
from attnbias.dynamics.shared import SharedRuns
from numba import njit

from attnbias import NGD
from attnbias.dynamics.engines import CompiledEngine, aligned
from attnbias.dynamics.problem import Problem
from attnbias.dynamics.recording import RECORDS

from .dynamics import make_data, problem_of
from .timing import relative, steps_for

# n, T, d: N' = 50, 180, 500, 900, 1500, 3000
SIZES = [
    (10, 6, 100),
    (20, 10, 200),
    (50, 11, 600),
    (100, 10, 1000),
    (150, 11, 1600),
    (300, 11, 3100),
]
CUBE = 384  # size of the matrices that show how fast operations can be


def alone(problem: Problem, steps: int) -> CompiledEngine:
    """A run by itself, all records taken at every iteration."""
    wanted, records = np.zeros(steps + 1, np.int32), np.empty((1, RECORDS + problem.N))
    return CompiledEngine(problem, NGD(0.1), "span", wanted, records)


def together(problem: Problem, steps: int, runs: int) -> SharedRuns:
    """The same, shared by `runs` runs."""
    wanted, records = np.zeros(steps + 1, np.int32), np.empty((runs, 1, RECORDS))
    return SharedRuns([problem] * runs, [NGD(0.1)] * runs, wanted, records)


@njit
def _products(K, r, q, times):
    for step in range(times):
        symmetric_product(K, r, q, step % 2 == 1)


def sharing(n: int, T: int, d: int, runs: int) -> dict:
    """Microseconds an iteration and run, alone and shared, and their ratio; no set-up.

    Beside them those of the product by K, which is all that can be shared, and of two things
    that it can't go without: reading half of K, and as many operations in a matrix product.
    """
    problem = problem_of(make_data(n, T, d))
    N = problem.N
    steps = steps_for(lambda k: alone(problem, k).run(0, k), 0.04)
    one, all_ = alone(problem, steps), together(problem, steps, runs)
    called = {"alone": lambda: one.run(0, steps), "shared": lambda: all_.run(0, steps)}
    vectors = (aligned(problem.gram), np.ones(N), np.empty(N))
    called["product"] = lambda: _products(*vectors, steps)
    half, square = np.ones(N * (N + 1) // 2), np.ones((CUBE, CUBE))
    called["read"] = lambda: [half @ half for _ in range(steps)]
    cubes = max(1, round(steps * N**2 / CUBE**3))
    called["operations"] = lambda: [square @ square for _ in range(cubes)]
    micro = {name: 1e6 * time / steps for name, time in relative(called, "alone").items()}
    micro["shared"] /= runs
    micro["operations"] *= steps * N**2 / CUBE**3 / cubes
    return {"N": N, "runs": runs} | micro | {"ratio": micro["alone"] / micro["shared"]}
