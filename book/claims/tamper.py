"""Tampered evidence: runs altered so that a claim is false, under which its verdict must change.

Tampering keeps every series finite, of full length, and as small a change as shows that the claim
is false. A claim that still holds on such runs could not have failed, and is worth nothing.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from attnbias import Trace
from attnbias.experiments import ExperimentResult

from .claim import Claim, Finding, Refutation
from .kinds import Partly


class Tampered:
    """Evidence some of whose results are altered.

    Parameters
    ----------
    evidence : Evidence
    change : mapping of str to callable
        By the name of an attribute or method of the evidence, of a function that it was asked to
        `run`, or of the experiment of a result: what is made of each value.
    partly : Partly, optional
        Where that is done in a part of the runs or records alone.

    Examples
    --------
    >>> from book.claims import Evidence
    >>> Tampered(Evidence(), {"abs": lambda length: 2 * length}).run(abs, -3)
    6
    """

    def __init__(
        self, evidence, change: Mapping[str, Callable], partly: Partly | None = None
    ) -> None:
        self._evidence, self._change, self._partly = evidence, dict(change), partly
        self._used: set[str] = set()

    def run(self, make: Callable, *arguments, **options) -> Any:
        """What the function gives, altered."""
        return self._altered(make.__name__, self._evidence.run(make, *arguments, **options))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._evidence, name)
        if not callable(value):
            return self._altered(name, value)
        return lambda *arguments, **options: self._altered(name, value(*arguments, **options))

    def _altered(self, name: str, value) -> Any:
        name = value.name if isinstance(value, ExperimentResult) else name
        if name not in self._change:
            return value
        self._used.add(name)
        altered = self._change[name](value)
        return altered if self._partly is None else self._partly(value, altered)


def refute(claim: Claim, evidence, refutation: Refutation, partly: Partly | None = None) -> Finding:
    """The finding of a claim on evidence tampered with, as a whole or in part.

    Raises
    ------
    ValueError
        If the claim never asks for what the refutation alters.

    Examples
    --------
    >>> from attnbias import Check
    >>> from book.claims import Evidence, judge
    >>> longer = Refutation("lengths are doubled", {"abs": lambda length: 2 * length})
    >>> claim = Claim("a", "At most 3.", "ours", "chap-tokens", "c",
    ...               lambda e: judge([Check("length", e.run(abs, -3), 3)]), "", (longer,))
    >>> claim.judge(Evidence()).verdict, refute(claim, Evidence(), longer).number
    ('holds', 'length: 6 <= 3')
    """
    tampered = Tampered(evidence, refutation.change, partly)
    found = claim.judge(tampered)
    unused = set(refutation.change) - tampered._used
    if unused:
        raise ValueError(f"{claim.key} never asks its evidence for {', '.join(sorted(unused))}")
    return found


def each(alter: Callable[[Any], Any], kind: type = Trace) -> Callable:
    """Alter every value of a kind inside lists, tuples, dicts and results of experiments.

    Examples
    --------
    >>> each(lambda number: -number, int)([1, (2, {"a": 3})])
    [-1, (-2, {'a': -3})]
    """

    def walk(value):
        if isinstance(value, kind):
            return alter(value)
        if isinstance(value, ExperimentResult):
            return value.with_data(traces=walk(value.traces))
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(walk(item) for item in value)
        return value

    return walk


def series(**changes) -> Callable:
    """Every trace with some of its series replaced from the first step on; the start stays.

    Each change is a number, or a function of (trace, its series).
    """

    def alter(trace: Trace) -> Trace:
        new = {}
        for name, change in changes.items():
            old = getattr(trace, name)
            value = change(trace, old) if callable(change) else np.full_like(old, change)
            new[name] = np.where(trace.step > 0, value, old) if old.ndim == 1 else value
            if np.shape(new[name]) != old.shape or np.isnan(new[name][trace.step > 0]).any():
                raise ValueError(f"{name}: tampering keeps a series finite and of full length")
        return dataclasses.replace(trace, **new)

    return each(alter)


def stalls(error: float = 0.5) -> Callable:
    """Every trace's 1 - cosine with W_mm stays at a value, and its last W lies there."""
    return each(lambda trace: _turned(series(W_alignment_error=error)(trace), error))


def _turned(trace: Trace, error: float) -> Trace:
    """With a last W at that 1 - cosine of the one it had, of the same norm."""
    if trace.W.ndim != 2 or not float(trace.W.norm()):
        return trace
    return dataclasses.replace(trace, W=aside(trace.W, error))


