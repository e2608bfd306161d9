"""The runs that the ledger's verdicts stand on: each made once, when first asked for."""

import functools
import math
from pathlib import Path

import numpy as np

from attnbias import (
    GD,
    NGD,
    Check,
    Dataset,
    Polyak,
    Trace,
    experiments,
    make_separation_pair,
    train,
)
from attnbias.data import make_two_sample_trap
from attnbias.errors import MissingFileError

from .claim import keyed
from .draws import normal
from .joint.instances import Runs, dm_problems, eq10_runs, limit_problems, moving_problems
from .paper.instances import Instance, instances

#: Where the claims on a fixed decoder are tried.
EDGE = "13 instances at the edge of Assumption 1, n 1 to 6, T 2 to 5, three kinds of start"
SEEDS = 5
STEPS = 10_000
LONG = 10**6
ON_INSTANCES = 200_000


def _records(steps: int) -> np.ndarray:
    """Every iteration to 100, then geometric."""
    return np.concatenate([np.arange(101), np.geomspace(110, steps, 100).astype(int)])


def _train_on(made: Instance, name: str) -> Trace:
    """A run on an instance, with consecutive records from Lemma 5's t_0 on as well."""
    rule = {"GD": GD(made.gd), "NGD": NGD(made.ngd), "Polyak": Polyak()}[name]
    B, Xi = float(made.data.X.norm(dim=2).max()), float(made.svm.margin)
    first = math.ceil(4 * B**2 * float(made.W0.norm()) / (made.ngd * Xi))
    record = np.union1d(_records(ON_INSTANCES), np.arange(first, first + 21))
    record = record[record <= ON_INSTANCES]
    return train(made.data, rule, ON_INSTANCES, W0=made.W0, svm=made.svm, record=record)


def on_instances(e, check, *rules: str, keys: tuple[str, ...] = ()) -> list[Check]:
    """What a check says of the runs of all instances by these rules, and that they are theirs.

    NGD's runs if no rule is named; of the check the rows of these keys, by default all.
    """
    checks = []
    for rule in rules or ("NGD",):
        for made, run in e.instance_runs(rule):
            found = check(made.data, run, svm=made.svm)
            checks += keyed(found, *keys) if keys else found
            checks.append(of_rule(run, rule, {"GD": made.gd, "NGD": made.ngd}.get(rule, 1.0)))
    return checks


def of_rule(run: Trace, rule: str, step_size: float) -> Check:
    """That every recorded step has the size that "GD", "NGD" or "Polyak" gives it."""
    size = {
        "GD": 0 * run.log_grad_norm,
        "NGD": -run.log_grad_norm,
        "Polyak": run.log_loss_gap - math.log(2) - 2 * run.log_grad_norm,
    }[rule]
    off = float(abs(run.log_step_size - size - math.log(step_size)).max())
    return Check(f"log of the step size, off {rule}'s by at most", off, 1e-9)


class Evidence:
    """Runs by name, one for each thing that claims are about.

    Parameters
    ----------
    results : path
        Folder of the recorded runs.

    Examples
    --------
    >>> from book.claims import Evidence
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

    def recorded(self, name: str, folder: str = ""):
        """The recorded run of an experiment, None where there is none; `folder` of the results."""
        try:
            return experiments.load(name, self.results / folder)
        except MissingFileError:
            return None

    @functools.cached_property
    def fig2(self):
        """Figure 2 on ten seeds."""
        return experiments.run("fig2", seeds=2 * SEEDS, steps=STEPS)

    @functools.cached_property
    def fig3(self):
        """Figure 3 on ten seeds."""
        return experiments.run("fig3", seeds=10, steps=STEPS)

    @functools.cached_property
    def fig8(self):
        """Figure 8 from ten starts."""
        return experiments.run("fig8", scales=(0.1, 0.5, 1, 2, 3, 4, 5, 6, 8, 10))

    @functools.cached_property
    def fig9(self):
        """Figure 9 on ten seeds."""
        return experiments.run("fig9", seeds=2 * SEEDS, steps=STEPS)

    @staticmethod
    @functools.cache
    def instance_runs(name: str) -> list[tuple[Instance, Trace]]:
        """The instances trained by "GD", "NGD" or "Polyak", 200,000 steps."""
        return [(made, _train_on(made, name)) for made in instances()]

    @functools.cached_property
    def pair(self) -> Dataset:
        """The separation pair of Section 3.3."""
        return make_separation_pair()

    @staticmethod
    @functools.cache
    def pair_runs(name: str) -> list[Trace]:
        """The pair trained by "GD" or "NGD" over a million steps, ten starts and step sizes."""
        data, rule = make_separation_pair(), {"GD": GD, "NGD": NGD}[name]
        return [
            train(data, rule(0.2 * (1 + seed)), LONG, W0=normal(seed, 2, 2)) for seed in range(10)
        ]

    def trap_runs(self, name: str) -> list[Trace]:
        """The data on which convergence is not global, from W_0 = 0 and nine small starts."""
        data, rule = make_two_sample_trap(), {"GD": GD, "NGD": NGD}[name]
        return [
            train(data, rule(0.1), 2 * STEPS, W0=0.005 * seed * normal(seed, 2, 2), record=60)
            for seed in range(10)
        ]

    @staticmethod
    @functools.cache
    def joint_limit(p: float = 2 / 3) -> Runs:
        """Eq. 10 with exponents p and 1 at the limit of Condition 2: attention hardly moves."""
        return eq10_runs(limit_problems(p), p=p)

    @functools.cached_property
    def joint_moving(self) -> Runs:
        """Eq. 10 with steps far beyond Condition 2: attention saturates and W turns."""
        return eq10_runs(moving_problems())

    @functools.cached_property
    def joint_dm(self) -> dict[str, Runs]:
        """Eq. 10 on (DM) by its exponents: "p = 2/3", "p = 3/4", "p = 9/10" and "p = 0"."""
        powers = {"p = 2/3": 2 / 3, "p = 3/4": 0.75, "p = 9/10": 0.9, "p = 0": 0.0}
        more = {"steps": 10**4, "record": 200}
        return {name: eq10_runs(dm_problems(), p=p, **more) for name, p in powers.items()}


class Kept(Evidence):
    """Evidence that makes the runs of each claim once, for all that is made of them afterwards.

    A claim asks for its runs in one order, so that a run is known by its function and number.

    Examples
    --------
    >>> kept = Kept()
    >>> kept.begin("a")
    >>> kept.run(abs, -3), len(kept.runs)
    (3, 1)
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[tuple[str, str, int], object] = {}
        self.begin("")

    def begin(self, key: str) -> None:
        """The runs asked for from now on are that claim's, from its first one on."""
        self._key, self._asked = key, dict[str, int]()

    def run(self, make, *arguments, **options):
        """What the function gave when the claim first asked for it."""
        name = make.__name__
        self._asked[name] = self._asked.get(name, 0) + 1
        place = (self._key, name, self._asked[name])
        if place not in self.runs:
            self.runs[place] = super().run(make, *arguments, **options)
        return self.runs[place]
