"""What a grid needs, tried on the first data set of each family before any run."""

from __future__ import annotations

import psutil

from ..dynamics.arguments import GRAM_LIMIT, require_inputs
from ..dynamics.batched.step import RECORDED
from ..errors import AttnBiasError, MemoryLimitError
from .code import FOREIGN
from .grid import Grid
from .models import Point
from .table import columns

SHARE = 0.9  # of the free memory that may be asked for
SMALL = 16 * 2**20  # what a sweep of the smallest data takes


def try_families(grid: Grid, workers: int) -> None:
    """Refuse data that do not fit, by their arguments where these tell, or that no setting can use.

    Errors of a function of one's own are left to its rows.

    Raises
    ------
    AttnBiasError
        Of any kind.
    """
    first: dict[str, Point] = {}
    for point in grid.points:
        first.setdefault(point.family, point)
    for point in first.values():
        given = dict(point.arguments)
        if not given.get("span"):  # whose d is no size of the tokens
            known = (given.get(name) for name in ("n", "T", "d"))
            _require_room(grid, workers, [size if isinstance(size, int) else 1 for size in known])
        try:
            data = point.make()
        except AttnBiasError:
            raise
        except FOREIGN:
            continue
        _require_room(grid, workers, (data.n, data.T, data.d))
        for setting in grid.training.settings:
            require_inputs(data, setting.rule, None, setting.train_u)


def _require_room(grid: Grid, workers: int, sizes) -> None:
    needed, free = needed_bytes(grid, workers, *sizes), psutil.virtual_memory().available
    if needed > SHARE * free:
        raise MemoryLimitError(
            "grid",
            expected=f"a sweep that fits into {SHARE * free / 1e9:.3g} GB",
            got=f"about {min(needed, 10**21) / 1e9:.3g} GB for {grid} and their table",
            remedy="take fewer workers, smaller sizes, or record less; or split the grid",
        )


def needed_bytes(grid: Grid, workers: int, n: int, T: int, d: int) -> int:
    """Most memory at a time for data of this size and for the table, within a factor of 1.5."""
    settings, records = grid.training.settings, len(grid.training.record)
    starts = len({(each.loss, each.W0_norm, each.start) for each in settings})
    tokens, matrices = 4 * n * T * d, d * d * (4 + 2 * starts)
    gram = (n * max(T - 1, 1)) ** 2
    gram *= 6 if 8 * gram <= GRAM_LIMIT else 2
    states = len(settings) * (12 * n * max(T - 1, 1) + len(RECORDED) * records)
    own = psutil.Process().memory_info().rss if workers > 1 else 0
    table = 2 * grid.runs * records * len(columns(grid))  # parts and their concatenation
    workers = min(workers, len(grid.points))
    return workers * (SMALL + own + 8 * (tokens + matrices + gram + states)) + 8 * table
