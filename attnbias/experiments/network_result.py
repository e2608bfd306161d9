"""What an experiment on a trained network gives: logs by optimizer and seed, and claims."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .._files import FORMAT, read_text, write_text
from ..checks import CheckTable
from ..errors import FileFormatError
from ..nets.log import TrainingLog
from .network_claims import judged

KIND = "network experiment"
DIGITS = 6  # of the curves on disk; a record is read, never gone on from


@dataclass(frozen=True, eq=False)
class NetworkResult:
    """Runs of several optimizers on several seeds, and what they say on the paper's claims.

    Attributes
    ----------
    name, title : str
    logs : dict of str to tuple of TrainingLog
        By optimizer, one a seed, in the order of `seeds`.
    seeds : tuple of int
    settings : dict
        The arguments of the run.
    step_sizes : dict of str to float
        What the grid chose: lr for SGD, SNGD and Adam, the cap for SPS.
    grid : dict of str to dict of str to float
        Training loss at the end of each short run, by optimizer and value; infinite where it
        diverged.
    substitutes : tuple of str
        What stands in for the paper's data, model or length, in words; empty if nothing.
    claims : CheckTable
    provenance : dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.load("fig6")
    >>> sorted(result.logs)
    ['Adam', 'SGD', 'SNGD', 'SPS']
    >>> result.curves("SNGD", "train_loss").shape
    (3, 31)
    """

    name: str
    title: str
    logs: dict[str, tuple[TrainingLog, ...]]
    seeds: tuple[int, ...]
    settings: dict
    step_sizes: dict[str, float]
    grid: dict[str, dict[str, float]]
    substitutes: tuple[str, ...]
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    def curves(self, label: str, name: str) -> np.ndarray:
        """(seeds, records) of one curve of one optimizer."""
        return np.stack([log[name] for log in self.logs[label]])

    def table(self):
        """Where each optimizer ends: medians over the seeds, and the spread of the loss.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        rows = {}
        for label in self.logs:
            losses = self.curves(label, "train_loss")[:, -1]
            rows[label] = {
                "step size": self.step_sizes[label],
                "train loss": np.median(losses),
                "lowest": losses.min(),
                "highest": losses.max(),
                **{
                    name.replace("_", " "): np.median(self.curves(label, name)[:, -1])
                    for name in ("test_loss", "train_accuracy", "test_accuracy")
                },
            }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def save(self, path) -> Path:
        """Write all but the claims as json, atomically; a reader judges the logs anew.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        stored = {key: getattr(self, key) for key in ("name", "title", "settings", "step_sizes",
                                                       "provenance")}  # fmt: skip
        stored |= {"kind": KIND, "format": FORMAT, "seeds": list(self.seeds)}
        stored["substitutes"] = list(self.substitutes)
        stored["grid"] = {
            label: {value: loss if math.isfinite(loss) else None for value, loss in row.items()}
            for label, row in self.grid.items()
        }
        stored["logs"] = {
            label: [log.to_json(DIGITS) for log in logs] for label, logs in self.logs.items()
        }
        return write_text(path, json.dumps(stored, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path, claims: Callable) -> NetworkResult:
        """Read a file written by `save`; `claims` makes the CheckTable from the logs.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        text = read_text(path)
        try:
            stored = json.loads(text)
            if stored["kind"] != KIND or stored["format"] != FORMAT:
                raise ValueError(f"kind {stored['kind']!r}, format {stored['format']!r}")
            logs = {
                label: tuple(TrainingLog.from_json(log) for log in logs)
                for label, logs in stored["logs"].items()
            }
            return cls(
                name=stored["name"],
                title=stored["title"],
                logs=logs,
                seeds=tuple(stored["seeds"]),
                settings=stored["settings"],
                step_sizes=stored["step_sizes"],
                grid={
                    label: {
                        value: math.inf if loss is None else loss for value, loss in row.items()
                    }
                    for label, row in stored["grid"].items()
                },
                substitutes=tuple(stored["substitutes"]),
                claims=judged(claims, logs),
                provenance=stored["provenance"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                str(path),
                expected=f"the result of a {KIND}, format {FORMAT}",
                got=f"{type(error).__name__}: {error}"[:200],
                remedy="run the experiment again and save",
            ) from None

    def __repr__(self) -> str:
        held = sum(check.holds for check in self.claims)
        last = next(iter(self.logs.values()))[0].step[-1]
        lines = [f"{self.title}: {len(self.seeds)} seeds, {last} steps, "
                 f"{held} of {len(self.claims)} claims hold"]  # fmt: skip
        lines += [f"  {words}" for words in self.substitutes]
        for label in self.logs:
            loss = np.median(self.curves(label, "train_loss")[:, -1])
            accuracy = np.median(self.curves(label, "test_accuracy")[:, -1])
            lines.append(f"  {label} at {self.step_sizes[label]:g}: train loss {loss:.3g}, "
                         f"test accuracy {accuracy:.3f}")  # fmt: skip
        return "\n".join(lines)
