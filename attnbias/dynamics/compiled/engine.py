"""The compiled engine: a problem on the CPU as arrays for `loop`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...rules import Rule
from ..coordinates import LinearHead
from ..problem import Parameter, Problem
from ..progress import NOTHING_SO_FAR
from .coordinates import STATE, DecoderArrays, DenseArrays, FactoredArrays, SpanArrays
from .loop import Law, Log, Logs, Records, loop
from .softmax import ScoreArrays, Softmax

BLOCK = 24576  # numbers of a block's tokens, 200 kB
LINE = 64  # bytes of a cache line


def padded(matrix: torch.Tensor) -> np.ndarray:
    """A copy with rows padded with zeros to whole cache lines."""
    rows, columns = matrix.shape
    copy = np.zeros((rows, -(-columns // 8) * 8))
    copy[:, :columns] = matrix.numpy()
    return copy


def span(part: Parameter, weights: np.ndarray, matrix: np.ndarray | None = None) -> SpanArrays:
    """W or u in span coordinates, at its start; of K where no other matrix is given."""
    matrix = padded(part.gram) if matrix is None else matrix
    x, scalars = part.initial_gaps.numpy(), part.start_scalars.flatten().numpy()
    alpha, margins = part.target_span
    q, x_low, beta, beta_low, speed_x, speed_beta, products = map(np.zeros, [x.shape] * 7)
    moving = (q, x.copy(), x_low, beta, beta_low, speed_x, speed_beta)
    held = (x, alpha.numpy(), margins.numpy(), scalars, products, part.scaled.size.numpy())
    return SpanArrays(matrix, weights, *moving, *held)


def factored(part: Parameter, weights: np.ndarray, blocks: int) -> FactoredArrays:
    """W in span coordinates, without its Gram matrix."""
    queries, rows = part.scaled.rows.queries, padded(part.scaled.rows.differences)
    form = span(part, weights, (queries @ queries.T).numpy())._replace(blocks=blocks)
    R, MR = np.zeros((2, len(queries), rows.shape[1]))
    return FactoredArrays(*form, rows, R, MR)


def dense(part: Parameter, blocks: int) -> DenseArrays:
    """W itself, at its start."""
    rows, queries = padded(part.scaled.rows.differences), padded(part.scaled.rows.queries)
    extra = -len(part.start) % 8  # rows padded as columns are
    W, target = (
        padded(torch.nn.functional.pad(each, (0, 0, 0, extra)))
        for each in (part.start, part.unit_target)
    )
    G, Y, R = np.zeros_like(W), np.zeros_like(queries), np.zeros_like(queries)
    moved = (W, W.reshape(-1), np.zeros(W.size), G, G.reshape(-1))
    products, size = np.zeros(len(rows)), part.scaled.size.numpy()
    return DenseArrays(rows, queries, *moved, Y, R, target.reshape(-1), products, size, blocks)


def decoder(part: Parameter, weights: np.ndarray) -> DecoderArrays:
    """u itself, at its start."""
    rows = padded(part.scaled.rows.rows)
    u, target = padded(part.start[None])[0], padded(part.unit_target[None])[0]
    low, gradient = np.zeros_like(u), np.zeros_like(u)
    products, size = np.zeros(len(rows)), part.scaled.size.numpy()
    return DecoderArrays(rows, weights, u, low, gradient, target, products, size)


def in_one_block(*parts: Any) -> list[Any]:
    """The parts with copies of their arrays in one block, on 64-byte boundaries, shared as before.

    Which version of a loop LLVM's code takes, and so the last bit of a sum, may depend on how
    far arrays lie apart, and that of a product by BLAS on where they begin.
    """
    arrays = [each for part in parts for each in part or () if isinstance(each, np.ndarray)]
    owners = [each.base if isinstance(each.base, np.ndarray) else each for each in arrays]
    places: dict[int, int] = {}
    size = 0
    for owner in owners:
        if id(owner) not in places:
            places[id(owner)] = size
            size += -(-owner.nbytes // LINE) * LINE
    raw = np.zeros(size + LINE, np.uint8)
    block = raw[-raw.ctypes.data % LINE :]
    copies = []
    for array, owner in zip(arrays, owners, strict=True):
        offset = 0 if array is owner else array.ctypes.data - owner.ctypes.data
        copies.append(np.ndarray(array.shape, array.dtype, block, places[id(owner)] + offset))
        copies[-1][...] = array
    left = iter(copies)
    return [
        part and type(part)(*[next(left) if isinstance(x, np.ndarray) else x for x in part])
        for part in parts
    ]


class CompiledEngine:
    """`loop` on numpy views of CPU tensors, for W alone or with u.

    Parameters
    ----------
    problem : LinearHead
        In any coordinates; "factored" are the span's.
    rule : Rule
    recorded : array
        The iterations to record, sorted.
    """

    name = "compiled"

    def __init__(self, problem: LinearHead, rule: Rule, recorded: np.ndarray):
        self.problem, self.rule, self.coordinates = problem, rule, problem.coordinates
        data = problem.data
        self.records, self.log = records_of(data, recorded)
        self.law = law_of(data, rule)
        softmax = room_for(data)
        blocks = max(1, min(data.n, data.W.rows.differences.numel() // BLOCK))
        W: SpanArrays | FactoredArrays | DenseArrays
        if self.coordinates == "dense":
            W = dense(data.W, blocks)
        elif self.coordinates == "factored":
            W = factored(data.W, softmax.p[: data.N], blocks)
        else:
            W = span(data.W, softmax.p[: data.N])
        u = None
        if data.u is not None:
            make = decoder if self.coordinates == "dense" else span
            u = make(data.u, np.zeros(data.u.N))
        parts = in_one_block(softmax, scores_of(data, u), W, u)
        self.softmax, self.scores, self.W, self.u = parts

    def restart(self, problem: LinearHead) -> None:
        """Begin anew from another W_0 of the same problem, in the span."""
        fresh = span(problem.data.W, self.W.weights, self.W.matrix)
        for array, value in zip(self.W, fresh, strict=True):
            if array is not value and isinstance(array, np.ndarray):
                array[...] = value
        self.problem = problem
        self.records, self.log = records_of(problem.data, self.log.recorded[:-1])

    def run(self, step: int, last: int) -> tuple[int, int]:
        """Iterate; returns (status, step reached)."""
        row = int(np.searchsorted(self.log.recorded[:-1], step))
        moved = (self.W, self.u, self.log, (step, last, row))
        return loop(self.law, self.scores, self.softmax, *moved)

    @property
    def x(self) -> torch.Tensor:
        """A copy of the iterate, as the problem has it."""
        if self.coordinates != "dense":
            forms = [form for form in (self.u, self.W) if form is not None]
            return torch.from_numpy(np.hstack([np.stack([each.x, each.beta]) for each in forms]))
        d = self.problem.data.d
        u = [] if self.u is None else [self.u.u[None, :d]]
        return torch.from_numpy(np.concatenate([*u, self.W.W[:d, :d]]))

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Of W, and of u where it is trained, and what has accumulated."""
        forms = {"W": self.W} if self.u is None else {"W": self.W, "u": self.u}
        arrays = {
            f"{name}.{field}": getattr(form, field)
            for name, form in forms.items()
            for field in STATE[type(form)]
        }
        return arrays | {"progress": self.log.progress, "u_progress": self.log.u_progress}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back `state_arrays`."""
        for name, array in self.state_arrays().items():
            array[...] = arrays[name]

    def marks(self) -> dict[str, Any]:
        """None: its rule and problem are known by their numbers."""
        return {}


def room_for(problem: Problem) -> Softmax:
    """Arrays for what one iterate's softmax determines."""
    N, n = (8 * (-(-size // 8)) for size in (problem.N, problem.n))
    return Softmax(*[np.zeros(shape) for shape in (*[N] * 4, *[n] * 9, (3, n), (3, n))])


def records_of(problem: Problem, recorded: np.ndarray) -> tuple[dict[str, np.ndarray], Log]:
    """Room for what `LinearHead.record` and torch record, by name; and as `loop` has it."""
    count, parts = len(recorded), {"W": problem.W.N}
    if problem.u is not None:
        parts = {"u": problem.u.N} | parts
    logs = Logs(*np.full((len(Logs._fields), count), np.nan))
    steps = np.full((3, count, len(parts)), np.nan)
    records, made = logs._asdict(), {}
    records |= zip(Records._fields, steps if problem.u is not None else steps[..., 0], strict=False)
    for k, (name, N) in enumerate(parts.items()):
        measure, products = np.full((count, 4), np.nan), np.full((count, N), np.nan)
        made[name] = Records(*[*steps[..., k], measure, products])
        records |= {f"{name}_measure": measure, f"{name}_products": products}
    nothing = np.array([NOTHING_SO_FAR] * 2)
    return records, Log(
        np.append(recorded, [-1]), logs, made["W"], made.get("u", made["W"]), *nothing
    )


def law_of(problem: Problem, rule: Rule) -> Law:
    """`rule` as the loop has it."""
    powers = (rule.log_scale, rule.gap_power, rule.norm_power, rule.log_max_step)
    floor, (p, q) = problem.log_floor_gap(rule), map(float, rule.decay)
    joint = problem.u is not None
    how = (float(rule.momentum), rule.averaging, joint, not (joint and rule.common_step))
    return Law(problem.loss.compiled, *powers, floor, *how, u_decay=p, W_decay=q)


def scores_of(problem: Problem, u: SpanArrays | DecoderArrays | None) -> ScoreArrays:
    """Scores of a decoder that stays; or those of u, its products with its rows, which move."""
    rows, n = problem.W.rows, problem.n
    start = np.searchsorted(rows.sequence.numpy(), np.arange(n + 1))
    log_size = problem.W.scaled.log_size.numpy()
    if u is not None and problem.u is not None:
        log_u_size, none = problem.u.scaled.log_size.numpy(), np.zeros(n, bool)
        return ScoreArrays(start, u.products[:n], u.products[n:], none, log_size, log_u_size)
    delta = problem.scores.delta[problem.place].numpy()
    each = start[:-1]
    uniform = np.maximum.reduceat(delta, each) == np.minimum.reduceat(delta, each)
    top = problem.scores.top.numpy()
    return ScoreArrays(start, top, delta, uniform, log_size, np.zeros(n))
