"""What the results of an experiment are like: their claims, their words, and one of three files."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from .._records import (
    provenance,
    read_json,
    read_npz,
    read_table,
    write_json,
    write_npz,
    write_table,
)
from .._validate import PathLike, require_flag, require_number, short
from ..checks import Check, CheckTable
from ..dynamics.trace import SERIES, TABLES, Trace
from ..errors import FileFormatError
from .result import ExperimentResult
from .runs import Common

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Form(ABC):
    """What the results of one experiment are like.

    Attributes
    ----------
    name, title : str
    claims : callable
        From a result to its CheckTable.
    words : callable
        From a result to the lines that it is shown by.
    frame : callable
        From a result, and what `to_dataframe` is asked for, to a data frame.
    """

    name: str
    title: str
    claims: Callable[[ExperimentResult], CheckTable]
    words: Callable[[ExperimentResult], Iterable[str]]
    frame: Callable[..., pandas.DataFrame] = lambda result: result.table

    suffix: ClassVar[str]

    def __reduce__(self) -> tuple:
        """By name, as its functions may be made in place; so a result reaches other processes."""
        return _form_of, (self.name,)

    @property
    def file(self) -> str:
        """Name of its file in a folder of results."""
        return f"{self.name}{self.suffix}"

    def load(self, path: PathLike) -> ExperimentResult:
        """Read what `save` wrote; of a file of another experiment or kind say what it is.

        Raises
        ------
        MissingFileError, FileFormatError, ChecksumError, MissingExtraError
        """
        stored = self.read(path)
        with _foreign(path, f"every part of a result of {self.name}"):
            if stored.get("name", self.name) == self.name:
                result = self.unpacked(stored)
                result.claims  # noqa: B018 - judged here, so that a foreign file is refused
                return result
        raise FileFormatError(
            str(path),
            expected=f"the result of {self.name}",
            got=f"that of {short(stored['name'])}",
            remedy=f"give it its own name back, {stored['name']}{self.suffix}",
        )

    @abstractmethod
    def save(self, result: ExperimentResult, path: PathLike) -> Path:
        """Write a result to a file."""

    @abstractmethod
    def read(self, path: PathLike) -> dict:
        """What a file holds."""

    @abstractmethod
    def unpacked(self, stored: dict) -> ExperimentResult:
        """The result that this was; may raise whatever a foreign file makes it raise."""


def _form_of(name: str) -> Form:
    from . import module_of  # which imports this module

    return module_of(name).FORM


@dataclass(frozen=True)
class Traces(Form):
    """Runs of several rules on several seeds, with their claims, in an npz file."""

    suffix = ".npz"

    def save(self, result: ExperimentResult, path: PathLike, *, weights: bool = False) -> Path:
        arrays: dict[str, np.ndarray] = {}
        runs: list[dict] = []
        kept = ("step", *SERIES, "u") + (("W", *TABLES) if require_flag("weights", weights) else ())
        for label, traces in result.traces.items():
            for seed, trace in zip(result.seeds, traces, strict=True):
                for name in kept:
                    if (array := getattr(trace, name)) is not None:
                        arrays[f"run{len(runs)}/{name}"] = torch.as_tensor(array).cpu().numpy()
                runs.append(
                    {"label": label, "seed": seed, "status": trace.status, "meta": trace.meta}
                )
        parts = ("name", "title", "seeds", "settings", "measures", "provenance")
        header = {"kind": "experiment", "runs": runs} | {key: getattr(result, key) for key in parts}
        header["claims"] = [asdict(check) for check in result.claims]
        return write_npz(path, arrays, header)

    def read(self, path: PathLike) -> dict:
        arrays, header = read_npz(path, kind="experiment")
        return header | {"arrays": arrays}

    def unpacked(self, stored: dict) -> ExperimentResult:
        traces: dict[str, tuple[Trace, ...]] = {}
        for index, run in enumerate(stored["runs"]):
            trace = _trace(stored["arrays"], f"run{index}", run)
            traces[run["label"]] = (*traces.get(run["label"], ()), trace)
        seeds, measures = tuple(int(seed) for seed in stored["seeds"]), dict(stored["measures"])
        data = {"traces": traces, "seeds": seeds, "measures": measures}
        result = ExperimentResult(self, data, dict(stored["settings"]), dict(stored["provenance"]))
        claims = CheckTable(Check(**given) for given in stored["claims"])
        vars(result)["claims"] = claims  # without gaps and weights some could not be judged anew
        return result


Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # to what json holds, and back
AS_TUPLE: Codec = list, tuple
AS_IT_IS: Codec = lambda part: part, lambda stored: stored


@dataclass(frozen=True)
class Json(Form):
    """A json file without the claims, which a reader judges anew.

    Attributes
    ----------
    kind : str
        As the file says it.
    codecs : dict of str to (callable, callable)
        By key of the file, in its order, all parts of the data among them: what makes of a part
        what json holds, and of that the part again.
    """

    kind: str = ""
    codecs: Mapping[str, Codec] = field(default_factory=dict)

    suffix = ".json"

    def save(self, result: ExperimentResult, path: PathLike) -> Path:
        parts = {key: packed(getattr(result, key)) for key, (packed, _) in self.codecs.items()}
        return write_json(path, self.kind, parts)

    def read(self, path: PathLike) -> dict:
        return read_json(path, self.kind)

    def unpacked(self, stored: dict) -> ExperimentResult:
        data = {key: back(stored[key]) for key, (_, back) in self.codecs.items()}
        own = {key: data.pop(key) for key in ("name", "title", "settings", "provenance")}
        return ExperimentResult(self, data, own["settings"], own["provenance"])


@dataclass(frozen=True)
class Table(Form):
    """A table, a row a run or an instance, in a Parquet file without the claims."""

    suffix = ".parquet"

    def save(self, result: ExperimentResult, path: PathLike) -> Path:
        header = {"settings": result.settings, "made": result.provenance}
        return write_table(path, result.table, header)

    def read(self, path: PathLike) -> dict:
        table, header = read_table(path, ("settings", "made"))
        return header | {"table": table}

    def unpacked(self, stored: dict) -> ExperimentResult:
        data = {"table": stored["table"]}
        return ExperimentResult(self, data, stored["settings"], stored["made"])


def _trace(arrays: dict, key: str, run: dict) -> Trace:
    series = {name: arrays[f"{key}/{name}"] for name in ("step", *SERIES)}
    W = torch.from_numpy(arrays.get(f"{key}/W", np.zeros((0, 0))))
    u = torch.from_numpy(arrays[f"{key}/u"])
    tables: dict[str, Any] = {name: arrays.get(f"{key}/{name}") for name in TABLES}
    return Trace(**series, **tables, W=W, u=u, status=run["status"], meta=run["meta"])


def trace_words(result: ExperimentResult) -> Iterator[str]:
    """A line on the claims, and one a rule."""
    steps, count = result.settings.get("steps", "?"), len(result.seeds)
    yield f"{result.title}: {count} seed{'s' * (count > 1)}, {steps} steps, {result.verdict}"
    for label, traces in result.traces.items():
        errors = [trace.W_alignment_error[-1] for trace in traces]
        yield f"  {label}: 1 - cosine {np.median(errors):.3g} at the last step"


def make_result(
    form: Form, traces: dict[str, tuple[Trace, ...]], common: Common, asked: dict, measures: dict
) -> ExperimentResult:
    """A result of traces with its provenance, of the arguments of a run."""
    asked = {key: value for key, value in asked.items() if key != "progress"}
    checked = {
        "seeds": list(common.seeds),
        "device": str(common.device),
        "record": len(common.record),
    }
    checked |= {"loss": common.loss.name} if "loss" in asked else {}
    settings = {key: _plain(key, value) for key, value in (asked | checked).items()}
    data = {"traces": traces, "seeds": common.seeds, "measures": measures}
    return ExperimentResult(form, data, settings, provenance(common.device))


def _plain(key: str, value: Any) -> Any:
    """A setting as json holds it: numbers of any kind as int or float."""
    if isinstance(value, torch.Tensor | np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else require_number(key, value)


@contextmanager
def _foreign(path: PathLike, expected: str) -> Iterator[None]:
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
