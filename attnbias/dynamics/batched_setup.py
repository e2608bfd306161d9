"""What `BatchedRuns` takes, refused where it cannot run together, and laid out on the device."""

from __future__ import annotations

import os

import numpy as np
import torch

from .._validate import short
from ..errors import DtypeError, MemoryLimitError, RangeError, ShapeError
from ..losses import EXPONENTIAL, LOGISTIC
from ..rules import Rule
from . import recording
from .batched_step import Fixed, Mixed, State
from .problem import Problem
from .recording import RUNNING
from .request import require_floor


def require_grid(problems, rules) -> None:
    """Refuse anything but rectangles of problems and of rules that can run together."""
    lengths = [[len(row) for row in rows] for rows in (problems, rules)]
    widths = set(sum(lengths, []))
    if not len(problems) == len(rules) > 0 or len(widths) != 1 or widths == {0}:
        raise ShapeError(
            "problems and rules", expected="S rows of R entries each",
            got=f"rows of {short(lengths[0])} and {short(lengths[1])}",
            remedy="give each data set as many problems as rules, the same number for all",
        )  # fmt: skip
    for row, laws in zip(problems, rules, strict=True):
        for problem, rule in zip(row, laws, strict=True):
            _require_member(problem, rule)
            require_floor(problem, rule)
            _require_alike(problem, row[0], problems[0][0])


def _require_member(problem, rule) -> None:
    if not isinstance(problem, Problem) or not isinstance(rule, Rule):
        raise DtypeError(
            "problems and rules", expected="a Problem and a Rule at each place",
            got=f"{type(problem).__name__} and {type(rule).__name__}",
            remedy="Problem.of(data, loss, W0), and GD, NGD or Polyak",
        )  # fmt: skip
    if problem.loss.compiled is None or any(rule.decay) or rule.normalise == "shared":
        raise RangeError(
            "problems and rules",
            expected="the exponential or logistic loss, and no rule of joint training",
            got=f"{problem.loss.name!r} and {rule.name}",
            remedy="run a loss of your own by train(engine='torch'); leave out decay and 'shared'",
        )  # fmt: skip


def _require_alike(problem: Problem, of_row: Problem, first: Problem) -> None:
    """One shape in all, and in a row one data set."""
    shape, wanted = tuple(problem.scores.delta.shape), tuple(first.scores.delta.shape)
    if shape != wanted:
        raise ShapeError(
            "problems", expected=f"n and T - 1 of the first, {wanted}", got=str(shape),
            remedy="batch data sets of one shape; run the others apart",
        )  # fmt: skip
    names = ("differences", "queries", "sequence", "token")
    pairs = [(getattr(problem.rows, name), getattr(of_row.rows, name)) for name in names]
    pairs += [(problem.scores.top, of_row.scores.top), (problem.scores.delta, of_row.scores.delta)]
    if not all(one is two or torch.equal(one, two) for one, two in pairs):
        raise RangeError(
            "problems", expected="one data set in each row: the same tokens, labels and decoder",
            got="others than those of the row's first problem",
            remedy="give every data set its own row",
        )  # fmt: skip


def require_records(grid: tuple[int, int], wanted, records) -> None:
    """Refuse anything but rows to fill, and the place of each iteration among them."""
    got = f"{getattr(records, 'dtype', type(records).__name__)} {getattr(records, 'shape', '')}"
    right = isinstance(records, np.ndarray) and records.dtype == np.float64 and records.ndim == 4
    if not right or (*records.shape[:2], records.shape[3]) != (*grid, recording.RECORDS):
        raise ShapeError(
            "records", expected=f"float64 ({grid[0]}, {grid[1]}, count, {recording.RECORDS})",
            got=got, remedy="np.full((S, R, count, RECORDS), np.nan)",
        )  # fmt: skip
    right = isinstance(wanted, np.ndarray) and wanted.dtype.kind == "i" and wanted.ndim == 1
    if not right or wanted.size == 0 or wanted.max() >= records.shape[2]:
        raise RangeError(
            "wanted", expected=f"steps + 1 integers below the {records.shape[2]} rows of records",
            got=short(wanted), remedy="-1 for iterations without a record, else the row",
        )  # fmt: skip


def require_memory(needed: int, device: torch.device) -> None:
    """Room on the device, seen before anything is allocated."""
    room = _room(device)
    if needed > room:
        raise MemoryLimitError(
            f"{device}", expected=f"{needed / 2**30:.3g} GiB for these runs",
            got=f"{room / 2**30:.3g} GiB",
            remedy="advance fewer data sets at once, or record fewer iterations",
        )  # fmt: skip


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
    pairs = [pair for rows in zip(problems, rules, strict=True) for pair in zip(*rows, strict=True)]

    def table(values, *shape) -> torch.Tensor:
        table = torch.stack([torch.as_tensor(value, dtype=torch.float64) for value in values])
        return table.to(device).reshape(*shape, *table.shape[1:])

    laws = [
        (r.log_scale, r.gap_power, r.norm_power, r.log_max_step,
         p.log_floor_gap(r), r.momentum) for p, r in pairs
    ]  # fmt: skip
    ones = [_padded(problem, torch.ones_like(problem.initial_gaps)) for problem in first]
    spans = table([_padded(p, torch.stack(p.target_span)) for p, _ in pairs], S, R)
    logistic = table([p.loss.compiled == LOGISTIC.compiled for p, _ in pairs], S, R, 1) > 0
    return Fixed(
        gram=_grams(first, device),
        valid=table(ones, S, 1).unflatten(-1, first[0].scores.delta.shape) > 0,
        delta=table([problem.scores.delta for problem in first], S, 1),
        top=table([problem.scores.top for problem in first], S, 1),
        start=table([_padded(p, p.initial_gaps) for p, _ in pairs], S, R),
        target=spans[:, :, 0].contiguous(),
        margins=spans[:, :, 1].contiguous(),
        scalars=table([p.start_scalars for p, _ in pairs], S, R).permute(2, 0, 1).contiguous(),
        law=table(laws, S, R).permute(2, 0, 1).contiguous(),
        order=torch.from_numpy(wanted[wanted >= 0].astype(np.int64)).to(device),
        loss=Mixed(logistic) if logistic.any() else EXPONENTIAL,
    )


def state_of(fixed: Fixed, records: np.ndarray) -> State:
    """The start of every run, with the records as they come."""
    device, zeros = fixed.start.device, torch.zeros_like(fixed.start)
    rows = [fixed.start.clone(), *(zeros.clone() for _ in range(5))]
    runs = [torch.full(zeros.shape[:2], x, dtype=zeros.dtype, device=device) for x in (0, 0, 0, 1)]
    table = torch.from_numpy(records).permute(2, 0, 1, 3).to(device, copy=True).contiguous()
    status = torch.full(zeros.shape[:2], RUNNING, dtype=torch.int32, device=device)
    cursor = torch.zeros(1, dtype=torch.int64, device=device)
    return State(*rows, *runs, status, torch.zeros_like(status, dtype=torch.int64), table, cursor)
