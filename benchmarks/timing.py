"""Interleaved timing: competitors take turns, so that a drifting machine hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], None]) -> float:
    """CPU seconds of this thread; a neighbour's load then counts less than on the wall clock."""
    began = time.thread_time()
    run()
    return time.thread_time() - began


def interleave(runs: dict[str, Callable[[], None]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each run over rounds in which all take turns, after a warm-up."""
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def steps_for(call: Callable[[int], None], budget: float = 0.15) -> int:
    """Iterations that take about `budget` seconds, from a trial of three."""
    call(3)
    return max(3, int(budget / max(seconds(lambda: call(3)) / 3, 1e-7)))
