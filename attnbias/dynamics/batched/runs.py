"""The runs of many data sets times rules, starts or losses, and their layout on one device."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch

from ..._validate import as_device
from ...errors import RangeError
from ...losses import EXPONENTIAL, LOGISTIC
from ..arguments import require_floor
from ..problem import Problem, moved_by
from ..progress import NOTHING_SO_FAR, RUNNING
from .step import MEASURE, RECORDED, Fixed, Mixed, State, iteration

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
    >>> from attnbias.dynamics.batched.runs import batched_bytes
    >>> batched_bytes(256, 4, 20, 10, 200) < 2**28  # 63 MB of them Gram matrices
    True
    """
    # what is alive at once in an eager iteration: arrays of (S, R, N), of pairs of tokens, of runs
    N, pairs = n * (T - 1), n * T * T
    rows = N * N + 4 * N + R * (30 * N + 5 * pairs + 12 * n + 40) + pairs
    return 8 * S * (rows + 2 * R * count * len(RECORDED))


class BatchedRuns:
    """S x R runs advanced together on one device, in span coordinates.

    Parameters
    ----------
    problems : S sequences of R Problem
        All of one shape (n, T). Those of one data set s share rows and scores and may differ in
        start, target and loss (exponential or logistic).
    rules : S sequences of R Rule
        Without decay and normalise="shared", which joint training has.
    recorded : (count,) integers
        The iterations to record, sorted.
    device : optional
        By default that of the problems.
    compile : bool, optional
        Whether torch.compile fuses an iteration; by default on CUDA alone.

    Attributes
    ----------
    records : (S, R, count, 12) array
        Filled by `run`: the numbers that `records_of` names.
    statuses, steps : (S, R) arrays
        RUNNING, ZERO_GRADIENT or DIVERGED of `progress`, and the iteration reached; a stopped run
        stays as it is.

    Raises
    ------
    RangeError, DeviceError
        Before anything is allocated.

    Notes
    -----
    Semantics of each run are those of `Iteration`, with compensated sums, all in float64. On
    CUDA, iterations are replayed from graphs and the host waits once a call of `run`. That part
    has not run on a GPU yet; `make gpu` runs it.
    """

    def __init__(self, problems, rules, recorded, device=None, compile: bool | None = None):
        require_grid(problems, rules)
        start = problems[0][0].W.start
        self.device = as_device("device", start.device if device is None else device)
        self.problems, self.recorded = problems, recorded
        self.fixed = fixed_of(problems, rules, len(recorded), self.device)
        self.state = state_of(self.fixed, len(recorded))
        cuda = self.device.type == "cuda"
        self.iteration = _compiled() if (cuda if compile is None else compile) else iteration
        self.graphs = self._capture() if cuda else None
        self._publish()

    def run(self, step: int, last: int) -> None:
        """Advance all runs from iteration `step` to `last`; what the host sees is then up to date.

        At `last` the gradient is taken and recorded, but no step follows.
        """
        if not (self.statuses == RUNNING).any():
            return
        self.state.steps.masked_fill_(self.state.status == RUNNING, step)
        first, end = np.searchsorted(self.recorded, [step, last])
        self.state.cursor.fill_(int(first))
        for mark in self.recorded[first:end]:
            self.advance(int(mark) - step, True)
            step = int(mark) + 1
        self.advance(last - step)
        self.iteration(self.fixed, self.state, last in self.recorded[end:], False)
        self._publish()

    def advance(self, plain: int, recorded: bool = False) -> None:
        """So many iterations without a record, and perhaps one with it; from graphs on CUDA."""
        if self.graphs is None:
            for k in range(plain + recorded):
                self.iteration(self.fixed, self.state, k == plain, True)
            return
        one, chunk, *record_one = self.graphs
        for graph in [chunk] * (plain // CHUNK) + [one] * (plain % CHUNK) + record_one * recorded:
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
        return graphs

    def _publish(self) -> None:
        """Copy to the host what a caller sees; the one wait for the device."""
        self.records = self.state.records.permute(1, 2, 0, 3).cpu().numpy()
        self.statuses = self.state.status.cpu().numpy()
        self.steps = self.state.steps.cpu().numpy()

    def records_of(self, s: int, r: int) -> dict[str, np.ndarray]:
        """Of one run, under the names of `LinearHead.record`, without the products."""
        named = dict(zip(RECORDED, self.records[s, r].T, strict=True))
        measure = [named.pop(name) for name in MEASURE]
        return named | {"W_measure": np.stack(measure, axis=1)}

    def matrix(self, s: int, r: int) -> torch.Tensor:
        """(d, d) iterate of one run, on the device of its problem."""
        problem = self.problems[s][r]
        W, beta = problem.W, self.state.beta[s, r].to(problem.W.start.device)
        return moved_by(W.start, W.scaled.rows, beta[places(problem)])


def _compiled():
    # each object its own compiled forms: shapes of others must not use up torch's limit
    known = inspect.signature(torch.compile).parameters
    isolated: dict[str, Any] = {
        name: True for name in ("isolate_recompiles",) if name in known
    }  # of newer torch
    return torch.compile(iteration, fullgraph=True, dynamic=False, **isolated)


def require_grid(problems, rules) -> None:
    """Refuse what would give wrong numbers; lists of other sizes fail by themselves."""
    first = problems[0][0].scores.delta
    for row, laws in zip(problems, rules, strict=True):
        for problem, rule in zip(row, laws, strict=True):
            if problem.loss.compiled is None or any(rule.decay) or rule.normalise == "shared":
                raise RangeError(
                    "problems and rules",
                    expected="the exponential or logistic loss, and no rule of joint training",
                    got=f"{problem.loss.name!r} and {rule.name}",
                    remedy="train a loss of your own in torch; leave out decay and 'shared'",
                )
            require_floor(problem, rule)
            if problem.scores.delta.shape != first.shape or not _same_data(problem, row[0]):
                raise RangeError(
                    "problems",
                    expected="one n and T, and one data set a row: its tokens, labels, decoder",
                    got="another",
                    remedy="batch data sets of one shape, each in its own row",
                )


def _same_data(one: Problem, two: Problem) -> bool:
    names = ("differences", "queries", "sequence", "token")
    pairs = [(getattr(one.W.rows, name), getattr(two.W.rows, name)) for name in names]
    pairs += [(one.scores.top, two.scores.top), (one.scores.delta, two.scores.delta)]
    return all(a is b or torch.equal(a, b) for a, b in pairs)


def places(problem: Problem) -> torch.Tensor:
    """(N',) place of each row in the padded form."""
    sequence, column = problem.place
    return sequence * problem.scores.delta.shape[1] + column


def _padded(problem: Problem, values: torch.Tensor) -> torch.Tensor:
    """(..., N) from values of the rows (..., N'), zero at padding."""
    out = values.new_zeros(*values.shape[:-1], problem.scores.delta.numel())
    out[..., places(problem)] = values
    return out


def fixed_of(problems, rules, count: int, device: torch.device) -> Fixed:
    """The problems and rules on the device."""
    S, R, first = len(problems), len(problems[0]), [row[0] for row in problems]
    pairs = [pair for rows in zip(problems, rules, strict=True) for pair in zip(*rows, strict=True)]

    def table(values, *shape) -> torch.Tensor:
        table = torch.stack([torch.as_tensor(value, dtype=torch.float64) for value in values])
        return table.to(device).reshape(*shape, *table.shape[1:])

    N = first[0].scores.delta.numel()
    gram = torch.zeros(S, N, N, dtype=torch.float64, device=device)
    for each, problem in zip(gram, first, strict=True):  # one by one: one more is alive beside them
        place = places(problem).to(device)
        each[place[:, None], place] = problem.W.gram.to(device)
    laws = [
        (r.log_scale, r.gap_power, r.norm_power, r.log_max_step, p.log_floor_gap(r), r.momentum)
        for p, r in pairs
    ]
    ones = [_padded(problem, torch.ones_like(problem.W.initial_gaps)) for problem in first]
    sizes = [1 + _padded(problem, problem.W.scaled.size - 1) for problem in first]
    spans = table([_padded(p, torch.stack(p.W.target_span)) for p, _ in pairs], S, R)
    logistic = table([p.loss.compiled == LOGISTIC.compiled for p, _ in pairs], S, R, 1) > 0
    return Fixed(
        gram=gram,
        valid=table(ones, S, 1).unflatten(-1, first[0].scores.delta.shape) > 0,
        delta=table([problem.scores.delta for problem in first], S, 1),
        top=table([problem.scores.top for problem in first], S, 1),
        size=table(sizes, S, 1),
        log_size=table([problem.W.scaled.log_size for problem in first], S, 1),
        start=table([_padded(p, p.W.initial_gaps) for p, _ in pairs], S, R),
        target=spans[:, :, 0].contiguous(),
        margins=spans[:, :, 1].contiguous(),
        scalars=table([p.W.start_scalars for p, _ in pairs], S, R).permute(2, 3, 0, 1).contiguous(),
        law=table(laws, S, R).permute(2, 0, 1).contiguous(),
        order=torch.arange(count, device=device),
        loss=Mixed(logistic) if logistic.any() else EXPONENTIAL,
    )


def state_of(fixed: Fixed, count: int) -> State:
    """The start of every run, and room for so many records."""
    device, zeros = fixed.start.device, torch.zeros_like(fixed.start)
    rows = [fixed.start.clone(), *(zeros.clone() for _ in range(5))]
    runs = [torch.full_like(zeros[..., 0], value) for value in NOTHING_SO_FAR]
    table = zeros.new_full((count, *zeros.shape[:2], len(RECORDED)), torch.nan)
    status = torch.full(zeros.shape[:2], RUNNING, dtype=torch.int32, device=device)
    cursor = torch.zeros(1, dtype=torch.int64, device=device)
    return State(*[*rows, *runs, status, status.long() * 0, table, cursor])
