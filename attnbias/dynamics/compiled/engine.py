"""The compiled engine: a problem on the CPU as arrays for `loop`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from ...rules import Rule
from .. import recording
from ..problem import JointProblem, Parameter, Problem, moved_by
from .coordinates import STATE, DecoderArrays, DenseArrays, FactoredArrays, SpanArrays
from .loop import Law, Log, loop
from .softmax import ScoreArrays, Softmax

BLOCK = 24576  # numbers of a block's tokens, 200 kB
LINE = 64  # bytes of a cache line


def padded(matrix: torch.Tensor) -> np.ndarray:
    """A copy with rows padded with zeros to whole cache lines."""
    rows, columns = matrix.shape
    copy = np.zeros((rows, -(-columns // 8) * 8))
    copy[:, :columns] = matrix.numpy()
    return copy


def padded_square(matrix: torch.Tensor) -> np.ndarray:
    """`padded`, with the rows padded as the columns are."""
    extra = -len(matrix) % 8
    return padded(torch.nn.functional.pad(matrix, (0, extra, 0, extra)))


def first_rows(rows) -> np.ndarray:
    """(n + 1,) where each sequence's rows begin, and the end."""
    counts = torch.bincount(rows.sequence, minlength=len(rows.queries))
    return np.concatenate([[0], counts.cumsum(0).numpy()])


def span(part: Parameter, matrix: np.ndarray, weights: np.ndarray) -> SpanArrays:
    """W or u in span coordinates, at its start."""
    x, target = part.initial_gaps.numpy(), (*part.target_span, part.start_scalars.flatten())
    held = (x.copy(), *(np.zeros_like(x) for _ in range(5)), x)
    held = (*held, *(each.contiguous().numpy() for each in target))
    size = part.scaled.size.numpy()
    return SpanArrays(matrix, weights, np.zeros_like(x), *held, np.zeros_like(x), size)


def factored(part: Parameter, weights: np.ndarray, blocks: int) -> FactoredArrays:
    """W in span coordinates, without its Gram matrix."""
    queries = part.scaled.rows.queries
    form = span(part, (queries @ queries.T).numpy(), weights)._replace(blocks=blocks)
    rows = padded(part.scaled.rows.differences)
    R = np.zeros((len(queries), rows.shape[1]))
    return FactoredArrays(*form, rows, R, np.zeros_like(R))


def dense(part: Parameter, blocks: int) -> DenseArrays:
    """W itself, at its start."""
    rows, queries = padded(part.scaled.rows.differences), padded(part.scaled.rows.queries)
    W, target = padded_square(part.start), padded_square(part.unit_target)
    G, Y, R = np.zeros_like(W), np.zeros_like(queries), np.zeros_like(queries)
    moved = (W, W.reshape(-1), np.zeros(W.size), G, G.reshape(-1))
    products, size = np.zeros(len(rows)), part.scaled.size.numpy()
    return DenseArrays(rows, queries, *moved, Y, R, target.reshape(-1), products, size, blocks)


def decoder(part: Parameter, weights: np.ndarray) -> DecoderArrays:
    """u itself, at its start."""
    rows = padded(part.scaled.rows.rows)
    u, target = padded(part.start[None])[0], padded(part.unit_target[None])[0]
    products, size = np.zeros(len(rows)), part.scaled.size.numpy()
    return DecoderArrays(
        rows, weights, u, np.zeros_like(u), np.zeros_like(u), target, products, size
    )


