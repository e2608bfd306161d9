"""What a sweep runs: blocks of lists, multiplied out and checked before any work.

A block is a dict; every list in it is an axis, and the block stands for all combinations. A
list of blocks stands for their union. A grid has a block of data, of rules, and optionally of
settings of the training, and runs all of the one with all of the others.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._files import read_text
from .._marks import in_words
from .._validate import PathLike, require_int, require_type
from ..dynamics.loop import record_steps
from ..errors import FileFormatError, RangeError
from .axes import MOST_RUNS, axes_of, combinations, distinct, plain, plain_list, writable
from .code import as_modules
from .models import Point, points_of
from .settings import Setting, Training, as_rule, as_training

KEYS = ("data", "rule", "train", "steps", "record")


@dataclass(frozen=True, eq=False)
class Grid:
    """All data sets, and the training that each goes through.

    Attributes
    ----------
    points : tuple of Point
    training : Training
        Run p S + s has point p and setting s of S.

    Examples
    --------
    >>> grid = read_grid({"data": {"model": "example1", "seed": range(3)}, "rule": "NGD(0.1)",
    ...                   "steps": 100})
    >>> grid.runs, grid.training.steps
    (3, 100)
    """

    points: tuple[Point, ...]
    training: Training

    @property
    def runs(self) -> int:
        return len(self.points) * len(self.training.settings)

    def __str__(self) -> str:
        return f"{self.runs:,} runs on {len(self.points):,} data sets"

    @property
    def text(self) -> str:
        """The grid in json: two grids with one text run the same, if their code does."""
        spec = {
            "points": [[point.model, point.cells] for point in self.points],
            "settings": [setting.spec for setting in self.training.settings],
            "steps": self.training.steps,
            "record": self.training.record.tolist(),
        }
        with writable("data"):
            return json.dumps(plain(spec), sort_keys=True, default=in_words)

    @property
    def key(self) -> str:
        """sha256 of `text`."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_config(path: PathLike) -> dict:
    """The grid of a TOML file, with the keys of `attnbias.sweep`.

    Parameters
    ----------
    path : path
        Such as::

            steps = 10_000
            record = 100

            [data]
            model = "example1"
            d = [50, 200]
            seed = "0:100"

            [[rule]]
            name = "NGD"
            step_size = [0.1, 0.5]

            [[rule]]
            name = "GD"
            step_size = 1.0

    Returns
    -------
    dict

    Raises
    ------
    MissingFileError, FileAccessError, FileFormatError

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print('steps = 100', file=file, flush=True)
    ...     read_config(file.name)
    {'steps': 100}
    """
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for integers beyond Python's limit
        raise FileFormatError(
            str(path), expected="a TOML file", got=str(error)[:200], remedy="mend that line"
        ) from None


def read_grid(grid: Mapping[str, Any], allow_code: Sequence[str] = ()) -> Grid:
    """Multiply a grid out, and refuse what can't run.

    Parameters
    ----------
    grid : mapping
        See `attnbias.sweep`.
    allow_code : str or sequence of str
        Modules whose functions the grid may name as "module:function": they are imported.

    Returns
    -------
    Grid

    Raises
    ------
    DtypeError, RangeError, NonFiniteError, MissingFileError
        And the errors of the data models: of each that differs in more than its seed, the
        first data set is made.

    Examples
    --------
    >>> grid = {"data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40], "seed": range(3)},
    ...         "rule": {"name": "NGD", "step_size": [0.1, 0.5]}, "steps": 100}
    >>> len(read_grid(grid).points)
    6
    """
    allowed = as_modules(allow_code)
    if isinstance(grid, Grid):
        return grid
    given = _require_keys(grid)
    steps = require_int("steps", given["steps"], low=0, high=2**31 - 2)
    record = record_steps(plain_list(given.get("record", 100)), steps)
    axes = [axes_of(name, given.get(name, {})) for name in ("data", "rule", "train")]
    counts = (sum(math.prod(map(len, block.values())) for block in blocks) for blocks in axes)
    require_int("number of runs", math.prod(counts), low=1, high=MOST_RUNS)
    data, rule, train = map(combinations, axes)
    points = distinct("data", points_of(data, allowed))
    rules = [as_rule(block, allowed) for block in rule]
    trains = [as_training(block, allowed) for block in train]
    made = [Setting(rule=r, arguments=given, **t) for t in trains for r, given in rules]
    return Grid(points, Training(distinct("rule and train", made), steps, record))


def _require_keys(grid) -> dict:
    example = "{'data': {'model': 'dm', 'seed': range(10)}, 'rule': 'NGD(0.1)', 'steps': 1000}"
    wanted = "a dict with data, rule and steps"
    require_type("grid", grid, Mapping, wanted, f"for example {example}")
    unknown = [key for key in grid if key not in KEYS]
    missing = [key for key in ("data", "rule", "steps") if key not in grid]
    if unknown or missing:
        belongs = "put an axis into the block it belongs to"
        raise RangeError(
            "grid",
            expected="data, rule and steps, and if you like train and record",
            got=", ".join(map(str, grid)) or "nothing",
            remedy=f"add {' and '.join(missing)}" if missing else belongs,
        )
    return dict(grid)
