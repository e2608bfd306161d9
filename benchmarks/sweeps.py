"""Sweeps: what cores and a device gain, what memory they take, how late runs fare.

Each is a ratio of two things measured in turn. Cores are told apart by the wall clock; all else
counts CPU seconds of one thread.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import joblib
import psutil
import torch

import attnbias
from attnbias import NGD
from attnbias.beyond.exponents.experiments import noisy_means
from attnbias.dynamics.loop import subnormals_as_zero
from attnbias.sweeps import read_grid
from attnbias.sweeps.run import needed_bytes

from . import batched
from .dynamics import Run, make_data, problem_of
from .record import Row
from .timing import seconds

RULES = [
    {"name": "NGD", "step_size": [0.1, 0.5]},
    {"name": "NGD", "step_size": 0.1, "momentum": 0.9},
    {"name": "GD", "step_size": 1.0},
]  # four runs on each data set

# --- cores ---------------------------------------------------------------------------------

# n, T, d and steps: K of 20 and 260 kB, a sweep of some seconds by one worker. A data set takes
# over 0.2 s, under which joblib hands out several at a time and the last ones may be uneven.
CORES = {(10, 6, 200): 80_000, (20, 10, 500): 25_000}


def cores_rows() -> Iterator[Row]:
    """A sweep of 16 data sets by one worker over two; the processes are there beforehand"""
    for (n, T, d), steps in CORES.items():
        data = {"model": "example1", "n": n, "T": T, "d": d, "seed": "0:16"}
        grid = {"data": data, "rule": RULES, "steps": steps, "record": 10}
        times = by_workers(grid)
        one, two = (statistics.median(times[workers]) for workers in (1, 2))
        ratio = statistics.median(a / b for a, b in zip(times[1], times[2], strict=True))
        facts = {"one s": one, "two s": two, "N": n * (T - 1), "cores": joblib.cpu_count()}
        yield Row(f"one worker over two, n,T,d={(n, T, d)}", ratio, 1.7, True, "x", facts)


def by_workers(grid: dict, rounds: int = 5) -> dict[int, list[float]]:
    """Seconds on the wall clock by one and by two workers, who take turns."""
    for workers in (1, 2):  # starts the processes and loads what is compiled
        attnbias.sweep(grid | {"steps": 100}, workers=workers)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers, kept in times.items():
            began = time.perf_counter()
            attnbias.sweep(grid, workers=workers)
            kept.append(time.perf_counter() - began)
    return times


# --- memory --------------------------------------------------------------------------------

# N' = 3000: the Gram matrix; d = 2000: W; N' = 900: both middling
MEMORY = [(300, 11, 500), (10, 6, 2000), (100, 10, 1000)]
SMALL = {"model": "example1", "n": 4, "T": 3, "d": 20}


def memory_rows() -> Iterator[Row]:
    """Memory that a sweep takes at its peak over what it was said to need"""
    for n, T, d in MEMORY:
        data = {"model": make_data, "n": n, "T": T, "d": d}
        grid = {"data": data, "rule": RULES, "steps": 20, "record": 10}
        attnbias.sweep(grid | {"data": SMALL})  # compiles, which takes memory as well
        said, took = needed_bytes(read_grid(grid), 1, n, T, d), added_bytes(grid)
        facts = {"took MB": took / 1e6, "said MB": said / 1e6, "N": n * (T - 1)}
        yield Row(f"peak over plan, n,T,d={(n, T, d)}", took / said, 1.5, False, "x", facts)


def added_bytes(grid: dict) -> int:
    """Peak memory of a new process while it sweeps, above what it held before."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_added_bytes, grid).result()


def _added_bytes(grid: dict) -> int:
    torch.set_num_threads(1)
    attnbias.sweep(grid | {"data": SMALL})  # loads what is compiled
    before = psutil.Process().memory_info().rss
    attnbias.sweep(grid)
    return _peak_bytes() - before


def _peak_bytes() -> int:
    """Of this program: getrusage would remember what its parent had taken before the exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


# --- late ----------------------------------------------------------------------------------

LATE, WINDOW = 200_000, 10_000


def late_rows() -> Iterator[Row]:
    """An iteration after 200,000, when weights of idle rows have underflown, over the first"""
    facts = {"without the cure": late_over_early(contextlib.nullcontext, rounds=3)}
    ratio = late_over_early(subnormals_as_zero, rounds=25)
    yield Row("late over early iterations", ratio, 1.3, False, "x", facts)


def late_over_early(context, rounds: int) -> float:
    """Iterations 200,000 to 210,000 over the first 10,000 of the same run: median over runs."""
    problem, ratios = problem_of(noisy_means(10, 6, 52, 0.3, 0)), []
    with context():
        for _ in range(rounds + 1):
            run = Run(problem, "span", LATE + WINDOW, record=False, rule=NGD(0.5)).engine.run
            early = seconds(functools.partial(run, 0, WINDOW))
            run(WINDOW, LATE)
            late = seconds(functools.partial(run, LATE, LATE + WINDOW))
            ratios.append(late / early)
    return statistics.median(ratios[1:])  # the first loads what is compiled


# --- batched -------------------------------------------------------------------------------


def batched_rows() -> Iterator[Row]:
    """Runs on many data sets in one batch, an iteration of all beside the roofline"""
    yield from roofline_rows("cpu", (8, 4, 20, 10, 500), 100, None)
    if torch.cuda.is_available():
        yield from roofline_rows("cuda", batched.TARGET, 2000, batched.TARGET_MICROSECONDS)


def roofline_rows(device: str, size: tuple, steps: int, target: float | None) -> Iterator[Row]:
    found = batched.measure(device, *size, steps)
    counted = batched.roofline(*size[:4])
    facts = {"S": size[0], "R": size[1], "MB": counted["bytes"] / 1e6}
    facts |= {"MFLOP": counted["flops"] / 1e6, "floor us": found["floor"]}
    name = f"{size[0]} x {size[1]} at n,T,d={size[2:]} on {device}"
    yield Row(f"{name}: an iteration", found["microseconds"], target, False, " us", facts)
    yield Row(f"{name}: share of the roofline", found["fraction"], unit="")
    yield Row(f"triad on {device}", found["GB/s"], unit=" GB/s")
    yield Row(f"float64 bmm on {device}", found["GFLOP/s"], unit=" GFLOP/s")