def in_one_block(*parts: NamedTuple | None) -> list[NamedTuple | None]:
    """The parts with copies of their arrays in one block, on 64-byte boundaries, shared as before.

    Which version of a loop LLVM's code takes, and so the last bit of a sum, may depend on how
    far arrays lie apart, and that of a product by BLAS on where they begin.
    """
    arrays = [each for part in parts for each in part or () if isinstance(each, np.ndarray)]
    places, size = {}, 0
    for owner in map(_owner, arrays):
        if id(owner) not in places:
            places[id(owner)] = size
            size += -(-owner.nbytes // LINE) * LINE
    raw = np.zeros(size + LINE, np.uint8)
    block = raw[-raw.ctypes.data % LINE :]

    def moved(array):
        if not isinstance(array, np.ndarray):
            return array
        owner = _owner(array)
        at = places[id(owner)] + array.ctypes.data - owner.ctypes.data
        copy = np.ndarray(array.shape, array.dtype, block, at)
        copy[...] = array
        return copy

    return [part and type(part)(*map(moved, part)) for part in parts]


def _owner(array: np.ndarray) -> np.ndarray:
    return array.base if isinstance(array.base, np.ndarray) else array


class CompiledEngine:
    """`loop` on numpy views of CPU tensors, for W alone or with u.

    Parameters
    ----------
    problem : Problem or JointProblem
    rule : Rule
    coordinates : {"span", "factored", "dense"}
    recorded, records : arrays
        The iterations to record, sorted, and a row for each.
    """

    name = "compiled"

    def __init__(self, problem, rule: Rule, coordinates: str, recorded, records):
        self.problem, self.coordinates, self.records = problem, coordinates, records
        nothing = (np.array(recording.NOTHING_SO_FAR) for _ in range(2))
        self.log = Log(np.append(recorded, [-1]), records, *nothing)
        self.law, self.softmax = law_of(problem, rule), Softmax.of(problem.N, problem.n)
        joint = isinstance(problem, JointProblem)
        self.u = self._decoder(problem.u) if joint else None
        self.scores = joint_scores(problem, self.u.products) if joint else fixed_scores(problem)
        self.W = self._matrix(problem.matrix)
        parts = in_one_block(self.softmax, self.scores, self.W, self.u)
        self.softmax, self.scores, self.W, self.u = parts

    def _matrix(self, part: Parameter):
        p, rows = self.softmax.p[: self.problem.N], part.rows.differences
        blocks = max(1, min(self.problem.n, rows.numel() // BLOCK))
        if self.coordinates == "dense":
            return dense(part, blocks)
        if self.coordinates == "factored":
            return factored(part, p, blocks)
        return span(part, padded(part.scaled.rows.gram()), p)

    def _decoder(self, part: Parameter):
        weights = np.zeros(len(part.rows.rows))
        if self.coordinates == "dense":
            return decoder(part, weights)
        return span(part, padded(part.scaled.rows.gram()), weights)

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached)."""
        row = int(np.searchsorted(self.log.recorded[:-1], step))
        moved = (self.W, self.u, self.log, (step, last, row))
        return loop(self.law, self.scores, self.softmax, *moved)

    def state_arrays(self) -> dict:
        forms = {"W": self.W} if self.u is None else {"W": self.W, "u": self.u}
        arrays = {
            f"{name}.{field}": getattr(form, field)
            for name, form in forms.items()
            for field in STATE[type(form)]
        }
        return arrays | {"progress": self.log.progress, "u_progress": self.log.u_progress}

    def marks(self) -> dict:
        """None: its rule and problem are known by their numbers."""
        return {}

    def restore(self, arrays: dict) -> None:
        for name, array in self.state_arrays().items():
            array[...] = arrays[name]

    def gaps(self) -> torch.Tensor:
        """(N',) logit gaps of W."""
        return torch.from_numpy(self.W.products.copy())

    def matrix(self) -> torch.Tensor | Callable[[], torch.Tensor]:
        """W, or in coordinates of its rows what makes it, since it may be larger than all else."""
        part, form = self.problem.matrix, self.W
        if isinstance(form, DenseArrays):
            return torch.from_numpy(form.W[: self.problem.d, : self.problem.d].copy())
        beta = torch.from_numpy(form.beta.copy())
        return functools.partial(moved_by, part.start, part.scaled.rows, beta)

    def decoder(self) -> torch.Tensor:
        """u."""
        part, form = self.problem.u, self.u
        if isinstance(form, DecoderArrays):
            return torch.from_numpy(form.u[: len(part.start)].copy())
        return moved_by(part.start, part.scaled.rows, torch.from_numpy(form.beta.copy()))


def law_of(problem: Problem | JointProblem, rule: Rule) -> Law:
    """`rule` as the loop has it."""
    return Law(
        loss=problem.loss.compiled,
        log_scale=rule.log_scale,
        gap_power=rule.gap_power,
        norm_power=rule.norm_power,
        log_max_step=rule.log_max_step,
        log_floor_gap=problem.log_floor_gap(rule),
        momentum=float(rule.momentum),
        averaging=rule.averaging,
        separate=not rule.common_step,
        u_decay=float(rule.decay[0]),
        W_decay=float(rule.decay[1]),
    )


def fixed_scores(problem: Problem) -> ScoreArrays:
    """ScoreArrays of a decoder that stays."""
    start = first_rows(problem.rows)
    delta = problem.scores.delta[problem.rows.sequence, problem.column].numpy()
    uniform = np.array([len(set(part)) == 1 for part in np.split(delta, start[1:-1])])
    logs = (problem.scaled.log_size.numpy(), np.zeros(problem.n))
    return ScoreArrays(start, problem.scores.top.numpy(), delta, uniform, *logs)


def joint_scores(problem: JointProblem, x: np.ndarray) -> ScoreArrays:
    """ScoreArrays that are u's products x with its rows, and move with them."""
    n = problem.n
    logs = (part.scaled.log_size.numpy() for part in (problem.W, problem.u))
    return ScoreArrays(first_rows(problem.W.rows), x[:n], x[n:], np.zeros(n, bool), *logs)
