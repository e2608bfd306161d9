"""Kinds of partial tampering: what a refutation changes, in one run, in a window, at one record.

A refutation alters all runs at all records. Here its change is made in a part of them, or its
series are given another shape, so that a claim on every run and record is still false.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from attnbias import Trace
from attnbias.experiments import ExperimentResult

Shape = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Partly:
    """Of a value and what a refutation makes of it, a value between the two.

    Parameters
    ----------
    run : int, optional
        The only run, or draw, in which something changes; all of them by default. Of an
        experiment on several seeds it is one seed's, under every label.
    shape : callable, optional
        Of steps, a series, and the series that the refutation puts in its place: the series to
        take, by default the refutation's. With a shape only traces change.

    Attributes
    ----------
    changed : bool
        Whether anything has changed.

    Examples
    --------
    >>> partly = Partly(run=1)
    >>> partly([1, 2, 3], [10, 20, 30]), partly.runs
    ([1, 20, 3], 3)
    """

    def __init__(self, run: int | None = None, shape: Shape | None = None) -> None:
        self.run, self.shape, self.changed = run, shape, False
        self._seen: list[Any] = []  # a run that a claim asks for twice is one run

    @property
    def runs(self) -> int:
        """How many runs and draws the refutation has changed so far."""
        return len(self._seen)

    def __call__(self, old: Any, new: Any) -> Any:
        if old is new:
            return old
        if isinstance(old, ExperimentResult) and "traces" in old.data:
            return self._experiment(old, new)
        if isinstance(old, dict) and old.keys() == new.keys():
            return {key: self(old[key], new[key]) for key in old}
        if type(old) in (list, tuple) and len(old) == len(new):
            pairs = [*zip(old, new, strict=True)]
            if type(old) is tuple and any(isinstance(item, Trace) for item in old):
                pairs = [pair if isinstance(pair[0], Trace) else pair[:1] * 2 for pair in pairs]
            return type(old)(self(*pair) for pair in pairs)  # beside a run its data stay
        if not any(seen is old for seen in self._seen):
            self._seen.append(old)
        number = next(k for k, seen in enumerate(self._seen) if seen is old)
        if self.run not in (None, number) or (self.shape and not _alike(old, new)):
            return old
        self.changed = True
        return _reshaped(old, new, self.shape) if self.shape else new

    def _experiment(self, old, new):
        part = self if self.run is None or len(old.seeds) == 1 else self._one_seed
        given = {
            name: part(getattr(old, name), getattr(new, name)) for name in ("traces", "measures")
        }
        return old.with_data(**given)

    def _one_seed(self, old, new):
        """Of lists with one item a seed, those of the seed with the number of the run."""
        self.changed = True
        return {
            key: type(items)(new[key][k] if k == self.run else item for k, item in enumerate(items))
            for key, items in old.items()
        }


def _alike(old, new) -> bool:
    """Whether both are traces with the same records."""
    both = isinstance(old, Trace) and isinstance(new, Trace)
    return both and len(old.step) == len(new.step)


def _reshaped(old: Trace, new: Trace, shape: Shape) -> Trace:
    changes: dict[str, Any] = {
        name: shape(new.step, values, new.series[name])
        for name, values in old.series.items()
        if new.series.get(name) is not values and np.shape(new.series.get(name)) == values.shape
    }
    if old.W is not new.W:
        at_records = old.W.ndim > 2 and old.W.shape == new.W.shape
        changes["W"] = (
            new.W[:0]
            if not at_records
            else old.W.new_tensor(shape(new.step, old.W.numpy(), new.W.numpy()))
        )
        if not at_records:  # the last W: the refutation's own only if that record is changed
            marks = shape(new.step, np.zeros(len(new.step)), np.ones(len(new.step)))
            changes["W"] = new.W if marks[-1] == 1 or not new.W.numel() else old.W
    return dataclasses.replace(old, **changes)


def where(chosen: Callable[[np.ndarray], np.ndarray]) -> Shape:
    """The refutation's series at the records that a function of the steps chooses."""

    def shape(step, old, new):
        mask = chosen(step).reshape(-1, *[1] * (old.ndim - 1))
        return np.where(mask, new, old)

    return shape


def window(first: float, last: float) -> Shape:
    """In a part of the run: between two powers of its length."""
    return where(lambda step: (step >= step[-1] ** first) & (step <= step[-1] ** last))


def every(k: int) -> Shape:
    """At every k-th record."""
    return where(lambda step: (np.arange(len(step)) % k == 0) & (step > 0))


def at_record(part: float) -> Shape:
    """At the one record that stands at this part of all of them; 1 is the last."""
    return where(lambda step: np.arange(len(step)) == round(part * (len(step) - 1)))


def drop_and_stall(at: float) -> Shape:
    """Held from a hundredth of the run to a later part; then at the value there, to the end."""

    def shape(step, old, new):
        first, drop = (int(np.searchsorted(step, part * step[-1])) for part in (0.01, at))
        number = np.arange(len(step)).reshape(-1, *[1] * (old.ndim - 1))
        held_on = np.where(number < drop, old[first], old[drop])
        return np.where(number < first, old, held_on)

    return shape
