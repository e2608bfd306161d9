"""Interleaved timing: competitors take turns, so that a drifting machine hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial


def seconds(run: Callable[[], None]) -> float:
    """CPU seconds of this thread; a neighbour's load then counts less than on the wall clock."""
    began = time.thread_time()
    run()
    return time.thread_time() - began


def in_turn(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each run in each of the rounds, after a warm-up."""
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return times


def interleave(runs: dict[str, Callable[[], None]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each run over rounds in which all take turns, after a warm-up."""
    return {name: statistics.median(values) for name, values in in_turn(runs, rounds).items()}


def relative(runs: dict[str, Callable[[], None]], to: str, rounds: int = 25) -> dict[str, float]:
    """The same for a clock that jumps: medians of the ratios in a round, times one median."""
    times = in_turn(runs, rounds)
    unit = statistics.median(times[to])
    pairs = {name: zip(values, times[to], strict=True) for name, values in times.items()}
    return {name: unit * statistics.median(a / b for a, b in pair) for name, pair in pairs.items()}


def over_autograd(autograd: Callable[[int], object], forms, run, choice: str) -> dict:
    """Microseconds an iteration: `autograd` (of steps), every form, and how the choice compares.

    `run(form, steps)` makes what goes on for so many steps each time it is called.
    """
    steps = {"autograd": steps_for(autograd)}
    runs: dict = {"autograd": lambda: autograd(steps["autograd"])}
    for form in forms:
        steps[form] = steps_for(lambda k, form=form: run(form, k)())
        runs[form] = run(form, steps[form])
    micro = {name: 1e6 * time / steps[name] for name, time in interleave(runs).items()}
    best = min(micro[form] for form in forms)
    ratio = micro["autograd"] / micro[choice]
    return micro | {"choice": choice, "ratio": ratio, "choice/best": micro[choice] / best}


def steps_for(call: Callable[[int], None], budget: float = 0.15) -> int:
    """Iterations that take about `budget` seconds, from trials of more and more.

    Three alone would time what a call sets up; a run of that few starts in a cold cache.
    """
    call(3)
    steps, took = 3, seconds(partial(call, 3))
    while took < budget / 2 and steps < 10**8:
        steps *= 4
        took = seconds(partial(call, steps))
    return max(3, int(steps * budget / took))
