"""Which engine runs, and in which coordinates: the cheapest that keep the digits of a step."""

from __future__ import annotations

import math

from .._validate import require_choice
from ..data import Dataset
from ..errors import RangeError
from ..losses import Loss
from ..rules import Descent, Rule
from .loop import Iteration
from .problem import Problem

COORDINATES = ("auto", "dense", "factored", "span")
ENGINES = ("auto", "compiled", "torch")
GRAM_LIMIT = 2**31  # bytes; above it no Gram matrix is built
CACHE = 2**21  # bytes
# The longest token of a sequence over its shortest, up to which |step| = eta to 1e-12 by a Gram
# matrix: it loses the square of that where long tokens cancel (25 draws, 30 steps: 8e-13 at 1e3,
# 3e-11 at 1e4, 4e-8 at 1e6).
EXACT_SPREAD = 1e3


def choose_engine(engine: str, data: Dataset, loss: Loss, rule: Descent):
    """The compiled loops where they can serve, else torch."""
    require_choice("engine", engine, ENGINES)
    possible = data.X.device.type == "cpu" and loss.compiled is not None
    possible = possible and isinstance(rule, Rule)
    if engine == "compiled" and not possible:
        raise RangeError(
            "engine",
            expected="'torch' for this loss, device or rule",
            got=f"'compiled' with loss {loss.name!r} and {rule.name} on {data.X.device}",
            remedy="use engine='auto'",
        )
    if not possible or engine == "torch":
        return Iteration
    from .compiled.engine import CompiledEngine  # here, as numba takes half a second

    return CompiledEngine


def require_coordinates(coordinates: str, engine, joint: bool) -> str:
    """Coordinates that the engine knows."""
    require_choice("coordinates", coordinates, COORDINATES)
    if coordinates == "factored" and (joint or engine is Iteration):
        raise RangeError(
            "coordinates",
            got="'factored'",
            remedy="use coordinates='auto'",
            expected="'span' or 'dense' " + ("in joint training" if joint else "in torch"),
        )
    return coordinates


def iteration_work(n: int, N: int, d: int, joint: bool = False) -> dict[str, float]:
    """Work of an iteration in each coordinates, in entries of K that are read from the cache.

    Parameters
    ----------
    n, N, d : int
        Sequences, rows N' = n (T - 1), features.
    joint : bool
        Whether the decoder's n + N' rows are there as well.
    """
    M, tokens = n + N, 4 * _read(N * d)
    dense = tokens + n * d**2 + 20 * _read(d**2)
    if joint:
        return {"span": _read(N**2) + _read(M**2), "dense": dense + 4 * _read(M * d)}
    return {"span": _read(N**2), "factored": tokens + n**2 * d / 2, "dense": dense}


def _read(numbers: int) -> int:
    """Reading from memory takes twice as long as from the cache."""
    return numbers if 8 * numbers < CACHE else 2 * numbers


def token_spread(problem: Problem) -> float:
    """The longest token of a sequence over its shortest but zero, in the worst sequence."""
    keys = problem.W.rows.keys
    if keys is None:
        return 1.0
    sizes = keys.abs().amax(dim=2)
    least = sizes.masked_fill(sizes == 0, math.inf).amin(dim=1)
    return float((sizes.amax(dim=1) / least).max())


def choose_coordinates(problem: Problem, steps: int, rule: Descent, engine: type) -> str:
    """The cheapest coordinates for so many steps, the Gram matrix's set-up included.

    "dense" where a Gram matrix would not keep the digits of a step, and for a rule of one's own,
    whose direction need not lie in the rows' span.
    """
    if not isinstance(rule, Rule) or token_spread(problem) > EXACT_SPREAD:
        return "dense"
    joint, n, N, d = problem.u is not None, problem.n, problem.N, problem.d
    work = iteration_work(n, N, d, joint)
    if engine is Iteration:
        work.pop("factored", None)
    entries = N**2 + ((n + N) ** 2 if joint else 0)
    work["span"] += entries * d / 2 / max(steps, 1)
    if 8 * entries > GRAM_LIMIT:
        del work["span"]
    return min(work, key=work.__getitem__)
