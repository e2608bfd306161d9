"""Coordinates of an iterate, compiled: how it gives its gaps, how a gradient moves it.

Every form has a function for each of these, and numba takes the one of the form's type:

    move        the part of a step that needs the whole gradient
    fill        the gaps x of the rows of some sequences, and the part of a step that lies in them
    combine     R_i = sum_k p_k (x_opt - x_k) of these sequences
    direction   the gradient, from its scaled weights; returns its squared norm
    measure     the squared norm of f times the iterate, its part along the target, the rest's
                squared norm; `measure_exactly` is the same without reassociation, under which the
                square of a large f would be formed
"""

from __future__ import annotations

from collections import namedtuple

from numba.extending import overload

from .arithmetic import (
    INLINE_SUM,
    OPTIONS,
    add_compensated,
    advance,
    dot,
    inline,
    inline_sum,
    matrix_product,
    measure_flat,
    multiply,
    rows_combine,
    rows_dot,
    scale_rows,
    symmetric_product,
)


class SpanArrays(
    namedtuple(
        "SpanArrays",
        "matrix weights q x x_low beta beta_low speed_x speed_beta x_0 alpha margin scalars "
        "products size blocks",
        defaults=[1],
    )
):
    """W = W_0 + sum_k beta_k z_k, or u alike, through its gaps x = x_0 + K beta, of `scaled` rows.

    matrix : K; x_low, beta_low : what rounding left of x and of beta; weights : p, scaled;
    q : K p; alpha, margin : coefficients and gaps of the unit target; scalars : |W_0|^2,
    <W_0, target> and the squared norm of the rest of W_0, then those of LIFT W_0; products : size
    times x, with the rows themselves; blocks : of sequences, each of which stays in cache while
    the loop passes over its rows twice.
    """


# The span without K: its gaps move by D_i (M R)_i, with the rows D = x_opt - x_tau, R_i = D_i' p_i
# and matrix = M = Z Z'. The gradient's norm is known before the second product, so that a step,
# its softmax and the next R_i share one pass over D_i.
FactoredArrays = namedtuple(
    "FactoredArrays",
    "matrix weights q x x_low beta beta_low speed_x speed_beta x_0 alpha margin scalars "
    "products size blocks rows R MR",
)


class DenseArrays(
    namedtuple(
        "DenseArrays",
        "rows queries W flat speed gradient flat_gradient Y R target products size blocks",
    )
):
    """W itself, d x d, beside its flat view; products, size D Y with Y = Z W', are made afresh."""


class DecoderArrays(
    namedtuple("DecoderArrays", "rows weights u low gradient target products size")
):
    """u itself, and its scores, products size B u; low : what rounding left of u."""


HELD = ("x", "x_low", "beta", "beta_low", "speed_x", "speed_beta")
STATE = {
    SpanArrays: HELD,
    FactoredArrays: HELD,
    DenseArrays: ("W", "speed"),
    DecoderArrays: ("u", "low"),
}


# --- of each form ----------------------------------------------------------------------------


def _move_span(form, step):
    if step.moving:
        advance(form.x, form.x_low, form.speed_x, step, form.q, 0, form.x.shape[0])
        advance(form.beta, form.beta_low, form.speed_beta, step, form.weights, 0, form.x.shape[0])
    multiply(form.x, form.size, form.products, 0, form.x.shape[0])


def _move_factored(form, step):
    pass  # its steps lie in the rows


def _move_dense(form, step):
    if step.moving:
        w, speed, g = form.flat, form.speed, form.flat_gradient
        if step.keep == 0.0 and step.extra == 0.0:
            for j in range(w.shape[0]):
                w[j] += step.own * g[j]
        else:
            for j in range(w.shape[0]):
                speed[j] = step.keep * speed[j] + step.own * g[j]
                w[j] += speed[j] + step.extra * g[j]
    matrix_product(form.queries, form.W.T, form.Y)


def _move_decoder(form, step):
    if step.moving:
        for k in range(form.u.shape[0]):
            add_compensated(form.u, form.low, k, step.own * form.gradient[k])
    rows_dot(form.rows, 0, form.rows.shape[0], form.u, form.products)
    multiply(form.products, form.size, form.products, 0, form.size.shape[0])


