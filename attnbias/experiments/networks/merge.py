"""One result of a figure from parts that were run apart, on several machines say."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._records import provenance
from ...errors import RangeError
from ..result import ExperimentResult
from .runs import OPTIMIZERS


def merged(results: Sequence[ExperimentResult]) -> ExperimentResult:
    """One result of runs of different optimizers that agree in all else.

    Parameters
    ----------
    results : sequence of ExperimentResult
        Of one network's figure.

    Returns
    -------
    ExperimentResult
        Its provenance has that of each result under "parts".

    Raises
    ------
    RangeError
        An optimizer is in two of them, or they differ in figure, seeds or settings.
    """
    first, owner = results[0], {label: each for each in results for label in each.logs}
    alike = [{"figure": each.name, "seeds": each.seeds} | each.settings for each in results]
    keys = sorted({key for each in alike for key in each})
    other = [key for key in keys if any(each.get(key) != alike[0].get(key) for each in alike)]
    labels = [label for each in results for label in each.logs]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if other or twice:
        raise RangeError(
            "results",
            expected="equal figures, seeds and settings, and each optimizer once",
            got="different " + ", ".join(other) if other else ", ".join(twice) + " twice",
            remedy="run what is missing with the settings of the others, for other optimizers",
        )
    whole = {
        name: {label: getattr(owner[label], name)[label] for label in OPTIMIZERS if label in owner}
        for name in ("logs", "losses", "step_sizes")
    }
    made = provenance() | {"parts": [each.provenance for each in results]}
    return dataclasses.replace(first.with_data(**whole), provenance=made)
