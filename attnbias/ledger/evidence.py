"""The runs that the ledger's verdicts stand on: each made once, when first asked for."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from .. import experiments
from ..checks import Check
from ..data import Dataset, make_separation_pair, make_two_sample_trap
from ..data.synthetic import interpolating_decoder
from ..dynamics.rules import GD, NGD, Polyak
from ..dynamics.starts import small_start
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import MissingFileError
from ..geometry.svm import SVMSolution, solve_w_svm
from .joint_instances import Runs, dm_runs, limit_runs, moving_runs

NEAR = "nearly orthogonal tokens on which Assumptions 1 and 2 hold, five seeds"
SEEDS = 5
STEPS = 10_000
LONG = 10**6


def _records(steps: int) -> np.ndarray:
    """Every iteration to 100, then geometric."""
    return np.concatenate([np.arange(101), np.geomspace(110, steps, 100).astype(int)])


def nearly_orthogonal(seed: int, n: int = 4, T: int = 3, overlap: float = 1e-3) -> Dataset:
    """Tokens of norm about 1 that satisfy Assumptions 1 and 2 with the explicit constants.

    An orthonormal frame plus Gaussian entries of size `overlap` times 1 / sqrt(d); the
    smallest decoder with scores 1 at one random token of each sequence and 0 elsewhere.
    """
    generator = torch.Generator().manual_seed(seed)
    d = 2 * n * T

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    frame = torch.linalg.qr(normal(d, n * T)).Q.T
    X = (frame + overlap * d**-0.5 * normal(n * T, d)).reshape(n, T, d)
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    opt = torch.randint(T, (n,), generator=generator)
    return Dataset(X, y, interpolating_decoder(X, y, opt, 1.0, 0.0), name="nearly orthogonal")


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
    >>> data, W0 = evidence.pair
    >>> data.n, evidence.pair is evidence.pair
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
        """Figure 2 on five seeds."""
        return experiments.run("fig2", seeds=SEEDS, steps=STEPS)

    @functools.cached_property
    def fig2_logistic(self):
        """Figure 2 with the logistic loss."""
        return experiments.run("fig2", seeds=SEEDS, steps=STEPS, loss="logistic")

    @functools.cached_property
    def fig3(self):
        """Figure 3 on ten seeds."""
        return experiments.run("fig3", seeds=10, steps=STEPS)

    @functools.cached_property
    def fig8(self):
        """Figure 8."""
        return experiments.run("fig8")

    @functools.cached_property
    def fig9(self):
        """Figure 9 on five seeds."""
        return experiments.run("fig9", seeds=SEEDS, steps=STEPS)

    @functools.cached_property
    def orthogonal(self) -> list[tuple[Dataset, torch.Tensor, SVMSolution]]:
        """Five instances on which Assumptions 1 and 2 hold, each with a small random start."""
        data = [nearly_orthogonal(seed) for seed in range(SEEDS)]
        return [(each, small_start(each.d, 0.5, seed), solve_w_svm(each))
                for seed, each in enumerate(data)]  # fmt: skip

    def orthogonal_runs(self, name: str) -> list[tuple[Dataset, Trace, SVMSolution]]:
        """The instances of `orthogonal` trained by "GD", "NGD" or "Polyak", a million steps."""
        return self._orthogonal_runs[name]

    def checks_on_orthogonal(self, check, rule: str = "NGD") -> list[Check]:
        """What a check says of all five of these runs."""
        runs = self.orthogonal_runs(rule)
        return [each for data, run, svm in runs for each in check(data, run, svm=svm)]

    @functools.cached_property
    def _orthogonal_runs(self) -> dict[str, list]:
        rules = {"GD": GD(0.5), "NGD": NGD(0.2), "Polyak": Polyak()}
        return {
            name: [
                (data, train(data, rule, LONG, W0=W0, svm=svm, record=_records(LONG)), svm)
                for data, W0, svm in self.orthogonal
            ]
            for name, rule in rules.items()
        }

    @functools.cached_property
    def pair(self) -> tuple[Dataset, torch.Tensor]:
        """The separation pair of Section 3.3, and a start with all four entries."""
        start = torch.tensor([[-0.3, 0.2], [0.1, 0.4]], dtype=torch.float64)
        return make_separation_pair(), start

    @functools.cached_property
    def pair_runs(self) -> dict[str, Trace]:
        """The pair over a million steps."""
        data, W0 = self.pair
        return {name: train(data, rule, LONG, W0=W0)
                for name, rule in {"GD": GD(1.0), "NGD": NGD(1.0)}.items()}  # fmt: skip

    @functools.cached_property
    def trap_runs(self) -> dict[str, Trace]:
        """The two-sequence data on which convergence is not global, from W_0 = 0."""
        data = make_two_sample_trap()
        return {name: train(data, rule(0.1), 2 * STEPS, record=1)
                for name, rule in {"GD": GD, "NGD": NGD}.items()}  # fmt: skip

    def joint_limit(self, p: float = 2 / 3) -> Runs:
        """Eq. 10 with exponents p and 1 at the limit of Condition 2: attention hardly moves."""
        if p not in self._joint_limit:
            self._joint_limit[p] = limit_runs(p)
        return self._joint_limit[p]

    @functools.cached_property
    def _joint_limit(self) -> dict[float, Runs]:
        return {}

    @functools.cached_property
    def joint_moving(self) -> Runs:
        """Eq. 10 with steps far beyond Condition 2: attention saturates and W turns."""
        return moving_runs()

    @functools.cached_property
    def joint_dm(self) -> dict[str, Runs]:
        """Eq. 10 on (DM) by its exponents: "p = 2/3", "p = 3/4", "p = 9/10" and "p = 0"."""
        powers = {"p = 2/3": 2 / 3, "p = 3/4": 0.75, "p = 9/10": 0.9, "p = 0": 0.0}
        return {name: dm_runs((p, 1)) for name, p in powers.items()}
