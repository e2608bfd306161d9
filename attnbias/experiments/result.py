"""What an experiment gives: traces by rule and seed, settings, measures and claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from .._files import read_npz, write_npz
from .._provenance import provenance
from .._validate import require_int
from ..checks import Check, CheckTable
from ..data import Dataset
from ..dynamics.rates import fit_rate
from ..dynamics.rules import Rule
from ..dynamics.trace import SERIES, Trace
from ..dynamics.train import record_steps, train
from ..errors import DtypeError, FileFormatError
from ..geometry.svm import SVMSolution

_ARRAYS = ("step", *SERIES, "u")


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """Runs of several rules on several seeds, and what they say about the paper's claims.

    Attributes
    ----------
    name, title : str
    traces : dict of str to tuple of Trace
        By rule, one a seed, in the order of `seeds`.
    seeds : tuple of int
    settings : dict
        The arguments of the run.
    measures : dict of str to list of float
        Numbers of the data, one a seed, such as the SVM's margin.
    claims : CheckTable
        The paper's claims, each over the worst seed.
    provenance : dict
        Command, commit, versions, device and date.
    """

    name: str
    title: str
    traces: dict[str, tuple[Trace, ...]]
    seeds: tuple[int, ...]
    settings: dict
    measures: dict[str, list[float]]
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    @property
    def last_decade(self) -> tuple[int, int]:
        """The window (steps / 10, steps), on which exponents are fitted by default."""
        return self.settings["steps"] // 10, self.settings["steps"]

    def exponents(self, window=None):
        """Exponent of 1 - cosine in the number of steps, by rule.

        Parameters
        ----------
        window : (first, last), optional
            Iterations to fit on; the last decade by default.

        Returns
        -------
        pandas.DataFrame
            Median, smallest and largest exponent over the seeds, and the ends of the widest
            of `fit_rate`'s intervals, which shows curvature inside the window.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
            Those of `fit_rate`.
        """
        import pandas

        rows = {}
        for label, traces in self.traces.items():
            fits = [
                fit_rate(trace.step, trace.W_alignment_error, window or self.last_decade)
                for trace in traces
            ]
            slopes = [fit.exponent for fit in fits]
            ends = [end for fit in fits for end in fit.interval]
            rows[label] = [np.median(slopes), min(slopes), max(slopes), min(ends), max(ends)]
        columns = ["median", "min", "max", "interval low", "interval high"]
        return pandas.DataFrame.from_dict(rows, orient="index", columns=columns)

    def save(self, path, *, weights: bool = False) -> Path:
        """Write all to one npz file: arrays and a json header, no pickle, atomically.

        Parameters
        ----------
        path : path
        weights : bool
            Also keep the last W of each run, 8 d^2 bytes each. Without, a trace of the
            loaded result has a W of no entries.

        Raises
        ------
        MissingFileError
        """
        arrays, runs = {}, []
        for label, traces in self.traces.items():
            for seed, trace in zip(self.seeds, traces, strict=True):
                key = f"run{len(runs)}"
                runs.append({"label": label, "seed": seed, "status": trace.status,
                             "meta": trace.meta})  # fmt: skip
                arrays |= {f"{key}/{name}": np.asarray(getattr(trace, name)) for name in _ARRAYS}
                if weights:
                    arrays[f"{key}/W"] = trace.W.cpu().numpy()
        header = {"kind": "experiment", "runs": runs}
        header |= {
            key: getattr(self, key)
            for key in ("name", "title", "seeds", "settings", "measures", "provenance")
        }
        header["claims"] = [dataclasses.asdict(check) for check in self.claims]
        return write_npz(path, arrays, header)

    @classmethod
    def load(cls, path) -> ExperimentResult:
        """Read a file written by `save`.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        arrays, header = read_npz(path, kind="experiment")
        try:
            traces: dict[str, list[Trace]] = {}
            for index, run in enumerate(header["runs"]):
                trace = _trace(arrays, f"run{index}", run)
                traces.setdefault(run["label"], []).append(trace)
            return cls(
                name=header["name"],
                title=header["title"],
                traces={label: tuple(runs) for label, runs in traces.items()},
                seeds=tuple(header["seeds"]),
                settings=header["settings"],
                measures=header["measures"],
                claims=CheckTable(Check(**fields) for fields in header["claims"]),
                provenance=header["provenance"],
            )
        except (KeyError, TypeError) as error:
            raise FileFormatError(
                str(path),
                expected="every part of an experiment's result",
                got=f"a file without {error}",
                remedy="run the experiment again and save",
            ) from None

    def __repr__(self) -> str:
        held = sum(check.holds for check in self.claims)
        steps = self.settings.get("steps", "?")
        lines = [f"{self.title}: {len(self.seeds)} seeds, {steps} steps, "
                 f"{held} of {len(self.claims)} claims hold"]  # fmt: skip
        for label, traces in self.traces.items():
            errors = [trace.W_alignment_error[-1] for trace in traces]
            lines.append(f"  {label}: 1 - cosine {np.median(errors):.3g} at the last step")
        return "\n".join(lines)


