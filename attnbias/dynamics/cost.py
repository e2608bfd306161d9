"""Which coordinates are cheapest for a problem of given size."""

from __future__ import annotations

from .problem import Problem

GRAM_LIMIT = 2**31  # bytes; above it no Gram matrix is built


def iteration_cost(n: int, N: int, d: int) -> dict[str, float]:
    """Estimated microseconds an iteration in each coordinates, on one core.

    Parameters
    ----------
    n, N, d : int
        Sequences, rows N' = n (T - 1), features.
    """
    bytes_K = 8.0 * N * N
    span = N * N * (7e-5 if bytes_K < 2.5e6 else 1.43e-4)
    tokens = N * d * (2.5e-4 if 8.0 * N * d < 2e6 else 5e-4)
    factored = 1.0 + tokens + n * n * d * 4e-5
    dense = 2.0 + tokens + n * d * d * 8e-5 + d * d * (1e-3 if 8.0 * d * d < 1e6 else 2.5e-3)
    return {"span": span, "factored": factored, "dense": dense}


def choose_coordinates(problem: Problem, steps: int, torch_only: bool = False) -> str:
    """The cheapest coordinates for this many steps, the Gram matrix's set-up included."""
    cost = iteration_cost(problem.n, problem.N, problem.d)
    cost["span"] += problem.N**2 * problem.d * 4e-5 / max(steps, 1)
    if 8 * problem.N**2 > GRAM_LIMIT:
        del cost["span"]
    if torch_only:
        del cost["factored"]
    return min(cost, key=cost.get)
