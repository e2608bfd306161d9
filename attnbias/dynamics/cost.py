"""Which coordinates are cheapest for a problem of given size."""

from __future__ import annotations

from .joint_problem import JointProblem
from .problem import Problem

GRAM_LIMIT = 2**31  # bytes; above it no Gram matrix is built


def iteration_cost(n: int, N: int, d: int) -> dict[str, float]:
    """Estimated microseconds an iteration in each coordinates, on one core.

    Parameters
    ----------
    n, N, d : int
        Sequences, rows N' = n (T - 1), features.
    """
    tokens = _pass_over(N * d, 2.5e-4, 5e-4, 2e6)
    factored = 1.0 + tokens + n * n * d * 4e-5
    dense = 2.0 + tokens + n * d * d * 8e-5 + _pass_over(d * d, 1e-3, 2.5e-3, 1e6)
    return {"span": _product(N), "factored": factored, "dense": dense}


def joint_iteration_cost(n: int, N: int, d: int) -> dict[str, float]:
    """`iteration_cost` of joint training: the decoder's n + N' rows beside those of W."""
    M = n + N
    dense = iteration_cost(n, N, d)["dense"] + _pass_over(M * d, 2.5e-4, 5e-4, 2e6)
    return {"span": _product(N) + _product(M), "dense": dense}


def _product(N: int) -> float:
    """Of a symmetric N x N matrix and a vector."""
    return _pass_over(N * N, 7e-5, 1.43e-4, 2.5e6)


def _pass_over(size: int, inside: float, outside: float, cache: float) -> float:
    """Of reading so many floats, from the cache or from memory."""
    return size * (inside if 8.0 * size < cache else outside)


def choose_coordinates(problem: Problem, steps: int, torch_only: bool = False) -> str:
    """The cheapest coordinates for this many steps, the Gram matrix's set-up included."""
    cost = iteration_cost(problem.n, problem.N, problem.d)
    if torch_only:
        del cost["factored"]
    return _cheapest(cost, problem.N**2, problem.d, steps)


def choose_joint_coordinates(problem: JointProblem, steps: int) -> str:
    """The same for joint training, which has two Gram matrices."""
    cost = joint_iteration_cost(problem.n, problem.N, problem.d)
    entries = problem.N**2 + (problem.n + problem.N) ** 2
    return _cheapest(cost, entries, problem.d, steps)


def _cheapest(cost: dict[str, float], entries: int, d: int, steps: int) -> str:
    cost["span"] += entries * d * 4e-5 / max(steps, 1)
    if 8 * entries > GRAM_LIMIT:
        del cost["span"]
    return min(cost, key=cost.get)