def _trace(arrays: dict, key: str, run: dict) -> Trace:
    series = {name: arrays[f"{key}/{name}"] for name in ("step", *SERIES)}
    W = torch.from_numpy(arrays.get(f"{key}/W", np.zeros((0, 0))))
    u = torch.from_numpy(arrays[f"{key}/u"])
    return Trace(**series, W=W, u=u, status=run["status"], meta=run["meta"])


def seed_list(seeds) -> tuple[int, ...]:
    """So many seeds from 0, or the given ones."""
    if isinstance(seeds, int | np.integer):
        return tuple(range(require_int("seeds", seeds, low=1)))
    try:
        chosen = tuple(seeds)
    except TypeError:
        chosen = ()
    if not chosen or isinstance(seeds, str):
        raise DtypeError(
            "seeds",
            expected="how many, or a non-empty sequence of integers",
            got=repr(seeds)[:60],
            remedy="for example seeds=5 or seeds=[3, 4]",
        )
    return tuple(require_int("seeds", seed, low=0) for seed in chosen)


def small_start(d: int, norm: float, seed: int) -> torch.Tensor:
    """(d, d) W_0: a Gaussian direction of the given norm, independent of the data's seed."""
    # the data draw from Generator(seed): the same stream would tie W_0 to the tokens
    generator = torch.Generator().manual_seed(1_000_000 + seed)
    W0 = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return W0 * (norm / W0.norm())


def run_all(
    problems: list[tuple[Dataset, torch.Tensor, SVMSolution]],
    rules: dict[str, Rule],
    *,
    progress: bool,
    **options,
) -> dict[str, tuple[Trace, ...]]:
    """Every rule on every (data, W0, svm); options go to `train`.

    Where `record` is a number, steps 1, 2, 3, 5, 10, 20, ... are recorded as well, for tables.
    """
    if isinstance(options["record"], int | np.integer):
        options["record"] = _with_round_steps(options["record"], options["steps"])
    traces: dict[str, list[Trace]] = {label: [] for label in rules}
    with tqdm(total=len(problems) * len(rules), disable=not progress, unit="run") as bar:
        for data, W0, svm in problems:
            for label, rule in rules.items():
                traces[label].append(train(data, rule, W0=W0, svm=svm, **options))
                bar.update()
    return {label: tuple(runs) for label, runs in traces.items()}


def _with_round_steps(record, steps: int) -> np.ndarray:
    round_steps = np.multiply.outer(10 ** np.arange(10), [1, 2, 3, 5]).ravel()
    return np.union1d(record_steps(record, steps), round_steps[round_steps <= steps])


def make_result(
    name: str, title: str, traces, seeds, settings: dict, measures: dict, claims: Callable
) -> ExperimentResult:
    """An ExperimentResult with its claims and its provenance."""
    device = settings.get("device", "cpu")
    table = claims(traces, settings, measures)
    return ExperimentResult(
        name, title, traces, seeds, settings, measures, table, provenance(device)
    )
