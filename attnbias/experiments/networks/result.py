"""What an experiment on a trained network gives: logs by optimizer and seed, and claims."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..._validate import require_choice
from ...checks import CheckTable
from ...nets.log import TrainingLog
from ..result import JsonResult
from .claims import judged

if TYPE_CHECKING:
    import pandas

DIGITS = 6  # of the curves on disk; a record is read, never gone on from


@dataclass(frozen=True, eq=False)
class NetworkResult(JsonResult):
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
    losses : dict of str to dict of str to list of float
        Training loss at the end, by optimizer, value and seed, in the order of `seeds`; of the
        first seed alone for a value that is no neighbour of the best. Infinite where a run
        diverged.
    substitutes : tuple of str
        What stands in for the paper's data, model or length, in words; empty if nothing.
    claims : CheckTable
    provenance : dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.load("fig6", "book/results")
    >>> list(result.logs)
    ['SGD', 'SGD, clipped', 'SNGD', 'SPS', 'SPS, c=1/2', 'Adam']
    >>> result.curves("SNGD", "train_loss").shape
    (5, 31)
    """

    KIND = "network experiment"

    name: str
    title: str
    logs: dict[str, tuple[TrainingLog, ...]]
    seeds: tuple[int, ...]
    settings: dict
    step_sizes: dict[str, float]
    losses: dict[str, dict[str, list[float]]]
    substitutes: tuple[str, ...]
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    @property
    def grid(self) -> dict[str, dict[str, float]]:
        """The median of `losses` over the seeds, by optimizer and value, where several were run."""
        return {
            label: {value: float(np.median(found)) for value, found in row.items()}
            for label, row in self.losses.items()
            if len(row) > 1
        }

    def curves(self, label: str, name: str) -> np.ndarray:
        """(seeds, records) of one curve of one optimizer."""
        return np.stack([log[name] for log in self.logs[require_choice("label", label, self.logs)]])

    def to_dataframe(self) -> pandas.DataFrame:
        """Where each optimizer ends: medians over the seeds, and the spread of the loss.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        curves = ("test_loss", "train_accuracy", "test_accuracy")
        rows = {}
        for label in self.logs:
            losses = self.curves(label, "train_loss")[:, -1]
            rows[label] = {
                "step size": self.step_sizes[label],
                "train loss": np.median(losses),
                "lowest": losses.min(),
                "highest": losses.max(),
            } | {
                name.replace("_", " "): np.median(self.curves(label, name)[:, -1])
                for name in curves
            }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def _packed(self) -> dict:
        """Seeds, substitutes, losses and logs as json holds them."""
        losses = {
            label: {
                value: [x if math.isfinite(x) else "inf" for x in found]
                for value, found in row.items()
            }
            for label, row in self.losses.items()
        }
        logs = {label: [log.to_json(DIGITS) for log in logs] for label, logs in self.logs.items()}
        return {
            "seeds": list(self.seeds),
            "substitutes": list(self.substitutes),
            "losses": losses,
            "logs": logs,
        }

    @staticmethod
    def _unpacked(stored: dict, claims: Callable) -> dict:
        """The inverse of `_packed`, and the claims on the four optimizers."""
        losses = {
            label: {value: [float(x) for x in found] for value, found in row.items()}
            for label, row in stored["losses"].items()
        }
        logs = {
            label: tuple(map(TrainingLog.from_json, logs)) for label, logs in stored["logs"].items()
        }
        return {
            "seeds": tuple(stored["seeds"]),
            "substitutes": tuple(stored["substitutes"]),
            "losses": losses,
            "logs": logs,
            "claims": judged(claims, logs),
        }

    def __repr__(self) -> str:
        last = next(iter(self.logs.values()))[0].step[-1]
        lines = [f"{self.title}: {len(self.seeds)} seeds, {last} steps, {self.verdict}"]
        lines += [f"  {words}" for words in self.substitutes]
        for label in self.logs:
            loss = np.median(self.curves(label, "train_loss")[:, -1])
            accuracy = np.median(self.curves(label, "test_accuracy")[:, -1])
            lines.append(
                f"  {label} at {self.step_sizes[label]:g}: train loss {loss:.3g}, "
                f"test accuracy {accuracy:.3f}"
            )
        return "\n".join(lines)
