"""What an experiment gives: its claims, and traces or numbers in a json file."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch

from .._records import provenance, read_json, read_npz, write_json, write_npz
from .._validate import PathLike, require_flag, require_number
from ..checks import Check, CheckTable
from ..dynamics.rates import fit_rate
from ..dynamics.trace import SERIES, TABLES, Trace
from ..errors import FileFormatError
from .claims import SHORT, last_decade
from .runs import Common

if TYPE_CHECKING:
    import pandas


class Result:
    """What all results share: claims, and how they are told. A subclass is read from its file by
    `load(path, claims)`, where `claims` is the experiment's own function.
    """

    SUFFIX: ClassVar[str]
    claims: CheckTable

    @property
    def verdict(self) -> str:
        """How many of the claims hold, in words."""
        held = sum(check.holds for check in self.claims)
        short = sum(check.reason.startswith(SHORT) for check in self.claims)
        words = f", {short} ask for a longer run" if short else ""
        return f"{held} of {len(self.claims)} claims hold{words}"


@dataclass(frozen=True, eq=False)
class ExperimentResult(Result):
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

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.run("fig2", seeds=1, steps=1000)
    >>> sorted(result.traces)
    ['GD', 'NGD', 'NGD with momentum', 'Polyak, capped', 'Polyak, uncapped']
    >>> result.last_decade
    (100, 1000)
    """

    SUFFIX = ".npz"

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
        return last_decade(self.settings)

    def exponents(self, window: tuple[float, float] | None = None) -> pandas.DataFrame:
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

        rows, window = {}, self.last_decade if window is None else window
        for label, traces in self.traces.items():
            fits = [fit_rate(trace.step, trace.W_alignment_error, window) for trace in traces]
            slopes = [fit.exponent for fit in fits]
            ends = [end for fit in fits for end in fit.interval]
            rows[label] = [np.median(slopes), min(slopes), max(slopes), min(ends), max(ends)]
        columns = ["median", "min", "max", "interval low", "interval high"]
        return pandas.DataFrame.from_dict(rows, orient="index", columns=columns)

    def save(self, path: PathLike, *, weights: bool = False) -> Path:
        """Write all to one npz file: arrays and a json header, no pickle, atomically.

        Parameters
        ----------
        path : path
        weights : bool
            Also keep the last W of each run, 8 d^2 bytes each, and the logit gaps and scores
            at every record. Without, a trace of the loaded result has a W of no entries and
            neither gaps nor scores.

        Raises
        ------
        MissingFileError
        """
        arrays, runs = {}, []
        kept = ("step", *SERIES, "u") + (("W", *TABLES) if require_flag("weights", weights) else ())
        for label, traces in self.traces.items():
            for seed, trace in zip(self.seeds, traces, strict=True):
                for name in kept:
                    if (array := getattr(trace, name)) is not None:
                        arrays[f"run{len(runs)}/{name}"] = torch.as_tensor(array).cpu().numpy()
                runs.append(
                    {"label": label, "seed": seed, "status": trace.status, "meta": trace.meta}
                )
        parts = ("name", "title", "seeds", "settings", "measures", "provenance")
        header = {"kind": "experiment", "runs": runs} | {key: getattr(self, key) for key in parts}
        header["claims"] = [asdict(check) for check in self.claims]
        return write_npz(path, arrays, header)

    @classmethod
    def load(cls, path: PathLike, claims: Callable | None = None) -> ExperimentResult:
        """Read a file written by `save`, which holds the claims as well.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        arrays, header = read_npz(path, kind="experiment")
        traces: dict[str, list[Trace]] = {}
        with _foreign(path, "every part of an experiment's result"):
            for index, run in enumerate(header["runs"]):
                trace = _trace(arrays, f"run{index}", run)
                traces.setdefault(run["label"], []).append(trace)
            return cls(
                **{key: header[key] for key in ("name", "title")},
                **{key: dict(header[key]) for key in ("settings", "measures", "provenance")},
                traces={label: tuple(runs) for label, runs in traces.items()},
                seeds=tuple(int(seed) for seed in header["seeds"]),
                claims=CheckTable(Check(**given) for given in header["claims"]),
            )

    def __repr__(self) -> str:
        steps, count = self.settings.get("steps", "?"), len(self.seeds)
        lines = [
            f"{self.title}: {count} seed{'s' if count > 1 else ''}, {steps} steps, {self.verdict}"
        ]
        for label, traces in self.traces.items():
            errors = [trace.W_alignment_error[-1] for trace in traces]
            lines.append(f"  {label}: 1 - cosine {np.median(errors):.3g} at the last step")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class JsonResult(Result):
    """A result in a json file: all but the claims, which a reader judges anew.

    A subclass has `_packed`, the fields that json does not hold as they are, and `_unpacked`, from
    what was stored and the experiment's function for claims back to these fields and the claims. It
    may raise whatever a foreign file makes it raise.
    """

    SUFFIX = ".json"
    KIND: ClassVar[str]

    def save(self, path: PathLike) -> Path:
        """Write all but the claims as json, atomically; a reader judges anew.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        packed = self._packed()
        stored = {key: getattr(self, key) for key in self._as_they_are(packed)}
        return write_json(path, self.KIND, stored | packed)

    @classmethod
    def load(cls, path: PathLike, claims: Callable) -> Self:
        """Read a file written by `save`; `claims` makes the CheckTable.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        stored = read_json(path, cls.KIND)
        with _foreign(path, f"the result of {cls.KIND}"):
            unpacked = cls._unpacked(stored, claims)
            return cls(**{key: stored[key] for key in cls._as_they_are(unpacked)} | unpacked)

    @classmethod
    def _as_they_are(cls, others) -> list[str]:
        """The fields that json holds so: all but the claims and the others."""
        return [each.name for each in fields(cls) if each.name not in {"claims", *others}]


def _trace(arrays: dict, key: str, run: dict) -> Trace:
    series = {name: arrays[f"{key}/{name}"] for name in ("step", *SERIES)}
    W = torch.from_numpy(arrays.get(f"{key}/W", np.zeros((0, 0))))
    u = torch.from_numpy(arrays[f"{key}/u"])
    tables = {name: arrays.get(f"{key}/{name}") for name in TABLES}
    return Trace(**series, **tables, W=W, u=u, status=run["status"], meta=run["meta"])


def make_result(
    name: str, title: str, traces, common: Common, asked: dict, measures: dict, claims: Callable
) -> ExperimentResult:
    """An ExperimentResult with its claims and its provenance, of the arguments of a run."""
    asked = {key: value for key, value in asked.items() if key != "progress"}
    checked = {
        "seeds": list(common.seeds),
        "device": str(common.device),
        "record": len(common.record),
    }
    checked |= {"loss": common.loss.name} if "loss" in asked else {}
    settings = {key: _plain(key, value) for key, value in (asked | checked).items()}
    table = claims(traces, settings, measures)
    made = provenance(common.device)
    return ExperimentResult(name, title, traces, common.seeds, settings, measures, table, made)


def _plain(key: str, value):
    """A setting as json holds it: numbers of any kind as int or float."""
    if isinstance(value, torch.Tensor | np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else require_number(key, value)


@contextmanager
def _foreign(path, expected: str) -> Iterator[None]:
    """Refuse a file in which something is missing or of another kind."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(
            str(path),
            expected=expected,
            got=f"{type(error).__name__}: {error}"[:200],
            remedy="run the experiment again and save",
        ) from None
