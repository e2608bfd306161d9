"""Many runs advanced together on one device: data sets times rules, starts or losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from .._validate import as_device
from ..rules import Rule
from . import recording
from .batched_setup import fixed_of, places, require_grid, require_memory, require_records, state_of
from .batched_step import iteration
from .problem import Problem
from .recording import RUNNING

CHUNK = 64  # plain iterations in one CUDA graph


def batched_bytes(S: int, R: int, n: int, T: int, count: int) -> int:
    """Memory that `BatchedRuns` takes on its device, at most.

    Parameters
    ----------
    S, R : int
        Data sets, and runs on each.
    n, T : int
        Sequences and tokens of one data set.
    count : int
        Recorded iterations.

    Examples
    --------
    >>> from attnbias.dynamics.batched import batched_bytes
    >>> batched_bytes(256, 4, 20, 10, 200) < 2**28  # 63 MB of them Gram matrices
    True
    """
    N = n * (T - 1)
    # what is alive at once in an eager iteration: arrays of (S, R, N), of pairs of tokens, of runs
    rows = N * N + 4 * N + R * (30 * N + 5 * n * T * T + 12 * n + 40) + n * T * T
    return 8 * S * (rows + 2 * R * count * recording.RECORDS)


class BatchedRuns:
    """S x R runs advanced together on one device, in span coordinates.

    Parameters
    ----------
    problems : S sequences of R Problem
        All of one shape (n, T). Those of one data set s share rows and scores and may differ in
        start, target and loss (exponential or logistic).
    rules : S sequences of R Rule
        Without decay and normalise="shared", which joint training has.
    wanted : (steps + 1,) integers
        Record row of each iteration, negative for none.
    records : (S, R, count, RECORDS) float64 array
        Filled by `run`: the first columns of `recording`, no logit gaps.
    device : optional
        By default that of the problems.
    compile : bool, optional
        Whether torch.compile fuses an iteration; by default on CUDA alone.

    Attributes
    ----------
    statuses, steps : (S, R) arrays
        RUNNING, ZERO_GRADIENT or DIVERGED of `recording`, and the iteration reached; a stopped run
        stays as it is.

    Raises
    ------
    ShapeError, DtypeError, RangeError, DeviceError, MemoryLimitError
        Before anything is allocated.

    Notes
    -----
    Semantics of each run are those of `TorchEngine`, with compensated sums, all in float64. On
    CUDA, iterations are replayed from graphs and the host waits once a call of `run`.
    """

    def __init__(
        self,
        problems: Sequence[Sequence[Problem]],
        rules: Sequence[Sequence[Rule]],
        wanted: np.ndarray,
        records: np.ndarray,
        device=None,
        compile: bool | None = None,
    ):
        require_grid(problems, rules)
        require_records((len(problems), len(problems[0])), wanted, records)
        first = problems[0][0]
        self.device = as_device("device", first.start.device if device is None else device)
        n, m = first.scores.delta.shape
        require_memory(batched_bytes(*records.shape[:2], n, m + 1, records.shape[2]), self.device)
        self.problems, self.wanted, self.records = problems, wanted, records
        self.fixed = fixed_of(problems, rules, wanted, self.device)
        self.state = state_of(self.fixed, records)
        cuda = self.device.type == "cuda"
        compile = cuda if compile is None else compile
        self.iteration = _compiled(iteration) if compile else iteration
        self.graphs = self._capture() if cuda else None
        self._publish()

    def run(self, step: int, last: int) -> None:
        """Advance all runs from iteration `step` to `last`; what the host sees is then up to date.

        At `last` the gradient is taken and recorded, but no step follows.
        """
        if not (self.statuses == RUNNING).any():
            return
        state = self.state
        state.steps.copy_(state.steps.masked_fill(state.status == RUNNING, step))
        state.cursor.fill_(int((self.wanted[:step] >= 0).sum()))
        for plain, recorded in _stretches(self.wanted, step, last):
            self.advance(plain, recorded)
        self.iteration(self.fixed, state, bool(self.wanted[last] >= 0), False)
        self._publish()

    def advance(self, plain: int, recorded: bool = False) -> None:
        """So many iterations without a record, and perhaps one with it; from graphs on CUDA."""
        if self.graphs is None:
            for k in range(plain + recorded):
                self.iteration(self.fixed, self.state, k == plain, True)
            return
        one, chunk, record_one = self.graphs
        for graph in [chunk] * (plain // CHUNK) + [one] * (plain % CHUNK) + [record_one] * recorded:
            graph.replay()

    def _capture(self) -> list[torch.cuda.CUDAGraph]:
        """An iteration, `CHUNK` of them, and a recorded one as CUDA graphs, of one scratch.

        Warm-up on a side stream compiles and allocates; it runs real iterations, so the state is
        put back after each.
        """
        saved = [part.clone() for part in self.state]
        forms = [(1, False), (CHUNK, False)] + [(1, True)] * bool(len(self.fixed.order))

        def repeat(count: int, recorded: bool) -> None:
            for _ in range(count):
                self.iteration(self.fixed, self.state, recorded, True)

        graphs = []
        with torch.cuda.device(self.device):
            pool, side = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
            for form in forms:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(3):
                        repeat(*form)
                        for part, old in zip(self.state, saved, strict=True):
                            part.copy_(old)
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool):
                    repeat(*form)
                graphs.append(graph)
        return [*graphs, None][:3]

    def _publish(self) -> None:
        """Copy to the host what a caller sees; the one wait for the device."""
        self.records[...] = self.state.records.permute(1, 2, 0, 3).cpu().numpy()
        self.statuses = self.state.status.cpu().numpy()
        self.steps = self.state.steps.cpu().numpy()

    def matrix(self, s: int, r: int) -> torch.Tensor:
        """(d, d) iterate of one run, on the device of its problem."""
        problem = self.problems[s][r]
        beta = self.state.beta[s, r].to(problem.start.device)
        return problem.start + problem.rows.combine(beta[places(problem)])


def _stretches(wanted: np.ndarray, step: int, last: int) -> Iterator[tuple[int, bool]]:
    """(plain iterations, whether a recorded one follows), from `step` up to `last`."""
    for mark in np.flatnonzero(wanted[step:last] >= 0) + step:
        yield int(mark) - step, True
        step = int(mark) + 1
    yield last - step, False


def _compiled(function: Callable) -> Callable:
    # each object its own compiled forms: shapes of others must not use up torch's limit
    isolated = {"isolate_recompiles": True}  # of newer torch
    if not isolated.keys() <= inspect.signature(torch.compile).parameters.keys():
        isolated = {}
    return torch.compile(function, fullgraph=True, dynamic=False, **isolated)