def aside(W, error: float):
    """Matrices (..., d, d) turned away by that 1 - cosine, their norms kept.

    Examples
    --------
    >>> aside(np.array([[2.0, 0.0], [0.0, 0.0]]), 1.0).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    flat = torch.as_tensor(W).reshape(-1, W.shape[-2] * W.shape[-1])
    last = flat[-1] / flat[-1].norm()
    off = torch.zeros_like(last)
    off[int(last.abs().argmin())] = 1.0
    off = off - last * (off @ last)
    off = off / off.norm()
    turned = (1 - error) * flat + (1 - (1 - error) ** 2) ** 0.5 * flat.norm(dim=1)[:, None] * off
    turned = turned.reshape(W.shape)
    return turned if isinstance(W, torch.Tensor) else turned.numpy()


def altered(**changes: Callable) -> Callable:
    """Every trace with fields replaced, each by a function of the trace; the start too."""

    def alter(trace: Trace) -> Trace:
        new = {name: change(trace) for name, change in changes.items()}
        return dataclasses.replace(trace, **new)

    return each(alter)


def retold(**changes) -> Callable:
    """Every trace with series replaced, as by `series`, and without the last W, which would tell.

    The checks that rebuild a run from its logit gaps refuse a trace whose last W has others.
    """
    none = torch.zeros(0, 0, dtype=torch.float64)
    return each(lambda trace: dataclasses.replace(series(**changes)(trace), W=none))


def table(**columns: Callable) -> Callable[[ExperimentResult], ExperimentResult]:
    """A study's result with columns replaced, each by a function of the table."""
    return lambda result: result.with_data(table=result.table.assign(**columns))


def labelled(alter: Callable[[dict], dict]) -> Callable:
    """A change of runs by label that takes the result of an experiment as well."""

    @functools.wraps(alter)
    def change(runs):
        if isinstance(runs, ExperimentResult):
            return runs.with_data(traces=alter(runs.traces))
        return alter(runs)

    return change


def swaps(first: Any, second: Any) -> Callable:
    """Runs in which two labels are exchanged."""
    return labelled(lambda runs: {**runs, first: runs[second], second: runs[first]})


@labelled
def of_the_first(runs: dict) -> dict:
    """All labels have the runs of the first."""
    return dict.fromkeys(runs, next(iter(runs.values())))


def one_of(label: str, other: str) -> Callable:
    """The last seed of one label is that of another."""
    return labelled(lambda runs: runs | {label: (*runs[label][:-1], runs[other][-1])})


def of(label: str, alter: Callable, *, seed: int | None = None) -> Callable:
    """The runs of one label altered, or that of one seed."""

    @labelled
    def change(runs: dict) -> dict:
        old = runs[label]
        new = alter(old)
        return runs | {label: new if seed is None else (*old[:seed], new[seed], *old[seed + 1 :])}

    return change


def measures(**values: float) -> Callable[[ExperimentResult], ExperimentResult]:
    """An experiment's result with other numbers of its data, the same for each seed."""

    def change(result: ExperimentResult) -> ExperimentResult:
        new = {name: [value] * len(result.seeds) for name, value in values.items()}
        return result.with_data(measures=result.measures | new)

    return change


def bent(power: float, *names: str) -> Callable:
    """Every trace's series multiplied by t^power: they grow or fall at another order."""
    return _each_series(names, lambda step, old: old * step**power)


def bent_by_log(power: float, *names: str) -> Callable:
    """The same by a power of log t: the nearest orders that runs of this length tell apart."""
    return _each_series(names, lambda step, old: old * np.log(np.maximum(step, np.e)) ** power)


def stops(*names: str, at: float = 0.03) -> Callable:
    """Every trace's series keep the value that they have after a part `at` of the run."""

    def held(step, old):
        start = int(np.searchsorted(step[:, 0], at * step[-1, 0]))
        return np.where(step > step[start], old[start], old)

    return _each_series(names, held)


def _each_series(names: tuple[str, ...], change: Callable) -> Callable:
    """Of every trace, each named series made anew from the steps (R, 1) and its rows (R, ...)."""

    def alter(trace: Trace, name: str) -> np.ndarray:
        old = getattr(trace, name)
        step = np.maximum(trace.step, 1).astype(float)[:, None]
        return change(step, old.reshape(len(old), -1)).reshape(old.shape)

    return each(
        lambda trace: dataclasses.replace(trace, **{name: alter(trace, name) for name in names})
    )
