"""What `BatchedRuns` takes and how it is laid out on the device."""

from __future__ import annotations

import os

import numpy as np
import torch

from .._validate import short
from ..errors import DtypeError, MemoryLimitError, RangeError, ShapeError
from ..losses import LOGISTIC
from ..rules import Rule
from . import recording
from .batched_softmax import Fixed
from .batched_step import State
from .problem import Problem
from .request import require_floor


def require_grid(problems, rules) -> tuple[int, int]:
    """(S, R) of rectangles of problems and of rules that can run together."""
    lengths = [[len(row) for row in rows] for rows in (problems, rules)]
    widths = set(sum(lengths, []))
    if not len(problems) == len(rules) > 0 or len(widths) != 1 or widths == {0}:
        raise ShapeError(
            "problems and rules",
            expected="S rows of R entries each",
            got=f"rows of {short(lengths[0])} and {short(lengths[1])}",
            remedy="give each data set as many problems as rules, the same number for all",
        )
    for row, laws in zip(problems, rules, strict=True):
        for problem, rule in zip(row, laws, strict=True):
            _require_member(problem, rule)
            require_floor(problem, rule)
            _require_shape(problem, problems[0][0])
            _require_shared(problem, row[0])
    return len(problems), len(problems[0])


def _require_member(problem, rule) -> None:
    if not isinstance(problem, Problem) or not isinstance(rule, Rule):
        raise DtypeError(
            "problems and rules",
            expected="a Problem and a Rule at each place",
            got=f"{type(problem).__name__} and {type(rule).__name__}",
            remedy="Problem.of(data, loss, W0), and GD, NGD or Polyak",
        )
    if problem.loss.compiled is None:
        raise RangeError(
            "loss",
            expected="'exponential' or 'logistic' in batched runs",
            got=repr(problem.loss.name),
            remedy="run a loss of your own by train(engine='torch')",
        )
    if any(rule.decay) or rule.normalise == "shared":
        raise RangeError(
            "rule",
            expected="a rule without decay and normalise='shared', which joint training has",
            got=rule.name,
            remedy="leave them out",
        )


def _require_shape(problem: Problem, first: Problem) -> None:
    shape, wanted = problem.scores.delta.shape, first.scores.delta.shape
    if shape != wanted:
        raise ShapeError(
            "problems",
            expected=f"n and T - 1 of the first, {tuple(wanted)}",
            got=str(tuple(shape)),
            remedy="batch data sets of one shape; run the others apart",
        )


def _require_shared(problem: Problem, first: Problem) -> None:
    """The same rows and scores as the first run on the data set."""
    if problem is first:
        return
    pairs = [(problem.scores.top, first.scores.top), (problem.scores.delta, first.scores.delta)]
    if problem.rows is not first.rows:
        names = ("differences", "queries", "sequence", "token")
        pairs += [(getattr(problem.rows, name), getattr(first.rows, name)) for name in names]
    if not all(torch.equal(one, two) for one, two in pairs):
        raise RangeError(
            "problems",
            expected="one data set in each row: the same tokens, labels and decoder",
            got="others than those of the row's first problem",
            remedy="give every data set its own row",
        )


def require_records(S: int, R: int, wanted, records) -> None:
    """Rows to fill that are there."""
    shape = (S, R, None, recording.RECORDS)
    right = isinstance(records, np.ndarray) and records.dtype == np.float64 and records.ndim == 4
    if not right or records.shape[:2] != shape[:2] or records.shape[3] != shape[3]:
        raise ShapeError(
            "records",
            expected=f"a float64 array of shape ({S}, {R}, count, {recording.RECORDS})",
            got=f"{getattr(records, 'dtype', type(records).__name__)} "
            f"{getattr(records, 'shape', '')}",
            remedy="np.full((S, R, count, RECORDS), np.nan)",
        )
    right = isinstance(wanted, np.ndarray) and wanted.dtype.kind == "i" and wanted.ndim == 1
    if not right or wanted.size == 0 or wanted.max() >= records.shape[2]:
        raise RangeError(
            "wanted",
            expected=f"steps + 1 integers below the {records.shape[2]} rows of records",
            got=short(wanted),
            remedy="-1 for iterations without a record, else the row",
        )


