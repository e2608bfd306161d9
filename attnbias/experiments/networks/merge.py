"""One result of a figure from parts that were run apart, on several machines say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ..._records import provenance
from ...errors import RangeError
from .claims import judged
from .result import NetworkResult
from .runs import OPTIMIZERS


def merged(results: Sequence[NetworkResult], claims: Callable) -> NetworkResult:
    """One result of runs of different optimizers that agree in all else.

    Parameters
    ----------
    results : sequence of NetworkResult
    claims : callable
        The figure's own.

    Returns
    -------
    NetworkResult
        Its provenance has that of each result under "parts".

    Raises
    ------
    RangeError
        An optimizer is in two of them, or they differ in figure, seeds or settings.
    """
    first = results[0]
    found = {"figure": [each.name for each in results], "seeds": [each.seeds for each in results]}
    keys = sorted({key for each in results for key in each.settings})
    found |= {key: [each.settings.get(key) for each in results] for key in keys}
    other = [key for key, values in found.items() if any(value != values[0] for value in values)]
    labels = [label for each in results for label in each.logs]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if other or twice:
        raise RangeError(
            "results",
            expected="equal figures, seeds and settings, and each optimizer once",
            got="different " + ", ".join(other) if other else ", ".join(twice) + " twice",
            remedy="run what is missing with the settings of the others, for other optimizers",
        )
    order = [label for label in OPTIMIZERS if label in labels]
    owner = {label: each for each in results for label in each.logs}
    whole = {
        name: {label: getattr(owner[label], name)[label] for label in order}
        for name in ("logs", "losses", "step_sizes")
    }
    made = provenance() | {"parts": [each.provenance for each in results]}
    whole |= {"claims": judged(claims, whole["logs"]), "provenance": made}
    return dataclasses.replace(first, **whole)
