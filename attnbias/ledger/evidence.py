"""The runs that the ledger's verdicts stand on: each made once, when first asked for."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from .. import experiments
from ..checks import Check
from ..data import Dataset, make_dm, make_separation_pair, make_two_sample_trap
from ..data.synthetic import interpolating_decoder
from ..dynamics.rules import GD, NGD, Polyak
from ..dynamics.starts import small_start
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import MissingFileError
from ..geometry.svm import SVMSolution, solve_w_svm
from ..theorems.joint_constants import joint_constants

NEAR = "nearly orthogonal tokens on which Assumptions 1 and 2 hold, five seeds"
CONDITION2 = "orthogonal tokens on which Condition 2 holds with explicit constants"
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
        """Figure 3 on five seeds."""
        return experiments.run("fig3", seeds=SEEDS, steps=STEPS)

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
