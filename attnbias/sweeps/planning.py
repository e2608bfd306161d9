"""What a sweep will take, said before it starts."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from .._validate import require_int, require_type
from ..dataset import Dataset
from ..dynamics.batched.step import RECORDED
from ..dynamics.choice import GRAM_LIMIT
from ..errors import AttnBiasError, MemoryLimitError
from .code import FOREIGN
from .grid import Grid
from .models import Point
from .settings import Training
from .table import columns

SHARE = 0.9  # of the free memory that may be asked for
_SMALL = 16 * 2**20  # what a sweep of the smallest data takes


@dataclass(frozen=True)
class Plan:
    """Size of a sweep.

    Attributes
    ----------
    runs, data_sets, iterations, rows : int
        Of all runs together.
    worker_bytes : int
        Most memory that the work on one data set needs at a time.
    table_bytes : int
        Of the table in memory.
    process_bytes : int
        Of this process before it starts, and of each worker's where there are several.
    workers : int
        Data sets worked on at a time.
    available_bytes : int
        Free memory of this machine.

    Examples
    --------
    >>> from attnbias.sweeps import plan, read_grid
    >>> grid = {"data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40], "seed": range(3)},
    ...         "rule": {"name": "NGD", "step_size": [0.1, 0.5]}, "steps": 100}
    >>> found = plan(read_grid(grid))
    >>> found.runs, found.data_sets, found.iterations
    (12, 6, 1200)
    """

    runs: int
    data_sets: int
    iterations: int
    rows: int
    worker_bytes: int
    table_bytes: int
    process_bytes: int
    workers: int
    available_bytes: int

    @property
    def total_bytes(self) -> int:
        """Most memory at a time, within a factor 1.5: this process, the workers and the table."""
        own = self.process_bytes if self.workers > 1 else 0
        return self.process_bytes + self.workers * (self.worker_bytes + own) + self.table_bytes

    def __str__(self) -> str:
        return (
            f"{self.runs:,} runs on {self.data_sets:,} data sets, {self.iterations:,} iterations, "
            f"{self.rows:,} rows; about {size(self.total_bytes)} of memory "
            f"({self.workers} x {size(self.worker_bytes)} at work, "
            f"table {size(self.table_bytes)}, {size(self.process_bytes)} a process), "
            f"{size(self.available_bytes)} free"
        )


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def plan(grid: Grid, workers: int = 1) -> Plan:
    """The size of a sweep.

    Parameters
    ----------
    grid : Grid
    workers : int

    Returns
    -------
    Plan

    Raises
    ------
    MemoryLimitError
        When it would not fit.

    Examples
    --------
    >>> from attnbias.sweeps import read_grid
    >>> grid = {"data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40], "seed": range(3)},
    ...         "rule": {"name": "NGD", "step_size": [0.1, 0.5]}, "steps": 100}
    >>> plan(read_grid(grid)).runs
    12
    """
    require_type("grid", grid, Grid, "a Grid", "make it by attnbias.sweeps.read_grid")
    rows = grid.runs * len(grid.training.record)
    workers = min(require_int("workers", workers, low=1), len(grid.points))
    made = Plan(
        runs=grid.runs,
        data_sets=len(grid.points),
        iterations=grid.runs * grid.training.steps,
        rows=rows,
        worker_bytes=max(_work(grid.training, family) for family in grid.families),
        table_bytes=2 * rows * 8 * len(columns(grid)),  # parts and their concatenation
        process_bytes=psutil.Process().memory_info().rss,
        workers=workers,
        available_bytes=psutil.virtual_memory().available,
    )
    if made.total_bytes - made.process_bytes > SHARE * made.available_bytes:
        raise MemoryLimitError(
            "grid",
            expected=f"a sweep that fits into {size(SHARE * made.available_bytes)}",
            got=str(made),
            remedy="take fewer workers, smaller sizes, or record less; or split the grid",
        )
    return made


def _sizes(point: Point) -> tuple[int, ...]:
    """n, T and d: the model's arguments if they say it, else those of the data set, once made."""
    given = dict(point.arguments)
    found = [given.get(name) for name in ("n", "T", "d")]
    data = None
    if not all(isinstance(value, int) for value in found) or given.get("span"):
        data = _made(point)
    if data is not None:
        found = [data.n, data.T, data.d]
    found = [value if isinstance(value, int) else 20 for value in found]
    return tuple(min(max(value, 1), 10**12) for value in found)


def _made(point: Point) -> Dataset | None:
    """None for code that is not imported, or that fails; what it makes is taken to be small."""
    if point.function is None:
        return None
    try:
        return point.make()
    except AttnBiasError:
        raise
    except FOREIGN:
        return None


def _work(training: Training, point: Point) -> int:
    """Bytes for one data set: tokens, matrices W, Gram matrices, states and records."""
    n, T, d = _sizes(point)
    N, R = n * max(T - 1, 1), len(training.settings)
    gram = 8 * N * N
    starts = {(s.loss, s.W0_norm, s.start) for s in training.settings}
    matrices = 8 * d * d * (4 + 2 * len(starts))  # as measured; a start and its target each
    states = 8 * R * (12 * N + len(RECORDED) * len(training.record))
    grams = 6 * gram if gram <= GRAM_LIMIT else 2 * gram
    return _SMALL + 4 * 8 * n * T * d + matrices + grams + states
