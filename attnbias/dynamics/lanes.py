"""The product of one symmetric matrix with several vectors, each entry read once for all.

The vectors lie interleaved, entries 2h and 2h + 1 of vector r at [h, r], so that a vector
register holds a pair of entries of four of them. A vector's lanes take the same operations in
the same order whatever the others hold: its product does not depend on its company, bit for
bit. Pairs, so that four vectors fill a register: alone they would run at half the speed.

Written in vector instructions, since the compiler's own choice for a loop over lanes is to
keep the accumulators in memory. Without AVX-512 a register is two, with the same numbers.
"""

from __future__ import annotations

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .compiled import jit, jit_inline

BLOCK = 8  # rows of the matrix at a time, an accumulator each
NARROW, WIDE = 4, 8  # vectors at a time: in one register or in two
_AHEAD = 64  # columns by which memory is asked beforehand: 1.8 times faster at N = 3000
_FUSE = ("contract",)
_INT, _PAIR = ir.IntType(32), ir.VectorType(ir.DoubleType(), 2)
_LANES = ir.VectorType(ir.DoubleType(), 2 * NARROW)
# of four pairs: their first entries, twice each, and their second ones
_FIRST, _SECOND = [0, 0, 2, 2, 4, 4, 6, 6], [1, 1, 3, 3, 5, 5, 7, 7]
# of the pairs of two registers: the first entries of both in turn, and the second ones
_FIRSTS, _SECONDS = [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]


