"""The product by K, which is most of a long step in span coordinates, and what reading K costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from attnbias.dynamics.compiled.arithmetic import OPTIONS, symmetric_product

from .dynamics import Run, make_data, problem_of
from .record import Row
from .timing import relative, steps_for

SIZES = [(10, 6, 100), (20, 10, 200), (50, 11, 600), (100, 10, 1000), (150, 11, 1600)]
CACHE = 2**21  # bytes; below it reading by calls of BLAS costs what the calls cost


@njit(**OPTIONS)
def _products(K, r, q, times):
    for step in range(times):
        symmetric_product(K, r, q, step % 2 == 1)


def product_rows() -> Iterator[Row]:
    """The product by K over the whole step, and half of K read again and again"""
    for n, T, d in SIZES:
        problem = problem_of(make_data(n, T, d))
        N = problem.N
        steps = steps_for(lambda k, problem=problem: Run(problem, "span", k)(), 0.04)
        whole = Run(problem, "span", steps)
        vectors = (whole.engine.W.matrix, np.ones(N), np.empty(N))  # K where the engine has it
        half = np.ones(N * (N + 1) // 2)
        called = {
            "alone": whole,
            "product": lambda: _products(*vectors, steps),  # noqa: B023
            "read": lambda: [half @ half for _ in range(steps)],  # noqa: B023
        }
        micro = {name: 1e6 * time / steps for name, time in relative(called, "alone").items()}
        facts = {"N": N, "alone us": micro["alone"], "product us": micro["product"]}
        name = f"product by K over the whole step, N' = {N}"
        yield Row(name, micro["product"] / micro["alone"], unit="", facts=facts)
        if half.nbytes > CACHE:
            name, facts = (
                f"half of K read again and again, N' = {N}",
                {"N": N, "bytes": half.nbytes},
            )
            yield Row(name, 1e-3 * half.nbytes / micro["read"], unit=" GB/s", facts=facts)
