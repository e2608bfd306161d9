"""Many runs advanced together on one device: data sets times rules, starts or losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from .._validate import as_device
from ..rules import Rule
from . import batched_step, recording
from .batched_setup import (
    fixed_of,
    places,
    require_grid,
    require_memory,
    require_records,
    state_of,
)
from .batched_softmax import Fixed
from .batched_step import State
from .problem import Problem

CHUNK = 64  # plain iterations in one CUDA graph
_ROWS = 44  # arrays of (S, R, N) alive at once in an eager iteration, most for T = 2
# each object its own compiled forms: shapes of other objects must not use up torch's limit
_ISOLATED = {
    name: True
    for name in inspect.signature(torch.compile).parameters
    if name == "isolate_recompiles"  # of newer torch
}


def batched_bytes(S: int, R: int, N: int, count: int) -> int:
    """Memory that `BatchedRuns` takes on its device, at most.

    Parameters
    ----------
    S, R : int
        Data sets, and runs on each.
    N : int
        Rows of one data set with padding, n (T - 1).
    count : int
        Recorded iterations.

    Examples
    --------
    >>> from attnbias.dynamics.batched import batched_bytes
    >>> round(batched_bytes(256, 4, 180, 200) / 2**20)  # MB, 63 of them Gram matrices
    161
    """
    rows = N * N + 4 * N + R * N * _ROWS + R * 64
    records = 2 * R * count * recording.RECORDS  # and a copy while graphs are captured
    return 8 * S * (rows + records)


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
    statuses : (S, R) array
        RUNNING, ZERO_GRADIENT or DIVERGED of `recording`; a stopped run stays as it is.
    steps : (S, R) array
        Iteration reached.

    Raises
    ------
    ShapeError, DtypeError, RangeError, DeviceError, MemoryLimitError
        Before anything is allocated.

    Notes
    -----
    Semantics of each run are those of `TorchEngine`, with compensated sums. All arithmetic is
    float64, which TF32 does not touch. On CUDA, iterations are replayed from graphs and the
    host waits once a call of `run`.
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
        self.S, self.R = require_grid(problems, rules)
        require_records(self.S, self.R, wanted, records)
        first = problems[0][0]
        self.device = as_device("device", first.start.device if device is None else device)
        N = first.scores.delta.numel()
        require_memory(batched_bytes(self.S, self.R, N, records.shape[2]), self.device)
        self.problems, self.wanted, self.records = problems, wanted, records
        self.fixed = fixed_of(problems, rules, wanted, self.device)
        self.state = state_of(self.fixed, records)
        self.pieces: _Pieces | _Graphs = _Pieces(self.fixed, self.state, compile)
        if self.device.type == "cuda":
            self.pieces = _Graphs(self.pieces, self.state)
        self._publish()

    def run(self, step: int, last: int) -> None:
        """Advance all runs from iteration `step` to `last`; what the host sees is then up to date.

        At `last` the gradient is taken and recorded, but no step follows.
        """
        if not (self.statuses == recording.RUNNING).any():
            return
        state = self.state
        running = state.status == recording.RUNNING
        state.steps.copy_(state.steps.masked_fill(running, step))
        state.cursor.fill_(int((self.wanted[:step] >= 0).sum()))
        for plain, recorded in _stretches(self.wanted, step, last):
            self.pieces.plain(plain)
            if recorded:
                self.pieces.recorded()
        self.pieces.look(bool(self.wanted[last] >= 0))
        self._publish()

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


class _Pieces:
    """An iteration in its variants, eager or compiled."""

    def __init__(self, fixed: Fixed, state: State, compile: bool | None):
        self.arguments = fixed, state
        if compile is None:
            compile = state.g.is_cuda
        self.make = _compiled if compile else lambda function: function
        self.plain_one = self.make(batched_step.plain_iteration)
        self.recorded_one = self.make(batched_step.recorded_iteration)
        self.plain_look = self.make(batched_step.plain_look)
        self.recorded_look = self.make(batched_step.recorded_look)

    def plain(self, count: int) -> None:
        for _ in range(count):
            self.plain_one(*self.arguments)

    def recorded(self) -> None:
        self.recorded_one(*self.arguments)

    def look(self, recorded: bool) -> None:
        (self.recorded_look if recorded else self.plain_look)(*self.arguments)


def _compiled(function: Callable) -> Callable:
    return torch.compile(function, fullgraph=True, dynamic=False, **_ISOLATED)


class _Graphs:
    """`_Pieces` captured as CUDA graphs: one iteration, `CHUNK` of them, and a recorded one.

    Warm-up on a side stream compiles and allocates; it runs real iterations, so the state is
    put back after each. A look happens once a call of `run` and is launched as it is.
    """

    def __init__(self, pieces: _Pieces, state: State):
        self.look = pieces.look
        with torch.cuda.device(state.g.device):
            saved = [part.clone() for part in state]
            pieces_of = [lambda: pieces.plain(1), lambda: pieces.plain(CHUNK)]
            pieces_of += [pieces.recorded] if len(pieces.arguments[0].order) else []
            pool = torch.cuda.graph_pool_handle()  # one scratch: they never run side by side
            graphs = [self._capture(piece, state, saved, pool) for piece in pieces_of]
        self.one, self.chunk, self.record = (*graphs, None)[:3]

    @staticmethod
    def _capture(piece: Callable, state: State, saved: list, pool) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                piece()
                for part, old in zip(state, saved, strict=True):
                    part.copy_(old)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            piece()
        return graph

    def plain(self, count: int) -> None:
        for _ in range(count // CHUNK):
            self.chunk.replay()
        for _ in range(count % CHUNK):
            self.one.replay()

    def recorded(self) -> None:
        self.record.replay()
