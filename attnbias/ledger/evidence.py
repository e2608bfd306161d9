"""The runs that the ledger's verdicts stand on: each made once, when first asked for."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import torch

from .. import experiments
from ..checks import Check
from ..data import Dataset, make_dm, make_separation_pair, make_two_sample_trap
from ..dynamics.rules import GD, NGD, Polyak
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import MissingFileError
from ..theorems.joint_constants import joint_constants
from .instances import Instance, instances

#: Where the claims on a fixed decoder are tried.
EDGE = "13 instances at the edge of Assumption 1, n 1 to 6, T 2 to 5, three kinds of start"
CONDITION2 = "orthogonal tokens on which Condition 2 holds with explicit constants"
SEEDS = 5
STEPS = 10_000
LONG = 10**6
ON_INSTANCES = 200_000


def _records(steps: int) -> np.ndarray:
    """Every iteration to 100, then geometric."""
    return np.concatenate([np.arange(101), np.geomspace(110, steps, 100).astype(int)])


def orthogonal_jointly(n: int = 2, norm: float = 0.01) -> Dataset:
    """Orthogonal tokens, two a sequence, that satisfy Condition 2: of norm `norm` and norm / 3.4.

    The shorter the tokens, the longer the steps that Condition 2 allows beside them.

    Labels alternate; the query is the optimal token in every other sequence.
    """
    X = torch.zeros(n, 2, 2 * n, dtype=torch.float64)
    rows = torch.arange(n)
    opt = rows % 2
    X[rows, opt, rows] = norm
    X[rows, 1 - opt, n + rows] = norm / 3.4
    y = torch.where(rows % 2 == 0, 1.0, -1.0).double()
    return Dataset(X, y, name="orthogonal tokens", opt=opt)


def _normal(d: int, seed: int) -> torch.Tensor:
    """A Gaussian d x d matrix."""
    return torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _train_on(made: Instance, name: str) -> Trace:
    """A run on an instance, with consecutive records from Lemma 5's t_0 on as well."""
    rule = {"GD": GD(made.gd), "NGD": NGD(made.ngd), "Polyak": Polyak()}[name]
    B, Xi = float(made.data.X.norm(dim=2).max()), float(made.svm.margin)
    first = math.ceil(4 * B**2 * float(made.W0.norm()) / (made.ngd * Xi))
    record = np.union1d(_records(ON_INSTANCES), np.arange(first, first + 21))
    record = record[record <= ON_INSTANCES]
    return train(made.data, rule, ON_INSTANCES, W0=made.W0, svm=made.svm, record=record)


def on_instances(e, check, rule: str = "NGD", **options) -> list[Check]:
    """What a check says of the runs of all instances by a rule."""
    return [
        found
        for made, run in e.instance_runs(rule)
        for found in check(made.data, run, svm=made.svm, **options)
    ]


class Evidence:
    """Runs by name, one for each thing that claims are about.

    Parameters
    ----------
    results : path
        Folder of the recorded runs.

    Examples
    --------
    >>> from attnbias.ledger import Evidence
    >>> evidence = Evidence()
    >>> evidence.pair.n, evidence.pair is evidence.pair
    (1, True)
    """

    def __init__(self, results="book/results") -> None:
        self.results = Path(results)

    def run(self, make, *arguments, **options):
        """What a function gives; a claim makes its own runs by this, so they can be altered.

        A claim that trains calls `evidence.run(train, data, rule, steps)`; `Tampered` puts an
        altered trace in its place.
        """
        return make(*arguments, **options)

    def recorded(self, name: str, part: str = ""):
        """The recorded run of an experiment, None where there is none."""
        try:
            return experiments.load(name, self.results / part)
        except MissingFileError:
            return None

    @functools.cached_property
    def fig2(self):
        """Figure 2 on ten seeds."""
        return experiments.run("fig2", seeds=2 * SEEDS, steps=STEPS)

    @functools.cached_property
    def fig3(self):
        """Figure 3 on five seeds."""
        return experiments.run("fig3", seeds=SEEDS, steps=STEPS)

    @functools.cached_property
    def fig8(self):
        """Figure 8 from ten starts."""
        return experiments.run("fig8", scales=(0.1, 0.5, 1, 2, 3, 4, 5, 6, 8, 10))

    @functools.cached_property
    def fig9(self):
        """Figure 9 on ten seeds."""
        return experiments.run("fig9", seeds=2 * SEEDS, steps=STEPS)

    def instance_runs(self, name: str) -> list[tuple[Instance, Trace]]:
        """The instances trained by "GD", "NGD" or "Polyak", 200,000 steps."""
        if name not in self._instance_runs:
            self._instance_runs[name] = [(made, _train_on(made, name)) for made in instances()]
        return self._instance_runs[name]

    @functools.cached_property
    def _instance_runs(self) -> dict[str, list]:
        return {}

    @functools.cached_property
    def pair(self) -> Dataset:
        """The separation pair of Section 3.3."""
        return make_separation_pair()

    def pair_runs(self, name: str) -> list[Trace]:
        """The pair trained by "GD" or "NGD" over a million steps, ten starts and step sizes."""
        if name not in self._pair_runs:
            rule = {"GD": GD, "NGD": NGD}[name]
            self._pair_runs[name] = [
                train(self.pair, rule(0.2 * (1 + seed)), LONG, W0=_normal(2, seed))
                for seed in range(10)
            ]
        return self._pair_runs[name]

    @functools.cached_property
    def _pair_runs(self) -> dict[str, list]:
        return {}

    def trap_runs(self, name: str) -> list[Trace]:
        """The data on which convergence is not global, from W_0 = 0 and nine small starts."""
        data, rule = make_two_sample_trap(), {"GD": GD, "NGD": NGD}[name]
        return [
            train(data, rule(0.1), 2 * STEPS, W0=0.005 * seed * _normal(2, seed), record=60)
            for seed in range(10)
        ]

    @functools.cached_property
    def joint_data(self) -> Dataset:
        """Orthogonal tokens that satisfy Condition 2."""
        return orthogonal_jointly()

    def joint_step(self, p: float) -> float:
        """The largest step size that Condition 2 allows on `joint_data`."""
        return joint_constants(self.joint_data).largest_step_size(p)

    def joint_run(self, p: float) -> Trace:
        """Eq. 10 with exponents p and 1 on `joint_data`."""
        if p not in self._joint_runs:
            rule = NGD(self.joint_step(p), decay=(p, 1))
            self._joint_runs[p] = train(
                self.joint_data, rule, LONG, train_u=True, record=_records(LONG)
            )
        return self._joint_runs[p]

    @functools.cached_property
    def joint_large_steps(self) -> tuple[Dataset, Trace]:
        """Such tokens of norm 1, with steps far beyond Condition 2, so that attention saturates."""
        data = orthogonal_jointly(norm=1.0)
        rule = NGD(10.0, decay=(0, 1))
        return data, train(data, rule, STEPS, train_u=True, record=_records(STEPS))

    @functools.cached_property
    def _joint_runs(self) -> dict[float, Trace]:
        return {}

    def dm_runs(self, decay: tuple[float, float]) -> list[Trace]:
        """Eq. 10 with exponents `decay` on DM at n, d = 10, 1000, five seeds."""
        if decay not in self._dm_runs:
            self._dm_runs[decay] = [
                train(make_dm(d=1000, seed=seed), NGD(0.1, decay=decay), STEPS, train_u=True)
                for seed in range(SEEDS)
            ]
        return self._dm_runs[decay]

    @functools.cached_property
    def _dm_runs(self) -> dict[tuple[float, float], list[Trace]]:
        return {}
