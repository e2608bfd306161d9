"""What an experiment gives: what it measured, and what that says of its claims."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import PathLike, require_choice, short
from ..checks import CheckTable
from ..dynamics.rates import fit_rate
from ..errors import DtypeError
from .claims.compare import SHORT

if TYPE_CHECKING:
    import pandas

    from .forms import Form


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult:
    """What an experiment measured, and what that says of its claims.

    Parameters
    ----------
    form : Form
        Of the experiment: how its results are judged, told and kept.
    data : dict
        What was measured, by name. Each part is an attribute too: `traces`, by rule one a seed,
        with `seeds` and `measures`, the numbers of the data; `logs`, by optimizer one a seed, with
        `step_sizes` and `losses` of the grid; `cosines`, by corpus and kind of pair; `table`, a
        row a run.
    settings : dict
        The arguments of the run.
    provenance : dict or list of dict
        Command, commit, versions, device and date.

    Attributes
    ----------
    name, title : str
    claims : CheckTable
        The claims on the experiment, each over the worst seed and with a key.

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.run("fig2", seeds=1, steps=1000)
    >>> sorted(result.traces)
    ['GD', 'NGD', 'NGD with momentum', 'Polyak, capped', 'Polyak, uncapped']
    >>> result.claims["floor"].holds, result.last_decade
    (True, (100, 1000))
    """

    form: Form
    data: dict[str, Any]
    settings: dict[str, Any]
    provenance: Any = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})
        if name in data:
            return data[name]
        raise AttributeError(f"this result has no {name!r}: it has {', '.join(data)}")

    @property
    def name(self) -> str:
        """Of the experiment, as `run` takes it."""
        return self.form.name

    @property
    def title(self) -> str:
        """One line on the experiment."""
        return self.form.title

    @cached_property
    def claims(self) -> CheckTable:
        """The claims, judged on the data; of a file of traces, as they were when it was saved."""
        return self.form.claims(self)

    @property
    def verdict(self) -> str:
        """How many of the claims hold, in words."""
        held = sum(check.holds for check in self.claims)
        late = sum(check.reason.startswith(SHORT) for check in self.claims)
        words = f", {late} ask for a longer run" if late else ""
        return f"{held} of {len(self.claims)} claims hold{words}"

    @property
    def last_decade(self) -> tuple[int, int]:
        """The window (steps / 10, steps), on which exponents are fitted by default."""
        return self.settings["steps"] // 10, self.settings["steps"]

    @property
    def grid(self) -> dict[str, dict[str, float]]:
        """The median of `losses` over the seeds, by optimizer and value, where several were run."""
        return {
            label: {value: float(np.median(found)) for value, found in row.items()}
            for label, row in self.losses.items()
            if len(row) > 1
        }

    def with_data(self, **parts: Any) -> ExperimentResult:
        """The same with other parts of its data, on which the claims are judged anew.

        Examples
        --------
        >>> from attnbias import experiments
        >>> result = experiments.run("fig9", seeds=1, steps=1000, n=4, T=3, patch=14)
        >>> worse = result.measures | {"digit_optimal_fraction": [0.5]}
        >>> result.claims["digit"].holds, result.with_data(measures=worse).claims["digit"].holds
        (True, False)
        """
        return replace(self, data=self.data | parts)

    def curves(self, label: str, name: str) -> np.ndarray:
        """(seeds, records) of one curve of one optimizer."""
        return np.stack([log[name] for log in self.logs[require_choice("label", label, self.logs)]])

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

    def to_dataframe(self, *part: str) -> pandas.DataFrame:
        """A row an optimizer, a kind of pair or a head: where it ends, or what it is like.

        Parameters
        ----------
        *part : str
            Of token cosines the corpus.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        RangeError
            For a corpus that it does not have.
        """
        return self.form.frame(self, *part)

    def save(self, path: PathLike, **options: bool) -> Path:
        """Write all to one file, without pickle, atomically.

        Parameters
        ----------
        path : path
        weights : bool
            Of traces also keep the last W of each run, 8 d^2 bytes each, and the logit gaps and
            scores at every record. Without, a trace of the loaded result has a W of no entries
            and neither gaps nor scores.

        Raises
        ------
        MissingFileError, FileAccessError, MissingExtraError
        """
        return self.form.save(self, path, **options)

    def __repr__(self) -> str:
        return "\n".join(self.form.words(self))


def require_result(value: Any, part: str, remedy: str) -> ExperimentResult:
    """Refuse anything but the result of an experiment that measured this part."""
    if not isinstance(value, ExperimentResult) or part not in value.data:
        raise DtypeError(
            "result", expected=f"an ExperimentResult with {part}", got=short(value), remedy=remedy
        )
    return value