def require_memory(needed: int, device: torch.device) -> None:
    """Room on the device, seen before anything is allocated."""
    room = _room(device)
    if needed > room:
        raise MemoryLimitError(
            f"{device}",
            expected=f"{needed / 2**30:.3g} GiB for these runs",
            got=f"{room / 2**30:.3g} GiB",
            remedy="advance fewer data sets at once, or record fewer iterations",
        )


def _room(device: torch.device) -> int:
    """Free memory of a GPU; of the CPU all of it, since caches give way."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def places(problem: Problem) -> torch.Tensor:
    """(N',) place of each row in the padded form."""
    return problem.rows.sequence * problem.scores.delta.shape[1] + problem.column


def _padded(problem: Problem, values: torch.Tensor) -> torch.Tensor:
    """(..., N) from values of the rows (..., N'), zero at padding."""
    out = values.new_zeros(*values.shape[:-1], problem.scores.delta.numel())
    out[..., places(problem)] = values
    return out


def _grams(problems: list[Problem], device) -> torch.Tensor:
    """(S, N, N), built one by one: only one more is alive beside them."""
    N = problems[0].scores.delta.numel()
    grams = torch.zeros(len(problems), N, N, dtype=torch.float64, device=device)
    for gram, problem in zip(grams, problems, strict=True):
        place = places(problem).to(device)
        gram[place[:, None], place] = problem.rows.gram().to(device)
    return grams


def fixed_of(problems, rules, wanted: np.ndarray, device: torch.device) -> Fixed:
    """The problems and rules on the device."""
    S, R, first = len(problems), len(problems[0]), [row[0] for row in problems]
    flat = [problem for row in problems for problem in row]
    laws = [rule for row in rules for rule in row]

    def table(values, *shape) -> torch.Tensor:
        table = torch.stack([torch.as_tensor(value, dtype=torch.float64) for value in values])
        return table.to(device).reshape(*shape, *table.shape[1:])

    def law(name: str) -> torch.Tensor:
        return table([getattr(rule, name) for rule in laws], S, R)

    ones = [_padded(problem, torch.ones_like(problem.initial_gaps)) for problem in first]
    logistic = [problem.loss.compiled == LOGISTIC.compiled for problem in flat]
    spans = table([_padded(p, torch.stack(p.target_span)) for p in flat], S, R)
    floors = [p.log_floor_gap(rule) for p, rule in zip(flat, laws, strict=True)]
    return Fixed(
        gram=_grams(first, device),
        valid=table(ones, S, 1).unflatten(-1, first[0].scores.delta.shape) > 0,
        delta=table([problem.scores.delta for problem in first], S, 1),
        top=table([problem.scores.top for problem in first], S, 1),
        start=table([_padded(problem, problem.initial_gaps) for problem in flat], S, R),
        target=spans[:, :, 0].contiguous(),
        margins=spans[:, :, 1].contiguous(),
        scalars=table([p.start_scalars for p in flat], S, R).permute(2, 0, 1).contiguous(),
        **{name: law(name) for name in ("log_scale", "gap_power", "norm_power", "momentum")},
        log_max_step=law("log_max_step"),
        log_floor_gap=table(floors, S, R),
        logistic=table(logistic, S, R, 1) > 0,
        order=torch.from_numpy(wanted[wanted >= 0].astype(np.int64)).to(device),
        exponential_runs=not all(logistic),
        logistic_runs=any(logistic),
        needs_gap=any(rule.gap_power != 0 for rule in laws),
        has_momentum=any(rule.momentum != 0 for rule in laws),
    )


def state_of(fixed: Fixed, records: np.ndarray) -> State:
    """The start of every run, with the records as they come."""

    def scalar(value=0.0, dtype=torch.float64) -> torch.Tensor:
        return torch.full(fixed.log_scale.shape, value, dtype=dtype, device=device)

    device, zeros = fixed.start.device, torch.zeros_like(fixed.start)
    speed = zeros if fixed.has_momentum else zeros[:0]
    progress = dict(path=scalar(), path_low=scalar(), longest=scalar(), least=scalar(1.0))
    return State(
        g=fixed.start.clone(),
        g_low=zeros.clone(),
        beta=zeros.clone(),
        beta_low=zeros.clone(),
        speed_g=speed.clone(),
        speed_beta=speed.clone(),
        **progress,
        status=scalar(recording.RUNNING, torch.int32),
        steps=scalar(0, torch.int64),
        records=torch.from_numpy(records).permute(2, 0, 1, 3).to(device, copy=True).contiguous(),
        cursor=torch.zeros(1, dtype=torch.int64, device=device),
    )
