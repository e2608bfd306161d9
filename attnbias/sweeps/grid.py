"""What a sweep runs: blocks of lists, multiplied out and checked before any work.

A block is a dict; every list in it is an axis, and the block stands for all combinations. A
list of blocks stands for their union. A grid has a block of data, of rules, and optionally of
settings of the training, and runs all of the one with all of the others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._files import read_text
from .._validate import require_choice, require_flag, require_int, require_number, require_type
from ..dynamics.request import record_steps, require_inputs
from ..errors import FileFormatError, RangeError
from ..rules import Rule
from .axes import MOST_RUNS, axes_of, combinations, distinct, plain_list, writable
from .models import Point, as_modules, as_rule, bound, resolve_model

FORMAT = 1  # of a results folder; raise it when the meaning of a column changes
KEYS = ("data", "rule", "train", "steps", "record")


@dataclass(frozen=True)
class Setting:
    """How one run trains on its data set."""

    rule: Rule
    loss: str
    W0_norm: float
    start: str
    train_u: bool

    def columns(self) -> dict:
        """As the table shows it."""
        rule = self.rule
        return {
            "rule": rule.name,
            "rule_name": rule.name.partition("(")[0],
            "eta": _exp(rule.log_scale) if rule.gap_power == 0 else np.nan,
            "momentum": rule.momentum,
            "max_step": _exp(rule.log_max_step),
            "loss_name": self.loss,
            "W0_norm": self.W0_norm,
            "start": self.start,
            "train_u": self.train_u,
        }


def _exp(log: float) -> float:
    """The number that was given: a rule keeps its logarithm, which has lost the last digits."""
    return float(f"{np.exp(log):.12g}")


@dataclass(frozen=True, eq=False)
class Training:
    """What is done on each data set.

    Attributes
    ----------
    settings : tuple of Setting
    steps : int
    record : (R,) int
        Recorded iterations.
    """

    settings: tuple[Setting, ...]
    steps: int
    record: np.ndarray


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

    @property
    def families(self) -> list[Point]:
        """The first of those data sets that differ in nothing but their seed."""
        found: dict[str, Point] = {}
        for point in self.points:
            found.setdefault(repr(point.family), point)
        return list(found.values())

    @property
    def spec(self) -> dict:
        """The grid as json holds it: two grids with one spec run the same."""
        return {
            "format": FORMAT,
            "points": [[point.model, dict(point.arguments)] for point in self.points],
            "settings": [
                dataclasses.asdict(setting) | {"rule": setting.rule.parameters()}
                for setting in self.training.settings
            ],
            "steps": self.training.steps,
            "record": self.training.record.tolist(),
        }

    @property
    def text(self) -> str:
        """`spec` in json."""
        with writable("data"):
            return json.dumps(self.spec, sort_keys=True, default=repr)

    @property
    def key(self) -> str:
        """sha256 of `text`."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_config(path) -> dict:
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
    try:
        return tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # also for integers beyond Python's limit
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            str(path), expected="a TOML file", got=str(error)[:200], remedy="mend that line"
        ) from None


def read_grid(grid, allow_code=()) -> Grid:
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
    return multiplied(grid, allow_code)


def multiplied(grid, allow_code=(), imports: bool = True) -> Grid:
    """`read_grid`, which can leave code unimported: such a grid can be planned, and not run."""
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
    points = distinct("data", (_point(block, allowed, imports) for block in data))
    rules, trains = [as_rule(block) for block in rule], [_train(block) for block in train]
    settings = distinct("rule and train", [Setting(r, **t) for t in trains for r in rules])
    return Grid(points, Training(settings, steps, record))


def try_families(grid: Grid) -> None:
    """Make the first data set of each family, and see whether every setting can run on it.

    Raises
    ------
    AttnBiasError
        Of any kind.
    """
    for point in grid.families:
        data = point.make()
        for setting in grid.training.settings:
            require_inputs(data, setting.rule, None, setting.train_u)


def _require_keys(grid) -> dict:
    example = "{'data': {'model': 'dm', 'seed': range(10)}, 'rule': 'NGD(0.1)', 'steps': 1000}"
    wanted = "a dict with data, rule and steps"
    require_type("grid", grid, Mapping, wanted, f"for example {example}")
    unknown = [key for key in grid if key not in KEYS]
    missing = [key for key in ("data", "rule", "steps") if key not in grid]
    if unknown or missing:
        belongs = "put an axis into the block it belongs to"
        raise RangeError(
            "grid", expected="data, rule and steps, and if you like train and record",
            got=", ".join(map(str, grid)) or "nothing",
            remedy=f"add {' and '.join(missing)}" if missing else belongs,
        )  # fmt: skip
    return dict(grid)


def _point(block, allowed: tuple[str, ...], imports: bool) -> Point:
    given = dict(block) if isinstance(block, Mapping) else {"model": block}
    name, function = resolve_model(given.pop("model", ""), allowed, imports)
    arguments = given if function is None else bound("model", name, function, (), given)
    return Point(name, tuple(arguments.items()), function)


def _train(block) -> dict:
    defaults = {"loss": "exponential", "W0_norm": 0.0, "start": "random", "train_u": False}
    require_type("train", block, Mapping, "a dict", "its keys are " + ", ".join(defaults))
    for key in block:
        require_choice("key of train", key, tuple(defaults))
    chosen = defaults | dict(block)
    require_choice("train.loss", chosen["loss"], ("exponential", "logistic"))
    require_choice("train.start", chosen["start"], ("random", "against"))
    norm = require_number("train.W0_norm", chosen["W0_norm"], low=0, high=1e100)
    return chosen | {"W0_norm": norm, "train_u": require_flag("train.train_u", chosen["train_u"])}
