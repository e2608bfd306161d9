"""Batched runs against what their memory traffic and arithmetic allow.

`python -m benchmarks.batched --device cuda` times 256 data sets with four rules each.
"""

from __future__ import annotations

import argparse
import os
import re
import time

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch reads it

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attnbias import GD, NGD, Polyak, make_example1
from attnbias.dynamics.batched.runs import BatchedRuns
from attnbias.dynamics.batched.step import iteration
from attnbias.dynamics.problem import Problem
from attnbias.losses import EXPONENTIAL

RULES = [GD(0.1), NGD(0.1), NGD(0.1, momentum=0.9), Polyak()]
TARGET = (256, 4, 20, 10, 500)  # S, R, n, T, d
TARGET_MICROSECONDS = 40.0  # an iteration of all runs, on a card with 4.3 TB/s
# passes over (S, R, N): the gaps, the weights and their product read; both of the latter written;
# then gaps and coefficients with their roundings and speeds, read and written
READS, WRITES = 1 + 1 + 2 + 6, 2 + 6
ELEMENTARY = 20  # operations counted for an exponential or a logarithm
ROW = 2 * ELEMENTARY + 16 + 20  # softmax and weight of a row, then its step
SEQUENCE = 9 * ELEMENTARY + 30


def roofline(S: int, R: int, n: int, T: int) -> dict[str, float]:
    """Bytes that an iteration must move and operations it must do, from the shapes.

    Bytes: every Gram matrix once; the arrays of (S, R, N) that pass between the three stages,
    softmax, product and step, once each way; scores and mask once; ten arrays of (S, R, n).
    Arrays of (S, R) are left out. Operations: two for each entry of the product; the rest as
    the constants of this module count it.
    """
    N = n * (T - 1)
    gram, rows = 8 * S * N * N, 8 * S * R * N * (READS + WRITES)
    small = 9 * S * N + 8 * 10 * S * R * n
    product = 2 * S * R * N * N
    rest = S * R * (N * (ROW + 2) + n * SEQUENCE)
    return {"gram_bytes": gram, "bytes": gram + rows + small, "flops": product + rest}


def limit(S: int, R: int, n: int, T: int, bandwidth: float, flop_rate: float) -> float:
    """Seconds that the roofline needs at so many bytes and operations a second."""
    counted = roofline(S, R, n, T)
    return max(counted["bytes"] / bandwidth, counted["flops"] / flop_rate)


def make_runs(device, S, R, n, T, d, steps, compile=None) -> BatchedRuns:
    """Example 1, rules in turn, no record but the last, no SVM: targets of zeros."""
    start = torch.zeros(d, d, dtype=torch.float64)
    problems = []
    for seed in range(S):
        problem = Problem.of(make_example1(n, T, d, seed=seed), EXPONENTIAL, start)
        problems.append([problem] * R)
    rules = [[RULES[r % len(RULES)] for r in range(R)]] * S
    return BatchedRuns(problems, rules, np.array([steps]), device, compile)


def measure(device, S, R, n, T, d, steps, compile=None) -> dict[str, float]:
    """Microseconds an iteration of all runs, beside what the device itself does, same minute."""
    torch.backends.cuda.matmul.allow_tf32 = False  # float64 has no use for it; said once more
    runs = make_runs(device, S, R, n, T, d, steps, compile)
    assert runs.fixed.gram.dtype == torch.float64
    seconds = _best(lambda: runs.run(0, steps), runs.device) / steps
    bandwidth, flop_rate = triad(runs.device), product_rate(runs.device)
    floor = limit(S, R, n, T, bandwidth, flop_rate)
    return {
        "microseconds": 1e6 * seconds,
        "floor": 1e6 * floor,
        "fraction": floor / seconds,
        "GB/s": 1e-9 * bandwidth,
        "GFLOP/s": 1e-9 * flop_rate,
    }


def _best(run, device: torch.device, rounds: int = 5) -> float:
    """Least seconds of a call, after a warm-up; on a GPU until it has finished."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    clock = time.perf_counter if device.type == "cuda" else time.thread_time
    times = []
    for _ in range(rounds + 1):
        wait()
        began = clock()
        run()
        wait()
        times.append(clock() - began)
    return min(times[1:])


def triad(device: torch.device) -> float:
    """Bytes a second of a = b + 3 c on arrays far beyond any cache."""
    size = 2**27 if device.type == "cuda" else 2**23
    a, b, c = (torch.ones(size, dtype=torch.float64, device=device) for _ in range(3))
    return 24 * size / _best(lambda: torch.add(b, c, alpha=3.0, out=a), device)


def product_rate(device: torch.device) -> float:
    """Operations a second of a float64 bmm."""
    S, N = (64, 512) if device.type == "cuda" else (2, 512)
    a, b, c = (torch.ones(S, N, N, dtype=torch.float64, device=device) for _ in range(3))
    return 2 * S * N**3 / _best(lambda: torch.bmm(a, b, out=c), device)


class _Counter(TorchDispatchMode):
    """Operations but views, each of which is one kernel where nothing is fused."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def operations(runs: BatchedRuns) -> int:
    """Operations of a plain iteration run eagerly."""
    with _Counter() as counter:
        iteration(runs.fixed, runs.state, False, True)
    return counter.count


def compiled_calls(runs: BatchedRuns) -> tuple[int, int]:
    """Calls that torch.compile makes of a plain iteration: (to its own kernels, to libraries).

    On a GPU each is a kernel. On the CPU it puts several loops into one function, so that the
    number says less there.
    """
    from torch._inductor.utils import run_and_get_code  # brings sympy: a second that few need

    torch._dynamo.reset()
    compiled = torch.compile(iteration, fullgraph=True, dynamic=False)
    with torch._inductor.config.patch(fx_graph_cache=False):
        _, sources = run_and_get_code(compiled, runs.fixed, runs.state, False, True)
    lines = "\n".join(sources).splitlines()
    own = sum(re.match(r"\s+\w+_fused_\w+(\.run)?\(", line) is not None for line in lines)
    return own, sum(line.lstrip().startswith("extern_kernels.") for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, nargs=5, default=TARGET, metavar=tuple("SRnTd"))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=None)
    asked = parser.parse_args()
    size = tuple(asked.size)
    counted = roofline(*size[:4])
    print(f"S, R, n, T, d = {size}: {counted['bytes'] / 1e6:.1f} MB", end=" ")
    print(f"({counted['gram_bytes'] / 1e6:.1f} of them K), {counted['flops'] / 1e6:.1f} MFLOP")
    row = measure(asked.device, *size, asked.steps, asked.compile)
    print(", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    few = make_runs(asked.device, 2, *size[1:], 1, compile=False)
    print(f"kernels: {operations(few)} eager", end=", ", flush=True)
    print("{} + {} of libraries compiled".format(*compiled_calls(few)))
    if size == TARGET and asked.device != "cpu":
        met = row["microseconds"] <= TARGET_MICROSECONDS
        print(f"target <= {TARGET_MICROSECONDS} us: {'met' if met else 'NOT MET'}")


if __name__ == "__main__":
    main()