def _on_cache_lines(size: int) -> np.ndarray:
    """Zeros on a 64-byte boundary."""
    raw = np.zeros(size + 8)
    skip = -(raw.ctypes.data // 8) % 8
    return raw[skip : skip + size]


def pack_lower(matrix: torch.Tensor) -> np.ndarray:
    """The lower triangle in the order of reading: blocks of 8 rows, pairs of columns in turn.

    Block b begins at 32 b (b + 1) and holds columns 0 to 8 b + 7; padding is zero.
    """
    N, at = len(matrix), 0
    blocks = -(-N // BLOCK)
    packed = _on_cache_lines(BLOCK * BLOCK * blocks * (blocks + 1) // 2)
    for first in range(0, N, BLOCK):
        part = np.zeros((BLOCK, first + BLOCK))
        known = matrix[first : first + BLOCK, : first + BLOCK].numpy()
        part[: known.shape[0], : known.shape[1]] = known
        packed[at : at + part.size] = part.reshape(BLOCK, -1, 2).transpose(1, 0, 2).ravel()
        at += part.size
    return packed


def interleaved(N: int, width: int) -> np.ndarray:
    """Room for `width` vectors of N entries and padding, zero."""
    pairs = -(-N // BLOCK) * BLOCK // 2
    return _on_cache_lines(2 * pairs * width).reshape(pairs, width, 2)


@jit_inline
def put_vector(V, r, v):
    """Vector r of V = v."""
    for h in range(v.shape[0] // 2):
        V[h, r, 0] = v[2 * h]
        V[h, r, 1] = v[2 * h + 1]
    if v.shape[0] % 2:
        V[v.shape[0] // 2, r, 0] = v[v.shape[0] - 1]


@jit_inline
def take_vector(V, r, v):
    """v = vector r of V."""
    for h in range(v.shape[0] // 2):
        v[2 * h] = V[h, r, 0]
        v[2 * h + 1] = V[h, r, 1]
    if v.shape[0] % 2:
        v[v.shape[0] - 1] = V[v.shape[0] // 2, r, 0]


class _Emit:
    """Instructions of a block's product, with `tiles` registers for the pairs of all vectors."""

    def __init__(self, builder, tiles: int, index_type):
        self.builder, self.tiles, self.index_type = builder, tiles, index_type
        self.zero = ir.Constant(_LANES, [0.0] * (2 * NARROW))

    def number(self, value: int):
        return ir.Constant(self.index_type, value)

    def spot(self, array, pair, tile: int):
        """Where a pair of entries of four vectors stands."""
        first = self.builder.mul(pair, self.number(2 * NARROW * self.tiles))
        at = self.builder.add(first, self.number(2 * NARROW * tile))
        return self.builder.bitcast(self.builder.gep(array, [at]), _LANES.as_pointer())

    def load(self, pointer):
        return self.builder.load(pointer, align=8)

    def pick(self, one, two, lanes: list[int]):
        """The named lanes of two registers."""
        mask = ir.Constant(ir.VectorType(_INT, len(lanes)), lanes)
        return self.builder.shuffle_vector(one, two, mask)

    def broadcast_pair(self, pointer):
        """Two numbers in a row, for all four vectors."""
        pair = self.load(self.builder.bitcast(pointer, _PAIR.as_pointer()))
        return self.pick(pair, pair, [0, 1] * NARROW)

    def add_product(self, a, b, total):
        """a b + total, in one instruction where the processor has it."""
        product = self.builder.fmul(a, b, flags=_FUSE)
        return self.builder.fadd(product, total, flags=_FUSE)

    def prefetch(self, pointer) -> None:
        byte = ir.IntType(8).as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
        call = self.builder.module.declare_intrinsic("llvm.prefetch", [byte], signature)
        hints = [ir.Constant(_INT, hint) for hint in (0, 3, 1)]  # to read, to keep, data
        self.builder.call(call, [self.builder.bitcast(pointer, byte), *hints])

    def columns(self, packed, v, q, pair, own, sums) -> None:
        """Two columns of a block: sums += K_pair v_pair, and q_pair += own' K_pair if there."""
        line = self.builder.gep(packed, [self.builder.mul(pair, self.number(2 * BLOCK))])
        for half in (0, BLOCK):
            ahead = self.number(BLOCK * _AHEAD + half)
            self.prefetch(self.builder.gep(line, [ahead]))
        spots = [self.spot(q, pair, t) for t in range(self.tiles)]
        x = [self.load(self.spot(v, pair, t)) for t in range(self.tiles)]
        # two sums, so that neither is a chain of eight
        image = [[self.load(spot) if own else None, self.zero] for spot in spots]
        for b in range(BLOCK):
            k = self.broadcast_pair(self.builder.gep(line, [self.number(2 * b)]))
            for t in range(self.tiles):
                total = self.add_product(k, x[t], self.builder.load(sums[b][t]))
                self.builder.store(total, sums[b][t])
                if own:
                    image[t][b % 2] = self.add_product(k, own[b][t], image[t][b % 2])
        for two, spot in zip(image, spots, strict=True):
            if own:
                self.builder.store(self.builder.fadd(*two), spot, align=8)

    def own_entries(self, v, pair) -> list[list]:
        """The vectors' entries at the block's rows, each in both places of its pair."""
        rows = []
        for b in range(BLOCK):
            at = self.builder.add(pair, self.number(b // 2))
            pairs = [self.load(self.spot(v, at, t)) for t in range(self.tiles)]
            rows.append([self.pick(two, two, _SECOND if b % 2 else _FIRST) for two in pairs])
        return rows

    def store_sums(self, q, pair, sums) -> None:
        """q at the block's rows: the sums over even columns plus those over odd ones."""
        for b in range(0, BLOCK, 2):
            at = self.builder.add(pair, self.number(b // 2))
            for t in range(self.tiles):
                two = [self.builder.load(row[t]) for row in sums[b : b + 2]]
                total = self.builder.fadd(self.pick(*two, _FIRSTS), self.pick(*two, _SECONDS))
                self.builder.store(total, self.spot(q, at, t), align=8)


@intrinsic(prefer_literal=True)
def _block_product(_typing, packed, V, Q, at, row, width):
    """What rows `row` to `row + 7` of the matrix, and their mirror image, give to Q = K V."""
    tiles = width.literal_value // NARROW

    def codegen(context, builder, signature, args):
        emit = _Emit(builder, tiles, args[4].type)
        arrays = zip(signature.args[:3], args[:3], strict=True)
        packed, v, q = [cgutils.create_struct_proxy(t)(context, builder, a).data for t, a in arrays]
        packed = builder.gep(packed, [args[3]])
        first, one = builder.lshr(args[4], emit.number(1)), emit.number(1)
        end = builder.add(first, emit.number(BLOCK // 2))
        own = emit.own_entries(v, first)
        sums = [
            [cgutils.alloca_once_value(builder, emit.zero) for _ in range(tiles)]
            for _ in range(BLOCK)
        ]
        with cgutils.for_range_slice(builder, emit.number(0), first, one) as (pair, _):
            emit.columns(packed, v, q, pair, own, sums)
        with cgutils.for_range_slice(builder, first, end, one) as (pair, _):
            emit.columns(packed, v, q, pair, None, sums)
        emit.store_sums(q, first, sums)
        return context.get_dummy_value()

    return types.void(packed, V, Q, at, row, width), codegen


@jit
def lane_product(packed, V, Q):
    """Q = K V for K from `pack_lower`, V and Q from `interleaved`, `NARROW` or `WIDE`.

    Blocks ascend: one writes its own rows of Q before the later ones add to them.
    """
    at = 0
    for row in range(0, 2 * V.shape[0], BLOCK):
        if V.shape[1] == WIDE:
            _block_product(packed, V, Q, at, row, WIDE)
        else:
            _block_product(packed, V, Q, at, row, NARROW)
        at += BLOCK * (row + BLOCK)