def _fill_span(form, step, start, a, b):
    pass


def _fill_factored(form, step, start, a, b):
    if step.moving:
        for i in range(a, b):
            rows_dot(form.rows, start[i], start[i + 1], form.MR[i], form.q)
        lo, hi = start[a], start[b]
        advance(form.x, form.x_low, form.speed_x, step, form.q, lo, hi)
        advance(form.beta, form.beta_low, form.speed_beta, step, form.weights, lo, hi)
    multiply(form.x, form.size, form.products, start[a], start[b])


def _fill_dense(form, step, start, a, b):
    for i in range(a, b):
        rows_dot(form.rows, start[i], start[i + 1], form.Y[i], form.products)
    multiply(form.products, form.size, form.products, start[a], start[b])


def _combine_span(form, p, start, a, b):
    pass


def _combine_dense(form, p, start, a, b):
    for i in range(a, b):
        rows_combine(form.rows, start[i], start[i + 1], p, form.R[i])


def _direction_span(form, scale, backwards):
    symmetric_product(form.matrix, form.weights, form.q, backwards)
    return dot(form.weights, form.q)


def _direction_factored(form, scale, backwards):
    norm2 = 0.0
    scale_rows(form.R, scale)
    matrix_product(form.matrix, form.R, form.MR)
    for i in range(form.R.shape[0]):
        norm2 += dot(form.R[i], form.MR[i])
    return norm2


def _direction_dense(form, scale, backwards):
    scale_rows(form.R, scale)
    matrix_product(form.R.T, form.queries, form.gradient)
    return dot(form.flat_gradient, form.flat_gradient)


def _direction_decoder(form, scale, backwards):
    rows_combine(form.rows, 0, form.rows.shape[0], form.weights, form.gradient)
    return dot(form.gradient, form.gradient)


def _measure_span(form, f):
    # the sum for the rest has a zero derivative in `along`, so that its rounding enters squared
    g, beta, g_0, m, at = form.x, form.beta, form.x_0, form.margin, 0 if f == 1.0 else 3
    along, scalars = 0.0, form.scalars
    norm2, along_0, across2 = scalars[at], scalars[at + 1], scalars[at + 2]
    for k in range(g.shape[0]):
        norm2 += (f * beta[k]) * (f * (g[k] + g_0[k]))
        along += form.alpha[k] * (f * g[k])
    for k in range(g.shape[0]):
        rest = (f * g[k] - along * m[k]) + (f * g_0[k] - along_0 * m[k])
        across2 += (f * beta[k] - (along - along_0) * form.alpha[k]) * rest
    return norm2, along, across2


_sum_flat, _exact_flat = inline_sum(measure_flat), inline(measure_flat)


def _measure_dense(form, f):
    return _sum_flat(form.flat, form.target, f)


def _measure_decoder(form, f):
    return _sum_flat(form.u, form.target, f)


def _measure_exactly_dense(form, f):
    return _exact_flat(form.flat, form.target, f)


def _measure_exactly_decoder(form, f):
    return _exact_flat(form.u, form.target, f)


_combine_factored, _measure_factored = _combine_dense, _measure_span
_measure_exactly_span = _measure_exactly_factored = _measure_span

# --- the generic ones ------------------------------------------------------------------------


def move(form, step): ...
def fill(form, step, start, a, b): ...
def combine(form, p, start, a, b): ...
def direction(form, scale, backwards): ...
def measure(form, f): ...
def measure_exactly(form, f): ...


def _by_type(task, options) -> None:
    """Let compiled calls of `task` be calls of the function of its first argument's type."""

    @overload(task, jit_options=options, strict=False)
    def choose(form, *others):
        return globals()[
            f"_{task.__name__}_{form.instance_class.__name__.removesuffix('Arrays').lower()}"
        ]


for _task in (move, fill, combine, direction, measure):
    _by_type(_task, INLINE_SUM)
_by_type(measure_exactly, OPTIONS)
