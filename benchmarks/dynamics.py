"""The training loop against batched autograd, its coordinates against each other."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from attnbias import NGD, Dataset, make_example1
from attnbias.dynamics.arguments import choose_coordinates
from attnbias.dynamics.compiled.engine import CompiledEngine
from attnbias.dynamics.coordinates import LinearHead
from attnbias.dynamics.problem import Problem
from attnbias.losses import EXPONENTIAL

from .autograd import autograd_loop
from .plain import plain_span_loop
from .timing import interleave, over_autograd, steps_for

# n, T, d and the ratio over autograd to reach
TARGETS = {
    (5, 3, 50): 400,
    (20, 10, 500): 300,
    (20, 8, 2000): 6000,
    (100, 10, 1000): 150,
    (50, 50, 500): 14,
    (200, 50, 500): 5,
}
# twelve sizes chosen to hurt: many short sequences in few features, one long sequence,
# few tokens in many features, more rows than cache, the edges of the choice of coordinates
HOSTILE = [
    (2, 2, 2),
    (1, 2, 3000),
    (1, 400, 20),
    (1000, 2, 10),
    (1000, 3, 20),
    (300, 20, 30),
    (400, 2, 50),
    (2000, 2, 4),
    (60, 60, 60),
    (200, 10, 500),
    (30, 100, 300),
    (500, 5, 100),
]


def make_data(n: int, T: int, d: int) -> Dataset:
    """Example 1 where d allows it, else Gaussian tokens without Assumption 2."""
    if d >= n * (T - 1) + 2:
        return make_example1(n, T, d)
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64) / d**0.5
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    u = torch.randn(d, generator=generator, dtype=torch.float64)
    return Dataset(X, y, u, name="gaussian tokens")


def problem_of(data: Dataset) -> Problem:
    """Without an SVM: the alignment's arithmetic is the same with a target of zeros."""
    W0 = torch.zeros(data.d, data.d, dtype=torch.float64)
    return Problem.of(data, EXPONENTIAL, W0)


class Run:
    """A compiled engine that goes on for `steps` more iterations each time it is called."""

    def __init__(self, problem, coordinates, steps, *, record=True, rule=None):
        recorded = np.arange(steps + 1) if record is True else np.array(record or [], np.int64)
        head = LinearHead(problem, coordinates)
        self.engine = CompiledEngine(head, rule or NGD(0.1), recorded)
        self.steps = steps

    def __call__(self) -> None:
        self.engine.run(0, self.steps)


def against_autograd(n: int, T: int, d: int) -> dict:
    """Microseconds an iteration: autograd, every form, the automatic choice."""
    data = make_data(n, T, d)
    problem, target = problem_of(data), torch.ones(d, d, dtype=torch.float64)
    forms = [form for form in ("span", "factored", "dense") if form != "span" or problem.N < 9000]
    choice = choose_coordinates(problem, 10_000, NGD(0.1), CompiledEngine)
    return over_autograd(
        lambda k: autograd_loop(data, 0.1, k, target), forms, partial(Run, problem), choice
    )


def stable_against_plain(n: int, T: int, d: int) -> float:
    """Time of the log-domain span loop over the same loop with a plain softmax."""
    problem = problem_of(make_data(n, T, d))
    plain = plain_span_loop(problem, 0.1)
    steps = steps_for(lambda k: Run(problem, "span", k)())
    times = interleave({"stable": Run(problem, "span", steps), "plain": lambda: plain(steps)}, 15)
    return times["stable"] / times["plain"]


def span_against_product(N: int) -> float:
    """Time of a span step over a bare matrix-vector product of the same size by numpy."""
    problem = problem_of(make_example1(N // 5, 6, N + 2))
    K, r = problem.W.rows.gram().numpy(), np.ones(N)
    steps = steps_for(lambda k: Run(problem, "span", k, record=False)())

    def product():
        for _ in range(steps):
            K @ r

    times = interleave({"step": Run(problem, "span", steps, record=False), "product": product})
    return times["step"] / times["product"]


def million_iterations() -> tuple[float, bool]:
    """Seconds for 10^6 NGD iterations at n = 5, T = 3, d = 50, and whether all is finite."""
    run = Run(problem_of(make_example1(5, 3, 50)), "span", 10**6, record=[10**6])
    small = Run(run.engine.problem.data, "span", 10)
    time = interleave({"run": run, "small": small}, rounds=1)["run"]
    return time, all(np.isfinite(each).all() for each in run.engine.records.values())
